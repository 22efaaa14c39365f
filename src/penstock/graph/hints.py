# SPDX-License-Identifier: Apache-2.0
"""Error hints: what to write instead of an array attribute that DataNodes and tensors of the imperative mode lack."""

from __future__ import annotations

from ..core.op import REGISTRY

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
