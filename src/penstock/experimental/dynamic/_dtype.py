# SPDX-License-Identifier: Apache-2.0
"""Types of elements."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import dtypes
from ...core.dtypes import DALIDataType
from ...core.errors import suggest

if TYPE_CHECKING:
    from ._tensor import Tensor


class DType:
    """The type of the elements of a `Tensor` or `Batch`: `float32`, `uint8` and so on are its instances.

    Compares equal to the same type of NumPy, PyTorch and `types`, and to its names. A call creates a tensor.

    >>> from penstock.experimental import dynamic as ndd
    >>> ndd.float32.bits, str(ndd.float32), ndd.dtype("u8") is ndd.uint8
    (32, 'f32', True)
    >>> ndd.int16([1, 2]).dtype == ndd.int16
    True
    """

    class Kind(Enum):
        """The kind of number."""

        signed = 1
        unsigned = 2
        float = 3
        bool = 4
        enum = 5

    kind: Kind
    bits: int
    bytes: int
    exponent_bits: int | None
    significand_bits: int | None
    type_id: DALIDataType | None
    name: str

    def __init__(
        self,
        kind: Kind,
        bits: int,
        exponent_bits: int | None = None,
        significand_bits: int | None = None,
        bytes: int | None = None,
        type_id: DALIDataType | None = None,
        name: str | None = None,
        docs: str | None = None,
    ):
        if kind is DType.Kind.float and exponent_bits is None:
            exponent_bits = {16: 5, 32: 8, 64: 11}.get(bits)
            if exponent_bits is None:
                raise ValueError(f"a float of {bits} bits needs exponent_bits")
        if kind is DType.Kind.float and significand_bits is None:
            assert exponent_bits is not None
            significand_bits = bits - exponent_bits - 1
        self.kind, self.bits, self.exponent_bits, self.significand_bits = kind, bits, exponent_bits, significand_bits
        self.bytes = (bits + 7) // 8 if bytes is None else bytes
        self.type_id = type_id
        self.name = name or (kind.name if kind is DType.Kind.bool else f"{kind.name[0]}{bits}")
        self.__doc__ = docs or f"A type of {bits} bits: {kind.name}."

    @property
    def _key(self) -> tuple:
        named = self.name if self.kind is DType.Kind.enum else ""
        return self.kind, self.bits, self.exponent_bits, self.significand_bits, named

    def __eq__(self, other: Any) -> bool:
        if not isinstance(other, DType):
            if other is None or isinstance(other, (int, float)) and not isinstance(other, DALIDataType):
                return False
            try:
                other = dtype(other)
            except (TypeError, ValueError):
                return False
        return self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        parts = [f"kind=Kind.{self.kind.name}", f"bits={self.bits}"]
        if self.exponent_bits is not None:
            parts += [f"exponent_bits={self.exponent_bits}", f"significand_bits={self.significand_bits}"]
        return f"DType({', '.join(parts)})"

    def __str__(self) -> str:
        return self.name

    def __call__(self, data: Any, *, device: Any = None, layout: str | None = None) -> Tensor:
        """Returns a tensor of this type with a copy of the data."""
        from ._making import tensor

        return tensor(data, dtype=self, device=device, layout=layout)

    def __reduce__(self) -> Any:
        return dtype, (self.name,)

    @staticmethod
    def parse(name: str) -> DType:
        """Returns the type with a name: "f32" or "float32", "u8" or "uint8", "bool", ..."""
        found = _BY_NAME.get(name)
        if found is None:
            raise ValueError(f"there is no type called {name!r}.{suggest(name, _BY_NAME)}")
        return found

    @staticmethod
    def from_type_id(type_id: DALIDataType) -> DType:
        """Returns the type of a `types.DALIDataType`."""
        try:
            return _BY_ID[type_id]
        except KeyError:
            raise ValueError(f"{type_id!r} is not a type of elements") from None

    @staticmethod
    def from_fw_type(numpy_type: Any) -> DType:
        """Returns the type that corresponds to `numpy_type` of NumPy or PyTorch."""
        return _of_framework(numpy_type)


_Kind = DType.Kind
float16 = DType(_Kind.float, 16, type_id=DALIDataType.FLOAT16, docs="A float of 16 bits.")
float32 = DType(_Kind.float, 32, type_id=DALIDataType.FLOAT, docs="A float of 32 bits.")
float64 = DType(_Kind.float, 64, type_id=DALIDataType.FLOAT64, docs="A float of 64 bits.")
bfloat16 = DType(
    _Kind.float, 16, 8, name="bfloat16", docs="A float of 16 bits with the range of float32; no operator takes it."
)
uint8 = DType(_Kind.unsigned, 8, type_id=DALIDataType.UINT8, docs="An unsigned integer of 8 bits.")
uint16 = DType(_Kind.unsigned, 16, type_id=DALIDataType.UINT16, docs="An unsigned integer of 16 bits.")
uint32 = DType(_Kind.unsigned, 32, type_id=DALIDataType.UINT32, docs="An unsigned integer of 32 bits.")
uint64 = DType(_Kind.unsigned, 64, type_id=DALIDataType.UINT64, docs="An unsigned integer of 64 bits.")
int8 = DType(_Kind.signed, 8, name="i8", type_id=DALIDataType.INT8, docs="An integer of 8 bits.")
int16 = DType(_Kind.signed, 16, name="i16", type_id=DALIDataType.INT16, docs="An integer of 16 bits.")
int32 = DType(_Kind.signed, 32, name="i32", type_id=DALIDataType.INT32, docs="An integer of 32 bits.")
int64 = DType(_Kind.signed, 64, name="i64", type_id=DALIDataType.INT64, docs="An integer of 64 bits.")
bool_ = DType(_Kind.bool, 8, type_id=DALIDataType.BOOL, docs="True or False.")
DataType = DType(_Kind.enum, 32, type_id=DALIDataType.DATA_TYPE, name="DataType", docs="A `types.DALIDataType`.")
ImageType = DType(_Kind.enum, 32, type_id=DALIDataType.IMAGE_TYPE, name="ImageType", docs="A `types.DALIImageType`.")
InterpType = DType(
    _Kind.enum, 32, type_id=DALIDataType.INTERP_TYPE, name="InterpType", docs="A `types.DALIInterpType`."
)

_ALL = {
    **{"float16": float16, "float32": float32, "float64": float64, "bfloat16": bfloat16, "bool": bool_},
    **{"uint8": uint8, "uint16": uint16, "uint32": uint32, "uint64": uint64},
    **{"int8": int8, "int16": int16, "int32": int32, "int64": int64},
    **{"DataType": DataType, "ImageType": ImageType, "InterpType": InterpType},
}
_BY_NAME = {**_ALL, **{t.name: t for t in _ALL.values()}}
_BY_ID = {t.type_id: t for t in _ALL.values() if t.type_id is not None}
_BY_NUMPY = {dtypes.to_numpy(t.type_id): t for t in _ALL.values() if t.kind is not _Kind.enum and t.type_id is not None}


def _of_framework(given: Any) -> DType:
    if type(given).__module__ == "torch":
        return DType.parse(str(given).removeprefix("torch."))
    try:
        return _BY_NUMPY[np.dtype(given)]
    except (KeyError, TypeError):
        raise TypeError(f"{given!r} is not a type of elements; accepted: {', '.join(_ALL)}") from None


def dtype(*args: Any) -> DType:
    """Returns a `DType` from a `types.DALIDataType`, a name ("f32", "float32"), a type of NumPy or PyTorch, or a
    `DType`; or, from several arguments, a new one."""
    if len(args) != 1:
        return DType(*args)
    (given,) = args
    if isinstance(given, DType):
        return given
    if isinstance(given, DALIDataType):
        return DType.from_type_id(given)
    if isinstance(given, str):
        return DType.parse(given)
    if given is int or given is None or isinstance(given, int):
        raise TypeError(f"{given!r} names no type of elements; accepted: {', '.join(_ALL)}")
    if given is float:
        return float32
    return _of_framework(given)


def type_id(dtype: Any) -> DALIDataType:
    """Returns the `types.DALIDataType` of a type."""
    if isinstance(dtype, DALIDataType):
        return dtype
    if not isinstance(dtype, DType):
        raise ValueError(f"a DType is needed; got {dtype!r}")
    if dtype.type_id is None:
        raise TypeError(f"{dtype.name} is not supported by any operator; use float16 or float32")
    return dtype.type_id


def of_numpy(given: np.dtype) -> DType:
    """The DType of a NumPy type."""
    return _BY_NUMPY[given]


def to_numpy(given: Any) -> np.dtype:
    """NumPy's type for anything that `dtype` accepts. Raises TypeError for bfloat16, which NumPy does not have."""
    return dtypes.to_numpy(type_id(dtype(given)))
