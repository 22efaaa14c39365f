# SPDX-License-Identifier: Apache-2.0
"""Removes axes of extent 1."""

from __future__ import annotations

import numpy as np

from ...core.batch import Spec
from ...core.errors import SampleErrors, no_axis
from ...core.op import Arg, Arguments, Layout, PerSample
from ._renamed import _Renamed


class Squeeze(_Renamed):
    """Removes axes of extent 1. Nothing is copied.

    The axes are given by their indices (`axes`; negative values count from the last) or by their names (`axis_names`).
    Their names are removed from the layout. An axis of another extent than 1 is an error, unless the sample is empty
    before and after.

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return fn.squeeze(types.Constant(np.zeros((1, 4, 5, 1), np.uint8), layout="FHWC"), axis_names="FC")
    >>> out = pipe().run()[0]
    >>> out.at(0).shape, out.layout()
    ((4, 5), 'HW')
    """

    axes = PerSample([int], None, "Indices of the axes. Must be the same for all samples of a batch.")
    axis_names = Arg(Layout, None, "Names of the axes.")

    def setup(self) -> None:
        given = [k for k in ("axes", "axis_names") if k in self.given]
        if len(given) != 1:
            raise ValueError(f"{self.display_name()}: give one of 'axes' and 'axis_names'; got {given or 'none'}")

    def outputs(self, a: Arguments, x: Spec) -> Spec:
        left_out = self._axes(a, x)
        kept = [d for d in range(x.ndim) if d not in left_out]
        shape = x.shape[:, kept]
        changed = shape.prod(axis=1) != x.shape.prod(axis=1)
        SampleErrors.where(
            changed,
            lambda i: f"only axes of extent 1 can be left out; got axes {sorted(left_out)} of {x.shape[i].tolist()}",
        )
        return x.like(shape=shape, layout="".join(x.layout[d] for d in kept) if x.layout else "")

    def _axes(self, a: Arguments, x: Spec) -> set[int]:
        if a.axis_names is not None:
            missing = [n for n in a.axis_names if n not in x.layout]
            if missing:
                raise ValueError(no_axis(missing[0], "'axis_names'", x.layout))
            return {x.layout.index(n) for n in a.axis_names}
        if not len(a.axes):
            return set()
        if (a.axes != a.axes[0]).any():
            raise ValueError("axes differ from sample to sample; all samples of a batch need the same number of axes")
        axes: np.ndarray = a.axes[0]
        wrong = [int(d) for d in axes if not -x.ndim <= d < x.ndim]
        if wrong:
            accepted = f"accepted are {-x.ndim} to {x.ndim - 1}" if x.ndim else "scalars have none to leave out"
            raise ValueError(f"axes has {wrong[0]}; the input has {x.ndim} axes: {accepted}")
        found = [int(d) % x.ndim for d in axes]
        if len(set(found)) < len(found):
            raise ValueError(f"axes names an axis twice: {axes.tolist()}")
        return set(found)
