# SPDX-License-Identifier: Apache-2.0
"""Selects readers that read only the beginning of files, because the decoders after them read the rest as needed."""

from __future__ import annotations

from ..core.source import Source
from .node import DataNode, Edge, Node, edge_of


def leave_rest(nodes: list[Node], outputs: list[DataNode]) -> None:
    """Sets `leaves_rest` for readers whose files are used only by CPU decoders that can continue reading
    (`reads_rest`), and `gives_parts` if only windows of the decoded images are used (`cuts`)."""
    users: dict[Edge, list[Node | None]] = {}
    for o in outputs:
        users.setdefault(edge_of(o), []).append(None)
    for n in nodes:
        for d in n.reads():
            users.setdefault(edge_of(d), []).append(n)

    def decodes(n: Node | None) -> bool:
        return n is not None and n.op.reads_rest and n.device == "cpu"

    def is_cut(n: Node | None) -> bool:
        behind = users.get((n.number, 0), [None]) if n is not None else [None]
        return all(m is not None and m.op.cuts and m.device == "cpu" for m in behind)

    for n in nodes:
        if isinstance(n.op, Source) and n.op.may_leave_rest:
            readers = users.get((n.number, 0), [])
            n.op.leaves_rest = bool(readers) and all(map(decodes, readers))
            n.op.gives_parts = n.op.leaves_rest and all(map(is_cut, readers))
