# SPDX-License-Identifier: Apache-2.0
"""Reports for users: the plan and the table of times."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from ..core.kernels import library
from ..core.op import Operator
from ..core.source import Source
from ..core.storage import total
from ..graph.node import DataNode, Node
from ..graph.passes import Stage
from .cpu.chain import Chain
from .limits import Threads, limit
from .plan import Plan
from .scheduling.statistics import Statistics

_TITLES = {
    "source": "source",
    "batch": "batch-wise",
    "chain": "chain, sample by sample",
    "gpu": "chain on the GPU",
    "upload": "copy to the GPU",
    "download": "copy to the CPU",
    "branches": "a chain for each branch, sample by sample",
}


class Text(str):
    """Text of several lines that notebooks display unquoted."""

    __slots__ = ()
    __repr__ = str.__str__


def explain(
    plan: Plan,
    threads: Threads,
    depth: int,
    together: int = 1,
    program: bool = False,
    tried: Iterable[str] = (),
    parts: tuple[Plan, Plan] | None = None,
) -> Text:
    """The stages in order, one line per operator. With `program`, also the column programs of batches. `tried` is the
    history of autotuning; `parts` are the plans of the workers and of this process."""
    plans = [plan] if parts is None else [p for p in parts if p.stages]
    lines = [f"{sum(len(p.stages) for p in plans)} stages, {threads}, {depth} batches ahead"]
    if together > 1:
        lines[0] += f", {together} of them made as one"
    if more := plan.batches_read_ahead:
        lines[0] += f", {more} more {'is' if more == 1 else 'are'} read"
    if parts is not None:
        lines.append(f"workers make {', '.join(_names(parts[0].outputs, plan))}:")
    wanted = set(plan.outputs)
    i = 0
    for p in plans:
        if parts is not None and p is parts[1]:
            lines.append("this process does the rest:")
        for stage in p.stages:
            lines += _stage_lines(p, stage, i, wanted)
            i += 1
    tried = list(tried)
    if tried:
        lines += ["autotuning:", *(f"    {line}" for line in tried)]
    if program:
        for chain in (c for p in plans for c in _chains(p)):
            lines += ["", f"plans of {_titles(chain)}:", *(f"    {line}" for line in _programs(chain))]
    return Text("\n".join(lines))


def _names(edges: Iterable[tuple[int, int]], plan: Plan) -> list[str]:
    nodes = {n.number: n for n in plan.nodes}
    return [nodes[number].outputs[index].name for number, index in edges]


def _stage_lines(plan: Plan, stage: Stage, i: int, wanted: set[tuple[int, int]]) -> list[str]:
    lines = [f"stage {i}: {_TITLES.get(stage.kind) or _own_title(stage.nodes[0].op)}"]
    windows = _windows(plan, stage)
    for node in stage.nodes:
        inputs = ", ".join(d.name for d in node.reads())
        notes = []
        if any((node.number, j) in wanted for j in range(node.n_outputs)):
            notes.append("output")
        elif stage.kind in ("chain", "branches") and len(stage.nodes) > 1:
            notes.append(
                "stays in the thread's scratch memory" if _inner(plan, stage, node) else "used by a later stage"
            )
        if stage.kind == "upload" and _takes_gpu_data(node.inputs[0]):
            notes.append("data that is already on the GPU is not copied")
        if node.number in windows:
            notes.append(f"computes only the window that {windows[node.number]} reads")
        site = f"   # {os.path.basename(node.sites[-1].file)}:{node.sites[-1].line}" if node.sites else ""
        note = f"  [{'; '.join(notes)}]" if notes else ""
        lines.append(f"    {node.name} = {node.op.display_name()}({inputs}){note}{site}")
    return lines


def _chains(plan: Plan) -> list[Chain]:
    return [part for chains in plan.chains.values() for chain in chains for part in chain.parts()]


def _takes_gpu_data(output: DataNode) -> bool:
    op = output.source.op
    return isinstance(op, Source) and output.index in op.on_gpu


def _titles(chain: Chain) -> str:
    return ", ".join(title(n) for n in chain.nodes)


def _programs(chain: Chain) -> list[str]:
    """How batches of a chain are planned: the programs, or why there are none."""
    if not chain.plans.is_traced:
        by_rules = [n.op.display_name() for n in chain.nodes if not n.op.traced]
        return [f"by rules: {', '.join(by_rules) or 'PENSTOCK_PLAN is set'}"]
    lines = [f"by rules: {why} ({times} x)" for why, times in chain.plans.untraceable.items()]
    for plan in chain.plans.programs():
        lines += [
            f"program for batches of {plan.n} samples or frames:",
            *(f"    {line}" for line in str(plan.program).splitlines()),
        ]
    return lines or ["by rules until a few batches of one kind have come"]


def _inner(plan: Plan, stage: Stage, node: Node) -> bool:
    """Whether a node is read only inside its stage."""
    return all(n in stage.nodes for n in plan.nodes if node in n.parents())


def _windows(plan: Plan, stage: Stage) -> dict[int, str]:
    """The nodes of a chain that compute only a window, by number, with the operator that reads this window."""
    narrow = [consumer for chain in plan.chains.get(stage, ()) for consumer, _ in chain.wiring.narrow]
    asks = [consumer for consumer in narrow if type(consumer.op).region is not Operator.region]
    readers: dict[int, list[str]] = {}
    for n in asks:  # there may be several in the branches of a conditional
        readers.setdefault(n.inputs[0].source.number, []).append(n.op.display_name())
    return {number: " or ".join(dict.fromkeys(names)) for number, names in readers.items()}


class Table:
    """Time statistics; `str()` formats a table, `as_dict()` returns the figures."""

    def __init__(self, data: dict[str, Any]):
        self._data = data

    def as_dict(self) -> dict[str, Any]:
        return self._data

    def __getitem__(self, key: str) -> Any:
        return self._data[key]

    def __repr__(self) -> str:
        d = self._data
        lines = [f"{'operator':<34}{'ms/sample':>11}{'share':>8}{'Python ms/batch':>17}{'loading ms/batch':>18}"]
        for name, s in d["operators"].items():
            lines.append(
                f"{name:<34}{s['ms_per_sample']:>11.4f}{s['share']:>8.1%}{s['python_ms_per_batch']:>17.3f}{s['load_ms_per_batch']:>18.3f}"
            )
        lines.append(
            f"{d['samples']} samples in {d['batches']} batches, {d['samples_per_s']:.0f} samples/s; threads "
            f"busy {d['threads_busy']:.0%}, "
            f"Python {d['python_share_of_a_core']:.1%} of a core, consumer waited {d['waited_share']:.0%}, "
            f"memory {d['memory_mb']:.0f} MB"
        )
        plans = ", ".join(f"{n} {how}" for how, n in d["plans"].items() if how != "untraceable" and n)
        lines.append(f"batches of chains planned: {plans or 'none'}")
        for chain, reasons in d["plans"]["untraceable"].items():
            lines += [f"{chain} can't be traced: {why} ({times} x)" for why, times in reasons.items()]
        if "remote" in d:
            r = d["remote"]
            per_sample = r["requests"] / max(d["samples"], 1)
            lines.append(
                f"read by URL: {r['requests']} requests ({per_sample:.2f} a sample), {r['bytes'] / 1e6:.1f} MB, "
                f"{r['cached_bytes'] / 1e6:.1f} MB from the cache, at most {r['most_bytes_ahead'] / 1e6:.1f} MB ahead; "
                f"{r['retries']} repeated, {r['failed']} failed"
            )
        if "gpu" in d:
            gpu = d["gpu"]
            times = ", ".join(f"{name} {ms:.3f} ms" for name, ms in gpu["ms_per_batch"].items())
            total = sum(gpu["decoders"].values()) or 1
            shares = ", ".join(f"{name} {n / total:.0%}" for name, n in gpu["decoders"].items() if n)
            lines.append(
                f"GPU: busy for this pipeline {gpu['share']:.1%} of the time; a batch: {times or 'no kernels'}; "
                "driver calls "
                f"{gpu['driver_ms_per_batch']:.3f} ms; decoded by: {shares or 'nobody'}; memory "
                f"{gpu['memory_mb']:.0f} MB, at most {gpu['peak_memory_mb']:.0f} MB"
            )
        return "\n".join([*lines, d["limit"]])


def table(plan: Plan, s: Statistics, threads: Threads) -> Table:
    with s.lock:
        s.settle()
        gpu = _gpu(plan, s)
        samples, batches = max(s.samples, 1), max(s.batches, 1)
        loaded = {n.number: s.load_ns.get(n.number, 0) + s.source_ns.get(n.number, 0) for n in plan.nodes}
        total = sum(map(sum, (s.kernel_ns.values(), s.python_ns.values(), loaded.values()))) or 1
        seconds = max((s.last - s.started) / 1e9, 1e-9)
        operators = {}
        for node in plan.nodes:
            native, python, load = (sums.get(node.number, 0) for sums in (s.kernel_ns, s.python_ns, loaded))
            operators[title(node)] = {
                "ms_per_sample": native / samples / 1e6,
                "share": (native + python + load) / total,
                "python_ms_per_batch": python / batches / 1e6,
                "load_ms_per_batch": load / batches / 1e6,
            }
        gpu_ms = sum(gpu["gpu"]["ms_per_batch"].values()) if gpu else 0.0
        if gpu:  # concurrent kernels of two batches are both counted
            gpu["gpu"]["share"] = min(gpu_ms / 1e3 * s.batches / seconds, 1.0)
        return Table(
            {
                "limit": limit(plan, s, threads, gpu_ms, {n.number: title(n) for n in plan.nodes}),
                **gpu,
                **({"remote": sums} if (sums := remote(plan)) else {}),
                "plans": _plans(plan),
                "samples": s.samples,
                "batches": s.batches,
                "seconds": seconds,
                "samples_per_s": s.samples / seconds,
                "threads_busy": sum(s.kernel_ns.values()) / 1e9 / seconds / threads.total,
                "waited_share": (s.wait_ns + s.called_ns) / 1e9 / seconds,
                "python_share_of_a_core": s.cpu_ns / 1e9 / seconds,
                "python_ms_per_batch": s.cpu_ns / batches / 1e6,
                "native_ms_per_batch": s.native_ns / batches / 1e6,
                "memory_mb": memory_bytes() / 1e6,
                "operators": operators,
            }
        )


def _own_title(op: Operator) -> str:
    from ..gpu.stage import stage_of  # imported only by pipelines with a GPU

    return stage_of(op).title(op)


def _plans(plan: Plan) -> dict[str, Any]:
    """Number of batches of chains planned by programs and by rules, and the chains that can't be traced, with reasons
    and counts."""
    chains = _chains(plan)
    reasons = {_titles(c): dict(c.plans.untraceable) for c in chains}
    counts = {how: sum(c.plans.counts[how] for c in chains) for how in ("by program", "by rules")}
    return {**counts, "untraceable": {chain: why for chain, why in reasons.items() if why}}


def remote(plan: Plan) -> dict[str, int]:
    """Counters of the requests of all readers since the pipeline was built; empty if there were none."""
    return total(counts for n in plan.sources if (counts := plan.source_op(n).counted()) and counts["requests"])


def decoded(plan: Plan) -> dict[str, int]:
    """Number of images per decoder of a GPU pipeline."""
    counts: dict[str, int] = {}
    for kept in list(plan.session.kept.values()) if plan.session is not None else ():
        counts |= kept.decoded()
    return counts


def memory_bytes() -> int:
    """Bytes of batches and scratch memory of all pipelines in the process, including memory kept for reuse."""
    return int(library().memory_used() + library().memory_idle())


def _gpu(plan: Plan, s: Statistics) -> dict[str, Any]:
    """GPU statistics: time by stage, images per decoder, and the memory that the pipeline holds on the GPU."""
    session = plan.session
    if session is None:
        return {}
    names = {n.number: title(n) for n in plan.nodes}
    return {
        "gpu": {
            "ms_per_batch": {names[k]: ms / n for k, (ms, n) in session.times().items()},
            "driver_ms_per_batch": s.driver_ns / max(s.batches, 1) / 1e6,
            "decoders": decoded(plan),
            "memory_mb": session.budget.used / 1e6,
            "peak_memory_mb": session.budget.peak / 1e6,
            "pool_mb": session.held() / 1e6,
        }
    }


def title(node: Node) -> str:
    """The operator with its name or number."""
    return f"{node.op.fn_name} ({node.number})" if node.name.startswith("__") else f"{node.op.fn_name} '{node.name}'"
