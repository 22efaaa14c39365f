# SPDX-License-Identifier: Apache-2.0
"""Rotation of images, and of volumes around an axis."""

import numpy as np

from ...core.batch import Spec
from ...core.op import Arg, Arguments, PerFrame
from ._matrices import dot
from ._rotation import around
from ._warp import Warp, spatial

_SLACK = 1e-2  # tolerance in pixels, so that rounding errors do not enlarge the output


class Rotate(Warp):
    """Rotates images or volumes around their centre.

    Layouts HWC, DHWC and sequences of them; uint8, int16, int32, float32. Unless `size` or `keep_size` is given, the
    output is the smallest that contains the rotated input: its extents are `ceil(|R| @ extents)`, plus one if such an
    extent and that of the input axis which contributes most to it are not both even or both odd, so that the centres
    stay aligned. All frames of a sequence get the largest size that one of them needs. On the CPU, coordinates are
    summed in float32 in DALI's order, so that ties of INTERP_NN are resolved as in DALI. On the GPU, each is computed
    separately, as in DALI, and may differ by 2e-4 of a pixel from the CPU's.

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return fn.rotate(types.Constant(np.arange(6, dtype=np.uint8).reshape(2, 3, 1), layout="HWC"), angle=90)
    >>> pipe().run()[0].at(0)[..., 0].tolist()
    [[2, 5], [1, 4], [0, 3]]
    """

    angle = PerFrame(float, doc="Angle in degrees; counter-clockwise for images, positive around `axis` for volumes.")
    axis = PerFrame([float], None, "Axis (x, y, z) of the rotation of a volume, of any length but zero.")
    keep_size = Arg(bool, False, "Whether the output has the size of the input.")

    def plan(self, a: Arguments, x: Spec) -> None:
        dims = spatial(x)
        radians = a.angle.astype("f4") * np.float32(np.pi / 180)
        rotation = self._rotation(a, dims, radians)
        extent = [x.shape[:, -2 - d] for d in range(dims)]  # x, y(, z)
        size = self.given_size(a, x)
        if size is not None:
            canvas = [size[:, -1 - d] for d in range(dims)]
        elif self.values["keep_size"]:
            canvas = extent
        else:
            # DALI computes sizes of images in double, of volumes in float, where both axes of 45 degrees are equal.
            exact = self._rotation(a, dims, radians.astype("f8")) if dims == 2 else rotation
            canvas = _enclosing(a, exact, extent)
        a.canvas = np.stack(canvas[::-1], axis=1)
        # In float32 and in DALI's order, which determine ties.
        columns, back = [], [e.astype("f4") * np.float32(-0.5) for e in canvas]
        for row, e in zip(rotation, extent):
            columns += [*row, dot(row, back) + e.astype("f4") * np.float32(0.5)]
        a.matrix = np.stack(columns, axis=1)

    def _rotation(self, a: Arguments, dims: int, radians: np.ndarray) -> list[list[np.ndarray]]:
        """Matrices from output to input, as rows of columns (n,), in the type of the angles (n,)."""
        c, s = a.native.cosine_and_sine(radians)
        if dims == 2:
            return [[c, -s], [s, c]]
        if a.axis is None:
            raise ValueError("the rotation of a volume needs `axis` (x, y, z)")
        return around(a.axis, c, -s)


def _enclosing(a: Arguments, rotation: list[list[np.ndarray]], extent: list[np.ndarray]) -> list[np.ndarray]:
    """Extents (n,) that contain boxes of `extent` after the inverse of a rotation.

    All frames of a sample get the largest size, odd along an axis if it is odd for more than half of them."""
    odd_extent, sizes = [e % 2 for e in extent], []
    for i in range(len(extent)):
        share = [np.abs(row[i]) for row in rotation]
        canvas = np.ceil(dot(share, extent) - _SLACK).astype("i8")
        # The input axis that contributes most; if equal, the axis itself.
        most, odd = share[0], odd_extent[0]
        for one, its_odd in zip(share[1:], odd_extent[1:]):
            most, odd = np.maximum(most, one), np.where(one > most, its_odd, odd)
        odd = np.where(share[i] >= most, odd_extent[i], odd)
        if a.sample_of is not None:
            (most, at_most), (is_odd, at_odd) = (a.native.allocate(a.n, np.dtype("i8")) for _ in range(2))
            a.native.call("agree_on_canvas", a.sample_of, a.n, canvas, odd, at_most, at_odd)
            canvas, odd = most, is_odd
        sizes.append(canvas + (canvas - odd) % 2)
    return sizes
