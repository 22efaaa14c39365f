# SPDX-License-Identifier: Apache-2.0
"""Rotation of images, and of volumes around an axis."""

import numpy as np

from ...core.batch import Spec
from ...core.op import Arg, Arguments, PerFrame
from ._rotation import around
from ._warp import Warp, spatial

_SLACK = 1e-2  # of a pixel: what rounding alone makes larger does not enlarge the output


class Rotate(Warp):
    """Rotates around the centre. Layouts HWC, DHWC and sequences of them; uint8, int16, int32, float32.

    Unless `size` or `keep_size` says otherwise, the output is the smallest that holds the rotated input: extents
    `ceil(|R| @ extents)`, plus one where an extent and that of the input's axis that contributes most are not both even
    or both odd, so that the centres stay aligned. The frames of a sequence get the largest size any of them needs.
    A coordinate is computed in float32 for each pixel; DALI on the CPU adds up steps along a row, so that less than
    1 % of the values of a photograph differ, nearly all by one.

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return fn.rotate(types.Constant(np.arange(6, dtype=np.uint8).reshape(2, 3, 1), layout="HWC"), angle=90)
    >>> pipe().run()[0].at(0)[..., 0].tolist()
    [[2, 5], [1, 4], [0, 3]]
    """

    angle = PerFrame(float, doc="Degrees; counter-clockwise as seen on an image, positive around `axis` in a volume.")
    axis = PerFrame([float], None, "Axis (x, y, z) that a volume is rotated around, of any length but zero.")
    keep_size = Arg(bool, False, "Whether the output is as large as the input.")

    def plan(self, a: Arguments, x: Spec) -> None:
        dims = spatial(x)
        radians = (a.angle.astype("f4") * np.float32(np.pi / 180)).astype("f8")
        rotation = _planar(radians) if dims == 2 else self._around(a, x, radians)
        extent = x.shape[:, -2 : -2 - dims : -1]  # x, y(, z)
        size = self.given_size(a, x)
        if size is not None:
            canvas = size[:, ::-1]
        elif self.values["keep_size"]:
            canvas = extent
        else:
            canvas = _enclosing(np.abs(rotation).transpose(0, 2, 1), extent, a.sample_of)  # from input to output
        a.canvas = canvas[:, ::-1]
        shift = extent / 2 - (rotation @ (canvas / 2)[..., None])[..., 0]
        a.matrix = np.concatenate([rotation, shift[..., None]], axis=2).reshape(x.n, -1)

    def _around(self, a: Arguments, x: Spec, radians: np.ndarray) -> np.ndarray:
        """(n, 3, 3), output to input: a rotation by the opposite angle."""
        if a.axis is None:
            raise ValueError("the rotation of a volume needs `axis` (x, y, z)")
        return around(a.axis, np.cos(radians), -np.sin(radians)).astype("f4").astype("f8")


def _planar(radians: np.ndarray) -> np.ndarray:
    """(n, 2, 2), output to input."""
    c, s = np.cos(radians), np.sin(radians)
    return np.moveaxis(np.array([[c, -s], [s, c]]), 2, 0)


def _enclosing(size_of: np.ndarray, extent: np.ndarray, sample_of: np.ndarray | None) -> np.ndarray:
    """(n, d) extents that hold boxes of `extent` after a rotation with the absolute values `size_of` (n, d, d).

    The frames of a sample get one size: the largest, odd along an axis if more than half of them would have it odd."""
    reach = (size_of @ extent[..., None].astype("f8"))[..., 0]
    canvas = np.ceil(reach - _SLACK).astype("i8")
    # The axis itself where it contributes as much as another one.
    own = np.einsum("nii->ni", size_of)
    main = np.where(own >= size_of.max(axis=2), np.arange(extent.shape[1]), size_of.argmax(axis=2))
    odd = np.take_along_axis(extent, main, axis=1) % 2
    if sample_of is not None and len(sample_of):
        largest = np.zeros((int(sample_of[-1]) + 1, extent.shape[1]), "i8")
        votes = np.zeros_like(largest)
        np.maximum.at(largest, sample_of, canvas)
        np.add.at(votes, sample_of, 2 * odd - 1)
        canvas, odd = largest[sample_of], (votes > 0)[sample_of]
    return canvas + (canvas - odd) % 2
