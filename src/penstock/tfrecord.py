# SPDX-License-Identifier: Apache-2.0
"""Descriptions of the features of an example for the TFRecord reader: types, shapes, and defaults."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

string, int64, float32 = 1, 0, 2

_DEFAULTS: dict[int, tuple[str, type, type]] = {
    string: ("string", str, bytes),
    int64: ("int64", int, int),
    float32: ("float32", float, float),
}


class Feature(NamedTuple):
    """One feature of an example; made by `FixedLenFeature` and `VarLenFeature`."""

    dtype: int  # string, int64 or float32
    default: Any  # used if an example does not have the feature
    shape: tuple[int, ...] | None  # whole shape; VarLenFeature: extents after the first, or None
    is_fixed: bool

    def __repr__(self) -> str:
        kind = "FixedLenFeature" if self.is_fixed else "VarLenFeature"
        shape = "" if self.shape is None else f"{list(self.shape)}, "
        return f"{kind}({shape}{_DEFAULTS[self.dtype][0]}, {self.default!r})"


def _feature(shape: Sequence[int] | None, dtype: int, default: Any, is_fixed: bool) -> Feature:
    who = "tfrecord.FixedLenFeature" if is_fixed else "tfrecord.VarLenFeature"
    if dtype not in _DEFAULTS:
        raise ValueError(f"{who}: the type has to be tfrecord.string, int64 or float32; got {dtype!r}")
    name, *accepted = _DEFAULTS[dtype]
    if isinstance(default, bool) or not isinstance(default, tuple(accepted)):
        raise TypeError(
            f"{who}: the default of a feature of type {name} has to be of type {accepted[0].__name__}; got {default!r}"
        )
    if shape is not None and (isinstance(shape, (str, bytes)) or not isinstance(shape, Sequence)):
        raise TypeError(f"{who}: the shape has to be a list of extents, [] for a scalar; got {shape!r}")
    extents = None if shape is None else tuple(operator.index(n) for n in shape)
    if extents is not None and any(n < 0 for n in extents):
        raise ValueError(f"{who}: extents can't be negative; got {list(extents)}")
    return Feature(dtype, default, extents, is_fixed)


def FixedLenFeature(shape: Sequence[int], dtype: int, default_value: Any, /) -> Feature:
    """Describes a feature that has the same shape in each example.

    `dtype` is `tfrecord.string` (1), `int64` (0) or `float32` (2). `default_value`, a str, int or float accordingly, is
    used for examples that lack the feature.

    >>> FixedLenFeature([], int64, -1)
    FixedLenFeature([], int64, -1)
    """
    return _feature(shape, dtype, default_value, True)


def VarLenFeature(*given: Any) -> Feature:
    """Describes a feature of any length: `VarLenFeature(dtype, default_value)` is one-dimensional;
    `VarLenFeature(partial_shape, dtype, default_value)` has the extents of `partial_shape` after the first.

    >>> VarLenFeature([4], float32, 0.0)
    VarLenFeature([4], float32, 0.0)
    """
    if len(given) not in (2, 3):
        raise TypeError(
            "tfrecord.VarLenFeature takes (dtype, default_value) or (partial_shape, dtype, default_value); "
            f"got {len(given)} arguments"
        )
    shape = given[0] if len(given) == 3 else None
    if len(given) == 3 and shape is None:
        raise TypeError("tfrecord.VarLenFeature: the shape has to be a list of extents, [] for a scalar; got None")
    return _feature(shape, given[-2], given[-1], False)
