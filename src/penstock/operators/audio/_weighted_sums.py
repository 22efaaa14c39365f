# SPDX-License-Identifier: Apache-2.0
"""Base of operators that compute fixed weighted sums along one axis."""

from typing import Any

import numpy as np

from ...core.batch import Spec
from ...core.op import Arguments
from ._float_only import FloatOnly


def sums_of(matrix: np.ndarray) -> dict[str, np.ndarray]:
    """Arguments of kernels/audio/weighted_sums.h for multiplication by a matrix (out, in). Of each row, only the part
    from the first to the last non-zero weight is used."""
    used = np.pad(matrix != 0, ((0, 0), (0, 1)))  # an additional column, as the axis may be empty
    begin = np.where(used.any(axis=1), used.argmax(axis=1), 0)
    end = np.where(used.any(axis=1), used.shape[1] - used[:, ::-1].argmax(axis=1), 0)
    rows = [row[b:e] for row, b, e in zip(matrix, begin, end)]
    return {
        "begin": begin.astype("i4")[None],
        "count": (end - begin).astype("i4")[None],
        "offset": (np.cumsum(end - begin) - (end - begin)).astype("i4")[None],
        "weights": np.concatenate([*rows, [0]]).astype("f4")[None],
    }


class WeightedSums(FloatOnly, abstract=True):
    """Base class. `plan` sets the axis, `a.at`. Its extent may differ between the samples of a batch."""

    kernel = "audio/weighted_sums"

    def sums(self, extent: int) -> dict[str, np.ndarray]:
        """`sums_of` the matrix for an axis of extent `extent`."""
        raise NotImplementedError

    def params(self, a: Arguments, x: Spec, out: Spec) -> dict[str, Any]:
        extents = x.shape[:, a.at]
        if x.n and (extents == extents[0]).all():
            return {"axis": a.at, "axes": 1, **self.sums(int(extents[0]))}
        tables = [self.sums(int(e)) for e in extents]
        columns: dict[str, Any] = {"axis": a.at, "axes": 1}
        for k in tables[0] if tables else ():
            longest = max(t[k].shape[1] for t in tables)
            columns[k] = np.concatenate([np.pad(t[k], ((0, 0), (0, longest - t[k].shape[1]))) for t in tables])
        return columns
