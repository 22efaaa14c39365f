# SPDX-License-Identifier: Apache-2.0
"""Places where a function can store values besides its variables: items of lists and dictionaries, attributes, global
variables, variables of enclosing functions. `Reachable` finds those that it can reach."""

from __future__ import annotations

import types
from collections import OrderedDict, deque
from collections.abc import Collection
from functools import cached_property
from operator import is_
from typing import Any

import numpy as np

from .libraries import is_library, is_standard_module
from .node import DataNode
from .rewriting import NAME

MISSING: Any = object()
LARGE = 1_000  # maximum size of a container whose items are visited
_MOST = 10_000  # maximum number of objects visited
_LEAVES = frozenset({DataNode, bool, int, float, complex, str, bytes, type(None), range, slice, type(Ellipsis)})
_GLOBAL_NAMES: dict[types.CodeType, frozenset[str]] = {}


class Container:
    """An object that holds values by key. `words` is the user's expression for it, such as `self.table`."""

    def __init__(self, owner: Any, words: str):
        self.owner, self.words = owner, words
        self.copied = self.copy()

    def copy(self) -> Any:
        """A snapshot of its contents."""
        return self.read()

    def read(self) -> dict[Any, Any]:
        """Its contents by key."""
        raise NotImplementedError

    @cached_property
    def before(self) -> dict[Any, Any]:
        """Its contents by key when it was found."""
        return self.copied

    def has_changed(self) -> bool:
        """Whether it now holds other objects."""
        now, before = self.copy(), self.copied
        return not (
            len(now) == len(before) and all(map(is_, now, before)) and all(map(is_, now.values(), before.values()))
        )

    def set(self, key: Any, value: Any) -> None:
        """Stores a value; MISSING deletes the key."""
        raise NotImplementedError

    def call(self, key: Any) -> str:
        """The user's expression for the value at a key."""
        return key

    def is_written(self, key: Any, stores: Collection[str]) -> bool:
        """Whether the source of the branches has an assignment that may have changed the key."""
        return key in stores

    def restore(self, keys: Collection[Any]) -> None:
        for key in keys:
            self.set(key, self.before.get(key, MISSING))


class Dictionary(Container):
    def __init__(self, owner: dict, words: str):
        self._base: Any = OrderedDict if isinstance(owner, OrderedDict) else dict  # bypasses methods of user classes
        super().__init__(owner, words)

    def read(self) -> dict[Any, Any]:
        return dict(self.owner) if type(self.owner) is dict else dict(self._base.items(self.owner))

    def set(self, key: Any, value: Any) -> None:
        if value is not MISSING:
            self._base.__setitem__(self.owner, key, value)
        elif key in self.owner:
            self._base.__delitem__(self.owner, key)

    def restore(self, keys: Collection[Any]) -> None:
        super().restore(keys)
        now = self.read()
        order = [*(k for k in self.before if k in now), *(k for k in now if k not in self.before)]
        if order != list(now):
            self._base.clear(self.owner)
            for key in order:
                self.set(key, now[key])

    def call(self, key: Any) -> str:
        return f"{self.words}[{key!r}]"

    def is_written(self, key: Any, stores: Collection[str]) -> bool:
        return "[]" in stores


class Sequence(Container):
    """A list or deque. Its items are restored together, as inserting or deleting one moves the others."""

    def copy(self) -> list[Any]:
        return list(self.owner)

    def read(self) -> dict[Any, Any]:
        return dict(enumerate(self.owner))

    @cached_property
    def before(self) -> dict[Any, Any]:
        return dict(enumerate(self.copied))

    def has_changed(self) -> bool:
        return len(self.owner) != len(self.copied) or not all(map(is_, self.owner, self.copied))

    def fill(self, values: list[Any]) -> None:
        if isinstance(self.owner, deque):
            self.owner.clear()
            self.owner.extend(values)
        else:
            list.__setitem__(self.owner, slice(None), values)

    def restore(self, keys: Collection[Any]) -> None:
        self.fill(list(self.before.values()))

    def call(self, key: Any) -> str:
        return f"{self.words}[{key}]"

    def is_written(self, key: Any, stores: Collection[str]) -> bool:
        return "[]" in stores


