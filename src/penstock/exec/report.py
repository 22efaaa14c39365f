# SPDX-License-Identifier: Apache-2.0
"""What a person reads: the plan, the table of times, the trace."""

from __future__ import annotations

import json
import os
from typing import Any

from .plan import Plan
from .statistics import Statistics


def explain(plan: Plan, num_threads: int, depth: int) -> str:
    """The stages in order, one line an operator."""
    lines = [f"{len(plan.stages)} stages, {num_threads} threads, {depth} batches ahead"]
    wanted = set(plan.outputs)
    for i, stage in enumerate(plan.stages):
        title = {"source": "source", "batch": "batch-wise", "chain": "chain, sample by sample"}[stage.kind]
        lines.append(f"stage {i}: {title}")
        for node in stage.nodes:
            inputs = ", ".join(d.name for d in (*node.inputs, *node.arg_nodes()))
            notes = []
            if any((node.number, j) in wanted for j in range(len(node.outputs))):
                notes.append("output")
            elif stage.kind == "chain" and len(stage.nodes) > 1:
                notes.append("stays in the thread's scratch memory" if _inner(plan, stage, node) else "used by a later stage")
            if stage.kind == "chain" and node.op.windowed and _narrowed(stage, node):
                notes.append(f"computes only the window that {_narrowed(stage, node)} reads")
            site = f"   # {os.path.basename(node.sites[-1].file)}:{node.sites[-1].line}" if node.sites else ""
            lines.append(f"    {node.name} = {node.op.display_name()}({inputs})" + (f"  [{'; '.join(notes)}]" if notes else "") + site)
    return "\n".join(lines)


def _consumers(plan_nodes, node):
    return [n for n in plan_nodes if any(d.source is node for d in (*n.inputs, *n.arg_nodes()))]


def _inner(plan: Plan, stage, node) -> bool:
    return all(c in stage.nodes for c in _consumers(plan.nodes, node))


def _narrowed(stage, node) -> str:
    """The one operator of the chain that reads a node and can say which part of it."""
    users = _consumers(stage.nodes, node)
    if len(users) == 1 and type(users[0].op).region is not _base_region():
        return users[0].op.display_name()
    return ""


def _base_region():
    from ..core.op import Operator

    return Operator.region


class Table:
    """Where the time went; `str()` of it is a table, `as_dict()` the figures."""

    def __init__(self, data: dict[str, Any]):
        self._data = data

    def as_dict(self) -> dict[str, Any]:
        return self._data

    def __getitem__(self, key: str) -> Any:
        return self._data[key]

    def __repr__(self) -> str:
        d = self._data
        lines = [f"{'operator':<34}{'ms/sample':>11}{'share':>8}{'Python ms/batch':>17}"]
        for name, s in d["operators"].items():
            lines.append(f"{name:<34}{s['ms_per_sample']:>11.4f}{s['share']:>8.1%}{s['python_ms_per_batch']:>17.3f}")
        lines.append(
            f"{d['samples']} samples in {d['batches']} batches, {d['samples_per_s']:.0f} samples/s; threads busy {d['threads_busy']:.0%}, "
            f"consumer waited {d['waited_share']:.0%}, memory {d['memory_mb']:.0f} MB"
        )
        return "\n".join(lines)


def table(plan: Plan, statistics: Statistics, num_threads: int) -> Table:
    from ..core.kernels import library

    s = statistics
    with s.lock:
        samples, batches = max(s.samples, 1), max(s.batches, 1)
        total = sum(s.kernel_ns.values()) + sum(s.python_ns.values()) or 1
        seconds = max((s.last - s.started) / 1e9, 1e-9)
        operators = {}
        for node in plan.nodes:
            native, python = s.kernel_ns.get(node.number, 0), s.python_ns.get(node.number, 0)
            operators[node.name if node.name[:2] != "__" else f"{node.op.fn_name} ({node.number})"] = {
                "ms_per_sample": native / samples / 1e6,
                "share": (native + python) / total,
                "python_ms_per_batch": python / batches / 1e6,
            }
        return Table(
            {
                "samples": s.samples,
                "batches": s.batches,
                "seconds": seconds,
                "samples_per_s": s.samples / seconds,
                "threads_busy": sum(s.kernel_ns.values()) / 1e9 / seconds / num_threads,
                "waited_share": s.wait_ns / 1e9 / seconds,
                "python_share_of_a_core": sum(s.python_ns.values()) / 1e9 / seconds,
                "memory_mb": (library().memory_used() + library().memory_idle()) / 1e6,
                "operators": operators,
            }
        )


def write_trace(plan: Plan, statistics: Statistics, path: str | os.PathLike | None) -> None:
    """Chrome trace format (JSON array of complete events), which Perfetto reads. Starts recording when called the first time or with None."""
    if not statistics.tracing or path is None:
        statistics.tracing = True
        if path is None:
            return
    names = {n.number: n.op.fn_name for n in plan.nodes}
    events: list[dict[str, Any]] = []
    with statistics.lock:
        recorded = list(statistics.events)
    for iteration, numbers, begin, native, end, spans, threads in recorded:
        what = " -> ".join(names[n] for n in numbers)
        row = {"pid": 0, "ph": "X", "args": {"iteration": iteration}}
        plan_end = end if native is None else native
        events.append({**row, "tid": "python", "name": f"plan {what}" if native else what, "ts": begin / 1e3, "dur": (plan_end - begin) / 1e3})
        if spans is None:
            continue
        for sample, (times, thread) in enumerate(zip(spans.tolist(), threads.tolist())):
            for number, (a, b) in zip(numbers, times):
                if b:
                    events.append(
                        {"pid": 0, "ph": "X", "tid": f"thread {thread}", "name": names[number], "ts": a / 1e3, "dur": (b - a) / 1e3, "args": {"iteration": iteration, "sample": sample}}
                    )
    with open(path, "w") as f:
        json.dump({"traceEvents": events, "displayTimeUnit": "ms"}, f)
