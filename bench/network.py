# SPDX-License-Identifier: Apache-2.0
"""How much of a network is used by batches that workers send, between two network namespaces of this machine: root is
needed. Workers read arrays of pixels and do nothing else, so that they suffice."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import measure

sys.path.append(str(measure.ROOT / "tests" / "cluster"))
import two_machines  # noqa: E402

JUDGED = 10.0  # Gbit/s
GBITS, MTU = (2.0, 5.0, JUDGED, 40.0), 9000  # the last one is more than these cores can carry
BATCH, SHAPE, ARRAYS = 64, (224, 224, 3), 256
LEAST = 0.9

BARE = """
import socket, sys
if sys.argv[1] == "receive":
    with socket.create_server((sys.argv[2], 9999)) as server:
        print(flush=True)
        sock, _ = server.accept()
        memory = bytearray(10 << 20)
        while sock.recv_into(memory, 0, socket.MSG_WAITALL):
            pass
else:
    memory = bytes(10 << 20)
    with socket.create_connection((sys.argv[2], 9999)) as sock:
        while True:
            sock.sendall(memory)
"""


def pipeline(folder: str, workers: Any) -> Any:
    from penstock import fn, pipeline_def

    @pipeline_def(batch_size=BATCH, num_threads=1, workers=workers, prefetch_queue_depth=4)
    def pipe() -> Any:
        return fn.readers.numpy(file_root=folder, file_filter="*.npy")

    return pipe()


def work(folder: str, seconds: float, workers: int) -> None:
    """On the trainer's machine: takes batches, prints when it begins to count, and then the result."""
    two_machines.workers_on(os.environ["WORKERS_MACHINE"])
    pipe = pipeline(folder, workers)
    start = time.perf_counter()
    pipe.run()
    first = time.perf_counter() - start
    end = time.perf_counter() + 1.0
    while time.perf_counter() < end:
        pipe.run()
    print("begin", flush=True)
    images, start, cpu = 0, time.perf_counter(), time.process_time()
    while (now := time.perf_counter()) < start + seconds:
        images += len(pipe.run()[0])
    rate = images / (now - start)
    print(json.dumps({"images": rate, "first": first, "cpu": (time.process_time() - cpu) / (now - start)}), flush=True)
    pipe.close()
    os._exit(0)


def counted(machines: two_machines.Machines, seconds: float) -> dict[str, float]:
    """Gbit/s sent by the worker's machine, and the processor time of both for a GB."""
    before, busy, start = machines.sent_bytes(), busy_s(), time.perf_counter()
    time.sleep(seconds)
    sent, took, busy = machines.sent_bytes() - before, time.perf_counter() - start, busy_s() - busy
    return {"gbit": sent * 8e-9 / took, "s_per_gb": busy / (sent * 1e-9)}


def busy_s() -> float:
    """Processor time of this machine so far, with that of interrupts, which belongs to no process."""
    user, nice, system, _, _, irq, softirq = map(int, Path("/proc/stat").read_text().split()[1:8])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def bare(machines: two_machines.Machines, seconds: float) -> dict[str, float]:
    command = [sys.executable, "-c", BARE]
    receive = machines.command(machines.trainer, *command, "receive", two_machines.TRAINER)
    with subprocess.Popen(receive, stdout=subprocess.PIPE) as receiver:
        assert receiver.stdout is not None
        receiver.stdout.readline()
        sender = subprocess.Popen(
            machines.command(machines.worker, *command, "send", two_machines.TRAINER), stderr=subprocess.DEVNULL
        )
        time.sleep(1.0)
        found = counted(machines, seconds)
        sender.terminate()
    return found


def taken(machines: two_machines.Machines, folder: str, o: Any) -> dict[str, float]:
    command = [sys.executable, __file__, "--worker", "trainer", "--data", folder, "--seconds", str(o.seconds)]
    command = machines.command(machines.trainer, *command, "--threads", o.threads)
    env = {**os.environ, "PYTHONPATH": str(measure.ROOT / "src"), "WORKERS_MACHINE": machines.worker}
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) as trainer:
        assert trainer.stdout is not None
        while "begin" not in (line := trainer.stdout.readline()):
            assert line, "the trainer ended"
        found = counted(machines, max(o.seconds - 0.5, 0.5))
        return {**json.loads(trainer.stdout.readline()), **found}


def median(rows: list[dict[str, float]], what: str) -> float:
    return statistics.median(r[what] for r in rows)


def main() -> None:
    o = measure.arguments(__doc__).parse_args()
    if o.worker:
        return work(o.data, o.seconds, o.threads)
    if not two_machines.possible():
        sys.exit("needs root, ip and tc")
    import numpy as np

    load = os.getloadavg()[0]
    found: dict[tuple[float, str], list[Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        rng = np.random.default_rng(0)
        for i in range(ARRAYS):
            np.save(Path(folder, f"{i:04}.npy"), rng.integers(0, 255, SHAPE, dtype=np.uint8))
        for _ in range(o.rounds):
            for gbit in GBITS:
                with two_machines.two_machines(gbit, MTU) as machines:
                    found.setdefault((gbit, "bytes"), []).append(bare(machines, min(o.seconds, 2.0)))
                    found.setdefault((gbit, "batches"), []).append(taken(machines, folder, o))
    lines = [
        "| network, Gbit/s | | Gbit/s (least to most) | of the network | of bytes alone | at least | | processor time "
        "for a GB, s | images/s | CPU of the trainer |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for gbit in GBITS:
        ceiling = median(found[gbit, "bytes"], "gbit")
        for what in ("bytes", "batches"):
            rows = found[gbit, what]
            rate, rates = median(rows, "gbit"), [r["gbit"] for r in rows]
            cells = [f"{gbit:g}", what, f"{rate:.2f} ({min(rates):.2f} to {max(rates):.2f})", f"{rate / gbit:.2f}"]
            judged = what == "batches" and gbit == JUDGED
            cells += [f"{rate / ceiling:.2f}"] if what == "batches" else [""]
            cells += [f"{LEAST}", "reached" if rate >= LEAST * gbit else "**missed**"] if judged else ["", ""]
            cells += [f"{median(rows, 's_per_gb'):.2f}"]
            more = (("images", ",.0f"), ("cpu", ".0%"))
            cells += [f"{median(rows, k):{form}}" if k in rows[0] else "" for k, form in more]
            lines.append(f"| {' | '.join(cells)} |")
    first = median(found[JUDGED, "batches"], "first")
    text = f"""# Batches over a network

{__doc__}
Batches of {BATCH} x {SHAPE[0]}x{SHAPE[1]}x{SHAPE[2]} of uint8, {o.threads} workers of one thread; the program takes
them and does nothing with them. Both ends share the cores of this machine, which do the network's work, too. The cable
is a veth pair of {MTU} bytes a packet, which `tc` (tbf) limits; bytes are those that the interface has sent, headers
included; "bytes" are sent alone, over one connection. Processor time is that of the whole machine. Workers are
processes with the connections that actors of Ray have, without Ray, whose own processes would need these cores, too.
First batch after {first:.1f} s. Medians of {o.rounds} interleaved rounds of {o.seconds:g} s.

{chr(10).join(lines)}

{measure.versions("numpy")}. Load of the machine when it began: {load:.1f}.
{measure.machine()}
"""
    measure.write(o.out, "network.md", text)


if __name__ == "__main__":
    main()