class _Attributes(Container):
    """The attributes of an object, in its `__dict__` and slots."""

    def __init__(self, owner: Any, words: str):
        slots = (s for c in type(owner).__mro__ for s in _names(c.__dict__.get("__slots__", ())))
        found = {s: getattr(type(owner), s, None) for s in slots}
        self._slots = {s: d for s, d in found.items() if isinstance(d, types.MemberDescriptorType)}
        super().__init__(owner, words)

    def read(self) -> dict[Any, Any]:
        values = {s: _slot(d, self.owner) for s, d in self._slots.items()}
        return {k: v for k, v in values.items() if v is not MISSING} | _dict_of(self.owner)

    def set(self, key: Any, value: Any) -> None:
        if key not in self._slots:
            _put(_dict_of(self.owner), key, value)
        elif value is not MISSING:
            self._slots[key].__set__(self.owner, value)
        elif _slot(self._slots[key], self.owner) is not MISSING:
            self._slots[key].__delete__(self.owner)

    def call(self, key: Any) -> str:
        return f"{self.words}.{key}"

    def is_written(self, key: Any, stores: Collection[str]) -> bool:
        return f".{key}" in stores


class _ClassAttributes(_Attributes):
    def __init__(self, owner: type, words: str):
        Container.__init__(self, owner, words)

    def read(self) -> dict[Any, Any]:
        return {k: v for k, v in vars(self.owner).items() if not (k.startswith("__") and k.endswith("__"))}

    def set(self, key: Any, value: Any) -> None:
        if value is not MISSING:
            type.__setattr__(self.owner, key, value)
        elif key in vars(self.owner):
            type.__delattr__(self.owner, key)


class _Cell(Container):
    """A variable shared by nested functions."""

    def read(self) -> dict[Any, Any]:
        try:
            return {self.words: self.owner.cell_contents}
        except ValueError:  # not assigned yet
            return {}

    def set(self, key: Any, value: Any) -> None:
        if value is not MISSING:
            self.owner.cell_contents = value
        elif self.read():
            del self.owner.cell_contents


class _Global(Container):
    """A variable of a module."""

    def __init__(self, owner: dict[str, Any], name: str, words: str):
        self.name = name
        super().__init__(owner, words)

    def read(self) -> dict[Any, Any]:
        return {self.name: self.owner[self.name]} if self.name in self.owner else {}

    def set(self, key: Any, value: Any) -> None:
        _put(self.owner, key, value)

    def call(self, key: Any) -> str:
        return self.words

    def is_written(self, key: Any, stores: Collection[str]) -> bool:
        return key in stores or f".{key}" in stores


class WholeValue(Container):
    """A set or NumPy array, which can hold values, but not DataNodes."""

    def has_changed(self) -> bool:
        before = self.before[None]
        return not (np.array_equal(self.owner, before) if isinstance(before, np.ndarray) else self.owner == before)

    def read(self) -> dict[Any, Any]:
        return {None: self.owner.copy()}

    def restore(self, keys: Collection[Any]) -> None:
        before = self.before[None]
        if isinstance(self.owner, np.ndarray):
            self.owner[...] = before
        else:
            self.owner.clear()
            self.owner.update(before)

    def call(self, key: Any) -> str:
        return self.words

    def is_written(self, key: Any, stores: Collection[str]) -> bool:
        return False


def _put(values: dict, key: Any, value: Any) -> None:
    if value is not MISSING:
        values[key] = value
    else:
        values.pop(key, None)


def _names(slots: Any) -> tuple[str, ...]:
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _slot(descriptor: Any, owner: Any) -> Any:
    try:
        return descriptor.__get__(owner)
    except AttributeError:
        return MISSING


def _dict_of(owner: Any) -> dict[str, Any]:
    try:
        return object.__getattribute__(owner, "__dict__")
    except AttributeError:
        return {}


# Containers that a function can reach --------------------------------------------------------------------------------


