# SPDX-License-Identifier: Apache-2.0
"""Marks the first axis as the frame axis."""

from ...core.batch import Spec
from ...core.op import Arg, Arguments
from ._renamed import _Renamed


class PerFrame(_Renamed):
    """Marks the first axis as the frame axis. Nothing is copied.

    Use it for arguments that differ between frames: one value per frame, marked by this operator. A batch without a
    layout gets the layout "F" followed by an asterisk for each other axis. If there is a layout, its first name must be
    F, or `replace` changes it to F.

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     frames = types.Constant(np.full((2, 1, 1, 3), 100, np.uint8), layout="FHWC")
    ...     factors = types.Constant(np.float32([0.5, 2.0]))
    ...     return fn.brightness(frames, brightness=fn.per_frame(factors))
    >>> pipe().run()[0].at(0)[:, 0, 0, 0].tolist()
    [50, 200]
    """

    replace = Arg(bool, False, "Replaces the first name of a layout by F. By default another name is an error.")

    def outputs(self, a: Arguments, x: Spec) -> Spec:
        if not x.ndim:
            raise ValueError("a scalar has no axis that could count frames")
        if not x.layout:
            return x.like(layout="F" + "*" * (x.ndim - 1))
        if x.layout[0] != "F" and not self.values["replace"]:
            raise ValueError(
                f"the layout '{x.layout}' does not begin with F; use replace=True to rename its first axis"
            )
        return x.like(layout="F" + x.layout[1:])
