# SPDX-License-Identifier: Apache-2.0
"""What the operators that draw from a distribution share: shape and type of the output, and the ways to fill it."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from ...core import kernels
from ...core.batch import Batch, Spec
from ...core.dtypes import DALIDataType, from_numpy, to_numpy
from ...core.errors import InternalError, SampleErrors
from ...core.op import Arg, Arguments, PerSample, Seeded
from ...core.rng import Random
from ...core.rows import address, allocate

# The order of `enum Distribution` in kernels/random/distribution.h.
UNIFORM, NORMAL, COIN, VALUES, BETA, INDEX, WEIGHTED = range(7)
_KERNEL = "random/distribution"
# Up to this many numbers per sample are made at once in the thread that plans.
_FEW = 64


def rows(
    a: Arguments, kind: int, low: Any = 0.0, high: Any = 0.0, table: np.ndarray | None = None, lengths: Any = None
) -> np.ndarray:
    """Argument rows of the kernel, but for epochs and positions. A `table` (n, k) or (1, k) must be float64 and outlive
    them; `lengths` (n,) say how much of it counts, all by default."""
    key = a.random.key
    out = allocate(a.n, kernels.kernel(_KERNEL).args)[0]
    out["key"] = key - (key >> 63 << 64)
    out["kind"] = kind
    out["a"] = low
    out["b"] = high
    if table is not None:
        if len(table) == 1:
            out["table"] = address(table)
        else:
            out["table"] = address(table) + table.strides[0] * np.arange(a.n, dtype="u8")
        out["n_table"] = table.shape[1] if lengths is None else lengths
    return out


def fill(rows: np.ndarray, random: Random, count: int, dtype: np.dtype) -> np.ndarray:
    """(n, count) numbers, `count` for each sample; of one row for all samples or one for each."""
    n = len(random.position)
    if n * count * dtype.itemsize >= 1 << 62:
        raise MemoryError(f"no memory is large enough for {count} numbers a sample")
    out, at = allocate((n, count), dtype)
    known = kernels.library().distribution_rows(
        address(rows), len(rows), *random.columns(), n, count, int(from_numpy(dtype)), at
    )
    if not known:
        raise InternalError(f"no random numbers of type {dtype.name}")
    return out


class Distribution(Seeded, abstract=True):
    """Base of operators whose output elements are independent and of one distribution."""

    inputs = (0, 1)
    module = "random"
    by_frame = False  # a sequence as input gives its whole shape
    metadata = (0,)
    kernel = _KERNEL
    default_type: ClassVar[DALIDataType] = DALIDataType.FLOAT
    types: ClassVar[str] = "iuf"  # kinds of the output type
    is_prompt = True

    dtype = Arg(DALIDataType, None, "Type of the output. Integers are rounded and clamped to their range.")
    shape = PerSample([int], None, "Shape of the output. By default it is a scalar.")

    def setup(self) -> None:
        v = self.values
        self.type = to_numpy(self.default_type if v["dtype"] is None else v["dtype"])
        if self.type.kind not in self.types or self.type == np.float16:
            kinds = {"i": "signed integers", "u": "unsigned integers", "f": "FLOAT, FLOAT64", "b": "BOOL"}
            accepted = ", ".join(kinds[k] for k in self.types)
            raise ValueError(f"{self.display_name()}: dtype takes {accepted}; got {v['dtype']}")
        if v["shape"] is not None and min(v["shape"], default=0) < 0:
            raise ValueError(f"{self.display_name()}: extents of the shape can't be negative; got {v['shape']}")

    def in_chain(self, n_inputs: int) -> bool:
        """A scalar, or a small constant shape, is not worth waking threads for."""
        if n_inputs or "shape" not in self.given:
            return n_inputs > 0
        return self.values["shape"] is None or math.prod(self.values["shape"]) > _FEW

    def draw(self, a: Arguments) -> np.ndarray:
        """The kernel's argument rows; checks the arguments. Arrays that they refer to are left on `a`."""
        raise NotImplementedError

    def plan(self, a: Arguments, *like: Spec) -> None:
        if like and "shape" in a.given:
            raise ValueError("the shape is given twice: by 'shape' and by an input")
        if not like and a.shape is not None:
            shape = np.asarray(a.shape)
            SampleErrors.where((shape < 0).any(axis=1), lambda i: f"negative extents: shape is {shape[i].tolist()}")
        a.rows = self.draw(a)

    def outputs(self, a: Arguments, *like: Spec) -> Spec:
        if like:
            return Spec(like[0].shape, self.type)
        return Spec(np.zeros((a.n, 0), "i8") if a.shape is None else a.shape, self.type)

    def params(self, a: Arguments, *specs: Spec) -> dict[str, Any]:
        columns = {name: a.rows[name] for name in a.rows.dtype.names if name not in ("key", "table")}
        columns |= {**a.random.fields(), "key": a.rows["key"]}
        return {**columns, "table": a.table} if hasattr(a, "table") else columns

    def run(self, a: Arguments, *like: Batch) -> Batch:
        shape = self.values["shape"] or ()
        if math.prod(e or 1 for e in shape) >= 1 << 59:  # NumPy has no such array, though one extent may be zero
            raise MemoryError(f"no memory is large enough for samples of the shape {list(shape)}")
        values = fill(self.draw(a), a.random, math.prod(shape), self.type)
        return Batch.from_array(values.reshape(a.n, *shape))
