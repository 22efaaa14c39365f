# SPDX-License-Identifier: Apache-2.0
"""Perspective transformation by a matrix."""

from __future__ import annotations

import numpy as np

from ...core.batch import Spec
from ...core.dtypes import DALIInterpType
from ...core.errors import SampleErrors
from ...core.op import Arg, Arguments, PerFrame, PerSample
from ._displaced import PERSPECTIVE, Displaced, check_interp, check_type
from ._matrices import inverted, product

_BORDERS = ("constant", "replicate", "reflect", "reflect_101", "wrap")  # as in kernels/geometry/sampling.h
_ACCEPTED = (DALIInterpType.INTERP_NN, DALIInterpType.INTERP_LINEAR, DALIInterpType.INTERP_CUBIC)


class WarpPerspective(Displaced):
    """Applies a homography to images: `out(x, y) = in(u / w, v / w)` with `(u, v, w) = matrix @ (x, y, 1)`.

    Layouts HWC, CHW, HW and sequences FHWC, FCHW; uint8, uint16, int16 or float32. The output has the type of the
    input. The matrix is an argument or a second input of shape (3, 3). A position with w = 0 is outside the image. Sums
    are computed in float32 and rounded, halves away from zero.

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     x = types.Constant(np.arange(6, dtype=np.uint8).reshape(2, 3), layout="HW")
    ...     return fn.experimental.warp_perspective(x, matrix=[1, 0, 1, 0, 1, 0, 0, 0, 1], fill_value=9)
    >>> pipe().run()[0].at(0).tolist()
    [[1, 2, 9], [4, 5, 9]]
    """

    module = "experimental"
    layouts = ("HW", "HWC", "FHWC", "CHW", "FCHW")
    inputs = (1, 2)
    peeks = (1,)

    matrix = PerFrame([float], [], "The matrix in row-major order, 9 values.")
    size = PerSample(
        [float], [], "Height and width of the output in pixels, rounded to integers. By default those of the input."
    )
    border_mode = Arg(
        str,
        "constant",
        'Values outside the input: "constant" (`fill_value`), "replicate" (aaa|abc), "reflect" (cba|abc), '
        '"reflect_101" (dcb|abcd) or "wrap" (abc|abc).',
    )
    fill_value = Arg([float], [], "Value for the border mode constant: one, or one per channel. By default 0.")
    interp_type = Arg(DALIInterpType, DALIInterpType.INTERP_LINEAR, "INTERP_NN, INTERP_LINEAR or INTERP_CUBIC.")
    inverse_map = Arg(bool, True, "Whether the matrix maps output to input coordinates (True) or input to output.")
    pixel_origin = Arg(
        str, "corner", 'Position of (0, 0): the "corner" of the first pixel, or its "center", as in OpenCV.'
    )

    def setup(self) -> None:
        v = self.values
        self.interp = check_interp(self, "interp_type", _ACCEPTED)
        for name, accepted in (("border_mode", _BORDERS), ("pixel_origin", ("corner", "center"))):
            if v[name] not in accepted:
                raise ValueError(f"{self.display_name()}: {name}={v[name]!r}; accepted: {', '.join(accepted)}")
        self.border = _BORDERS.index(v["border_mode"])
        if len(v["fill_value"]) > 4:
            raise ValueError(f"{self.display_name()}: fill_value takes at most 4 values, got {len(v['fill_value'])}")

    def fills(self) -> list[float]:
        return self.values["fill_value"] or [0.0]

    def plan(self, a: Arguments, x: Spec, *more: Spec) -> None:
        check_type(x)
        channels, count = x.extent("C"), len(self.fills())
        SampleErrors.where(
            (channels != count) & (count != 1),
            lambda i: f"fill_value has {count} values for {channels[i]} channels; give one, or one per channel",
        )
        given = self._matrix(a, x, more).reshape(x.n, 9).astype("f8")
        SampleErrors.where(
            ~np.isfinite(given).all(axis=1), lambda i: f"the matrix must be finite, got {given[i].tolist()}"
        )
        matrix = [[given[:, 3 * i + j] for j in range(3)] for i in range(3)]
        if not self.values["inverse_map"]:
            with np.errstate(all="ignore"):
                matrix, determinant = inverted(matrix)
            SampleErrors.where(determinant == 0, lambda i: f"the matrix {given[i].tolist()} has no inverse")
        if self.values["pixel_origin"] == "center":  # the kernel's origin is the corner
            matrix = product(product(_shift(0.5), matrix), _shift(-0.5))
        a.constants, a.kind = np.stack(sum(matrix, []), axis=1), PERSPECTIVE
        a.canvas = None
        if a.size is not None and a.size.shape[1]:
            if a.size.shape[1] != 2:
                raise ValueError(f"`size` takes height and width, got {a.size.shape[1]} values")
            a.canvas = np.floor(np.where(np.isfinite(a.size), a.size, 0).astype("f8") + 0.5).astype("i8")
            SampleErrors.where(
                (a.canvas <= 0).any(axis=1), lambda i: f"the size must be positive, got {a.size[i].tolist()}"
            )

    def _matrix(self, a: Arguments, x: Spec, more: tuple[Spec, ...]) -> np.ndarray:
        if not more:
            if a.matrix is None or a.matrix.shape[1] != 9:
                count = 0 if a.matrix is None else a.matrix.shape[1]
                raise ValueError(f"`matrix` needs 9 values, or matrices (3, 3) as the second input; got {count}")
            return a.matrix
        if "matrix" in self.given:
            raise ValueError("give the matrix either as `matrix` or as the second input, not both")
        if more[0].ndim != 2 or (more[0].shape != 3).any():
            raise ValueError(f"input 1 needs matrices of shape (3, 3); got shapes {more[0].shape.tolist()[:4]}")
        if more[0].dtype.name != "float32":
            raise ValueError(f"input 1 needs matrices of float32; got {more[0].dtype.name}; cast it first (fn.cast)")
        batch = a.batches[1]
        assert batch is not None
        return batch.array()

    def outputs(self, a: Arguments, x: Spec, *more: Spec) -> Spec:
        shape = x.shape.copy()
        if a.canvas is not None:
            shape[:, [x.axis("H"), x.axis("W")]] = a.canvas
        return x.like(shape=shape)


def _shift(by: float) -> list[list]:
    return [[1.0, 0.0, by], [0.0, 1.0, by], [0.0, 0.0, 1.0]]
