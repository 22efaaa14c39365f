# SPDX-License-Identifier: Apache-2.0
"""Warps images as if on a sphere."""

from ._displaced import SPHERE, Masked


class Sphere(Masked):
    """Warps images as if they were seen on a sphere: `out(c + d) = in(c + d * |d| / r)`.

    c is the centre of the image, d the vector from there to the centre of a pixel, and r half of the longer side in
    whole pixels, at least one. Input: HWC with any number of channels; uint8, uint16, int16 or float32. The output has
    the same shape and type.

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return fn.sphere(types.Constant(np.arange(5, dtype=np.uint8).reshape(1, 5, 1), layout="HWC"))
    >>> pipe().run()[0].at(0).ravel().tolist()
    [0, 2, 2, 3, 4]
    """

    kind = SPHERE
