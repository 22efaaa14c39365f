# SPDX-License-Identifier: Apache-2.0
"""Operators whose output elements are fixed weighted sums along one axis."""

from typing import Any

import numpy as np

from ...core.batch import Spec
from ...core.op import Arguments
from ._float_only import FloatOnly


def sums_of(matrix: np.ndarray) -> dict[str, np.ndarray]:
    """What kernels/audio/weighted_sums.h needs to multiply by a (out, in) matrix, of whose rows only what lies between
    the first and the last weight is used."""
    used = np.pad(matrix != 0, ((0, 0), (0, 1)))  # a column behind them, as an axis may be empty
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
    """Base of such operators; `plan` leaves the axis, `a.at`. Samples of a batch may differ in its extent."""

    kernel = "audio/weighted_sums"

    def sums(self, extent: int) -> dict[str, np.ndarray]:
        """`sums_of` the matrix for an axis of that extent."""
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
