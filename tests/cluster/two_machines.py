# SPDX-License-Identifier: Apache-2.0
"""Two simulated machines: network namespaces connected by a cable of limited speed, with workers on one of them."""

import os
import pickle
import secrets
import shutil
import subprocess
import sys
from contextlib import contextmanager
from types import SimpleNamespace

TRAINER, WORKER = "10.77.0.1", "10.77.0.2"


def possible() -> bool:
    """Whether this process may create namespaces."""
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
        """The command line that runs a command on a machine."""
        return ["ip", "netns", "exec", name, *map(str, command)]

    def cable(self, state: str) -> None:
        """Connects ("up") or disconnects ("down") the cable."""
        run("ip", "-n", self.worker, "link", "set", "cable", state)

    def sent_bytes(self) -> int:
        """Bytes sent by the worker's machine so far."""
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


def serve() -> None:
    """Runs in a process on the worker's machine: does the same as a Ray actor, without Ray."""
    from penstock.cluster import ray_worker

    version, payload, token = pickle.load(sys.stdin.buffer)
    node = SimpleNamespace(get_node_id=lambda: "the worker's")
    util = SimpleNamespace(get_node_ip_address=lambda: WORKER)
    sys.modules["ray"] = SimpleNamespace(get_runtime_context=lambda: node, util=util)
    actor = ray_worker.RayWorker()
    error, described, _ = actor.open(version, payload)
    sys.stdout.buffer.write(pickle.dumps((error, described, actor.listen("the trainer's"))))
    sys.stdout.flush()
    actor.serve(token)
    os._exit(0)


def workers_on(machine: str) -> None:
    """Uses processes on that machine as this program's workers instead of Ray actors, over the same connections."""
    from penstock.cluster import local_link, ray_link

    class WorkerLink(local_link.LocalLink):
        def open(self):
            command = ["ip", "netns", "exec", machine, sys.executable, __file__]
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            token = secrets.token_bytes(32)
            pickle.dump((self._version, self._payload, token), self._process.stdin)
            self._process.stdin.close()
            error, theirs, address = pickle.load(self._process.stdout)
            assert not error, error
            local_link.check_described(self.name, self._expected, theirs)
            self._connection = ray_link.connected(address, token)
            assert self._connection is not None

    local_link.LocalLink = WorkerLink


if __name__ == "__main__":
    serve()
