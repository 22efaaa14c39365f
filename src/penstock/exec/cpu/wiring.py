# SPDX-License-Identifier: Apache-2.0
"""The parts of a chain that are the same for every batch: outputs kept, scratch buffers, and windows that may be
narrowed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from ...core.op import Pointwise
from ...graph.node import Edge, Node, edge_of


def inputs_of(node: Node) -> list[Edge]:
    return [edge_of(d) for d in node.inputs]


def outputs_of(node: Node) -> list[Edge]:
    return [(node.number, i) for i in range(node.n_outputs)]


class Wiring:
    """The wiring of the `nodes` of a chain. `needed` are the outputs that are read outside of it.

    `root` maps an edge to the edge whose memory it aliases; `kept` are the roots that become batches; `buffers` maps
    the other roots to scratch buffers; `views` are (edge, root) for those that alias a batch, `returned` those of them
    that are needed; `narrow` lists (consumer, axes), last consumer first: consumers for whose first input only a window
    along these axes may be computed; `shortened` are batches whose kernel determines how much of each sample it writes.
    """

    def __init__(self, nodes: list[Node], needed: set[Edge]):
        self.root: dict[Edge, Edge] = {}
        for n in nodes:
            for e in outputs_of(n):
                above = inputs_of(n)[0] if n.op.aliases else e
                self.root[e] = self.root.get(above, above)
        self.wanted = needed & self.root.keys()
        self.kept = {self.root[e] for e in self.wanted}
        self.allocated = [e for e in self.root if e in self.kept]
        shortened = ((n, i) for n in nodes if n.op.shortens is not None for i in range(n.op.shortens, n.n_outputs))
        self.shortened = [(n.number, i) for n, i in shortened if (n.number, i) in self.kept]
        self._uses = Counter(e for n in nodes for e in inputs_of(n))
        windows: dict[Edge, str] = {}
        for n in nodes:
            windows |= {e: self._window_axes(e, n, windows) for e in outputs_of(n)}
        self.narrow = [
            (n, axes)
            for n in reversed(nodes)
            if n.inputs and not n.op.aliases and (axes := windows.get(inputs_of(n)[0]))
        ]
        self.buffers = share_slots([self.inner([*inputs_of(n), *outputs_of(n)]) for n in nodes])
        self.views = [(e, r) for e, r in self.root.items() if r != e and r not in self.buffers]
        self.returned = [e for e, _ in self.views if e in self.wanted]

    def _window_axes(self, e: Edge, producer: Node, windows: dict[Edge, str]) -> str:
        """The axes along which an edge may hold only a window: its producer can compute one, and nothing else needs the
        rest. `windows` are those of earlier edges."""
        if e in self.kept or self.root[e] != e or self._uses[e] != 1:
            return ""
        axes = producer.op.windowed
        if axes and isinstance(producer.op, Pointwise):  # its output window equals its input window
            above = windows.get(inputs_of(producer)[0], "") if len(producer.inputs) == 1 else ""
            axes = "".join(c for c in axes if c in above)
        return axes

    def buffer(self, e: Edge) -> int:
        return self.buffers.get(self.root.get(e, e), -1)

    def inner(self, edges: Iterable[Edge]) -> list[Edge]:
        """The roots of edges that do not become batches and do not alias one."""
        roots = [self.root[e] for e in edges if e in self.root]
        return [r for r in roots if r in self.root and r not in self.kept]


def share_slots(steps: Sequence[Sequence[Edge]]) -> dict[Edge, int]:
    """Assigns memory slots to the edges that steps read and write. A slot is reused after the last read of its edge."""
    last = {e: i for i, step in enumerate(steps) for e in step}
    slots: dict[Edge, int] = {}
    free: list[int] = []
    count = 0
    for i, step in enumerate(steps):
        for e in step:
            if e not in slots:
                if not free:
                    free.append(count)
                    count += 1
                slots[e] = free.pop()
        free += {slots[e] for e in step if last[e] == i}
    return slots
