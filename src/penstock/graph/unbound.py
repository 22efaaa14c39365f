# SPDX-License-Identifier: Apache-2.0
"""Operators that are called outside of any pipeline: `images = fn.external_source(...)` before the pipeline whose
outputs are made of them.

Such a node belongs to no pipeline. Each pipeline that uses it, or what was made of it, gets a node of its own like it:
so a constant of a module serves all pipelines of a program.
"""

from __future__ import annotations

import itertools

from ..core.op import Operator
from .definition import Definition
from .node import DataNode, Node


class Unbound(Definition):
    """Takes nodes that belong to no pipeline. It keeps none: they live for as long as somebody refers to them."""

    def __init__(self) -> None:
        super().__init__()
        self._numbers = itertools.count()

    def next_number(self) -> int:
        return next(self._numbers)

    def add(self, node: Node) -> None:
        node.is_unbound = True


UNBOUND = Unbound()


def adopt(definition: Definition, data: DataNode) -> DataNode:
    """The same output of a pipeline's own node; of that node's, which is made if it isn't there yet."""
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
    """The name of the operator whose output `data` is, or is a copy of on the other device."""
    from .placement import origin  # which imports this module

    source = origin(data).source
    return definition.adopted.get(source, source).name


def _like(definition: Definition, node: Node) -> Node:
    """A node of `definition` that does what an unbound one says, on what was adopted before."""

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
