# SPDX-License-Identifier: Apache-2.0
"""New axes of extent 1."""

from __future__ import annotations

import numpy as np

from ...core.batch import Spec
from ...core.op import Arg, Arguments, Layout
from ._renamed import _Renamed


class ExpandDims(_Renamed):
    """Inserts axes of extent 1. Nothing is copied.

    `axes` are the indices of the new axes in the output. `new_axis_names`, one for each axis, are inserted into the
    layout; without them, the output has no layout.

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     image = types.Constant(np.zeros((4, 5), np.uint8), layout="HW")
    ...     return fn.expand_dims(image, axes=[0, 3], new_axis_names="FC")
    >>> out = pipe().run()[0]
    >>> out.at(0).shape, out.layout()
    ((1, 4, 5, 1), 'FHWC')
    """

    axes = Arg([int], doc="Indices of the new axes in the output.")
    new_axis_names = Arg(Layout, "", "Names of the new axes, in the order of `axes`.")

    def setup(self) -> None:
        axes, names = self.values["axes"], self.values["new_axis_names"]
        if min(axes, default=0) < 0:
            raise ValueError(f"{self.display_name()}: 'axes' takes indices of the output from 0 on; got {min(axes)}")
        if len(set(axes)) < len(axes):
            raise ValueError(f"{self.display_name()}: 'axes' has an index twice: {axes}")
        if names and len(names) != len(axes):
            raise ValueError(f"{self.display_name()}: {len(axes)} axes, but {len(names)} new_axis_names '{names}'")

    def outputs(self, a: Arguments, x: Spec) -> Spec:
        axes, names = self.values["axes"], self.values["new_axis_names"]
        ndim = x.ndim + len(axes)
        if names and x.ndim and not x.layout:
            raise ValueError(f"new_axis_names='{names}' needs an input with a layout, or a scalar")
        if not axes:
            return x.like()
        if max(axes) >= ndim:
            raise ValueError(f"axes has {max(axes)}; the output has {ndim} axes: accepted are 0 to {ndim - 1}")
        old = [d for d in range(ndim) if d not in axes]
        shape = np.insert(x.shape, [d - k for k, d in enumerate(sorted(axes))], 1, axis=1)
        layout = ""
        if names:
            new = dict(zip(axes, names)) | dict(zip(old, x.layout))
            layout = "".join(new[d] for d in range(ndim))
        return x.like(shape=shape, layout=layout)
