# SPDX-License-Identifier: Apache-2.0
"""Converts the traced graph to stages: removes unused nodes and joins neighbouring per-sample operators to chains."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from ..core.source import Source
from .node import DataNode, Edge, Node, edge_of
from .placement import Transfer


class Stage:
    """A unit of execution: one source or batch-wise operator, or a chain of native operators that processes one sample
    at a time.

    `kind` is "source", "batch", "chain" (on the CPU), "gpu" (a chain there), "operator" (its own stage on the GPU),
    "upload" or "download".
    """

    __slots__ = ("kind", "nodes")

    def __init__(self, kind: str, nodes: list[Node]):
        self.kind, self.nodes = kind, nodes

    def __repr__(self) -> str:
        return f"{self.kind}: {' -> '.join(n.op.fn_name for n in self.nodes)}"


def prune(nodes: list[Node], outputs: list[DataNode], given: Collection[int] = ()) -> list[Node]:
    """The nodes that outputs depend on, or that must be preserved, in order of definition. The outputs of nodes in
    `given` are already available."""
    needed: set[int] = set()
    todo = [o.source for o in outputs] + [n for n in nodes if n.op.values.get("preserve")]
    while todo:
        node = todo.pop()
        if node.number not in needed and node.number not in given:
            needed.add(node.number)
            todo.extend(node.parents())
            todo.extend(condition.source for condition in _conditions(node))
    return [n for n in nodes if n.number in needed]


def _conditions(node: Node) -> Iterator[DataNode]:
    """What decides which samples a node gets that is in the branch of a conditional."""
    scope = node.scope
    while scope is not None:
        yield scope.condition
        scope = scope.parent


def unused_outputs(nodes: list[Node], outputs: list[DataNode]) -> dict[Node, list[int]]:
    """The unused outputs of each of the user's sources, which produce them all the same."""
    used = {edge_of(d) for n in nodes for d in n.reads()}
    used |= {edge_of(o) for o in outputs}
    sources = [n for n in nodes if isinstance(n.op, Source) and n.op.sets_batch_size]
    unused = {n: [i for i in range(n.n_outputs) if (n.number, i) not in used] for n in sources}
    return {n: indices for n, indices in unused.items() if indices}


_CHAINS = ("chain", "gpu")


def kind_of(node: Node) -> str:
    """The kind of the stage that a node is in."""
    if isinstance(node.op, Transfer):
        return "upload" if node.op.to == "gpu" else "download"
    if node.op.gpu_stage and node.device != "cpu":
        return "operator"
    moves_pointers = not node.op.kernel and not node.op.aliases  # conditionals, which need no GPU kernel
    if node.device == "gpu" and not moves_pointers:
        return "gpu"
    return "source" if isinstance(node.op, Source) else "chain" if node.op.in_chain(len(node.inputs)) else "batch"


def schedule(nodes: list[Node], given: Collection[int] = ()) -> list[Stage]:
    """Groups the nodes into stages, in order. The outputs of nodes in `given` are already available.

    Batch-wise operators run as early as possible, all copies to the GPU that are ready at once, and chains that
    arguments depend on before others, so that arguments are available before a chain starts. A chain then takes in
    every native operator that depends only on the chain and earlier stages; on the GPU also those with the same inputs.
    A chain ends before operators whose arguments are data of the chain, or whose shapes depend on its data (such as
    encoded images), and after operators with `shortens`: shapes of a whole chain are inferred before it runs.
    """
    left = list(nodes)
    arguments = _for_arguments(nodes)
    done = set(given)
    stages: list[Stage] = []
    # Looked up for all that is left before each stage.
    kinds = {n.number: kind_of(n) for n in nodes}
    parents = {n.number: {p.number for p in n.parents()} for n in nodes}

    def kind(node: Node) -> str:
        return kinds[node.number]

    def ready(node: Node) -> bool:
        return parents[node.number] <= done

    def finish(stage: Stage) -> None:
        stages.append(stage)
        done.update(n.number for n in stage.nodes)
        left[:] = [n for n in left if n.number not in done]

    while left:
        early = next((n for n in left if kind(n) not in _CHAINS and ready(n)), None)
        if early is not None and kind(early) == "upload":
            # Run other ready CPU nodes first, so that as many batches as possible are copied together.
            more = (n for n in left if kind(n) in ("source", "batch") and n.device == "cpu" and ready(n))
            early = next(more, early)
        if early is not None:
            alike = [n for n in left if kind(n) == "upload" and n.scope is early.scope and ready(n)]
            finish(Stage(kind(early), alike if early in alike else [early]))
            continue
        first = next((n for n in left if n.number in arguments and ready(n)), None)
        first = first or next(n for n in left if ready(n))
        chain = [first]
        inside = {first.number}
        for node in left:
            if node.number in inside or kind(node) != kind(first) or node.scope is not first.scope:
                continue
            joins = any(i.source.number in inside for i in node.inputs) or (
                kind(first) == "gpu" and _are_siblings(node, chain)
            )
            if not joins:
                continue
            inputs_known = all(
                i.source.number in done or i.source.number in inside and i.source.op.shortens is None
                for i in node.inputs
            )
            arguments_known = all(d.source.number in done for d in node.arg_nodes())
            arguments_known &= all(node.inputs[i].source.number in done for i in node.op.ahead(len(node.inputs)))
            if inputs_known and arguments_known:
                chain.append(node)
                inside.add(node.number)
        finish(Stage(kind(first), chain))
    return stages


def _are_siblings(node: Node, chain: list[Node]) -> bool:
    """Whether a node shares an input with a chain, or both have nodes without inputs. On the GPU, their arguments are
    then sent in one copy."""
    read = {i.source.number for n in chain for i in n.inputs}
    if not node.inputs:
        return any(not n.inputs for n in chain)
    return any(i.source.number in read for i in node.inputs)


def readers_of(nodes: list[Node]) -> dict[Edge, list[Node]]:
    """The nodes that read each output."""
    readers: dict[Edge, list[Node]] = {}
    for n in nodes:
        for d in n.reads():
            readers.setdefault(edge_of(d), []).append(n)
    return readers


def _for_arguments(nodes: list[Node]) -> set[int]:
    """The nodes that are needed for an argument, an input that is peeked into, or the condition of a branch."""
    needed: set[int] = set()
    for n in reversed(nodes):
        needed.update(d.source.number for d in n.arg_nodes())
        needed.update(n.inputs[i].source.number for i in n.op.peeks if i < len(n.inputs))
        if n.branch is not None:
            needed.add(n.branch.condition.source.number)
        if n.number in needed:
            needed.update(p.number for p in n.parents())
    return needed


def last_uses(stages: list[Stage], outputs: list[DataNode]) -> list[list[Edge]]:
    """For each stage, the outputs (node number, index) that are not needed after it."""
    last: dict[Edge, int] = {}
    for i, stage in enumerate(stages):
        for node in stage.nodes:
            for d in (*node.reads(), *_conditions(node)):
                last[edge_of(d)] = i
            for index in range(node.n_outputs):
                last.setdefault((node.number, index), i)
    kept = {edge_of(o) for o in outputs}
    released: list[list[Edge]] = [[] for _ in stages]
    for e, i in last.items():
        if e not in kept:
            released[i].append(e)
    return released
