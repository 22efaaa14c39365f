# SPDX-License-Identifier: Apache-2.0
"""Resizing by the length of an edge, whose sizes are cut to integers as torchvision does."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.batch import Spec
from ....core.op import Arg, Arguments
from ....graph import trace
from ....operators.geometry.resize import Resize

TYPES = ("uint8", "uint16", "int16", "float32")


def edge_sizes(sizes: np.ndarray, edge: int, limit: int) -> np.ndarray:
    """(n, 2) sizes whose shorter edge is `edge` and whose longer one is at most `limit`; 0 is none given."""
    sizes = np.asarray(sizes, "i8")
    shorter, longer = np.maximum(sizes.min(axis=1), 1), np.maximum(sizes.max(axis=1), 1)
    if edge:
        short, long = np.full_like(shorter, edge), edge * longer // shorter
        if limit:
            over = long > limit
            short, long = np.where(over, limit * short // np.maximum(long, 1), short), np.where(over, limit, long)
    else:
        short, long = limit * shorter // longer, np.full_like(longer, limit)
    found = np.where(sizes == sizes.min(axis=1, keepdims=True), short[:, None], long[:, None])
    return np.maximum(found, 1)


class _ResizeEdge(Resize):
    replays = False
    edge = Arg(int, 0, "Length of the shorter edge; 0: it follows from `limit`.")
    limit = Arg(int, 0, "The most that the longer edge may have; 0: any.")

    def plan_size(self, a: Arguments, x: Spec) -> None:
        first = x.axis("H")
        a.size = edge_sizes(x.shape[:, first : first + 2], a.edge, a.limit).astype("f4")
        super().plan_size(a, x)


def resize(data: Any, size: tuple[int, ...] | None, max_size: int | None, **arguments: Any) -> Any:
    """To height and width, or by the length of the shorter edge, or if `size` is None of the longer one."""
    if size is not None and len(size) == 2:
        return trace.call(Resize, (data,), {"size": list(size), **arguments})
    edge, limit = size[0] if size else 0, max_size or 0
    arguments |= {"resize_shorter": float(edge or limit), "edge": edge, "limit": limit}
    return trace.call(_ResizeEdge, (data,), arguments)
