# SPDX-License-Identifier: Apache-2.0
"""Samples pixels at coordinates given by two maps."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.batch import Spec
from ...core.dtypes import DALIInterpType
from ...core.errors import SampleErrors
from ...core.op import Arg, Arguments, Operator
from ._displaced import check_interp, check_type

_LAGRANGE = 4  # kLagrange in kernels/geometry/sampling.h
_ACCEPTED = (
    DALIInterpType.INTERP_NN,
    DALIInterpType.INTERP_LINEAR,
    DALIInterpType.INTERP_CUBIC,
    DALIInterpType.INTERP_LANCZOS3,
)


class Remap(Operator):
    """Samples an image at the coordinates given by two maps: `out(x, y) = in(map_x(x, y), map_y(x, y))`.

    Inputs: images (HWC, or sequences FHWC) of uint8, uint16, int16 or float32, and two float32 maps of columns and
    rows, in pixels. Maps are HW, or HWC with one channel; for sequences one (HW) for all frames or one for each (FHW).
    The output has the height and width of the maps and the channels and type of the image; DALI requires maps of the
    image's size. Sums are computed in float32 and rounded, halves away from zero.

    With (0, 0) at the centre of the first pixel, an image of `n` columns covers [-0.5, `n`): coordinates in this range
    beyond the outermost centres are clamped to them, and interpolation repeats the border. The same holds for rows.
    Outside this range, and where a map is infinite or NaN, the output is 0; DALI leaves the memory uninitialised.
    INTERP_CUBIC is the Lagrange cubic through four neighbours along each axis, as in DALI, which continues behind the
    last centre as if pixels like the last one followed. INTERP_LANCZOS3 raises an error in DALI when it runs.

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     x = types.Constant(np.uint8([[[10], [20], [40]]]), layout="HWC")
    ...     columns = types.Constant(np.float32([[2.7, 0.5, 7]]), layout="HW")
    ...     rows = types.Constant(np.float32([[0, 0, 0]]), layout="HW")
    ...     return fn.experimental.remap(x, columns, rows, pixel_origin="center")
    >>> pipe().run()[0].at(0)[..., 0].tolist()
    [[40, 15, 0]]
    """

    module = "experimental"
    layouts = ("HWC", "FHWC")
    inputs = (3, 3)
    kernel = "geometry/remap"
    windowed = "HW"
    interp = Arg(
        DALIInterpType,
        DALIInterpType.INTERP_LINEAR,
        "INTERP_NN, INTERP_LINEAR, INTERP_CUBIC (of Lagrange) or INTERP_LANCZOS3.",
    )
    pixel_origin = Arg(
        str, "corner", 'Position of (0, 0): the "corner" of the first pixel, or its "center", as in OpenCV.'
    )

    def setup(self) -> None:
        self.number = check_interp(self, "interp", _ACCEPTED)
        if self.values["interp"] == DALIInterpType.INTERP_CUBIC:
            self.number = _LAGRANGE
        if self.values["pixel_origin"] not in ("corner", "center"):
            raise ValueError(
                f"{self.display_name()}: pixel_origin={self.values['pixel_origin']!r}; accepted: corner, center"
            )

    def plan(self, a: Arguments, x: Spec, *maps: Spec) -> None:
        check_type(x)
        for i, m in enumerate(maps):
            if m.dtype.name != "float32":
                raise ValueError(f"input {i + 1} needs maps of float32; got {m.dtype.name}; cast it first (fn.cast)")
            if m.ndim not in (2, 3):
                raise ValueError(
                    f"input {i + 1} needs maps of height and width (HW); got {m.ndim} dimensions, layout '{m.layout}'"
                )
            if m.ndim == 3:
                SampleErrors.where(
                    m.shape[:, 2] != 1,
                    lambda i, m=m: f"maps have one channel; got the shape {m.shape[i].tolist()}",
                )
        across, down = (m.shape[:, :2] for m in maps)
        SampleErrors.where(
            (across != down).any(axis=1),
            lambda i: f"both maps need the same size; got {across[i].tolist()} and {down[i].tolist()}",
        )
        a.canvas = across

    def outputs(self, a: Arguments, x: Spec, *maps: Spec) -> Spec:
        return x.like(shape=np.concatenate([a.canvas, x.shape[:, 2:]], axis=1))

    def params(self, a: Arguments, x: Spec, *specs: Spec) -> dict[str, Any]:
        nearest = self.number == 0  # rounds down
        center = self.values["pixel_origin"] == "center"
        return {
            "origin": specs[-1].origin[:, [1, 0]],
            "shift": (0.5 if nearest else 0.0) if center else (0.0 if nearest else -0.5),
            "interp": self.number,
        }
