# SPDX-License-Identifier: Apache-2.0
"""Runs sources in workers for a long time, with failures, and fails if memory, descriptors or processes grow.

Three pipelines take turns: samples of varying sizes by fork, whole batches by spawn, an iterable by threads.
Occasionally a source raises, a worker is killed, an epoch is interrupted, or a pipeline is deleted and rebuilt.
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import signal
import time
from pathlib import Path

import numpy as np

from penstock import PipelineError, fn, pipeline_def

PAGE_MB = os.sysconf("SC_PAGE_SIZE") / 1e6
ALLOWED_MB = 24.0  # allocators and the pool take their time to settle
KEYS = ("main MB", "workers MB", "shared MB", "descriptors", "processes", "threads")


def varying(info):
    i = info.idx_in_epoch
    if i >= 4000:
        raise StopIteration
    if i % 997 == 996:
        raise KeyError(i)
    return np.full((i * 7919 % 60000 + 1,), i % 251, "u1"), np.int32([i])


def whole(i):
    return np.full((32, 64, 64, 3), i % 251, "u1"), [np.int32([i])] * 32


def endless():
    while True:
        yield [np.zeros((100, 100), "f4") for _ in range(16)]


def build(kind):
    method = {"samples": "fork", "batches": "spawn", "iterable": "thread"}[kind]

    @pipeline_def(batch_size=32, num_threads=2, py_num_workers=2, py_start_method=method)
    def pipe():
        if kind == "samples":
            return tuple(fn.external_source(varying, 2, batch=False, parallel=True, timeout=30))
        if kind == "batches":
            x, i = fn.external_source(whole, 2, batch=True, parallel=True, prefetch_queue_depth=2, layout=["HWC"])
            return fn.brightness(x, brightness=1.5), i
        return fn.external_source(endless, batch=True, parallel=True), fn.external_source(lambda i: np.ones((16, 1)))

    return pipe()


def resident(pid):
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_MB


def measure():
    gc.collect()
    children = [
        int(c) for t in os.listdir("/proc/self/task") for c in Path(f"/proc/self/task/{t}/children").read_text().split()
    ]
    shared = {}
    for fd in os.listdir("/proc/self/fd"):
        try:
            if "memfd:penstock" in os.readlink(f"/proc/self/fd/{fd}"):
                info = os.stat(f"/proc/self/fd/{fd}")
                shared[info.st_ino] = info.st_blocks * 512 / 1e6
        except FileNotFoundError:
            pass
    values = (
        resident("self"),
        sum(map(resident, children)),
        sum(shared.values()),
        len(os.listdir("/proc/self/fd")),
        len(children),
        len(os.listdir("/proc/self/task")),
    )
    return dict(zip(KEYS, values))


def step(pipes, draw, counts):
    kind = draw.choice(list(pipes))
    pipe, event = pipes[kind], draw.random()
    if event < 0.01 and pipe._workers.pids():
        os.kill(draw.choice(pipe._workers.pids()), signal.SIGKILL)
        counts["killed"] += 1
    elif event < 0.02:
        pipe.reset()
        counts["resets"] += 1
    elif event < 0.024:
        if draw.random() < 0.5:
            pipe.close()
        pipes[kind] = pipe = build(kind)
        counts["built"] += 1
    try:
        outputs = pipe.run()
        counts["batches"] += 1
        assert len(outputs[0]) == len(outputs[1]) or kind == "iterable"
    except StopIteration:
        pipe.reset()
        counts["epochs"] += 1
    except (PipelineError, KeyError) as e:
        if "none is left" in str(e):
            pipes[kind] = build(kind)
        counts["errors"] += 1


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--seconds", type=float, default=300)
    p.add_argument("--seed", type=int, default=0)
    o = p.parse_args()
    draw = random.Random(o.seed)
    pipes = {k: build(k) for k in ("samples", "batches", "iterable")}
    counts = dict.fromkeys(("batches", "epochs", "errors", "killed", "resets", "built"), 0)
    begin, rows = time.monotonic(), []
    print(" ".join(f"{k:>12}" for k in ("s", *KEYS)), flush=True)
    while (now := time.monotonic() - begin) < o.seconds:
        step(pipes, draw, counts)
        if now > len(rows) * o.seconds / 20:
            # The data in flight varies, except in newly built pipelines.
            for kind in pipes:
                pipes[kind].close()
                pipes[kind] = build(kind)
                for _ in range(8):
                    pipes[kind].run()
            rows.append(measure())
            print(f"{now:12.0f} " + " ".join(f"{v:12.1f}" for v in rows[-1].values()), flush=True)
    print(", ".join(f"{n} {k}" for k, n in counts.items()))
    early, late = rows[3:8], rows[-5:]
    for key in KEYS:
        before, after = (max(r[key] for r in part) for part in (early, late))
        allowed = before * 1.1 + ALLOWED_MB if "MB" in key else before
        assert after <= allowed, f"{key} grew from {before:.1f} to {after:.1f}"
    for pipe in pipes.values():
        pipe.close()
    print("flat")


if __name__ == "__main__":
    main()
