# SPDX-License-Identifier: Apache-2.0
"""What to write instead of an attribute that arrays have and DataNodes lack, for the text of the error."""

from __future__ import annotations

from ..core.op import REGISTRY

_OF_ARRAYS = {
    "astype": "fn.cast(x, dtype=types.FLOAT)",
    "to": "fn.cast(x, dtype=types.FLOAT), x.gpu() or x.cpu()",
    "float": "fn.cast(x, dtype=types.FLOAT)",
    "permute": "fn.transpose(x, perm=[...])",
    "view": "fn.reinterpret(x, ...) or fn.reshape(x, ...)",
    "flatten": "fn.reshape(x, shape=[-1])",
    "unsqueeze": "fn.expand_dims(x, axes=[...])",
    "std": "fn.reductions.std_dev(x)",
    "var": "fn.reductions.variance(x)",
    "clip": "penstock.math.clamp(x, lo, hi)",
}
_WHEN_RUN = frozenset(
    ("array", "as_array", "as_tensor", "at", "data", "dtype", "item", "layout", "ndim", "numpy", "size", "tolist")
)


def instead_of(name: str) -> str:
    if name in _WHEN_RUN:
        return ": it is a batch that is not computed yet; what run() returns has values and types"
    if name in _OF_ARRAYS:
        return f"; write {_OF_ARRAYS[name]}"
    for known in (name, f"reductions.{name}"):
        if known in REGISTRY and not name.startswith("_"):
            return f"; write fn.{known}(x, ...)"
    return ""
