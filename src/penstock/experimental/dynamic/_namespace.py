# SPDX-License-Identifier: Apache-2.0
"""Fills the modules of the imperative mode with functions and readers, which are created from the registered operators
on first use."""

from __future__ import annotations

import functools
import sys
from typing import Any

from ...core.op import REGISTRY, Operator, snake_case
from ...core.source import Source
from ...registry import functions

# Operators only for graphs, and those that run Python functions, which the program can call directly.
_NOT_HERE = frozenset(
    ("arithmetic", "constant", "dl_tensor_python_function", "external_source", "python_function", "shapes")
    + ("mix", "ssd_random_crop", "subscript")
)


def _function(cls: type[Operator], name: str, place: str) -> Any:
    from . import _signatures
    from ._functions import call

    short = snake_case(name)

    def function(*inputs: Any, **kwargs: Any) -> Any:
        return call(cls, short, inputs, kwargs)

    function.__name__ = function.__qualname__ = short
    function.__doc__ = _signatures.docstring(cls)
    function.__signature__ = _signatures.of_function(cls, place)  # type: ignore[attr-defined]
    function._operator = cls  # type: ignore[attr-defined]
    return function


def _reader(cls: type[Operator], name: str) -> Any:
    from . import _signatures
    from ._readers import Reader

    body = {"_operator": cls, "_name": f"{cls.module}.{name}", "__doc__": _signatures.docstring(cls)}
    made = type(name, (Reader,), {**body, "__signature__": _signatures.of_reader(cls)})
    return made


def _make(cls: type[Operator], name: str, place: str) -> Any:
    return _reader(cls, name) if issubclass(cls, Source) else _function(cls, name, place)


def places(cls: type[Operator]) -> list[list[str]]:
    """The submodules of this package that contain an operator."""
    if cls.fn_name in _NOT_HERE or cls.module == "inputs" or cls.module.startswith("_"):
        return []
    path = cls.module.split(".") if cls.module else []
    # These are in two modules, as in DALI.
    twice = cls.module == "decoders" and cls.experimental or cls.fn_name == "peek_image_shape"
    return [path, *([["experimental", *path]] if twice else [])]


def spelled(cls: type[Operator]) -> str:
    return cls.__name__ if issubclass(cls, Source) else snake_case(cls.__name__)


def fill(root: str) -> None:
    """Makes `root` and its submodules create their contents on first use."""
    tables: dict[str, dict[str, tuple]] = {root: {}}
    for cls in list(REGISTRY.values()):
        for path in places(cls):
            module = functions._submodule(root, path)
            tables.setdefault(module.__name__, {})[spelled(cls)] = (cls, cls.__name__, ".".join(path))
    for name, table in tables.items():
        module = sys.modules[name]
        public = getattr(module, "__all__", ())
        functions._make_on_demand(module, table, _make, functools.partial(_added, root, name))
        module.__all__ = sorted({*public, *module.__all__})  # type: ignore[attr-defined]


def _added(root: str, module_name: str, name: str) -> tuple | None:
    """An operator with this name that was declared after the import."""
    for cls in list(REGISTRY.values()):
        if spelled(cls) == name and any(".".join([root, *path]) == module_name for path in places(cls)):
            return cls, cls.__name__, module_name.removeprefix(root).lstrip(".")
    return None
