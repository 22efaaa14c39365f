# SPDX-License-Identifier: Apache-2.0
"""A constant as data."""

import numpy as np

from ...core.batch import Batch, Borrowed, Spec
from ...core.dtypes import DALIDataType, saturated, to_numpy
from ...core.op import Arg, Arguments, Layout, Operator


class Constant(Operator):
    """Returns the same value for every sample.

    The value is given by `fdata` (floats) or `idata` (integers) with a `shape`, or by `types.Constant(value)`. Floats
    are converted to integers by rounding, halves away from zero; values beyond the range of a type are clamped.

    >>> from penstock import fn, pipeline_def
    >>> @pipeline_def(batch_size=2)
    ... def pipe():
    ...     return fn.constant(fdata=[1.0, 2.0], shape=[2])
    >>> pipe().run()[0].as_array().tolist()
    [[1.0, 2.0], [1.0, 2.0]]
    """

    inputs = (0, 0)
    is_prompt = True
    dtype = Arg(DALIDataType, None, "Type of the output. By default float32 for `fdata`, int32 for `idata`.")
    fdata = Arg([float], None, "The values, as floats.")
    idata = Arg([int], None, "The values, as integers.")
    shape = Arg([int], None, "Shape of the output. By default that of the data. A single value fills any shape.")
    layout = Arg(Layout, "", "Layout of the output.")
    value = Arg(object, None, "The value as an array, for `types.Constant`.")

    def setup(self) -> None:
        v = self.values
        given = [k for k in ("fdata", "idata", "value") if v[k] is not None]
        if len(given) != 1:
            raise ValueError("fn.constant: exactly one of 'fdata' and 'idata' is needed")
        data = v[given[0]]
        default = {"fdata": np.dtype("f4"), "idata": np.dtype("i4")}.get(given[0])
        dtype = None if v["dtype"] is None else to_numpy(v["dtype"])
        if default is None:
            array = np.asarray(data, dtype)
        else:
            array = saturated(np.asarray(data, "f4" if default.kind == "f" else "i8"), dtype or default)
        if v["shape"] is not None:
            if array.size == 1:
                array = np.broadcast_to(array.reshape(()), v["shape"])
            elif array.size != np.prod(v["shape"]):
                raise ValueError(f"fn.constant: {array.size} values do not fill the shape {v['shape']}")
            array = array.reshape(v["shape"])
        if v["layout"] and len(v["layout"]) != array.ndim:
            raise ValueError(f"fn.constant: layout='{v['layout']}' does not fit an array of {array.ndim} dimensions")
        self.array = np.ascontiguousarray(array).reshape(array.shape)
        self.owner = Borrowed(self.array)
        self._last: Batch | None = None

    def run(self, a: Arguments) -> Batch:
        last = self._last
        if last is None or last.spec.n != a.n:
            spec = Spec.uniform(a.n, self.array.shape, self.array.dtype, self.values["layout"])
            rows = spec.packed()
            rows["data"] = self.array.ctypes.data  # all samples share the same memory
            last = self._last = Batch(spec, rows, (self.owner,))
        return Batch(last.spec, last.rows, last.owners)
