# SPDX-License-Identifier: Apache-2.0
"""Fills the modules `fn` and `ops` from the registered operators.

Functions and classes are created on first use, with signature and docstring for help().
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from .. import operators  # noqa: F401  fills the registry
from ..core.errors import UnexpectedArgument, suggest, warn_deprecated
from ..core.op import REGISTRY, Operator, snake_case
from ..graph import trace
from ..graph.node import DataNode


def _submodule(root: str, path: list[str]) -> ModuleType:
    """The module `root.a.b`; created if it does not exist."""
    module, name = sys.modules[root], root
    for part in path:
        name = f"{name}.{part}"
        if name not in sys.modules:
            sys.modules[name] = ModuleType(name, f"Operators of `{name.removeprefix('penstock.')}`.")
            sys.modules[name].__path__ = []  # a package, so that `import penstock.fn.experimental.readers` works
        setattr(module, part, sys.modules[name])
        module = sys.modules[name]
    return module


def _explained(cls: type[Operator], kwargs: dict[str, Any], error: UnexpectedArgument) -> UnexpectedArgument:
    from . import other_libraries  # for errors only

    return other_libraries.explained(cls, kwargs, error)


def _function(cls: type[Operator], name: str, warning: str = "") -> Any:
    from . import signatures  # imports inspect, which pipelines do not need

    defaults = cls.former_defaults.get(name, {})

    def fn(*inputs: Any, **kwargs: Any) -> Any:
        if warning:
            warn_deprecated(warning)
        if inputs and cls.positional:
            inputs, kwargs = (), cls.by_name(inputs, kwargs)
        try:
            return trace.call(cls, inputs, {**defaults, **kwargs}, by_program=True)
        except UnexpectedArgument as e:
            raise _explained(cls, kwargs, e) from None

    fn.__name__ = fn.__qualname__ = snake_case(name)
    fn.__doc__ = signatures.docstring(cls, warning)
    fn.__signature__ = signatures.of_function(cls)  # type: ignore[attr-defined]
    fn._operator = cls  # type: ignore[attr-defined]
    return fn


def _class(cls: type[Operator], name: str, warning: str = "") -> type:
    from . import signatures

    defaults = cls.former_defaults.get(name, {})

    def __init__(self: Any, *given: Any, **kwargs: Any) -> None:
        if warning:
            warn_deprecated(warning)
        if given:
            kwargs = cls.by_name(given, kwargs)
        self._kwargs = {**defaults, **kwargs}
        try:
            trace.check_constants(
                cls, {k: v for k, v in kwargs.items() if k not in ("name", "device") and v is not None}
            )
        except UnexpectedArgument as e:
            raise _explained(cls, kwargs, e) from None

    def __call__(self: Any, *inputs: Any, **kwargs: Any) -> Any:
        try:
            return trace.call(cls, inputs, {"device": "cpu", **self._kwargs, **kwargs}, self._kwargs, by_program=True)
        except UnexpectedArgument as e:
            raise _explained(cls, kwargs, e) from None

    def __repr__(self: Any) -> str:
        arguments = ", ".join(f"{k}={v!r}" for k, v in self._kwargs.items())
        return f"ops.{cls.module + '.' if cls.module else ''}{cls.__name__}({arguments})"

    __call__.__signature__ = signatures.of_call(cls)  # type: ignore[attr-defined]
    body: dict[str, Any] = {"__init__": __init__, "__call__": __call__, "__repr__": __repr__}
    body |= {"__doc__": signatures.docstring(cls, warning), "__signature__": signatures.of_class(cls), "_operator": cls}
    body["device"] = property(lambda self: self._kwargs.get("device") or "cpu")
    body["preserve"] = property(lambda self: bool(self._kwargs.get("preserve")))
    return type(name, (), body)


def places(cls: type[Operator], root: str = "fn") -> list[tuple[list[str], str, str]]:
    """Locations of an operator below `root`: (modules, class name, warning)."""

    def public(path: list[str], name: str) -> str:
        return ".".join([root, *path, snake_case(name) if root == "fn" else name])

    path = cls.module.split(".") if cls.module else []
    found = [(path, cls.__name__, getattr(cls, "discouraged", ""))]  # also shown for its own name
    current = public(path, cls.__name__)
    if cls.experimental:
        former = ["experimental", *path]
        found.append((former, cls.__name__, f"{public(former, cls.__name__)} is now {current}"))
    for old in cls.deprecated:
        *old_path, old_name = old.split(".")
        found.append((old_path, old_name, f"{public(old_path, old_name)} is deprecated; it is now {current}"))
    return found


def function_of(operator: type[Operator]) -> Callable[..., DataNode]:
    """Returns the function of an operator's class: `function_of(Posterize)` is `fn.posterize`.

    For your own operators, of which type checkers know only the class.

    >>> from penstock import fn
    >>> from penstock.operators.geometry.resize import Resize
    >>> function_of(Resize) is fn.resize
    True
    """
    path, name, _ = places(operator)[0]
    function: Callable[..., DataNode] = getattr(_submodule("penstock.fn", path), snake_case(name))
    return function


def _fill(root: str, spell: Callable[[str], str], make: Callable[..., Any]) -> None:
    """Makes `root` and its submodules create their operators on first use."""
    tables: dict[str, dict[str, tuple]] = {root: {}}
    for cls in REGISTRY.values():
        for path, class_name, warning in places(cls, root.rpartition(".")[2]):
            module = _submodule(root, path)
            tables.setdefault(module.__name__, {})[spell(class_name)] = (cls, class_name, warning)
    for module_name in [m for m in sys.modules if m == root or m.startswith(root + ".")]:
        added = functools.partial(_added, root, module_name, spell)
        _make_on_demand(sys.modules[module_name], tables.get(module_name, {}), make, added)


def _added(root: str, module_name: str, spell: Callable[[str], str], name: str) -> tuple | None:
    """An operator with this name that was declared after `import penstock`."""
    for cls in list(REGISTRY.values()):
        for path, class_name, warning in places(cls, root.rpartition(".")[2]):
            if spell(class_name) == name and ".".join([root, *path]) == module_name:
                return cls, class_name, warning
    return None


def _in_other_module(module_name: str, name: str) -> str:
    """' Did you mean fn.decoders.image?' for fn.image, or nothing."""
    root, _, place = module_name.removeprefix("penstock.").partition(".")
    if root not in ("fn", "ops"):
        return ""
    same = [c for c in REGISTRY.values() if name == (snake_case(c.__name__) if root == "fn" else c.__name__)]
    places = {c.module for c in same if not c.module.startswith("_")}
    found = [".".join(filter(None, (root, p, name))) for p in sorted(places - {place})]
    return f" Did you mean {' or '.join(found)}?" if found else ""


def _make_on_demand(
    module: ModuleType, table: dict[str, tuple], make: Callable[..., Any], added: Callable[[str], tuple | None]
) -> None:
    def __getattr__(name: str) -> Any:
        found = table.get(name) or (None if name.startswith("_") else added(name))
        if found is None:
            raise AttributeError(f"module '{module.__name__}' has no attribute '{name}'.{instead_of(name)}")
        made = make(*found)
        made.__module__ = module.__name__
        if name in table:  # others may be redeclared, for example in notebooks
            made = module.__dict__.setdefault(name, made)  # another thread may have been faster
        return made

    def instead_of(name: str) -> str:
        if name.startswith("_"):
            return ""
        from . import absent

        place = re.sub(r"^penstock\.(fn|ops|experimental\.dynamic)\.?", "", module.__name__)
        if known := absent.explain(place, name):
            return f" {known}"
        return _in_other_module(module.__name__, name) or suggest(name, __dir__())

    def __dir__() -> list[str]:
        return sorted({*module.__dict__, *table})

    module.__getattr__, module.__dir__ = __getattr__, __dir__  # type: ignore[method-assign]
    module.__all__ = sorted({*table, *(n for n, v in vars(module).items() if isinstance(v, ModuleType))})  # type: ignore[attr-defined]


def build_functions(root: str) -> None:
    _fill(root, snake_case, _function)


def build_classes(root: str) -> None:
    _fill(root, lambda name: name, _class)
