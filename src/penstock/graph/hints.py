# SPDX-License-Identifier: Apache-2.0
"""Error hints: what to write instead of an array attribute that DataNodes and tensors of the imperative mode lack, and
instead of an argument by position."""

from __future__ import annotations

from enum import Enum
from typing import Any

from ..core.op import REGISTRY, Arg, Operator
from .node import DataNode

_CAST = "{fn}.cast(x, dtype=types.FLOAT)"
_OF_ARRAYS = {
    "astype": _CAST,
    "float": _CAST,
    "to": f"{_CAST}, x.gpu() or x.cpu()",
    "cuda": "x.gpu()",
    "permute": "{fn}.transpose(x, perm=[...])",
    "view": "{fn}.reinterpret(x, ...) or {fn}.reshape(x, ...)",
    "flatten": "{fn}.reshape(x, shape=[-1])",
    "unsqueeze": "{fn}.expand_dims(x, axes=[...])",
    "std": "{fn}.reductions.std_dev(x)",
    "var": "{fn}.reductions.variance(x)",
    "clip": "{math}.clamp(x, lo, hi)",
}
_VALUES = frozenset(("array", "as_array", "as_tensor", "at", "data", "item", "numpy", "tolist"))
_WHEN_RUN = _VALUES | {"dtype", "layout", "ndim", "size"}


def of_node(name: str) -> str:
    """The hint for a DataNode in a graph."""
    if name in _WHEN_RUN:
        return ": it is a batch that is not computed yet; what run() returns has values and types"
    return _operator(name, "fn", "penstock.math")


def of_value(name: str) -> str:
    """The hint for a tensor in the imperative mode."""
    return "; write np.asarray(x)" if name in _VALUES else _operator(name, "ndd", "ndd.math")


def _operator(name: str, fn: str, math: str) -> str:
    if name in _OF_ARRAYS:
        return f"; write {_OF_ARRAYS[name].format(fn=fn, math=math)}"
    for known in (name, f"reductions.{name}"):
        if known in REGISTRY and not name.startswith("_"):
            return f"; write {fn}.{known}(x, ...)"
    return ""


# What a value by position probably means, if it is neither a required argument nor one of the operator's name: the
# first of these that the operator has and that takes the value.
_USUAL = (
    *("tile", "angle", "size", "crop", "perm", "anchor", "shape", "window_size", "mean", "sizes", "axes", "out_rate"),
    *("sample_rate", "quality", "horizontal", "file_root", "num_classes", "brightness", "hue", "prob", "factor", "M"),
    *("nfft", "nfilter", "n_mfcc", "multiplier", "cutoff_db", "preemph_coeff", "keys"),
)


def by_position(cls: type[Operator], extra: tuple, kwargs: dict[str, Any]) -> str:
    """The hint for values given by position where only data is accepted: `size=224`."""
    if not extra or extra[0] is None:
        return ""
    value = extra[0]
    if isinstance(value, Enum):
        names = [n for n, a in cls.schema.items() if a.type is type(value) and not (a.hidden or a.deprecated)]
        told = f"types.{value.name}"
    elif isinstance(value, str) and value in ("cpu", "gpu", "mixed"):
        names, told = ["device"], repr(value)
    else:
        required = (n for n, a in cls.schema.items() if a.required)
        known = (n for n in (cls.fn_name, *required, *_USUAL) if n in cls.schema)
        names = [n for n in known if _takes(cls.schema[n], value)]
        told = "..." if isinstance(value, DataNode) else repr(value)
    name = next((n for n in names if n not in kwargs), "")
    return f"; arguments are given by name: {name}={told}" if name else ""


def _takes(arg: Arg, value: Any) -> bool:
    if isinstance(value, DataNode):
        return arg.tensor
    try:
        arg.convert(value)
    except (TypeError, ValueError):
        return False
    return True
