# SPDX-License-Identifier: Apache-2.0
"""Transforms that scale."""

import numpy as np

from ...core.op import Arg, Arguments, PerFrame
from ._transform import Transform, about, diagonal


class Scale(Transform):
    """Returns a transform (d, d + 1), float32, that multiplies coordinates by `scale`; d is the number of its values.

    A single value applies to all dimensions, of which there are `ndim`, or as many as in the input. With an input, a
    transform of the same shape, the output applies first that one, then the scaling. If the input is a sequence of
    transforms, or an argument has one value per frame, the output is a sequence.

    >>> from penstock import fn, pipeline_def
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return fn.transforms.scale(scale=[2, 3], center=[10, 10])
    >>> pipe().run()[0].at(0).tolist()
    [[2.0, 0.0, -10.0], [0.0, 3.0, -20.0]]
    """

    scale = PerFrame([float], doc="Factors, one per dimension, or one for all.")
    center = PerFrame(
        [float],
        None,
        "The point that is not moved, one value per dimension or one for all. By default the origin.",
    )
    ndim = Arg(int, None, "Number of dimensions, if `scale` has a single value.")

    def setup(self) -> None:
        ndim = self.values["ndim"]
        if ndim is not None and ndim < 1:
            raise ValueError(f"{self.display_name()}: 'ndim' must be positive, got {ndim}")

    def matrix(self, a: Arguments, dims: int | None) -> np.ndarray:
        scale, center = a.scale.astype("f8"), a.center
        if scale.shape[1] == 0:
            raise ValueError("`scale` needs one value per dimension, got none")
        if scale.shape[1] == 1:
            scale = np.repeat(scale, self.values["ndim"] or dims or 1, axis=1)
        if center is not None and center.shape[1] == 1:
            center = np.repeat(center, scale.shape[1], axis=1)
        return about(diagonal(scale), center)
