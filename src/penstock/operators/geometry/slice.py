# SPDX-License-Identifier: Apache-2.0
"""Extracts a window given by start and end or shape, absolute or relative."""

from ...core.batch import Spec
from ...core.op import Arguments
from ._crop_window import WindowCopy
from ._slice_window import SliceWindow


class Slice(SliceWindow, WindowCopy):
    """Extracts a window from each sample. After a decoder, only the window is decoded.

    The window is given by `start` or `rel_start` (by default 0) and one of `end`, `rel_end`, `shape`, `rel_shape` (by
    default the end of the input), with one value for each of `axes` or `axis_names`. Relative values are multiples of
    the input's extents. Alternatively, it is given by two more inputs, anchor and shape: integers are absolute; floats
    are relative, unless `normalized_anchor` or `normalized_shape` is False. Start and end are computed as real numbers,
    then rounded (halves away from zero). Values are converted to FLOAT, FLOAT16 or UINT8 without rounding (truncated
    and clamped).

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     x = types.Constant(np.arange(20, dtype=np.uint8).reshape(4, 5, 1), layout="HWC")
    ...     return fn.slice(x, rel_start=[0.0, 0.5], shape=[2, 2])
    >>> pipe().run()[0].at(0)[..., 0].tolist()
    [[10, 11], [15, 16]]
    """

    peeks = (1, 2)

    def plan(self, a: Arguments, x: Spec, *arguments: Spec) -> None:
        self.place(a, x, *self.slice_window(a, x, len(arguments)))
