# SPDX-License-Identifier: Apache-2.0
"""Divides a graph between workers, which run its beginning, and the process that has the pipeline, which runs the rest."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from .joining import lineage
from .node import DataNode, Node
from .passes import kind_of

Edge = tuple[int, int]
_WORTH = 0.8  # of the bytes that are sent otherwise, at most, for a node to be run here


class Cut:
    """`sent` are the outputs that travel, in order; `away` the numbers of the nodes that workers run."""

    def __init__(self, nodes: list[Node], outputs: list[DataNode], here: Collection[int]):
        self.away = frozenset(n.number for n in nodes if n.number not in here)
        sent = {_edge(d): d for d in outputs if d.source.number in self.away}
        for n in nodes:
            if n.number in here:
                sent.update((_edge(d), d) for d in read_by(n) if d.source.number in self.away)
        self.sent = [sent[e] for e in sorted(sent)]

    @property
    def edges(self) -> list[Edge]:
        return [_edge(d) for d in self.sent]


def read_by(node: Node) -> list[DataNode]:
    """All that a node needs: also the conditions of the branches that it is in."""
    scopes = [*lineage(node.scope), *lineage(node.branch)]
    return [*node.inputs, *node.arg_nodes(), *(s.condition for s in scopes)]


def cut(nodes: list[Node], outputs: list[DataNode]) -> Cut:
    """Workers run as much as they can: here runs what is on the GPU, and what depends on that."""
    here: set[int] = set()
    for n in nodes:
        if is_on_gpu(n) or any(d.source.number in here for d in read_by(n)):
            here.add(n.number)
    return Cut(nodes, outputs, here)


def is_on_gpu(node: Node) -> bool:
    return node.device != "cpu" or kind_of(node) in ("upload", "download", "gpu", "operator")


def with_less_sent(nodes: list[Node], outputs: list[DataNode], first: Cut, nbytes: Mapping[Edge, float]) -> Cut:
    """The cut at which least travels, where `nbytes` says how much each output of a node on the CPU is. Beyond what
    has to run here, only light work does."""
    here = {n.number for n in nodes if n.number not in first.away}
    best, least = first, _sum(first, nbytes)
    for n in reversed(nodes):
        moved = _with_readers(n, nodes, here)
        if n.number in here or not all(_may_run_here(m) for m in nodes if m.number in moved - here):
            continue
        other = Cut(nodes, outputs, moved)
        if (sum_ := _sum(other, nbytes)) <= least * _WORTH:
            best, least = other, sum_
    return best


def _with_readers(node: Node, nodes: list[Node], here: set[int]) -> set[int]:
    """`here` with a node and all that depends on it."""
    moved = here | {node.number}
    for n in nodes:
        if any(d.source.number in moved for d in read_by(n)):
            moved.add(n.number)
    return moved


def _may_run_here(node: Node) -> bool:
    return node.op.is_light and node.scope is None and node.branch is None


def _sum(cut: Cut, nbytes: Mapping[Edge, float]) -> float:
    return sum(nbytes.get(e, 0.0) for e in cut.edges)


def _edge(d: DataNode) -> Edge:
    return d.source.number, d.index
