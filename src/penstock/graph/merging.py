# SPDX-License-Identifier: Apache-2.0
"""Merges the values assigned in the two branches of a conditional into one batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.errors import BranchesError
from . import trace
from .containers import MISSING
from .definition import Definition
from .effects import Effects, Unmerged
from .node import DataNode
from .scopes import Scope, merge


class _Divergent(Exception):
    """The values have no common structure."""


class Merging:
    """Merges the values that the branches of one conditional leave in variables and elsewhere."""

    def __init__(self, definition: Definition, scopes: tuple[Scope, Scope], effects: Effects):
        self._definition, self._scopes, self._effects = definition, scopes, effects
        self._branches = 0
        self._made: dict[tuple, DataNode] = {}  # values stored in several places are merged once
        self._kept: list[Any] = []  # keeps objects alive, so that their ids stay unique

    def after_branch(self) -> None:
        """Called after each of the two branches, in the scope around them."""
        self._effects.after_branch()
        self._branches += 1
        if self._branches == 1:
            self._effects.take_back()
        else:
            self._effects.merge(self._merged_item, self._refuse)

    def merged(self, who: str, first: Any, second: Any) -> Any:
        """Merges the two values of `who`, or returns Unmerged if that is not possible; one may be MISSING."""
        where, line = self._place()
        if first is MISSING and second is MISSING:
            return MISSING
        if first is MISSING or second is MISSING:
            missing = "first" if first is MISSING else "second"
            return Unmerged(
                f"{who} is not assigned in the {missing} branch of the conditional{where}; what is used "
                f"after it has to be assigned in both branches, or before{line}"
            )
        try:
            return self._merge(first, second)
        except _Divergent as e:
            return Unmerged(
                f"{who} has different structures after the branches of the conditional{where}: {e}. It needs the same "
                f"one in both: data or numbers, or lists, tuples and dictionaries of equal length of them{line}"
            )

    def _place(self) -> tuple[str, str]:
        sites = self._scopes[0].sites
        return (f" of line {sites[-1].line}", f"\n{sites[-1]}") if sites else ("", "")

    def _refuse(self, words: str, first: Any, second: Any) -> None:
        where, line = self._place()
        raise BranchesError(
            f"the {type(first).__name__} `{words}` differs after the branches of the conditional{where}: "
            f"{_short(first)} and {_short(second)}. It can't be merged; use variables, lists or attributes{line}"
        )

    def _merged_item(self, words: str, first: Any, second: Any) -> Any:
        return self.merged(f"`{words}`", first, second)

    def _merge(self, first: Any, second: Any) -> Any:
        if first is second:
            return first
        for value in (first, second):
            if isinstance(value, Unmerged):
                return value
        if type(first) is type(second) and not isinstance(first, DataNode):
            if isinstance(first, (list, tuple, dict)):
                return self._merge_items(first, second)
            if isinstance(first, (str, bytes, bool, int, float)) and first == second:
                return first
        takes = (DataNode, bool, int, float, np.ndarray, np.generic)
        if any(not isinstance(v, takes) for v in (first, second)):
            raise _Divergent(f"{_short(first)} and {_short(second)}")
        key = (_key(first), _key(second))
        if key not in self._made:
            self._kept += [first, second]
            nodes = [v if isinstance(v, DataNode) else trace.constant(v) for v in (first, second)]
            self._made[key] = merge(self._definition, nodes[0], nodes[1], self._scopes)
        return self._made[key]

    def _merge_items(self, first: Any, second: Any) -> Any:
        kind = type(first)
        first, second = self._effects.content(0, first), self._effects.content(1, second)
        if len(first) != len(second) or (isinstance(first, dict) and first.keys() != second.keys()):
            raise _Divergent(f"{_short(first)} and {_short(second)}")
        if isinstance(first, dict):
            return {k: self._merge(first[k], second[k]) for k in first}
        items = [self._merge(a, b) for a, b in zip(first, second)]
        return kind(*items) if hasattr(kind, "_fields") else kind(items)


def _key(value: Any) -> tuple:
    return (value.source, value.index) if isinstance(value, DataNode) else (id(value),)


def _short(value: Any) -> str:
    if isinstance(value, DataNode):
        return "data"
    if isinstance(value, (list, tuple, dict)):
        return f"a {type(value).__name__} of {len(value)}"
    text = repr(value)
    return text if len(text) < 40 else type(value).__name__
