# SPDX-License-Identifier: Apache-2.0
"""Makes the modules `fn` and `ops` from the operators that are registered."""

from __future__ import annotations

import re
import sys
import warnings
from types import ModuleType
from typing import Any

from . import operators  # noqa: F401  fills the registry
from .core.op import REGISTRY, Operator
from .graph import trace


def _submodule(root: str, path: list[str]) -> ModuleType:
    """The module `root.a.b`, made where it does not exist."""
    module, name = sys.modules[root], root
    for part in path:
        name = f"{name}.{part}"
        if name not in sys.modules:
            sys.modules[name] = ModuleType(name)
        setattr(module, part, sys.modules[name])
        module = sys.modules[name]
    return module


def _function(cls: type[Operator], name: str, warning: str = "") -> Any:
    def fn(*inputs: Any, **kwargs: Any) -> Any:
        if warning:
            warnings.warn(warning, DeprecationWarning, stacklevel=2)
        return trace.call(cls, inputs, kwargs)

    fn.__name__ = fn.__qualname__ = name
    fn.__doc__ = cls.__doc__
    fn._operator = cls  # type: ignore[attr-defined]
    return fn


def _class(cls: type[Operator], name: str, warning: str = "") -> type:
    def __init__(self: Any, **kwargs: Any) -> None:
        if warning:
            warnings.warn(warning, DeprecationWarning, stacklevel=2)
        self._kwargs = kwargs
        trace.check_constants(cls, {k: v for k, v in kwargs.items() if k not in ("name", "device") and v is not None})

    def __call__(self: Any, *inputs: Any, **kwargs: Any) -> Any:
        return trace.call(cls, inputs, {**self._kwargs, **kwargs})

    def __repr__(self: Any) -> str:
        arguments = ", ".join(f"{k}={v!r}" for k, v in self._kwargs.items())
        return f"ops.{cls.module + '.' if cls.module else ''}{cls.__name__}({arguments})"

    body: dict[str, Any] = {"__init__": __init__, "__call__": __call__, "__repr__": __repr__, "__doc__": cls.__doc__, "_operator": cls}
    body["device"] = property(lambda self: self._kwargs.get("device") or "cpu")
    body["preserve"] = property(lambda self: bool(self._kwargs.get("preserve")))
    return type(name, (), body)


def snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def _places(cls: type[Operator]) -> list[tuple[list[str], str, str]]:
    """Where an operator is found: (modules, class name, warning)."""
    path = cls.module.split(".") if cls.module else []
    places = [(path, cls.__name__, "")]
    current = f"fn.{cls.fn_name}"
    if cls.experimental:
        places.append((["experimental", *path], cls.__name__, f"fn.experimental.{cls.fn_name} is now {current}"))
    for old in cls.deprecated:
        *old_path, old_name = old.split(".")
        places.append((old_path, old_name, f"{old} is deprecated; it is now {current}"))
    return places


def build_functions(root: str) -> None:
    for cls in REGISTRY.values():
        for path, class_name, warning in _places(cls):
            name = snake_case(class_name)
            setattr(_submodule(root, path), name, _function(cls, name, warning))


def build_classes(root: str) -> None:
    for cls in REGISTRY.values():
        for path, class_name, warning in _places(cls):
            new = _class(cls, class_name, warning)
            new.__module__ = ".".join([root, *path])
            setattr(_submodule(root, path), class_name, new)
