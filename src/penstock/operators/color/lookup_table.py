# SPDX-License-Identifier: Apache-2.0
"""Replaces integers by the values of a table."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.batch import Spec
from ...core.dtypes import DALIDataType, to_numpy
from ...core.op import Arg, Arguments, Pointwise

_LARGEST_KEY = 65535


class LookupTable(Pointwise):
    """Maps integers to values: each of `keys` to its value, all other integers to `default_value`.

    Accepts integers of any type and shape. Values are converted to `dtype`: rounded to the nearest integer, halves away
    from zero, and clamped to its range. If a key is given twice, its last value is used.

    >>> from penstock import fn, pipeline_def, types
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     classes = types.Constant([7, 3, 7, 5])
    ...     return fn.lookup_table(classes, keys=[3, 7], values=[0, 1], default_value=-1, dtype=types.INT32)
    >>> pipe().run()[0].at(0).tolist()
    [1, 0, 1, -1]
    """

    kernel = "color/lookup_table"
    keys = Arg([int], [], "Integers that are mapped to values of their own, in [0, 65535].")
    values: Any = Arg([float], [], "Values of `keys`, one for each.")
    default_value = Arg(float, 0.0, "Value of all other integers.")
    dtype = Arg(DALIDataType, DALIDataType.FLOAT, "Type of the output.")
    output_dtype = Arg(DALIDataType, None, "A former name of `dtype`.", deprecated="use `dtype`")

    def setup(self) -> None:
        v = self.values
        if {"dtype", "output_dtype"} <= self.given:
            raise ValueError("give `dtype` only, not `output_dtype` as well")
        keys, values = v["keys"], v["values"]
        if len(keys) != len(values):
            raise ValueError(f"each of `keys` needs one of `values`; got {len(keys)} keys and {len(values)} values")
        wrong = [k for k in keys if not 0 <= k <= _LARGEST_KEY]
        if wrong:
            raise ValueError(f"`keys` must be in [0, {_LARGEST_KEY}]; got {wrong[0]}")
        self.type = to_numpy(v["dtype"] if v["output_dtype"] is None else v["output_dtype"])
        table = np.full(max(keys, default=-1) + 2, v["default_value"], "f4")
        for key, value in zip(keys, values):
            table[key] = value
        self.table = _saturated(table, self.type).view("u1")[None]
        self.table.setflags(write=False)  # shared by all batches
        self.size = len(table) - 1

    def plan(self, a: Arguments, x: Spec) -> None:
        if x.dtype.kind not in "iu":
            raise TypeError(f"input type {x.dtype.name} is not supported; supported are integers; fn.cast converts")

    def outputs(self, a: Arguments, x: Spec) -> Spec:
        return x.like(dtype=self.type)

    def params(self, a: Arguments, x: Spec, out: Spec) -> dict[str, Any]:
        return {"table": self.table, "size": self.size}


def _saturated(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Rounds halves away from zero and clamps to the range of `dtype`; NaN becomes 0 in integers."""
    if dtype.kind == "b":
        return ~(np.abs(x) < 0.5)
    with np.errstate(over="ignore", invalid="ignore"):
        if dtype.kind == "f":
            return x.astype(dtype)
        info = np.iinfo(dtype)
        whole = np.trunc(np.nan_to_num(x.astype("f8"), posinf=np.inf, neginf=-np.inf))
        whole += np.where(np.abs(x - whole) >= 0.5, np.sign(x), 0)
        # The largest 64-bit integers can't be represented in double, but the next powers of two can.
        top = 2.0 ** (8 * dtype.itemsize - (dtype.kind == "i"))
        out = np.clip(whole, float(info.min), np.nextafter(top, 0)).astype(dtype)
        out[whole >= top] = info.max
        return out
