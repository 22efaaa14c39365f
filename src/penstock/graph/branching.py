# SPDX-License-Identifier: Apache-2.0
"""Run-time functions for `if`, `and`, `or`, `not` in a converted function (see conditionals.py).

For Python values they behave as usual. For a DataNode both branches are defined, one after the other, each in
its scope; then the values that they assigned are merged.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Collection, Sequence
from typing import Any

from ..core.errors import ArgumentValueError, BranchesError, user_sites
from ..core.op import REGISTRY
from . import trace
from .containers import MISSING
from .effects import Effects, Unmerged
from .merging import Merging
from .node import DataNode
from .returns import RETURNED
from .scopes import Scope, bring, inside, merge

MARK = "_penstock_do_not_convert"  # attribute of functions that must not be converted
_COMPARE = {name: getattr(operator, name) for name in ("lt", "le", "gt", "ge", "eq", "ne")}
_COMPARE |= {
    "is": operator.is_,
    "isnot": operator.is_not,
    "in": lambda a, b: a in b,
    "notin": lambda a, b: a not in b,
}


def _definition() -> trace.Definition:
    if not trace.stack():
        raise RuntimeError("a conditional on data can be used only while a pipeline is being defined")
    return trace.stack()[-1].definition


def _branches(condition: DataNode) -> tuple[Scope, Scope]:
    definition, sites = _definition(), user_sites()
    if condition.device != "cpu":
        raise ArgumentValueError(
            f"{condition.told()} is on the GPU and can't be a condition: which samples go into a branch is decided by "
            "the CPU. Compute it there, or copy it with .cpu()"
        )
    condition = bring(definition, condition, definition.scope)
    return (
        Scope(definition.scope, condition, True, sites),
        Scope(definition.scope, condition, False, sites),
    )


class If:
    """One `if` while its branches are defined. Used by the converted code:

    c = if_(test, leaves)
    if c.then(names, stores):   # saves the variables and places that are assigned in the branches
        with c: ...
    if c.restores(name): name = c.before(name)
    if c.otherwise():
        with c: ...
    if c.merges(name): name = c.merged(name)
    """

    def __init__(self, test: Any, leaves: str):
        self.is_data = isinstance(test, DataNode)
        self._truth = self.is_data or bool(test)
        if not self.is_data:
            return
        if leaves:
            raise BranchesError(
                f"{test.told()} is a batch: `if` on data takes both branches, each for some of the samples, so "
                f"`{leaves}` can't leave the loop, `with` or `try` around it. Assign to variables, or `continue`"
            )
        self._scopes = _branches(test)
        self._states: list[dict[str, Any]] = []

    def then(self, names: Sequence[str], stores: Collection[str]) -> bool:
        if self.is_data:
            self._names = names
            self._before = self._locals()
            self._merging = Merging(_definition(), self._scopes, Effects(sys._getframe(1), stores))
        return self._truth

    def otherwise(self) -> bool:
        return self.is_data or not self._truth

    def _locals(self) -> dict[str, Any]:
        """The listed local variables of the function two frames up."""
        variables = sys._getframe(2).f_locals
        return {n: variables[n] for n in self._names if n in variables}

    def __enter__(self) -> None:
        if self.is_data:
            self._inside = inside(_definition(), self._scopes[len(self._states)])
            self._inside.__enter__()

    def __exit__(self, *error: Any) -> None:
        if self.is_data:
            self._inside.__exit__(*error)
            self._states.append(self._locals())
            if error[0] is None:
                self._merging.after_branch()

    def restores(self, name: str) -> bool:
        """Whether a variable must get its previous value back."""
        return self.is_data and name in self._before

    def removes(self, name: str) -> bool:
        """Whether a variable that did not exist before must be deleted."""
        return self.is_data and name not in self._before and name in sys._getframe(1).f_locals

    def before(self, name: str) -> Any:
        return self._before[name]

    def merges(self, name: str) -> bool:
        return self.is_data and (name in self._states[0] or name in self._states[1])

    def merged(self, name: str) -> Any:
        who = "what is returned" if name == RETURNED else f"the variable '{name}'"
        return self._merging.merged(who, *(s.get(name, MISSING) for s in self._states))


# Expressions ---------------------------------------------------------------------------------------------------------


def if_else(test: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
    """`then if test else otherwise`"""
    if not isinstance(test, DataNode):
        return then() if test else otherwise()
    scopes, values = _branches(test), []
    merging = Merging(_definition(), scopes, Effects(sys._getframe(1)))
    for scope, value in zip(scopes, (then, otherwise)):
        with inside(_definition(), scope):
            values.append(value())
        merging.after_branch()
    result = merging.merged("the value of the conditional expression", *values)
    return result.complain() if isinstance(result, Unmerged) else result


def _both(operation: str, left: DataNode, right: Callable[[], Any]) -> Any:
    """`left and right` or `left or right`, where `right` is computed only for the samples that need it."""
    definition = _definition()
    scopes = _branches(left)
    needed = scopes[0] if operation == "and" else scopes[1]
    merging = Merging(definition, scopes, Effects(sys._getframe(2)))
    for scope in scopes:
        if scope is needed:
            with inside(definition, needed):
                value = right()
        merging.after_branch()
    if isinstance(value, DataNode) and value.source.branch is needed:
        known = trace.constant(operation == "or")
        value = merge(definition, *((value, known) if operation == "and" else (known, value)), scopes)
    return _logical(operation, left, value)


def _logical(operation: str, *operands: Any) -> Any:
    return trace.call(REGISTRY["_conditional.logical"], operands, {"operation": operation})


def and_(left: Any, right: Callable[[], Any]) -> Any:
    return _both("and", left, right) if isinstance(left, DataNode) else left and right()


def or_(left: Any, right: Callable[[], Any]) -> Any:
    return _both("or", left, right) if isinstance(left, DataNode) else left or right()


def not_(value: Any) -> Any:
    return _logical("not", value) if isinstance(value, DataNode) else not value


def compare(left: Any, *rest: Any) -> Any:
    """`a < b < c`, computing each operand once; `rest` alternates names of operations and operands."""
    result: Any = True
    for name, operand in zip(rest[::2], rest[1::2]):
        if result is not True and not isinstance(result, DataNode) and not result:
            return result
        right = operand()
        here = _COMPARE[name](left, right)
        result = here if result is True or not isinstance(result, DataNode) else _logical("and", result, here)
        left = right
    return result
