# SPDX-License-Identifier: Apache-2.0
"""Types, enumerations and constants, under DALI's names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

import numpy as np

from .core import dtypes as _dtypes
from .core.dtypes import DALIDataType as DALIDataType
from .core.dtypes import DALIImageType as DALIImageType
from .core.dtypes import DALIInterpType as DALIInterpType
from .core.errors import NoNumPyType as _NoNumPyType
from .core.errors import no_attribute as _no_attribute
from .core.sample_info import BatchInfo as BatchInfo
from .core.sample_info import SampleInfo as SampleInfo
from .graph import trace as _trace
from .graph.node import DataNode as _DataNode

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike

# The members of the enumerations are also names of this module.
NO_TYPE = DALIDataType.NO_TYPE
UINT8 = DALIDataType.UINT8
UINT16 = DALIDataType.UINT16
UINT32 = DALIDataType.UINT32
UINT64 = DALIDataType.UINT64
INT8 = DALIDataType.INT8
INT16 = DALIDataType.INT16
INT32 = DALIDataType.INT32
INT64 = DALIDataType.INT64
FLOAT16 = DALIDataType.FLOAT16
FLOAT = DALIDataType.FLOAT
FLOAT64 = DALIDataType.FLOAT64
BOOL = DALIDataType.BOOL
STRING = DALIDataType.STRING
FEATURE = DALIDataType.FEATURE
IMAGE_TYPE = DALIDataType.IMAGE_TYPE
DATA_TYPE = DALIDataType.DATA_TYPE
INTERP_TYPE = DALIDataType.INTERP_TYPE
TENSOR_LAYOUT = DALIDataType.TENSOR_LAYOUT
PYTHON_OBJECT = DALIDataType.PYTHON_OBJECT
RGB = DALIImageType.RGB
BGR = DALIImageType.BGR
GRAY = DALIImageType.GRAY
YCbCr = DALIImageType.YCbCr
ANY_DATA = DALIImageType.ANY_DATA
INTERP_NN = DALIInterpType.INTERP_NN
INTERP_LINEAR = DALIInterpType.INTERP_LINEAR
INTERP_CUBIC = DALIInterpType.INTERP_CUBIC
INTERP_LANCZOS3 = DALIInterpType.INTERP_LANCZOS3
INTERP_TRIANGULAR = DALIInterpType.INTERP_TRIANGULAR
INTERP_GAUSSIAN = DALIInterpType.INTERP_GAUSSIAN

NHWC, NCHW, NFHWC, NFCHW, SAME = "HWC", "CHW", "FHWC", "FCHW", ""
CPU_ONLY_DEVICE_ID = -99999
TensorLayout = str


def to_numpy_type(dali_type: DALIDataType) -> type[np.generic]:
    """Returns the NumPy scalar type of a `DALIDataType`. Raises TypeError, and KeyError, if it has none."""
    if dali_type is None:
        raise _NoNumPyType("to_numpy_type takes a DALIDataType, such as types.FLOAT; got None")
    return _dtypes.to_numpy(dali_type).type


def to_dali_type(framework_type: Any) -> DALIDataType:
    """Returns the `DALIDataType` of a NumPy type, or of a type of PyTorch (or another that prints as 'torch.uint8').
    Python's `float` is FLOAT, as in DALI."""
    if framework_type is float:
        return DALIDataType.FLOAT
    name = str(framework_type)
    if name.startswith("torch."):
        framework_type = {"half": "float16", "float": "float32", "double": "float64"}.get(name[6:], name[6:])
    for convert in dali_type_converters:
        if (converted := convert(framework_type)) is not None:
            return converted
    return _dtypes.from_numpy(framework_type)


dali_type_converters: list[Any] = []
"""Functions that take a type of a framework and give its `DALIDataType`, or None; `to_dali_type` asks them first."""


class PipelineAPIType(Enum):
    BASIC = 0
    ITERATOR = 1
    SCHEDULED = 2


class CUDAStream:
    """The address of a CUDA stream; 0 is the default stream."""

    def __init__(self, ptr: int = 0):
        self._ptr = ptr

    @property
    def ptr(self) -> int:
        return self._ptr


_Made = TypeVar("_Made")


class _OfEachType(Generic[_Made]):
    """Base of numbers that can be given as each type."""

    __slots__ = ()

    if TYPE_CHECKING:  # defined below

        def int8(self) -> _Made: ...
        def int16(self) -> _Made: ...
        def int32(self) -> _Made: ...
        def int64(self) -> _Made: ...
        def uint8(self) -> _Made: ...
        def uint16(self) -> _Made: ...
        def uint32(self) -> _Made: ...
        def uint64(self) -> _Made: ...
        def float16(self) -> _Made: ...
        def float32(self) -> _Made: ...
        def float64(self) -> _Made: ...
        def bool(self) -> _Made: ...


def _beyond(value: Any, array: np.ndarray) -> int | None:
    """The integer part of a number that its type, the array's, can't hold; None if it can."""
    if array.dtype.kind not in "iu" or not np.isfinite(value):
        return None
    whole = int(value)
    return None if whole == array.item() else whole


