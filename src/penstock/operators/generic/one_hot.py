# SPDX-License-Identifier: Apache-2.0
"""Converts classes to one-hot vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.batch import Spec
from ...core.dtypes import DALIDataType
from ...core.op import Arg, Arguments, Operator


class OneHot(Operator):
    """Replaces each number by a vector of `num_classes` elements along a new axis: `on_value` at the index that equals
    the number, `off_value` elsewhere.

    Numbers outside [0, `num_classes`) give `off_value` everywhere; floats are truncated. If all samples of a batch have
    a single element and no `axis` is given, they count as scalars, and the output is a vector. `axis_name` is inserted
    into the layout; without it, the output has no layout. Input: integers or floats.

    >>> from penstock import fn, pipeline_def, types
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return fn.one_hot(types.Constant([2, 0]), num_classes=3)
    >>> pipe().run()[0].at(0).tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """

    by_frame = False
    kernel = "generic/one_hot"
    num_classes = Arg(int, 0, "Number of classes.")
    axis = Arg(int, -1, "Index of the new axis in the output; -1: the last.")
    axis_name = Arg(str, None, "Name of the new axis, one character.")
    on_value = Arg(float, 1.0, "Value at the index of the class; truncated and clamped if `dtype` is an integer type.")
    off_value = Arg(float, 0.0, "Value at all other indices, converted in the same way.")
    dtype = Arg(DALIDataType, DALIDataType.FLOAT, "Type of the output.")

    def setup(self) -> None:
        name, n = self.values["axis_name"], self.values["num_classes"]
        if name is not None and len(name) != 1:
            raise ValueError(f"{self.display_name()}: 'axis_name' takes one character; got {name!r}")
        if n < 0:
            raise ValueError(f"{self.display_name()}: 'num_classes' can't be negative; got {n}")

    def outputs(self, a: Arguments, x: Spec) -> Spec:
        if x.dtype.kind not in "iuf" or x.dtype.name == "float16":
            raise ValueError(
                f"the input has the type {x.dtype.name}; fn.cast it to an integer type, float32 or float64"
            )
        axis, name, classes = self.values["axis"], self.values["axis_name"], self.values["num_classes"]
        if not -1 <= axis <= x.ndim:
            raise ValueError(f"axis {axis} is out of range for an input of {x.ndim} axes: accepted are -1 to {x.ndim}")
        is_scalar = x.ndim == 0 or ("axis" not in a.given and x.n > 0 and bool((x.shape.prod(axis=1) == 1).all()))
        if is_scalar:
            a.inner = np.ones(x.n, "i8")
            return Spec.uniform(x.n, (classes,), a.dtype, name or "")
        at = x.ndim if axis == -1 else axis
        if name is not None and not x.layout:
            raise ValueError(f"axis_name='{name}' needs an input with a layout, or scalars")
        a.inner = x.shape[:, at:].prod(axis=1)
        layout = "" if name is None else x.layout[:at] + name + x.layout[at:]
        return x.like(shape=np.insert(x.shape, at, classes, axis=1), dtype=a.dtype, layout=layout)

    def params(self, a: Arguments, x: Spec, out: Spec) -> dict[str, Any]:
        on, off = (np.float32(self.values[name]) for name in ("on_value", "off_value"))
        if out.dtype.kind in "iu":
            on, off = np.trunc(on), np.trunc(off)
        return {
            "inner": np.maximum(a.inner, 1),
            "classes": self.values["num_classes"],
            "on": float(on),
            "off": float(off),
        }
