# SPDX-License-Identifier: Apache-2.0
"""Affine transformation by a matrix."""

import numpy as np

from ...core.batch import Spec
from ...core.errors import SampleErrors
from ...core.op import Arg, Arguments, PerFrame
from ._matrices import dot, inverted
from ._warp import Warp, spatial


class WarpAffine(Warp):
    """Applies an affine transformation to images, `out(x, y) = in(M11 x + M12 y + M13, M21 x + M22 y + M23)`, or to
    volumes, with a matrix of 3 rows of 4 values.

    Coordinates begin at the corner of the first pixel, so its centre is at 0.5. Rows and columns of the matrix are in
    the order x, y(, z). The matrix is an argument or a second input of shape (2, 3) or (3, 4). Layouts HWC, DHWC and
    sequences of them; uint8, int16, int32, float32. On the CPU, coordinates are summed in float32 in DALI's order, so
    that ties of INTERP_NN are resolved as in DALI; on the GPU, each is computed separately, as in DALI.

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     x = types.Constant(np.arange(6, dtype=np.uint8).reshape(2, 3, 1), layout="HWC")
    ...     return fn.warp_affine(x, matrix=[1, 0, 1, 0, 1, 0], fill_value=9)
    >>> pipe().run()[0].at(0)[..., 0].tolist()
    [[1, 2, 9], [4, 5, 9]]
    """

    inputs = (1, 2)
    peeks = (1,)

    matrix = PerFrame([float], [], "The matrix in row-major order: 6 values, or 12 for volumes.")
    inverse_map = Arg(bool, True, "Whether the matrix maps output to input coordinates (True) or input to output.")

    def plan(self, a: Arguments, x: Spec, *more: Spec) -> None:
        dims = spatial(x)
        count = dims * (dims + 1)
        if more and "matrix" in self.given:
            raise ValueError("give the matrix either as `matrix` or as the second input, not both")
        if more:
            batch = a.peeked(1)
            if (more[0].shape.prod(axis=1) != count).any():
                raise ValueError(
                    f"input 1 needs matrices of shape ({dims}, {dims + 1}); got shapes {more[0].shape.tolist()[:4]}"
                )
            if more[0].dtype.kind != "f":
                raise ValueError(
                    f"input 1 needs matrices of float32; got {more[0].dtype.name}; cast it first (fn.cast)"
                )
            a.matrix = batch.array().reshape(x.n, count).astype("f4")
        elif a.matrix is None or a.matrix.shape[1] == 0:
            raise ValueError("give a `matrix`, or matrices as the second input")
        elif a.matrix.shape[1] != count:
            raise ValueError(
                f"`matrix` needs {count} values for an input of layout '{x.layout}', got {a.matrix.shape[1]}"
            )
        if not self.values["inverse_map"]:
            a.matrix = _inverse(a.matrix.astype("f8"), dims)
        size = self.given_size(a, x)
        a.canvas = x.shape[:, -1 - dims : -1] if size is None else size


def _inverse(matrix: np.ndarray, dims: int) -> np.ndarray:
    """The inverse maps, (n, d * (d + 1))."""
    rows = [[matrix[:, i * (dims + 1) + j] for j in range(dims + 1)] for i in range(dims)]
    with np.errstate(all="ignore"):
        inverse, determinant = inverted([row[:dims] for row in rows])
    SampleErrors.where(
        (determinant == 0) | ~np.isfinite(matrix).all(axis=1),
        lambda i: f"the matrix {matrix[i].tolist()} has no inverse",
    )
    columns = []
    for row in inverse:
        columns += [*row, -dot(row, [r[dims] for r in rows])]
    return np.stack(columns, axis=1)
