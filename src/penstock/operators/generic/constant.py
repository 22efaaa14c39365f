# SPDX-License-Identifier: Apache-2.0
"""A constant as data."""

import numpy as np

from ...core.batch import Batch, Borrowed, Spec
from ...core.dtypes import DALIDataType, to_numpy
from ...core.op import Arg, Arguments, Layout, Operator


class Constant(Operator):
    """The same value for every sample.

    Given as `fdata` (floats) or `idata` (integers) with a `shape`, or by `types.Constant(value)`.

    >>> from penstock import fn, pipeline_def
    >>> @pipeline_def(batch_size=2)
    ... def pipe():
    ...     return fn.constant(fdata=[1.0, 2.0], shape=[2])
    >>> pipe().run()[0].as_array().tolist()
    [[1.0, 2.0], [1.0, 2.0]]
    """

    inputs = (0, 0)
    dtype = Arg(DALIDataType, None, "Type of the output; float32 for `fdata`, int32 for `idata` if not given.")
    fdata = Arg([float], None, "The values, as floats.")
    idata = Arg([int], None, "The values, as integers.")
    shape = Arg([int], None, "Shape of the output; that of the data if not given. One value fills any shape.")
    layout = Arg(Layout, "", "Layout of the output.")
    value = Arg(object, None, "The value as an array; what `types.Constant` uses.")

    def setup(self) -> None:
        v = self.values
        given = [k for k in ("fdata", "idata", "value") if v[k] is not None]
        if len(given) != 1:
            raise ValueError("fn.constant: exactly one of 'fdata' and 'idata' is needed")
        data = v[given[0]]
        default = {"fdata": np.dtype("f4"), "idata": np.dtype("i4")}.get(given[0])
        array = np.asarray(data, default if v["dtype"] is None else to_numpy(v["dtype"]))
        if v["shape"] is not None:
            if array.size == 1:
                array = np.broadcast_to(array.reshape(()), v["shape"])
            elif array.size != np.prod(v["shape"]):
                raise ValueError(f"fn.constant: {array.size} values do not fill the shape {v['shape']}")
            array = array.reshape(v["shape"])
        self.array = np.ascontiguousarray(array).reshape(array.shape)
        self.owner = Borrowed(self.array)

    def run(self, a: Arguments) -> Batch:
        spec = Spec.uniform(a.n, self.array.shape, self.array.dtype, self.values["layout"])
        rows = spec.packed()
        rows["data"] = self.array.ctypes.data  # every sample is the same memory
        return Batch(spec, rows, (self.owner,))
