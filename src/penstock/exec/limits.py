# SPDX-License-Identifier: Apache-2.0
"""Finds what limits a pipeline's speed, as one sentence with advice."""

from __future__ import annotations

import os
from typing import NamedTuple

from ..core.source import Source
from .plan import Plan
from .scheduling.statistics import Statistics

_KEEPS_UP = 0.05  # share of its time that the consumer may wait if the pipeline keeps up
_BUSY = 0.6  # busy share from which a part is considered the bottleneck


class Limit(NamedTuple):
    """A part that may be the bottleneck: its busy share, a description, and advice."""

    share: float
    what: str
    advice: str


class Threads(NamedTuple):
    """Number of native threads in this process, or in each of its workers."""

    each: int
    workers: int = 0

    def __str__(self) -> str:
        text = f"{self.each} thread{'s' * (self.each > 1)}"
        return text if not self.workers else f"{self.workers} worker{'s' * (self.workers > 1)} of {text}"

    @property
    def total(self) -> int:
        return self.each * max(self.workers, 1)


def limit(plan: Plan, s: Statistics, threads: Threads, gpu_ms: float, titles: dict[int, str]) -> str:
    """Returns the sentence. `gpu_ms`: a batch's time on the GPU; `titles`: names of nodes. Requires `s.lock`; `s` must
    be settled."""
    if not s.batches:
        return "Nothing was measured yet."
    ns = max(s.last - s.started, 1)
    waited = min((s.wait_ns + s.called_ns) / ns, 1.0)
    if waited < _KEEPS_UP:
        return f"The pipeline keeps up: the consumer waits {waited:.0%} of the time."
    found = max(_parts(plan, s, threads, ns, gpu_ms * s.batches * 1e6, titles))
    if found.share < _BUSY:
        return (
            f"The consumer waits {waited:.0%} of the time, and no part is busy for long ({found.what}): "
            "prepare more batches ahead (prefetch_queue_depth), or make larger ones."
        )
    return f"The consumer waits {waited:.0%} of the time; {found.what}: {found.advice}."


def _parts(plan: Plan, s: Statistics, threads: Threads, ns: int, gpu_ns: float, titles: dict[int, str]) -> list[Limit]:
    parts = [_threads(plan, s, threads, ns, titles)]
    for node in plan.nodes:
        title, op = titles[node.number], node.op
        source, python, load = (sums.get(node.number, 0) / ns for sums in (s.source_ns, s.python_ns, s.load_ns))
        if isinstance(op, Source):
            if op.called is not None:
                what = f"the source of {title} takes {source:.0%} of the time, in the thread that calls run()"
                parts.append(Limit(source, what, "give it background=True, or parallel=True to call it in processes"))
            elif op.sets_batch_size and not op.is_fed():
                what = f"the source of {title} takes {source:.0%} of the time"
                parts.append(Limit(source, what, "make it faster, or call it in processes (parallel=True)"))
            what = f"{title} waits {load:.0%} of the time for data"
            parts.append(Limit(load, what, "use faster storage, or keep what is read by URL on a disk (cache=)"))
        else:  # summed over two concurrent batches
            what = f"{title} takes {min(python, 1):.0%} of the time in Python"
            parts.append(Limit(python, what, "use other operators, or do this in a source with parallel=True"))
    planning = s.cpu_ns / ns
    parts.append(Limit(planning, f"Python takes {planning:.0%} of a core", "make larger batches"))
    if gpu_ns:
        busy = gpu_ns / ns
        parts.append(Limit(busy, f"the pipeline's work takes {busy:.0%} of the GPU's time", "do some of it on the CPU"))
    return parts


def _threads(plan: Plan, s: Statistics, threads: Threads, ns: int, titles: dict[int, str]) -> Limit:
    """The load of the native threads, and the operator that uses most of their time."""
    busy = sum(s.kernel_ns.values()) / ns / threads.total
    if not s.kernel_ns:
        return Limit(0.0, "the native threads are idle", "")
    number = max(s.kernel_ns, key=s.kernel_ns.__getitem__)
    share = s.kernel_ns[number] / ns / threads.total
    what = f"{titles[number]} takes {share:.0%} of the time of {threads}"
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if threads.total < cpus:
        advice = f"give more threads (num_threads; there are {cpus} CPUs)"
    else:
        advice = f"give it more than {cpus} CPUs"
    op = next(n.op for n in plan.nodes if n.number == number)
    return Limit(busy, what, advice + ", or move it to the GPU" * (not plan.uses_gpu and len(op.devices) > 1))
