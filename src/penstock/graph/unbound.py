# SPDX-License-Identifier: Apache-2.0
"""Operators called outside of any pipeline, such as `images = fn.external_source(...)` before the pipeline that
uses them.

Such a node belongs to no pipeline. Each pipeline that uses it, or nodes that depend on it, gets its own copy,
so a constant of a module can be used in all pipelines of a program.
"""

from __future__ import annotations

import itertools

from ..core.op import Operator
from .definition import Definition
from .node import DataNode, Node


class Unbound(Definition):
    """Accepts nodes that belong to no pipeline. It stores none: they live as long as they are referenced."""

    def __init__(self) -> None:
        super().__init__()
        self._numbers = itertools.count()

    def next_number(self) -> int:
        return next(self._numbers)

    def add(self, node: Node) -> None:
        node.is_unbound = True


UNBOUND = Unbound()


def adopt(definition: Definition, data: DataNode) -> DataNode:
    """The same output of the pipeline's own copy of the node, which is created if needed."""
    if not data.source.is_unbound or definition is UNBOUND:
        return data
    if data.source not in definition.adopted:
        waiting = [data.source]
        while waiting:  # a graph may be deeper than Python's stack
            missing = [p for p in waiting[-1].parents() if p.is_unbound and p not in definition.adopted]
            if missing:
                waiting += missing
                continue
            node = waiting.pop()
            if node not in definition.adopted:
                definition.adopted[node] = _like(definition, node)
    return definition.adopted[data.source].outputs[data.index]


def input_name(definition: Definition, data: DataNode) -> str:
    """The name of the operator that produces `data`, or its original if it is a copy on the other device."""
    from .placement import origin  # imported here, as it imports this module

    source = origin(data).source
    return definition.adopted.get(source, source).name


def _like(definition: Definition, node: Node) -> Node:
    """Copies an unbound node into `definition`, where its parents were already adopted."""

    for parent in node.parents():
        if not parent.is_unbound and definition.names.get(parent.name) is not parent:
            raise ValueError(node.describe(f"'{parent.name}' belongs to another pipeline"))

    def own(value: object) -> object:
        if isinstance(value, list):
            return [own(v) for v in value]
        return adopt(definition, value) if isinstance(value, DataNode) else value

    number = definition.next_number()
    named = not node.name.startswith("__")
    name = node.name if named else f"{node.name.rpartition('_')[0]}_{number}"
    op: Operator = type(node.op)(node.op.values, node.op.given)
    inputs = tuple(adopt(definition, d) for d in node.inputs)
    args = {k: own(v) for k, v in node.args.items()}
    made = Node(op, inputs, args, name, number, node.device, node.sites)
    made.output_type = node.output_type
    definition.add(made)
    return made
