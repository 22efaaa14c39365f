# SPDX-License-Identifier: Apache-2.0
"""Two machines that are network namespaces of this one, with a cable of limited speed, and a node of Ray on each."""

import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

TRAINER, WORKER = "10.77.0.1", "10.77.0.2"
PORT = 6399
_WAIT = f"""
import sys, time, ray
ray.init("{TRAINER}:{PORT}", log_to_driver=False, logging_level="ERROR")
while sum(node["Alive"] for node in ray.nodes()) < int(sys.argv[1]):
    time.sleep(0.2)
"""


def possible() -> bool:
    """Whether this process may make namespaces."""
    if os.geteuid() or not shutil.which("ip") or not shutil.which("tc"):
        return False
    name = f"pk{os.getpid()}"
    if subprocess.run(["ip", "netns", "add", name], capture_output=True).returncode:
        return False
    run("ip", "netns", "del", name)
    return True


def run(*command, **options):
    return subprocess.run([str(c) for c in command], check=True, **options)


class Machines:
    """`trainer` and `worker` are the names of the namespaces."""

    def __init__(self, gbit: float, mtu: int):
        self.trainer, self.worker = f"pk{os.getpid()}t", f"pk{os.getpid()}w"
        self._gbit, self._mtu = gbit, mtu

    def set_up(self) -> None:
        for name in (self.trainer, self.worker):
            run("ip", "netns", "add", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
        ends = [("cable", "netns", name) for name in (self.trainer, self.worker)]
        run("ip", "link", "add", *ends[0], "type", "veth", "peer", "name", *ends[1])
        for name, address in ((self.trainer, TRAINER), (self.worker, WORKER)):
            run("ip", "-n", name, "addr", "add", f"{address}/24", "dev", "cable")
            run("ip", "-n", name, "link", "set", "cable", "mtu", self._mtu, "up")
            rate = ("rate", f"{self._gbit}gbit", "burst", "4mb", "latency", "20ms")
            run("tc", "-n", name, "qdisc", "add", "dev", "cable", "root", "tbf", *rate)

    def command(self, name: str, *command) -> list[str]:
        """To run it on one of them."""
        return ["ip", "netns", "exec", name, *map(str, command)]

    def cable(self, state: str) -> None:
        """Plugs it in ("up"), or out ("down")."""
        run("ip", "-n", self.worker, "link", "set", "cable", state)

    def sent_bytes(self) -> int:
        """By the worker's machine so far."""
        text = run(*self.command(self.worker, "cat", "/sys/class/net/cable/statistics/tx_bytes"), capture_output=True)
        return int(text.stdout)

    def tear_down(self) -> None:
        for name in (self.trainer, self.worker):
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


@contextmanager
def two_machines(gbit: float = 10.0, mtu: int = 9000):
    machines = Machines(gbit, mtu)
    try:
        machines.set_up()
        yield machines
    finally:
        machines.tear_down()


@contextmanager
def cluster(machines: Machines, cpus: int, paths: list[str], store_mb: int = 400):
    """A node of Ray on each machine: the trainer's lets no worker run."""
    ray = Path(sys.executable).with_name("ray")
    folder = tempfile.mkdtemp(prefix="pk")  # short, as paths of sockets are limited
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "RAY_TMPDIR": folder}
    common = ["--object-store-memory", store_mb << 20, "--disable-usage-stats", "--block"]
    head = ["--head", "--port", PORT, "--node-ip-address", TRAINER, "--num-cpus", 0, "--include-dashboard", "false"]
    other = ["--address", f"{TRAINER}:{PORT}", "--node-ip-address", WORKER, "--num-cpus", cpus]
    nodes = []
    try:
        for name, what in ((machines.trainer, head + ["--temp-dir", folder]), (machines.worker, other)):
            command = machines.command(name, ray, "start", *what, *common)
            log = open(Path(folder, f"{name}.log"), "w")
            nodes.append(subprocess.Popen(command, env=env, stdout=log, stderr=log, start_new_session=True))
            waiting = machines.command(machines.trainer, sys.executable, "-c", _WAIT, len(nodes))
            for _ in range(20):
                if not subprocess.run(waiting, env=env, capture_output=True).returncode:
                    break
        yield env
    finally:
        for node in nodes:
            node.terminate()
        for node in nodes:
            try:
                node.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(node.pid, 9)
        shutil.rmtree(folder, ignore_errors=True)
