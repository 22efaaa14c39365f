# SPDX-License-Identifier: Apache-2.0
"""Transforms from one box to another."""

import numpy as np

from ...core.errors import SampleErrors
from ...core.op import Arg, Arguments, PerFrame
from ._transform import Transform, diagonal

_NAMES = ("from_start", "from_end", "to_start", "to_end")


class Crop(Transform):
    """Returns a transform (d, d + 1), float32, that maps the box `from_start` .. `from_end` to `to_start` .. `to_end`.

    d is the number of values of these arguments; a single value applies to all dimensions. With an input, a transform
    of the same shape, the output applies first that one, then the new one. If the input is a sequence of transforms, or
    an argument has one value per frame, the output is a sequence.

    >>> from penstock import fn, pipeline_def
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return fn.transforms.crop(from_start=[10, 20], from_end=[30, 40])
    >>> pipe().run()[0].at(0).tolist()
    [[0.05000000074505806, 0.0, -0.5], [0.0, 0.05000000074505806, -1.0]]
    """

    from_start = PerFrame([float], [0.0], "Lower corner of the box in the input space.")
    from_end = PerFrame([float], [1.0], "Upper corner of the box in the input space.")
    to_start = PerFrame([float], [0.0], "Lower corner of the box in the output space.")
    to_end = PerFrame([float], [1.0], "Upper corner of the box in the output space.")
    absolute = Arg(
        bool, False, "Whether to swap start and end where the start is larger. Otherwise the axis is flipped."
    )

    def matrix(self, a: Arguments, dims: int | None) -> np.ndarray:
        corners = [getattr(a, name).astype("f8") for name in _NAMES]
        counts = [c.shape[1] for c in corners]
        d = max(counts) if max(counts) > 1 else dims or 1
        if any(c not in (1, d) for c in counts):
            raise ValueError(
                "from_start, from_end, to_start and to_end need equally many values, or a single one for all "
                f"dimensions; got {counts}"
            )
        start, end, to_start, to_end = (np.broadcast_to(c, (len(c), d)) for c in corners)
        if self.values["absolute"]:
            start, end = np.minimum(start, end), np.maximum(start, end)
            to_start, to_end = np.minimum(to_start, to_end), np.maximum(to_start, to_end)
        SampleErrors.where(
            (start == end).any(axis=1),
            lambda i: f"the box from_start={start[i].tolist()} to from_end={end[i].tolist()} has no extent",
        )
        scale = (to_end - to_start) / (end - start)
        return np.concatenate([diagonal(scale), (to_start - scale * start)[..., None]], axis=2)
