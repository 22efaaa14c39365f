# SPDX-License-Identifier: Apache-2.0
"""When each stage of the last batches ran, and on which thread."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, NamedTuple

from .plan import Plan
from .scheduling.statistics import Statistics


class Span(NamedTuple):
    """Work on one track: a native thread, or a kind of Python work. Times are in nanoseconds."""

    track: str
    name: str
    begin: int
    end: int
    of: dict[str, int]  # the iteration, and the sample for work on a single one


def spans(plan: Plan, statistics: Statistics) -> Iterator[Span]:
    """The spans of the last batches, oldest first."""
    names = {n.number: n.op.fn_name for n in plan.nodes}
    with statistics.lock:
        recent = list(statistics.recent)
    for iteration, timings in recent:
        for t in timings:
            what = " -> ".join(names[n] for n in t.numbers)
            track = "loading" if t.kind == "load" else f"Python, {'even' if iteration % 2 == 0 else 'odd'} batches"
            of = {"iteration": iteration}
            yield Span(track, f"plan {what}" if t.kind == "chain" else what, t.begin, t.native, of)
            if t.outcome is None:
                continue
            for row, (times, thread) in enumerate(zip(t.outcome.spans.tolist(), t.outcome.threads.tolist())):
                for number, (begin, end) in zip(t.numbers, times):
                    if end:
                        yield Span(f"thread {thread}", names[number], begin, end, {**of, "sample": row})


def write_trace(plan: Plan, statistics: Statistics, path: str | os.PathLike) -> None:
    """The last batches in Chrome's trace format, which Perfetto reads: one track per native thread and per kind of
    Python work."""
    import json  # imported only for traces

    tracks: dict[str, int] = {}
    events: list[dict[str, Any]] = []
    for track, name, begin, end, of in spans(plan, statistics):
        tid = tracks.setdefault(track, len(tracks))
        at = {"ts": begin / 1e3, "dur": (end - begin) / 1e3}
        events.append({"ph": "X", "pid": 0, "tid": tid, "name": name, **at, "args": of})
    named = [
        {"ph": "M", "pid": 0, "tid": tid, "name": "thread_name", "args": {"name": track}}
        for track, tid in tracks.items()
    ]
    with open(path, "w") as f:
        json.dump({"traceEvents": named + events, "displayTimeUnit": "ms"}, f)
