# SPDX-License-Identifier: Apache-2.0
"""Data types, image types and interpolation types, with the names and numbers of DALI, and the value ranges of the
data types."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from .errors import NearestMembers, NoNumPyType


class _Enum(IntEnum, metaclass=NearestMembers):
    def __repr__(self) -> str:
        return f"<{type(self).__name__}.{self.name}: {self.value}>"

    def __str__(self) -> str:
        return f"{type(self).__name__}.{self.name}"


class DALIDataType(_Enum):
    """Type of the elements of a tensor."""

    NO_TYPE = -1
    UINT8 = 0
    UINT16 = 1
    UINT32 = 2
    UINT64 = 3
    INT8 = 4
    INT16 = 5
    INT32 = 6
    INT64 = 7
    FLOAT16 = 8
    FLOAT = 9
    FLOAT64 = 10
    BOOL = 11
    STRING = 12
    FEATURE = 17
    IMAGE_TYPE = 20
    DATA_TYPE = 21
    INTERP_TYPE = 22
    TENSOR_LAYOUT = 23
    PYTHON_OBJECT = 24


class DALIImageType(_Enum):
    """Colour space of an image; ANY_DATA keeps the stored one."""

    RGB = 0
    BGR = 1
    GRAY = 2
    YCbCr = 3
    ANY_DATA = 4


class DALIInterpType(_Enum):
    """Interpolation between pixels."""

    INTERP_NN = 0
    INTERP_LINEAR = 1
    INTERP_CUBIC = 2
    INTERP_LANCZOS3 = 3
    INTERP_TRIANGULAR = 4
    INTERP_GAUSSIAN = 5


_NUMPY = ("u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "?")
_TO_NUMPY = {DALIDataType(i): np.dtype(name) for i, name in enumerate(_NUMPY)}
# Enumerations are passed through a graph as 32-bit integers.
for _t in (DALIDataType.DATA_TYPE, DALIDataType.IMAGE_TYPE, DALIDataType.INTERP_TYPE):
    _TO_NUMPY[_t] = np.dtype("i4")
_NUMBERS = frozenset(map(int, DALIDataType))
_FROM_NUMPY = {np.dtype(name): DALIDataType(i) for i, name in enumerate(_NUMPY)}


def to_numpy(dtype) -> np.dtype:
    """Returns the NumPy type of a `DALIDataType`, or its number (or of anything that NumPy accepts as a type)."""
    if isinstance(dtype, np.dtype):  # the usual case
        return dtype
    if isinstance(dtype, int) and not isinstance(dtype, bool) and dtype in _NUMBERS:
        dtype = DALIDataType(dtype)
    if isinstance(dtype, DALIDataType):
        try:
            return _TO_NUMPY[dtype]
        except KeyError:
            raise NoNumPyType(
                f"{dtype} is not a numeric type and has no NumPy equivalent; give one, such as types.FLOAT"
            ) from None
    try:
        return np.dtype(dtype)
    except TypeError:
        raise TypeError(f"{dtype!r} is not a type that is known; use those of penstock.types, or NumPy's") from None


def from_numpy(dtype) -> DALIDataType:
    """Returns the `DALIDataType` of a NumPy type. Raises TypeError for a type that tensors can't have."""
    known = to_numpy(dtype)
    if known not in _FROM_NUMPY:
        raise TypeError(f"elements of type {known} are not supported; supported: {', '.join(map(str, _FROM_NUMPY))}")
    return _FROM_NUMPY[known]


def full(dtype: np.dtype) -> float:
    """The value of full intensity: the largest integer, or 1.0 for floats."""
    return 1.0 if dtype.kind == "f" else 1 if dtype.kind == "b" else np.iinfo(dtype).max


def middle(dtype: np.dtype) -> float:
    """The middle of the value range: 128 for uint8, 0.5 for floats."""
    return 0.5 if dtype.kind == "f" else (np.iinfo(dtype).max + 1) // 2


def saturated(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Returns x rounded, halves away from zero, and clamped to the range of the type; NaN becomes 0."""
    if dtype.kind == "f" or x.dtype.kind == "b":
        with np.errstate(over="ignore"):
            return x.astype(dtype)
    if x.dtype.kind == "f":
        wide = np.nan_to_num(x.astype("f8"), nan=0.0)
        x = np.trunc(wide + np.copysign(0.5, wide))
    if dtype.kind == "b":
        return x != 0
    info = np.iinfo(dtype)
    # The limits of 64-bit integers are not exact as floats, so compare with them instead of clipping.
    inside = np.where((x >= info.min) & (x <= info.max), x, 0).astype(dtype)
    return np.where(x >= info.max, dtype.type(info.max), np.where(x <= info.min, dtype.type(info.min), inside))
