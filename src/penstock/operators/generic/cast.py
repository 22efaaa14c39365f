# SPDX-License-Identifier: Apache-2.0
"""Conversion between data types."""

from ...core.batch import Spec
from ...core.dtypes import DALIDataType, to_numpy
from ...core.op import Arg, Arguments, Pointwise


class Cast(Pointwise):
    """Converts data of any type and layout to another type.

    Values beyond the range of an integer type are clamped. Floats are rounded to the nearest integer, halves away from
    zero; NaN becomes 0. In a conversion to bool, values that round to 0 are false.

    >>> from penstock import fn, pipeline_def, types
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return fn.cast(types.Constant([-1.5, 0.5, 2.4, 300.0]), dtype=types.UINT8)
    >>> pipe().run()[0].at(0).tolist()
    [0, 1, 2, 255]
    """

    kernel = "generic/cast"
    dtype = Arg(DALIDataType, doc="Type of the output.")

    def setup(self) -> None:
        to_numpy(self.values["dtype"])  # raises TypeError for invalid element types

    def outputs(self, a: Arguments, x: Spec) -> Spec:
        return x.like(dtype=a.dtype)
