# SPDX-License-Identifier: Apache-2.0
"""Transforms that shear."""

import numpy as np

from ...core.op import Arguments, PerFrame
from ._transform import Transform, about


class Shear(Transform):
    """Returns a transform, float32, that adds multiples of the other coordinates to each coordinate.

    Two values, (xy, yx), give (2, 3): `x' = x + xy y`, `y' = y + yx x`. Six values, (xy, xz, yx, yz, zx, zy), give (3,
    4). With an input, a transform of the same shape, the output applies first that one, then the shear. If the input is
    a sequence of transforms, or an argument has one value per frame, the output is a sequence.

    >>> from penstock import fn, pipeline_def
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return fn.transforms.shear(shear=[0.5, 0], center=[0, 10])
    >>> pipe().run()[0].at(0).tolist()
    [[1.0, 0.5, -5.0], [0.0, 1.0, 0.0]]
    """

    shear = PerFrame([float], None, "Shear factors, 2 or 6 values. Not together with `angles`.")
    angles = PerFrame([float], None, "Angles in degrees, whose tangents are the shear factors.")
    center = PerFrame(
        [float],
        None,
        "The point that is not moved, one value per dimension or one for all. By default the origin.",
    )

    def setup(self) -> None:
        if len({"shear", "angles"} & self.given) != 1:
            raise ValueError(f"{self.display_name()}: give either `shear` or `angles`")

    def matrix(self, a: Arguments, dims: int | None) -> np.ndarray:
        if a.shear is not None:
            share = a.shear.astype("f8")
        else:
            share = np.tan((a.angles.astype("f4") * np.float32(np.pi / 180)).astype("f8"))
        n, count = share.shape
        if count not in (2, 6):
            raise ValueError(
                f"`{'shear' if a.angles is None else 'angles'}` takes 2 values in the plane, 6 in space; got {count}"
            )
        d = 2 if count == 2 else 3
        linear = np.ones((n, d, d))
        linear[:, ~np.eye(d, dtype=bool)] = share
        center = a.center
        if center is not None and center.shape[1] == 1:
            center = np.repeat(center, d, axis=1)
        return about(linear, center)
