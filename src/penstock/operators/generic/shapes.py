# SPDX-License-Identifier: Apache-2.0
"""Shapes as data."""

from ...core.batch import Batch
from ...core.dtypes import DALIDataType, to_numpy
from ...core.op import Arg, Arguments, Operator

_TYPES = ("int32", "uint32", "int64", "uint64", "float32", "float64")


class Shapes(Operator):
    """Returns the shape of each sample, as a vector of `ndim` integers. Same as `DataNode.shape()`.

    The data itself is not read.

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return fn.shapes(types.Constant(np.zeros((4, 5, 3), np.uint8)))
    >>> pipe().run()[0].at(0).tolist()
    [4, 5, 3]
    """

    discouraged = "fn.shapes is deprecated; use shape() of the DataNode"
    devices = ("cpu", "gpu")
    metadata = (0,)
    by_frame = False
    is_prompt = True
    dtype = Arg(DALIDataType, DALIDataType.INT64, "Type of the output.")
    type = Arg(DALIDataType, None, "Type of the output.", deprecated="dtype")

    def setup(self) -> None:
        self._dtype = to_numpy(self.values["dtype"] if self.values["type"] is None else self.values["type"])
        if self._dtype.name not in _TYPES:
            raise ValueError(f"{self.display_name()}: dtype takes {', '.join(_TYPES)}; got {self._dtype.name}")

    def run(self, a: Arguments, x: Batch) -> Batch:
        return Batch.from_array(x.spec.shape.astype(self._dtype))
