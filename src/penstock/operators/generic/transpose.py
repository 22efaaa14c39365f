# SPDX-License-Identifier: Apache-2.0
"""Permutes the axes."""

import string
from typing import Any

import numpy as np

from ...core.batch import Spec
from ...core.op import Arg, Arguments, Layout, Operator


class Transpose(Operator):
    """Permutes the axes: axis i of the output is axis `perm[i]` of the input. Accepts any type and up to 8 axes.

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return fn.transpose(types.Constant(np.zeros((4, 5, 3), np.uint8), layout="HWC"), perm=[2, 0, 1])
    >>> out = pipe().run()[0]
    >>> out.layout(), out.at(0).shape
    ('CHW', (3, 4, 5))
    """

    kernel = "generic/transpose"
    is_light = True
    by_frame = False
    windowed = string.ascii_uppercase

    perm = Arg([int], None, "Index of the input axis for each output axis. By default the order is reversed.")
    transpose_layout = Arg(bool, True, "Whether to permute the layout as well. Otherwise it is kept.")
    output_layout = Arg(Layout, None, "Layout of the output; `transpose_layout` is then ignored.")

    def setup(self) -> None:
        perm = self.values["perm"]
        if perm is not None and sorted(perm) != list(range(len(perm))):
            raise ValueError(f"`perm` must name each axis from 0 to {len(perm) - 1} once, got {perm}")

    def plan(self, a: Arguments, x: Spec) -> None:
        a.axes = list(range(x.ndim))[::-1] if a.perm is None else a.perm
        if len(a.axes) != x.ndim:
            raise ValueError(f"`perm` has {len(a.axes)} values, the input {x.ndim} axes")
        if a.output_layout is not None and len(a.output_layout) not in (0, x.ndim):
            raise ValueError(f"output_layout='{a.output_layout}' does not fit an output of {x.ndim} axes")

    def outputs(self, a: Arguments, x: Spec) -> Spec:
        layout = a.output_layout
        if layout is None:
            layout = "".join(x.layout[d] for d in a.axes) if x.layout and a.transpose_layout else x.layout
        return x.like(shape=x.shape[:, a.axes], layout=str(layout))

    def region(self, a: Arguments, x: Spec, out: Spec) -> tuple[np.ndarray, np.ndarray]:
        back = [a.axes.index(d) for d in range(x.ndim)]
        return out.origin[:, back], out.stored[:, back]

    def params(self, a: Arguments, x: Spec, out: Spec) -> dict[str, Any]:
        return {"perm": np.array([a.axes], "i4"), "start": self.region(a, x, out)[0] - x.origin}
