# SPDX-License-Identifier: Apache-2.0
"""Resizing by the length of an edge. Sizes are truncated to integers, as in torchvision."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.batch import Spec
from ....core.op import Arg, Arguments
from ....core.tracing import Native
from ....graph import trace
from ....operators.geometry.resize import Resize

TYPES = ("uint8", "uint16", "int16", "float32")


_FLOAT32 = np.dtype("f4")


def edge_sizes(native: Native, shape: np.ndarray, first: int, edge: int | None, limit: int | None) -> np.ndarray:
    """Heights and widths (n, 2) of resized samples of `shape` (n, ndim); the height is axis `first`. The shorter edge
    becomes `edge`, and the longer one at most `limit`; if `edge` is None, the longer edge becomes `limit`."""
    sizes, at = native.allocate((len(shape), 2), _FLOAT32)
    native.call("edge_sizes", shape, *shape.shape, first, edge or 0, limit or 0, at)
    return sizes


class _ResizeEdge(Resize):
    edge = Arg(int, 0, "Length of the shorter edge; 0: it follows from `limit`.")
    limit = Arg(int, 0, "The most that the longer edge may have; 0: any.")

    def plan_size(self, a: Arguments, x: Spec) -> None:
        a.size = edge_sizes(a.native, x.shape, x.axis("H"), a.edge, a.limit)
        super().plan_size(a, x)


def resize(data: Any, size: tuple[int, ...] | None, max_size: int | None, **arguments: Any) -> Any:
    """Resizes to height and width, or by the shorter edge, or, if `size` is None, by the longer edge."""
    if size is not None and len(size) == 2:
        return trace.call(Resize, (data,), {"size": list(size), **arguments})
    edge, limit = size[0] if size else 0, max_size or 0
    arguments |= {"resize_shorter": float(edge or limit), "edge": edge, "limit": limit}
    return trace.call(_ResizeEdge, (data,), arguments)
