# SPDX-License-Identifier: Apache-2.0
"""What the words `if`, `and`, `or`, `not` do in a converted function (see conditionals.py).

For values of Python they do what they always do. For a DataNode both branches are defined, one after the other, each in
its scope; then what they assigned is merged.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.errors import user_sites
from ..core.op import REGISTRY
from . import trace
from .node import DataNode
from .returns import RETURNED
from .scopes import Scope, bring, inside, merge

MARK = "_penstock_do_not_convert"  # an attribute of functions that are left as they are
_MISSING: Any = object()
_COMPARE = {name: getattr(operator, name) for name in ("lt", "le", "gt", "ge", "eq", "ne")}
_COMPARE |= {
    "is": operator.is_,
    "isnot": operator.is_not,
    "in": lambda a, b: a in b,
    "notin": lambda a, b: a not in b,
}


class Unmerged:
    """Stands for a variable to which the branches of a conditional assigned what can't become one batch. Whoever uses
    it is told."""

    def __init__(self, text: str):
        self._text = text

    def complain(self, *args: Any, **kwargs: Any) -> Any:
        raise ValueError(self._text)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        self.complain()

    __array__ = __iter__ = __len__ = __getitem__ = __call__ = __bool__ = __eq__ = __ne__ = __add__ = __radd__ = complain
    __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __lt__ = __le__ = __gt__ = __ge__ = __float__ = complain
    __int__ = __index__ = __neg__ = __and__ = __or__ = __invert__ = complain
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"<{self._text}>"


def _definition() -> trace.Definition:
    if not trace.stack():
        raise RuntimeError("a conditional on data can be used only while a pipeline is being defined")
    return trace.stack()[-1].definition


def _branches(condition: DataNode) -> tuple[Scope, Scope]:
    definition, sites = _definition(), user_sites()
    if condition.device != "cpu":
        raise ValueError(
            f"'{condition.name}' is on the GPU and can't be a condition: which samples go into a branch is decided by "
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
    if c.then(names):       # remembers the variables that are assigned in the branches
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
            raise TypeError(
                f"'{test.name}' is a batch: `if` on data takes both branches, each for some of the samples, so "
                f"`{leaves}` can't leave the loop, `with` or `try` around it. Assign to variables instead"
            )
        self._scopes = _branches(test)
        self._states: list[dict[str, Any]] = []

    def then(self, names: Sequence[str]) -> bool:
        if self.is_data:
            self._names = names
            self._before = self._locals()
        return self._truth

    def otherwise(self) -> bool:
        return self.is_data or not self._truth

    def _locals(self) -> dict[str, Any]:
        """The variables of the function, two frames up."""
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

    def restores(self, name: str) -> bool:
        """Whether a variable is to have the value it had before."""
        return self.is_data and name in self._before

    def removes(self, name: str) -> bool:
        """Whether a variable that was not there before is to be deleted."""
        return self.is_data and name not in self._before and name in sys._getframe(1).f_locals

    def before(self, name: str) -> Any:
        return self._before[name]

    def merges(self, name: str) -> bool:
        return self.is_data and (name in self._states[0] or name in self._states[1])

    def merged(self, name: str) -> Any:
        values = [s.get(name, _MISSING) for s in self._states]
        sites = self._scopes[0].sites
        where, line = (f" of line {sites[-1].line}", f"\n{sites[-1]}") if sites else ("", "")
        who = "what is returned" if name == RETURNED else f"the variable '{name}'"
        if _MISSING in [v if v is _MISSING else None for v in values]:
            missing = ("first", "second")[0 if values[0] is _MISSING else 1]
            return Unmerged(
                f"{who} is not assigned in the {missing} branch of the conditional{where}; what is used "
                f"after it has to be assigned in both branches, or before{line}"
            )
        try:
            return _merge(values[0], values[1], self._scopes)
        except _Divergent as e:
            return Unmerged(
                f"{who} has different structures after the branches of the conditional{where}: {e}. It needs the same "
                f"one in both: data or numbers, or lists, tuples and dictionaries of equal length of them{line}"
            )


class _Divergent(Exception):
    pass


def _merge(then: Any, otherwise: Any, scopes: tuple[Scope, Scope]) -> Any:
    if then is otherwise:
        return then
    for value in (then, otherwise):
        if isinstance(value, Unmerged):
            return value
    if isinstance(then, DataNode) or isinstance(otherwise, DataNode):
        pass
    elif type(then) is type(otherwise) and isinstance(then, (list, tuple, dict)):
        if len(then) != len(otherwise) or (isinstance(then, dict) and then.keys() != otherwise.keys()):
            raise _Divergent(f"{_short(then)} and {_short(otherwise)}")
        if isinstance(then, dict):
            return {k: _merge(then[k], otherwise[k], scopes) for k in then}
        items = [_merge(a, b, scopes) for a, b in zip(then, otherwise)]
        return type(then)(*items) if hasattr(then, "_fields") else type(then)(items)
    elif type(then) is type(otherwise) and isinstance(then, (str, bytes, bool, int, float)) and then == otherwise:
        return then
    nodes = []
    for value in (then, otherwise):
        if not isinstance(value, (DataNode, bool, int, float, np.ndarray, np.generic)):
            raise _Divergent(f"{_short(then)} and {_short(otherwise)}")
        nodes.append(value if isinstance(value, DataNode) else trace.constant(value))
    return merge(_definition(), nodes[0], nodes[1], scopes)


def _short(value: Any) -> str:
    if isinstance(value, DataNode):
        return "data"
    if isinstance(value, (list, tuple, dict)):
        return f"a {type(value).__name__} of {len(value)}"
    text = repr(value)
    return text if len(text) < 40 else type(value).__name__


# Expressions ---------------------------------------------------------------------------------------------------------


def if_else(test: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
    """`then if test else otherwise`"""
    if not isinstance(test, DataNode):
        return then() if test else otherwise()
    scopes, values = _branches(test), []
    for scope, value in zip(scopes, (then, otherwise)):
        with inside(_definition(), scope):
            values.append(value())
    try:
        result = _merge(values[0], values[1], scopes)
    except _Divergent as e:
        raise ValueError(f"the two values of a conditional expression on data have different structures: {e}") from None
    return result.complain() if isinstance(result, Unmerged) else result


def _both(operation: str, left: DataNode, right: Callable[[], Any]) -> Any:
    """`left and right` or `left or right`, where `right` is computed only for the samples that need it."""
    definition = _definition()
    scopes = _branches(left)
    needed = scopes[0] if operation == "and" else scopes[1]
    with inside(definition, needed):
        value = right()
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
    """`a < b < c`, whose operands are computed once each; `rest` alternates names of operations and operands."""
    result: Any = True
    for name, operand in zip(rest[::2], rest[1::2]):
        if result is not True and not isinstance(result, DataNode) and not result:
            return result
        right = operand()
        here = _COMPARE[name](left, right)
        result = here if result is True or not isinstance(result, DataNode) else _logical("and", result, here)
        left = right
    return result