class ScalarConstant(_OfEachType["ScalarConstant"]):
    """A number with a type, as an operand of operations with batches: `images * ScalarConstant(3).uint8()`.

    Its methods `bool`, `int8`, ..., `float64` return the number as that type. A number beyond the range of its type is
    not accepted as an operand.
    """

    def __init__(self, value: Any, dtype: Any = None):
        if np.ndim(value):
            raise TypeError(f"a scalar is one number; got {value!r}. Arrays: types.Constant")
        self._array = _trace.constant_array(value, dtype)
        self._clamped = _beyond(value, self._array)

    @property
    def value(self) -> Any:
        return self._array.item() if self._clamped is None else self._clamped

    @property
    def dtype(self) -> DALIDataType:
        return _dtypes.from_numpy(self._array.dtype)

    @property
    def shape(self) -> list[int]:
        """An empty list: it is one number."""
        return []

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self._array if dtype is None else self._array.astype(dtype)

    def __float__(self) -> float:
        return float(self.value)

    def __int__(self) -> int:
        return int(self.value)

    def __repr__(self) -> str:
        return f"ScalarConstant({self.value}, {self.dtype})"


class _ScalarNode(_DataNode, _OfEachType["_ScalarNode"]):
    """Returned by `Constant` for a single number: a node that can be converted to other types, as `ScalarConstant`."""

    __slots__ = ("_array", "_clamped")

    def __init__(self, array: np.ndarray, node: _DataNode, clamped: int | None):
        super().__init__(node.name, node.device, node.source, node.index)
        self._array, self._clamped = array, clamped

    if TYPE_CHECKING:

        @property
        def value(self) -> Any: ...
        @property
        def dtype(self) -> DALIDataType: ...

    else:
        value, dtype = ScalarConstant.value, ScalarConstant.dtype


def _as_type(name: str, make: Callable[[np.ndarray, np.dtype], Any]) -> Any:
    def as_type(self: Any) -> Any:
        given = self._array if self._clamped is None else self._clamped
        return make(given, np.dtype(name))

    as_type.__name__, as_type.__doc__ = name, f"The number as {name}."
    return as_type


def ConstantNode(device: str, value: Any, dtype: Any, shape: Any, layout: str | None, **kwargs: Any) -> _DataNode:
    """A constant as a node of the graph: see `Constant`."""
    scalar = shape is None and layout is None and np.ndim(value) == 0
    array = _trace.constant_array(value, dtype)
    if shape is not None:
        array = np.broadcast_to(array, shape) if array.size == 1 else array.reshape(shape)
    from .core.op import REGISTRY

    arguments = {"value": array, "layout": layout or "", "device": device or "cpu", **kwargs}
    node = _trace.call(REGISTRY["constant"], (), arguments)
    return _ScalarNode(array, node, _beyond(value, array)) if scalar and node.device == "cpu" else node


# For type checkers, a single number is both a node and a `ScalarConstant`, as the result depends on where it is called.
@overload
def Constant(
    value: float | np.generic,
    dtype: DALIDataType | DTypeLike | None = None,
    shape: None = None,
    layout: None = None,
    device: str | None = None,
    *,
    name: str | None = None,
    preserve: bool = False,
) -> _ScalarNode: ...
@overload
def Constant(
    value: ArrayLike,
    dtype: DALIDataType | DTypeLike | None = None,
    shape: Sequence[int] | int | None = None,
    layout: str | None = None,
    device: str | None = None,
    *,
    name: str | None = None,
    preserve: bool = False,
) -> _DataNode: ...
def Constant(
    value: Any,
    dtype: Any = None,
    shape: Any = None,
    layout: str | None = None,
    device: str | None = None,
    **kwargs: Any,
) -> Any:
    """Returns a value that is the same for every sample.

    `value` is a number, a list or an array. Without a `dtype`, 64-bit numbers, such as Python's, become 32-bit ones; a
    number that does not fit raises ValueError. A single NumPy number keeps its type. With a `dtype`, values beyond its
    range are clamped; for integer types, elements of arrays are rounded and single numbers are truncated. `+` and
    other operations reject single numbers beyond the range (OverflowError). Outside of a pipeline's definition, a
    number becomes a `ScalarConstant`, for any pipeline.

    >>> from penstock import fn, pipeline_def, types
    >>> @pipeline_def(batch_size=2)
    ... def pipe():
    ...     return types.Constant([1.5, 2]), types.Constant(2**40, dtype=types.INT64)
    >>> pair, large = pipe().run()
    >>> pair.dtype, pair.at(1).tolist(), large.at(0).item()
    (<DALIDataType.FLOAT: 9>, [1.5, 2.0], 1099511627776)
    """
    alone = shape is None and not layout and device is None and not kwargs
    if alone and dtype is None and isinstance(value, (np.generic, np.ndarray)) and not np.ndim(value):
        dtype = value.dtype  # NumPy numbers keep their type
    if alone and not _trace.stack() and not np.ndim(value):
        return ScalarConstant(value, dtype)
    return ConstantNode(device or "cpu", value, dtype, shape, layout, **kwargs)


for _name in ("bool", "float16", "float32", "float64", *(f"{u}int{b}" for u in ("u", "") for b in (8, 16, 32, 64))):
    setattr(ScalarConstant, _name, _as_type(_name, ScalarConstant))
    setattr(_ScalarNode, _name, _as_type(_name, Constant))


def _raw_cuda_stream(stream_obj: Any) -> Any:
    """Returns the address of a stream of CuPy, PyTorch or `CUDAStream`; anything else unchanged. For programs that copy
    tensors themselves, as DALI's plugins do."""
    for name in ("cuda_stream", "ptr"):
        if hasattr(stream_obj, name):
            return getattr(stream_obj, name)
    return stream_obj


def _raw_cuda_stream_ptr(stream_obj: Any) -> Any:
    """Same as a `ctypes` pointer, or None."""
    import ctypes

    raw = _raw_cuda_stream(stream_obj)
    return None if raw is None else ctypes.c_void_p(raw)


if not TYPE_CHECKING:

    def __getattr__(name):
        raise _no_attribute(__name__, name)