def _global_names(code: types.CodeType) -> frozenset[str]:
    """The global and attribute names used by a function and the functions inside it."""
    if code not in _GLOBAL_NAMES:
        inner = (_global_names(c) for c in code.co_consts if isinstance(c, types.CodeType))
        _GLOBAL_NAMES[code] = frozenset(code.co_names).union(*inner)
    return _GLOBAL_NAMES[code]


class Reachable:
    """Walks from the variables of a function to all containers that can hold data, nearest first."""

    def __init__(self, frame: types.FrameType, stores: Collection[str]):
        self._seen: set[Any] = set()
        self._waiting: deque[tuple[Any, str]] = deque()
        self.kept: list[Any] = []  # keeps objects alive, so that their ids stay unique
        self._stores = stores
        self.containers: list[Container] = []
        for name, value in frame.f_locals.items():
            if not name.startswith(NAME):
                self._waiting.append((value, name))
        self._globals(frame.f_globals, _global_names(frame.f_code) | {s for s in stores if s.isidentifier()})
        while self._waiting and len(self._seen) < _MOST:
            self._visit(*self._waiting.popleft())

    def _is_new(self, key: Any) -> bool:
        new = key not in self._seen
        self._seen.add(key)
        return new

    def _globals(self, module: dict[str, Any], names: Collection[str]) -> None:
        if is_library(module.get("__name__")):
            return
        for name in names:
            if (name in module or name in self._stores) and self._is_new((id(module), name)):
                self.containers.append(_Global(module, name, name))
                if name in module:
                    self._waiting.append((module[name], name))

    def _function(self, function: types.FunctionType) -> None:
        code = function.__code__
        if is_library(function.__module__) or is_standard_module(function.__module__):
            return
        for name, cell in zip(code.co_freevars, function.__closure__ or ()):
            if not name.startswith(NAME) and self._is_new(id(cell)):
                container = _Cell(cell, name)
                self.containers.append(container)
                self._waiting += [(v, name) for v in container.before.values()]
        self._globals(function.__globals__, _global_names(code))

    def _visit(self, value: Any, words: str) -> None:
        kind = type(value)
        if kind in _LEAVES or isinstance(value, DataNode) or not self._is_new(id(value)):
            return
        self.kept.append(value)
        container: Container | None = None
        if issubclass(kind, dict):
            container = Dictionary(value, words)
        elif issubclass(kind, (list, deque)):
            container = Sequence(value, words)
        elif issubclass(kind, tuple):
            if len(value) <= LARGE:
                self._waiting += [(v, f"{words}[{i}]") for i, v in enumerate(value)]
        elif kind in (set, np.ndarray):
            if (value.size if kind is np.ndarray else len(value)) <= LARGE and words.isidentifier():
                self.containers.append(WholeValue(value, words))
        elif kind is types.FunctionType:
            self._function(value)
        elif kind is types.MethodType:
            self._waiting += [(value.__self__, words), (value.__func__, words)]
        elif kind is types.ModuleType:
            if not is_library(value.__name__) and not is_standard_module(value.__name__):
                self._module(value, words)
        elif issubclass(kind, type):
            if not is_library(value.__module__) and not is_standard_module(value.__module__):
                container = _ClassAttributes(value, words)
        elif (
            kind is types.SimpleNamespace
            or (kind.__module__, kind.__name__) == ("argparse", "Namespace")
            or not (is_library(kind.__module__) or is_standard_module(kind.__module__))
        ):
            container = _Attributes(value, words)
            self._waiting.append((kind, kind.__name__))
        if container is not None:
            self.containers.append(container)
            if len(container.copied) <= LARGE:
                self._waiting += [(v, container.call(k)) for k, v in container.before.items() if type(v) not in _LEAVES]
            if issubclass(kind, (dict, list)) and kind not in (dict, list) and _dict_of(value):
                self.containers.append(_Attributes(value, words))

    def _module(self, module: types.ModuleType, words: str) -> None:
        """Adds the variables of another module that the branches assign."""
        for name in (s[1:] for s in self._stores if s.startswith(".")):
            if self._is_new((id(vars(module)), name)):
                self.containers.append(_Global(vars(module), name, f"{words}.{name}"))
