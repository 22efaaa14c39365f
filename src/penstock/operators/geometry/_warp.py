# SPDX-License-Identifier: Apache-2.0
"""Base of affine transformations: rotate and warp_affine."""

from typing import Any

import numpy as np

from ...core.batch import Spec
from ...core.dtypes import DALIDataType, DALIInterpType, to_numpy
from ...core.errors import SampleErrors
from ...core.op import Arg, Arguments, Operator, PerSample

_CONVERSIONS = {
    "uint8": ("uint8", "float32"),
    "int16": ("int16", "float32"),
    "int32": ("int32", "float32"),
    "float32": ("float32", "uint8", "int16", "int32"),
}


class Warp(Operator, abstract=True):
    """Base class. Subclasses set `a.matrix` (n, d * (d + 1)), from output to input coordinates, and `a.canvas` (n, d),
    the extents ([D,] H, W) of the output."""

    layouts = ("HWC", "FHWC", "DHWC", "FDHWC")
    kernel = "geometry/warp"
    windowed = "DHW"

    size = PerSample(
        [float], [], "Size of the output in pixels: (height, width) or (depth, height, width); rounded to integers."
    )
    interp_type = Arg(DALIInterpType, DALIInterpType.INTERP_LINEAR, "INTERP_LINEAR or INTERP_NN.")
    fill_value = Arg(
        float,
        None,
        "Value outside the input, rounded to its type for INTERP_LINEAR. By default the border is repeated.",
    )
    dtype = Arg(
        DALIDataType,
        None,
        "Type of the output: FLOAT, or by default that of the input; for FLOAT inputs also UINT8, INT16, INT32.",
    )
    output_dtype = Arg(DALIDataType, None, "A former name of `dtype`.", deprecated="use `dtype`")

    def setup(self) -> None:
        if self.values["interp_type"] not in (DALIInterpType.INTERP_LINEAR, DALIInterpType.INTERP_NN):
            raise ValueError(
                f"interp_type={self.values['interp_type']!r} is not supported; supported: INTERP_LINEAR, INTERP_NN"
            )
        if {"dtype", "output_dtype"} <= self.given:
            raise TypeError(
                "got an unexpected 'output_dtype' deprecated argument when 'dtype' was already provided: it is "
                "a former name of `dtype`; give only `dtype`"
            )
        former = self.values["output_dtype"]
        self.out_type = self.values["dtype"] if former is None else former

    def given_size(self, a: Arguments, x: Spec) -> np.ndarray | None:
        """Extents (n, d) from `size`, or None."""
        dims = spatial(x)
        if a.size is None or a.size.shape[1] == 0:
            return None
        if a.size.shape[1] != dims:
            raise ValueError(f"`size` has {a.size.shape[1]} values, an input of layout '{x.layout}' needs {dims}")
        size = np.floor(a.size.astype("f8") + 0.5).astype("i8")
        SampleErrors.where(
            (size <= 0).any(axis=1), lambda i: f"the size of the output must be positive, got {a.size[i].tolist()}"
        )
        return size

    def outputs(self, a: Arguments, x: Spec, *more: Spec) -> Spec:
        accepted = _CONVERSIONS.get(x.dtype.name)
        if accepted is None:
            raise ValueError(
                f"input 0 has the type {x.dtype.name}, which is not supported; supported: {', '.join(_CONVERSIONS)}"
            )
        dtype = x.dtype if self.out_type is None else to_numpy(self.out_type)
        if dtype.name not in accepted:
            raise ValueError(f"no conversion from {x.dtype.name} to {dtype.name}; supported: {', '.join(accepted)}")
        shape = x.shape.copy()
        shape[:, -1 - a.canvas.shape[1] : -1] = a.canvas
        return x.like(shape=shape, dtype=dtype)

    def params(self, a: Arguments, x: Spec, *specs: Spec) -> dict[str, Any]:
        dims, out = a.canvas.shape[1], specs[-1]
        matrix, origin = a.native.zeros((x.n, 12), "f4"), a.native.zeros((x.n, 3), "i8")
        matrix[:, : dims * (dims + 1)] = a.matrix
        origin[:, :dims] = out.origin[:, -2 : -2 - dims : -1]
        fill = self.values["fill_value"]
        return {
            "matrix": matrix,
            "fill": 0.0 if fill is None else fill,
            "clamp": fill is None,
            "linear": self.values["interp_type"] == DALIInterpType.INTERP_LINEAR,
            "dims": dims,
            "add_steps": True,
            "origin": origin,
        }


def spatial(x: Spec) -> int:
    """The number of spatial axes."""
    return 3 if "D" in x.layout else 2
