# SPDX-License-Identifier: Apache-2.0
"""Scopes: the branches of conditionals, where operators process only the samples for which a condition holds.

A node runs in a scope; its inputs from outer scopes are split once per scope. Nodes without data as input, such
as readers and random numbers, run for the whole batch.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..core.errors import ArgumentValueError, BranchesError, Site
from ..core.op import REGISTRY
from .node import DataNode, Edge, Node, edge_of
from .placement import move
from .unbound import UNBOUND, adopt

if TYPE_CHECKING:
    from .definition import Definition


class Scope:
    """The samples of `parent` (None: of the batch) for which `condition`, a DataNode of `parent`, is true; or false if
    not `branch`."""

    __slots__ = ("branch", "condition", "depth", "parent", "sites")

    def __init__(self, parent: Scope | None, condition: DataNode, branch: bool, sites: tuple[Site, ...]):
        self.parent, self.condition, self.branch, self.sites = parent, condition, branch, sites
        self.depth: int = 1 if parent is None else parent.depth + 1

    @property
    def condition_edge(self) -> Edge:
        return edge_of(self.condition)

    def holds(self, other: Scope | None) -> bool:
        """Whether `other` is this scope or inside it."""
        while other is not None and other.depth > self.depth:
            other = other.parent
        return other is self

    def __repr__(self) -> str:
        where = f"{self.sites[-1].file}:{self.sites[-1].line}" if self.sites else "?"
        return f"<the {'true' if self.branch else 'false'} branch of {where}>"


@contextmanager
def inside(definition: Definition, scope: Scope | None):
    """Context manager: nodes added inside run in `scope`."""
    before, definition.scope = definition.scope, scope
    try:
        yield
    finally:
        definition.scope = before


def bring(definition: Definition, data: DataNode, scope: Scope | None) -> DataNode:
    """The samples of `data` that belong to a scope; adds a split if needed. ValueError if it was computed in another
    branch."""
    data = adopt(definition, data)
    if definition is not UNBOUND and definition.names.get(data.source.name) is not data.source:
        raise ArgumentValueError(f"{data.told()} belongs to another pipeline")
    its = data.source.branch
    if its is scope:
        return data
    if its is not None and not its.holds(scope):
        where, line = (f" of line {its.sites[-1].line}", f"\n{its.sites[-1]}") if its.sites else ("", "")
        raise BranchesError(
            f"{data.told()} was computed inside of a branch of the conditional{where}, for some of the samples only, "
            "and is used outside of it. What the branches assign to variables, items of lists and dictionaries and "
            f"attributes is merged and can be used; what is kept elsewhere is not{line}"
        )
    assert scope is not None
    key = (data.source.number, data.index, id(scope))
    if key not in definition.splits:
        outer = bring(definition, data, scope.parent)
        inputs, values = (outer, scope.condition), {"branch": scope.branch}
        definition.splits[key] = add(definition, "_conditional.split", inputs, values, scope.sites, scope.parent, scope)
    return definition.splits[key]


def add(
    definition: Definition,
    name: str,
    inputs: tuple[DataNode, ...],
    values: dict[str, Any],
    sites: tuple[Site, ...],
    scope: Scope | None,
    branch: Scope | None,
) -> DataNode:
    """Adds a node of the conditional operator `name`, on the device of its first input. It runs in `scope`, and its
    output belongs to `branch`."""
    cls = REGISTRY[name]
    constants = {n: values.get(n, a.default) for n, a in cls.schema.items()}
    number = definition.next_number()
    node = Node(cls(constants, values), inputs, {}, f"__{cls.__name__}_{number}", number, inputs[0].device, sites)
    node.scope, node.branch = scope, branch
    definition.add(node)
    return node.outputs[0]


def merge(definition: Definition, then: DataNode, otherwise: DataNode, branches: tuple[Scope, Scope]) -> DataNode:
    """Merges the samples of both branches into one batch in the surrounding scope; on the GPU if either is there."""
    inputs = (bring(definition, then, branches[0]), bring(definition, otherwise, branches[1]))
    if any(data.device == "gpu" for data in inputs):
        inputs = (move(inputs[0], "gpu"), move(inputs[1], "gpu"))
    scope = branches[0].parent
    return add(definition, "_conditional.merge", (*inputs, branches[0].condition), {}, branches[0].sites, scope, scope)
