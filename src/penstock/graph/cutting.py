# SPDX-License-Identifier: Apache-2.0
"""Splits a graph: workers run the first part, the pipeline's process the rest."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ..core.op import Operator
from .definition import Definition
from .joining import lineage
from .node import DataNode, Edge, Node, edge_of
from .passes import kind_of
from .placement import Transfer

_WORTH = 0.95  # an operator is moved to this process only if it reduces the bytes sent below this share


class Cut:
    """`sent` are the outputs transferred from workers, in order; `on_workers` the numbers of the nodes that workers
    run."""

    def __init__(self, nodes: list[Node], outputs: list[DataNode], here: Collection[int]):
        self.on_workers = frozenset(n.number for n in nodes if n.number not in here)
        sent = {edge_of(d): d for d in outputs if d.source.number in self.on_workers}
        for n in nodes:
            if n.number in here:
                sent.update((edge_of(d), d) for d in read_by(n) if d.source.number in self.on_workers)
        self.sent = [sent[e] for e in sorted(sent)]

    @property
    def edges(self) -> list[Edge]:
        return [edge_of(d) for d in self.sent]


def read_by(node: Node) -> list[DataNode]:
    """All inputs of a node, including the conditions of the branches that it is in."""
    scopes = [*lineage(node.scope), *lineage(node.branch)]
    return [*node.reads(), *(s.condition for s in scopes)]


def cut(nodes: list[Node], outputs: list[DataNode]) -> Cut:
    """The cut where workers run as much as possible: this process runs GPU nodes and those that depend on them."""
    here: set[int] = set()
    for n in nodes:
        if is_on_gpu(n) or any(d.source.number in here for d in read_by(n)):
            here.add(n.number)
    return Cut(nodes, outputs, here)


def is_on_gpu(node: Node) -> bool:
    return node.device != "cpu" or kind_of(node) in ("upload", "download", "gpu", "operator")


def windows_first(definition: Definition) -> None:
    """Moves windows of inputs to separate operators, before nodes that are the only readers, so that less data is
    sent."""
    readers: dict[Edge, int] = {}
    for n in definition.nodes:
        for d in read_by(n):
            readers[edge_of(d)] = readers.get(edge_of(d), 0) + 1
    for n in list(definition.nodes):
        found = n.op.window_first()
        if found is None or n.scope is not None or readers[edge_of(n.inputs[0])] > 1:
            continue
        reader = n
        if isinstance(n.inputs[0].source.op, Transfer):
            reader = n.inputs[0].source
            if readers[edge_of(reader.inputs[0])] > 1:
                continue
        if reader.inputs[0].device == "cpu":
            _divide(definition, n, reader, *found)


def _divide(definition: Definition, node: Node, reader: Node, first: type[Operator], moved: frozenset[str]) -> None:
    """Inserts `first` before `reader`; it takes over the arguments `moved` of `node`."""
    given = {k: node.op.values[k] for k in moved - node.args.keys()}
    values = {k: given.get(k, a.default) for k, a in first.schema.items()}
    args = {k: node.args.pop(k) for k in moved & node.args.keys()}
    window = Node(first(values, moved), reader.inputs, args, f"{node.name}_window", 0, "cpu", node.sites)
    kept = node.op.given - moved
    rest = {k: node.op.values[k] if k in kept or k not in moved else a.default for k, a in node.op.schema.items()}
    node.op = type(node.op)(rest, kept)
    node.op.n_inputs = len(node.inputs)
    reader.inputs = window.outputs
    definition.nodes.insert(definition.nodes.index(reader), window)
    for i, n in enumerate(definition.nodes):
        n.number = i


def with_less_sent(nodes: list[Node], outputs: list[DataNode], first: Cut, nbytes: Mapping[Edge, float]) -> Cut:
    """The cut that sends the fewest bytes; `nbytes` are the sizes of the outputs of CPU nodes. Only light operators are
    moved to this process beyond those it must run."""
    best, least = first, _sum(first, nbytes)
    while True:
        here = {n.number for n in nodes if n.number not in best.on_workers}
        found = [Cut(nodes, outputs, moved) for moved in _larger(nodes, here)]
        sums = [_sum(c, nbytes) for c in found]
        if not sums or min(sums) >= least * _WORTH:
            return best
        best, least = found[sums.index(min(sums))], min(sums)


def _larger(nodes: list[Node], here: set[int]) -> list[set[int]]:
    """Possible extensions of `here` by one more node, with all nodes that depend on it."""
    found = []
    for n in nodes:
        if n.number not in here:
            moved = _with_readers(n, nodes, here)
            if all(_may_run_here(m) for m in nodes if m.number in moved - here):
                found.append(moved)
    return found


def _with_readers(node: Node, nodes: list[Node], here: set[int]) -> set[int]:
    """`here` plus a node and all nodes that depend on it."""
    moved = here | {node.number}
    for n in nodes:
        if any(d.source.number in moved for d in read_by(n)):
            moved.add(n.number)
    return moved


def _may_run_here(node: Node) -> bool:
    return node.op.is_light and node.scope is None and node.branch is None


def _sum(cut: Cut, nbytes: Mapping[Edge, float]) -> float:
    return sum(nbytes.get(e, 0.0) for e in cut.edges)
