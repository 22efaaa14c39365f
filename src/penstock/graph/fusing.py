# SPDX-License-Identifier: Apache-2.0
"""Fuses two consecutive operators if there is one that does both with less work."""

from __future__ import annotations

from ..core.op import REGISTRY
from .node import DataNode, Edge, Node, edge_of


def fuse(nodes: list[Node], outputs: list[DataNode]) -> list[Node]:
    """Returns the nodes, with fused pairs replaced by one node. `Operator.fuses_with` lists the pairs. Nothing else may
    use the output of the first, both must run on the CPU in the same branch, and no argument of the second may be
    data."""
    uses: dict[Edge, int] = {}
    for d in (*outputs, *(d for n in nodes for d in n.reads())):
        uses[edge_of(d)] = uses.get(edge_of(d), 0) + 1
    fused: dict[int, Node] = {}  # by the number of the second node
    gone: set[int] = set()
    here = {n.number for n in nodes}
    for node in nodes:
        first = node.inputs[0].source if len(node.inputs) == 1 else None
        if first is None or first.number not in here or node.op.fn_name not in first.op.fuses_with:
            continue
        op = REGISTRY[first.op.fuses_with[node.op.fn_name]]
        if (
            uses[first.number, node.inputs[0].index] == 1
            and first.device == node.device == "cpu"
            and first.scope is node.scope
            and first.branch is node.branch
            and not node.args
            and node.op.given <= op.schema.keys()
            and not any(n.op.values.get("preserve") for n in (first, node))
        ):
            values = {**node.op.values, **first.op.values}
            made = op({k: v for k, v in values.items() if k in op.schema}, first.op.given | node.op.given)
            one = Node(made, first.inputs, first.args, node.name, node.number, "cpu", node.sites)
            one.scope, one.branch, one.is_unbound = node.scope, node.branch, node.is_unbound
            fused[node.number] = one
            gone.add(first.number)
    return [fused.get(n.number, n) for n in nodes if n.number not in gone]
