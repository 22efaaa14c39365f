# SPDX-License-Identifier: Apache-2.0
"""Combines transforms."""

import ctypes

import numpy as np

from ...core import kernels
from ...core.batch import Batch
from ...core.op import Arg, Arguments, Operator
from ...core.rows import address, reserve
from ._transform import LAYOUT, matrices

_FLOAT = np.dtype("f4")


class Combine(Operator):
    """Combines transforms into one that applies them one after the other, the first input first.

    Inputs are transforms, float32 (d, d + 1), all of the same shape. If one of them is a sequence of transforms, the
    output is a sequence, and other inputs apply to each of its frames.

    >>> from penstock import fn, pipeline_def
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     t = fn.transforms
    ...     return t.combine(t.translation(offset=[1, 2]), t.scale(scale=[2, 2]))
    >>> pipe().run()[0].at(0).tolist()
    [[2.0, 0.0, 2.0], [0.0, 2.0, 4.0]]
    """

    module = "transforms"
    devices = ("cpu",)
    inputs = (2, 99)
    runs_frames = True
    is_prompt = True
    reverse_order = Arg(bool, False, "Whether to apply the last input first.")

    def run(self, a: Arguments, *inputs: Batch) -> Batch:
        transforms = [matrices(x, i) for i, x in enumerate(inputs)]
        shape = transforms[0].shape
        for t in transforms:
            if t.shape != shape:
                raise ValueError(f"all transforms need the same shape; got {sorted({t.shape[1:] for t in transforms})}")
        count, (n, d, _) = len(transforms), shape
        places = (ctypes.c_void_p * count)(*map(address, transforms))
        out, at = reserve(shape, _FLOAT)
        if not kernels.library().combine_transforms(places, count, self.values["reverse_order"], n, d, at):
            raise ValueError(f"transforms of {d} dimensions are too large; at most 16 are supported")
        return Batch.from_array(out, LAYOUT)
