# SPDX-License-Identifier: Apache-2.0
"""Pickles sources for workers that are not forked: lambdas, local functions and functions of a notebook, which
can't be imported there, are pickled by value."""

from __future__ import annotations

import importlib
import io
import marshal
import pickle
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

from .calling import describe_source


class Pickler(pickle.Pickler):
    """Pickles functions that can't be imported by value, and modules by name."""

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, types.FunctionType) and (getattr(obj, "_pickle_by_value", False) or not _importable(obj)):
            return _reduce_function(obj)
        if isinstance(obj, types.ModuleType):
            return importlib.import_module, (obj.__name__,)
        return NotImplemented


def dumps(obj: Any) -> bytes:
    out = io.BytesIO()
    Pickler(out, 5).dump(obj)
    return out.getvalue()


def pickle_by_value(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: the function is sent to workers by its code even if it could be imported there."""
    if not isinstance(fun, types.FunctionType):
        raise TypeError(f"pickle_by_value decorates a function; got {type(fun).__name__}")
    fun._pickle_by_value = True  # type: ignore[attr-defined]
    return fun


def dumps_sources(sources: Sequence[Any], method: str, pickler: Any) -> bytes:
    """Pickles the sources for a worker, by this module or by the user's `py_callback_pickler`, each separately."""
    dump, load = _user_pickler(pickler) if pickler is not None else (dumps, pickle.loads)
    pickled = []
    for calling in sources:
        try:
            pickled.append(dump(calling))
        except Exception as e:
            raise TypeError(
                f"the source {describe_source(calling.source)} can't be sent to workers with py_start_method="
                f"'{method}': {type(e).__name__}: {e}. What can't be pickled can be made by the source itself at its "
                "first call; or use py_start_method='fork' or 'thread', or a py_callback_pickler such as cloudpickle"
            ) from e
    return dumps(_Sources(load, pickled))


class _Sources:
    """Unpickles to the list of sources."""

    def __init__(self, load: Callable[[bytes], Any], pickled: list[bytes]):
        self.load, self.pickled = load, pickled

    def __reduce__(self) -> Any:
        return _load_all, (self.load, self.pickled)


def _load_all(load: Callable[[bytes], Any], pickled: list[bytes]) -> list[Any]:
    return [load(p) for p in pickled]


def _user_pickler(pickler: Any) -> tuple[Callable[[Any], bytes], Callable[[bytes], Any]]:
    """`module`, or (module, arguments of dumps, arguments of loads)."""
    import functools

    parts = tuple(pickler) if isinstance(pickler, (tuple, list)) else (pickler,)
    module, dump_args, load_args = (*parts, None, None)[:3]
    if not (hasattr(module, "dumps") and hasattr(module, "loads")):
        raise TypeError(
            "py_callback_pickler takes a module or object with dumps and loads, or a tuple (module, arguments of "
            f"dumps, arguments of loads); got {pickler!r}"
        )
    return functools.partial(module.dumps, **(dump_args or {})), functools.partial(module.loads, **(load_args or {}))


def _importable(fun: types.FunctionType) -> bool:
    """Whether a new process can import the function by its name."""
    module = sys.modules.get(fun.__module__ or "")
    if module is None:
        return False
    if module.__name__ == "__main__" and not getattr(module, "__file__", None):
        return False  # a notebook, or `python -c`
    found: Any = module
    for name in fun.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is fun


def _reduce_function(fun: types.FunctionType) -> tuple:
    names = _names(fun.__code__)
    state = {
        "globals": {n: fun.__globals__[n] for n in names if n in fun.__globals__},
        "defaults": fun.__defaults__,
        "kwdefaults": fun.__kwdefaults__,
        "dict": fun.__dict__,
        "closure": [_contents(c) for c in fun.__closure__ or ()],
    }
    skeleton = (marshal.dumps(fun.__code__), fun.__name__, fun.__qualname__, fun.__module__)
    return _make_function, skeleton, state, None, None, _fill_function


def _names(code: types.CodeType) -> set[str]:
    """Names that may be globals, including those of nested functions."""
    names = set(code.co_names)
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            names |= _names(const)
    return names


def _contents(cell: types.CellType) -> tuple:
    """(value,), or () if the variable is not set yet."""
    try:
        return (cell.cell_contents,)
    except ValueError:
        return ()


# Functions are created in two steps, so that a function may refer to itself.
def _make_function(code: bytes, name: str, qualname: str, module: str) -> types.FunctionType:
    compiled = marshal.loads(code)
    closure = tuple(types.CellType() for _ in compiled.co_freevars)
    fun = types.FunctionType(compiled, {"__builtins__": __builtins__, "__name__": module}, name, None, closure)
    fun.__qualname__, fun.__module__ = qualname, module
    return fun


def _fill_function(fun: types.FunctionType, state: dict[str, Any]) -> None:
    fun.__globals__.update(state["globals"])
    fun.__defaults__, fun.__kwdefaults__ = state["defaults"], state["kwdefaults"]
    fun.__dict__.update(state["dict"])
    for cell, contents in zip(fun.__closure__ or (), state["closure"]):
        if contents:
            cell.cell_contents = contents[0]
