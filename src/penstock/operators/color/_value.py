# SPDX-License-Identifier: Apache-2.0
"""Base of operators on colours and values: supported types, and the output type."""

from typing import ClassVar

import numpy as np

from ...core.batch import Spec
from ...core.dtypes import DALIDataType, to_numpy
from ...core.errors import SampleErrors
from ...core.op import Arg, Arguments, Pointwise


class ValueOperator(Pointwise, abstract=True):
    """Base of operators that compute new values in float32 and round them to the output type."""

    types: ClassVar[tuple[str, ...]] = ("uint8", "int16", "int32", "float32")  # of input and output
    dtype = Arg(DALIDataType, None, "Type of the output. By default that of the input.")

    def setup(self) -> None:
        if self.values["dtype"] is not None:
            self._check("output", to_numpy(self.values["dtype"]), ValueError)

    def plan(self, a: Arguments, x: Spec) -> None:
        self._check("input", x.dtype, TypeError)

    def _check(self, what: str, dtype: np.dtype, error: type[Exception]) -> None:
        if dtype.name not in self.types:
            raise error(
                f"{what} type {dtype.name} is not supported; supported: {', '.join(self.types)}; "
                "fn.cast converts others"
            )

    def outputs(self, a: Arguments, x: Spec) -> Spec:
        return x.like(dtype=a.dtype)


def check_channels(x: Spec, n: int) -> None:
    """Raises SampleErrors for samples without exactly n channels."""
    channels = x.extent("C")
    SampleErrors.where(
        channels != n,
        lambda i: f"{n} channel{'s' * (n > 1)} needed, got {channels[i]} (shape {x.shape[i].tolist()}, {x.layout})",
    )
