# SPDX-License-Identifier: Apache-2.0
"""`x[1:, i, ..., newaxis]` of DataNodes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.errors import ArgumentTypeError
from ..core.op import REGISTRY
from . import trace
from .node import DataNode


class NewAxis:
    """In a subscript: a new axis of extent 1; `newaxis("C")` names it in the layout."""

    __slots__ = ("name",)

    def __init__(self, name: str | None = None):
        if name is not None and (not isinstance(name, str) or len(name) != 1):
            raise ArgumentTypeError(f"newaxis takes the name of one axis, a single letter; got {name!r}")
        self.name = name

    def __call__(self, name: str | None = None) -> NewAxis:
        return NewAxis(name)

    def __repr__(self) -> str:
        return "newaxis" if self.name is None else f"newaxis({self.name!r})"


newaxis = NewAxis()


def subscript(data: DataNode, key: Any) -> DataNode:
    """Implements `data[key]`."""
    pattern, names = "", []
    kwargs: dict[str, Any] = {}
    for item in key if isinstance(key, tuple) else (key,):
        k = len(pattern)
        if item is Ellipsis:
            pattern += "."
        elif isinstance(item, NewAxis):
            pattern += "n"
            names.append(item.name)
        elif item is None:
            pattern += ":"
        elif isinstance(item, slice):
            parts = {"lo": item.start, "hi": item.stop, "step": item.step}
            given = {f"{name}_{k}": _bound(v) for name, v in parts.items() if v is not None}
            kwargs |= given
            pattern += "s" if given else ":"
        else:
            kwargs[f"at_{k}"] = _integer(item)
            pattern += "i"
    if any(names) and not all(names):
        raise ValueError("either all new axes of a subscript have names or none")
    if any(names):
        kwargs["names"] = names
    return trace.call(REGISTRY["subscript"], (data,), {"pattern": pattern, **kwargs})


def _bound(value: Any) -> Any:
    """A bound or step of a slice; may lie outside of the data, as in Python."""
    value = _integer(value)
    return value if isinstance(value, DataNode) else min(max(value, -(2**31)), 2**31 - 1)


def _integer(value: Any) -> Any:
    if isinstance(value, DataNode):
        return value
    if isinstance(value, np.ndarray) and value.size == 1 and value.dtype.kind in "biu":
        value = value.item()
    if isinstance(value, (bool, int, np.integer, np.bool_)):
        return int(value)
    if isinstance(value, float) or not hasattr(value, "__index__"):
        raise TypeError(
            f"an index is an integer, a DataNode of one integer for each sample, a slice of these, ... or newaxis; got "
            f"{type(value).__name__}"
        )
    return value.__index__()
