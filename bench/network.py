# SPDX-License-Identifier: Apache-2.0
"""How much of a network of 10 Gbit/s is used by batches that workers send, between two network namespaces of this
machine: root is needed. Workers read arrays of pixels and do nothing else, so that they suffice."""

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

GBIT, MTU = 10.0, 9000
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


def counted(machines: two_machines.Machines, seconds: float) -> float:
    """Gbit/s sent by the worker's machine."""
    before, start = machines.sent_bytes(), time.perf_counter()
    time.sleep(seconds)
    return (machines.sent_bytes() - before) * 8e-9 / (time.perf_counter() - start)


def bare(machines: two_machines.Machines, seconds: float) -> float:
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
        gbit = counted(machines, max(o.seconds - 0.5, 0.5))
        return {**json.loads(trainer.stdout.readline()), "gbit": gbit}


def main() -> None:
    o = measure.arguments(__doc__).parse_args()
    if o.worker:
        return work(o.data, o.seconds, o.threads)
    if not two_machines.possible():
        sys.exit("needs root, ip and tc")
    import numpy as np

    load = os.getloadavg()[0]
    found: dict[str, list[Any]] = {"bare": [], "batches": []}
    with tempfile.TemporaryDirectory() as folder, two_machines.two_machines(GBIT, MTU) as machines:
        rng = np.random.default_rng(0)
        for i in range(ARRAYS):
            np.save(Path(folder, f"{i:04}.npy"), rng.integers(0, 255, SHAPE, dtype=np.uint8))
        for _ in range(o.rounds):
            found["bare"].append(bare(machines, min(o.seconds, 2.0)))
            found["batches"].append(taken(machines, folder, o))
    ceiling = statistics.median(found["bare"])
    spread = f"{ceiling:.2f} ({min(found['bare']):.2f} to {max(found['bare']):.2f})"
    lines = [
        "| | Gbit/s (least to most) | of the network | of bytes alone | at least | | images/s | CPU of the trainer |",
        "|---|---|---|---|---|---|---|---|",
        f"| bytes sent alone, over one connection | {spread} | {ceiling / GBIT:.2f} | | | | | |",
    ]
    rates = [r["gbit"] for r in found["batches"]]
    rate = statistics.median(rates)
    images, cpu, first = (statistics.median(r[k] for r in found["batches"]) for k in ("images", "cpu", "first"))
    lines.append(
        f"| batches of {o.threads} workers | {rate:.2f} ({min(rates):.2f} to {max(rates):.2f}) | {rate / GBIT:.2f} | "
        f"{rate / ceiling:.2f} | {LEAST} | {'reached' if rate >= LEAST * GBIT else '**missed**'} | {images:,.0f} | "
        f"{100 * cpu:.0f} % |"
    )
    text = f"""# Batches over a network

{__doc__}
Batches of {BATCH} x {SHAPE[0]}x{SHAPE[1]}x{SHAPE[2]} of uint8, {o.threads} workers of one thread; the program takes
them and does nothing with them. Both ends share the cores of this machine, which do the network's work, too. The cable
is a veth pair of {MTU} bytes a packet, which `tc` (tbf) limits to {GBIT:g} Gbit/s; bytes are those that the interface
has sent, headers included. Workers are processes with the connections that actors of Ray have, without Ray, whose own
processes would need these cores, too. First batch after {first:.1f} s. Medians of {o.rounds} interleaved rounds of
{o.seconds:g} s.

{chr(10).join(lines)}

{measure.versions("numpy")}. Load of the machine when it began: {load:.1f}.
{measure.machine()}
"""
    measure.write(o.out, "network.md", text)


if __name__ == "__main__":
    main()
