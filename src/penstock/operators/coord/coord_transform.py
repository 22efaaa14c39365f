# SPDX-License-Identifier: Apache-2.0
"""Applies a linear transformation to points."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.batch import Spec
from ...core.dtypes import DALIDataType, to_numpy
from ...core.errors import SampleErrors
from ...core.op import Arg, Arguments, Operator, PerFrame

_MOST = 6  # coordinates of a point, as in kernels/coord/coord_transform.h
_TYPES = ("uint8", "uint16", "int16", "int32", "float32")


class CoordTransform(Operator):
    """Applies a linear transformation to points: `out = M @ x + T`, for each vector x along the last axis.

    Input: (..., d) with at least two axes and 1 to 6 coordinates; uint8, uint16, int16, int32 or float32. With a matrix
    M of shape (e, d), the output is (..., e). Sums are computed in float32; integers are rounded, halves away from
    zero, and saturated. NaN, for example of a hidden point, stays NaN in a float output.

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     points = types.Constant(np.float32([[1, 2], [3, 4]]))
    ...     turned = fn.coord_transform(points, MT=fn.transforms.rotation(angle=90, center=[1, 2]))
    ...     return turned, fn.coord_transform(points, M=[1, 1], T=0.5)
    >>> [out.at(0).round(4).tolist() for out in pipe().run()]
    [[[1.0, 2.0], [-1.0, 4.0]], [[3.5], [7.5]]]
    """

    kernel = "coord/coord_transform"
    M = PerFrame([float], None, "The matrix M in row-major order, or a factor of all coordinates. By default 1.")
    T = PerFrame([float], None, "The offset T: one number per coordinate of the output, or one for all.")
    MT = PerFrame(
        [float], None, "M and T together: the rows of M, each followed by its element of T; or a number, as for M."
    )
    dtype = Arg(DALIDataType, DALIDataType.FLOAT, "Type of the output: FLOAT or that of the input.")

    def setup(self) -> None:
        given = self.given
        if "MT" in given and given & {"M", "T"}:
            raise ValueError(f"{self.display_name()}: give either `MT`, or `M` and `T`")

    def plan(self, a: Arguments, x: Spec) -> None:
        if x.dtype.name not in _TYPES:
            raise ValueError(f"the type {x.dtype.name} is not supported; supported: {', '.join(_TYPES)}; see fn.cast")
        if to_numpy(a.dtype) not in (x.dtype, np.dtype("f4")):
            raise ValueError(f"the output must have the type of the input ({x.dtype.name}) or FLOAT; got {a.dtype}")
        if x.ndim < 2:
            raise ValueError(f"points need at least two axes, as (points, d); got {x.ndim}")
        dims = x.shape[:, -1]
        d = int(dims.max(initial=0))
        SampleErrors.where(
            (dims != d) & (dims > 0),
            lambda i: f"all samples of a batch need points of equally many coordinates; got {dims[i]} and {d}",
        )
        if not 1 <= d <= _MOST and x.n:
            raise ValueError(f"points have 1 to {_MOST} coordinates, got {d}")
        a.matrix, a.shift = self._map(a, x.n, max(d, 1))
        for part in (a.matrix, a.shift[:, None]):
            SampleErrors.where(
                ~np.isfinite(part).all(axis=(1, 2)),
                lambda i: f"the transform must be finite, got M={a.matrix[i].tolist()} and T={a.shift[i].tolist()}",
            )

    def _map(self, a: Arguments, n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
        """The matrix (n, e, d) and the offset (n, e)."""
        given, name, width = (a.M, "M", d) if a.MT is None else (a.MT, "MT", d + 1)
        if given is None:
            given = np.ones((n, 1), "f4")
        count = given.shape[1]
        if count == 1 and width > 1 or given is a.M and count == d == 1:
            matrix, shift = given[..., None] * np.eye(d, dtype="f4"), np.zeros((n, d), "f4")
        elif count == 0 or count % width or count // width > _MOST:
            raise ValueError(
                f"`{name}` needs rows of {width} numbers for points of {d} coordinates, at most {_MOST} rows; got "
                f"{count} numbers"
            )
        else:
            rows = given.reshape(n, count // width, width)
            matrix = rows[..., :d]
            shift = rows[..., d] if width > d else np.zeros(rows.shape[:2], "f4")
        if a.T is not None:
            e = matrix.shape[1]
            if a.T.shape[1] not in (1, e):
                raise ValueError(f"`T` takes one number, or {e} for the {e} coordinates; got {a.T.shape[1]}")
            shift = np.broadcast_to(a.T, (n, e))
        return matrix, shift

    def outputs(self, a: Arguments, x: Spec) -> Spec:
        shape = x.shape.copy()
        shape[:, -1] = np.where(shape[:, -1] == 0, 0, a.matrix.shape[1])
        return x.like(shape=shape, dtype=a.dtype)

    def params(self, a: Arguments, x: Spec, out: Spec) -> dict[str, Any]:
        return {"matrix": a.matrix.reshape(x.n, -1), "shift": a.shift}
