# SPDX-License-Identifier: Apache-2.0
"""Transforms that rotate."""

import numpy as np

from ...core import kernels
from ...core.op import Arguments, PerFrame
from ...core.rows import address, reserve
from ..geometry._rotation import around
from ._transform import Transform, about

_FLOAT, _DOUBLE = np.dtype("f4"), np.dtype("f8")


class Rotation(Transform):
    """Returns a transform, float32, that rotates by `angle`: (2, 3), or (3, 4) if there is an `axis`.

    In two dimensions, a positive angle rotates the x axis towards the y axis; in three, it rotates counter-clockwise
    when looking against the axis (Rodrigues' formula). With an input, a transform of the same shape, the output applies
    first that one, then the rotation. If the input is a sequence of transforms, or an argument has one value per frame,
    the output is a sequence.

    >>> from penstock import fn, pipeline_def
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return fn.transforms.rotation(angle=90, center=[2, 0])
    >>> pipe().run()[0].at(0).round(3).tolist()
    [[-0.0, -1.0, 2.0], [1.0, -0.0, -2.0]]
    """

    angle = PerFrame(float, doc="The angle in degrees.")
    axis = PerFrame([float], None, "Axis (x, y, z) of a rotation in three dimensions, of any length but zero.")
    center = PerFrame([float], None, "Centre of the rotation. By default the origin.")

    def _matrix(self, a: Arguments, dims: int | None) -> np.ndarray:
        center = a.center
        if a.axis is None and (center is None or center.shape[1] == 2):
            angle, where = np.ascontiguousarray(a.angle), None
            if center is not None:
                center = np.ascontiguousarray(center)
                where = address(center)
            # float64 if it will be combined with another transform.
            out, at = reserve((a.n, 2, 3), _FLOAT if dims is None else _DOUBLE)
            if kernels.library().rotation_transforms(address(angle), where, a.n, dims is not None, at):
                return out
        return super()._matrix(a, dims)

    def matrix(self, a: Arguments, dims: int | None) -> np.ndarray:
        radians = (a.angle.astype("f4") * np.float32(np.pi / 180)).astype("f8")
        c, s = np.cos(radians), np.sin(radians)
        linear = np.moveaxis(np.array([[c, -s], [s, c]] if a.axis is None else around(a.axis, c, s)), 2, 0)
        return about(linear, a.center)
