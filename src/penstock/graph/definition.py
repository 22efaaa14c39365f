# SPDX-License-Identifier: Apache-2.0
"""The nodes of a pipeline while it is being defined."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.errors import ArgumentValueError
from ..core.source import Source

if TYPE_CHECKING:
    from .node import DataNode, Node
    from .scopes import Scope


class Definition:
    """The nodes of a pipeline, and data needed only while it is being defined."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.names: dict[str, Node] = {}
        self.moved: dict[tuple[int, int, str], DataNode] = {}  # copies on the other device
        self.adopted: dict[Node, Node] = {}  # own copies of nodes defined outside of any pipeline
        self.scope: Scope | None = None  # the branch of a conditional that is being defined
        self.splits: dict[tuple[int, int, int], DataNode] = {}  # data already split for a branch

    def next_number(self) -> int:
        return len(self.nodes)

    def add(self, node: Node) -> None:
        self._register(node)
        if isinstance(node.op, Source):
            node.op.defined()

    def _register(self, node: Node) -> None:
        if not isinstance(node.name, str):
            raise TypeError(node.describe(f"name takes a string; got {node.name!r}"))
        if node.name in self.names:
            raise ArgumentValueError(
                node.describe(
                    f"the name '{node.name}' is taken by another operator of the pipeline:\n{self.names[node.name]!r}"
                )
            )
        self.names[node.name] = node
        self.nodes.append(node)
