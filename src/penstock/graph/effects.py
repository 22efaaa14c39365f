# SPDX-License-Identifier: Apache-2.0
"""Side effects of the branches of a conditional, apart from the variables that they assign.

The containers that a function can reach (containers.py) are saved before the first branch, and compared after
each: by identity, so that it does not matter which statement or function changed them. Changes of data are
undone before the second branch and merged after it. Other state of the program, such as a counter in some object,
is left as changed by both branches, one after the other.
"""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Callable, Collection, Iterator
from typing import Any

import numpy as np

from ..core.errors import BranchesError
from .containers import LARGE, MISSING, Container, Dictionary, Reachable, Sequence, WholeValue
from .node import DataNode

_NUMBERS = (bool, int, float, np.number, np.bool_, np.ndarray)


class Unmerged:
    """A placeholder for values of the branches that can't be merged into one batch. Using it raises an error."""

    def __init__(self, text: str):
        self._text = text

    def complain(self, *args: Any, **kwargs: Any) -> Any:
        raise BranchesError(self._text)

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


def holds_data(value: Any, depth: int = 3) -> bool:
    """Whether a value is data, or a list, tuple or dictionary with data in it."""
    if isinstance(value, (DataNode, Unmerged)):
        return True
    if depth and isinstance(value, (list, tuple, deque, set)):
        return len(value) <= LARGE and any(holds_data(v, depth - 1) for v in value)
    if depth and isinstance(value, dict):
        return len(value) <= LARGE and any(holds_data(v, depth - 1) for v in value.values())
    return False


class Effects:
    """The side effects of two branches, one after the other:

    effects = Effects(frame, stores)
    <first branch>;  effects.after_branch();  effects.take_back()
    <second branch>; effects.after_branch();  effects.merge(...)

    `frame` is the function's. `stores` are the places assigned in the branches: "name" a global variable,
    ".name" an attribute of anything, "[]" an item of anything.
    """

    def __init__(self, frame: types.FrameType, stores: Collection[str] = ()):
        self._stores = stores
        reachable = Reachable(frame, stores)
        self._containers, self._kept = reachable.containers, reachable.kept
        # For each branch: the contents of changed containers after it, and the keys changed.
        self._contents: list[dict[int, dict[Any, Any]]] = []
        self._changed: list[dict[int, list[Any]]] = []
        self._numbers: dict[int, int] = {}  # container numbers by id, for changed lists and dictionaries

    def after_branch(self) -> None:
        contents, changed = {}, {}
        for number, container in enumerate(self._containers):
            if not container.has_changed():
                continue
            now = container.read()
            keys = [k for k in self._differing(container, now) if self._matters(container, k, container.before, now)]
            if keys:
                contents[number], changed[number] = now, keys
        self._contents.append(contents)
        self._changed.append(changed)

    def take_back(self) -> None:
        for number, keys in self._changed[-1].items():
            self._containers[number].restore(keys)

    @staticmethod
    def _differing(container: Container, now: dict[Any, Any]) -> Iterator[Any]:
        before = container.before
        if isinstance(container, WholeValue):
            if not _same(before[None], now[None]):
                yield None
            return
        yield from (k for k, v in now.items() if v is not before.get(k, MISSING))
        yield from (k for k in before if k not in now)

    def _matters(self, container: Container, key: Any, before: dict[Any, Any], now: dict[Any, Any]) -> bool:
        """Whether a change affects data, or would be merged if it were made to a variable."""
        values = [c.get(key, MISSING) for c in (before, now)]
        is_new_item = isinstance(container, Sequence) and key not in before
        if container.is_written(key, self._stores) and not is_new_item or any(holds_data(v) for v in values):
            return True
        # A list or dictionary in a local variable holds results of the function.
        if isinstance(container, WholeValue):
            return isinstance(container.owner, np.ndarray) or any(isinstance(v, _NUMBERS) for c in values for v in c)
        results = isinstance(container, (Dictionary, Sequence)) and container.words.isidentifier()
        return results and any(isinstance(v, _NUMBERS) for v in values)

    def content(self, branch: int, value: Any) -> Any:
        """A list or dictionary as it was after a branch."""
        number = self._numbers.get(id(value))
        if number is None:
            return value
        content = self._contents[branch].get(number, self._containers[number].before)
        return content if isinstance(value, dict) else list(content.values())

    def merge(self, merged: Callable[[str, Any, Any], Any], refuse: Callable[[str, Any, Any], None]) -> None:
        """Stores `merged(words, first, second)` in each container that a branch changed; a value may be MISSING. Calls
        `refuse` for sets and arrays that differ."""
        numbers = sorted({*self._changed[0], *self._changed[1]})
        owners = ((n, self._containers[n]) for n in numbers)
        self._numbers = {id(p.owner): n for n, p in owners if isinstance(p, (Dictionary, Sequence))}
        for number in numbers:
            container = self._containers[number]
            first, second = (c.get(number, container.before) for c in self._contents)
            if isinstance(container, WholeValue):
                if not _same(first[None], second[None]):
                    refuse(container.words, first[None], second[None])
                continue
            if isinstance(container, Sequence):
                keys = range(max(len(first), len(second)))
                pairs = [(first.get(k, MISSING), second.get(k, MISSING)) for k in keys]
                container.fill([_kept(*pair) or merged(container.call(k), *pair) for k, pair in zip(keys, pairs)])
                continue
            for key in dict.fromkeys(k for c in self._changed for k in c.get(number, ())):
                container.set(key, merged(container.call(key), first.get(key, MISSING), second.get(key, MISSING)))


def _same(first: Any, second: Any) -> bool:
    return np.array_equal(first, second) if isinstance(first, np.ndarray) else first == second


def _kept(first: Any, second: Any) -> Any:
    """A value appended by only one branch, if it is a string or object that can't differ per sample; else None."""
    value = second if first is MISSING else first if second is MISSING else None
    return None if holds_data(value) or isinstance(value, _NUMBERS) else value
