# SPDX-License-Identifier: Apache-2.0
"""Converts the data of sources to NumPy arrays and batches. GPU data stays on the GPU if it is needed there."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import capsules, dtypes
from ..core.array_rows import rows_of
from ..core.batch import Batch, Borrowed, Buffer, Spec
from ..core.errors import DataError
from ..core.kernels import Pool
from ..core.rows import check_dims

if TYPE_CHECKING:
    from ..gpu.inputs import GpuInputs
    from ..gpu.interchange import Foreign

_ACCEPTED = "NumPy, PyTorch, CuPy and DLPack arrays, penstock tensors, numbers and lists of them are accepted"
_WIDTHS = {np.dtype(t) for t in ("u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "?")}


def as_sample(data: Any, number_type: np.dtype | None, stream: Any, on_gpu: GpuInputs | None) -> np.ndarray | Foreign:
    """As `as_array`, but GPU data stays on the GPU if `on_gpu` is given."""
    if on_gpu is None or type(data) is np.ndarray or not is_on_gpu(data):
        return as_array(data, number_type, stream)
    return on_gpu.sample(data, stream)


def as_array(data: Any, number_type: np.dtype | None = None, stream: Any = None) -> np.ndarray:
    """Converts to an array of a type that tensors can have, without a copy if possible. Python numbers, and lists of
    them, become `number_type`, or by default int32, float32 and bool. `stream` is the stream of GPU arrays that don't
    name one."""
    array = data if type(data) is np.ndarray else _convert(data, number_type, stream)
    if not array.flags.aligned:  # kernels read whole elements
        array = array.copy()
    if array.dtype not in _WIDTHS:
        if array.dtype.newbyteorder("=") in _WIDTHS:
            return array.astype(array.dtype.newbyteorder("="))
        raise DataError(f"the source gave elements of type {array.dtype}, which no tensor can have")
    return array


def _convert(data: Any, number_type: np.dtype | None, stream: Any) -> np.ndarray:
    if isinstance(data, (np.number, np.bool_)):  # frequent for labels; checked first, as attribute lookups cost more
        return np.asarray(data)
    if data is None or isinstance(data, (str, bytes)):
        what = "None" if data is None else f"a {type(data).__name__}"
        hint = "; np.frombuffer(data, np.uint8) makes an array of bytes" if isinstance(data, bytes) else ""
        raise DataError(f"the source gave {what}; {_ACCEPTED}{hint}")
    if capsules.is_capsule(data):
        return _from_capsule(data, stream)
    try:
        on_gpu = is_on_gpu(data)
        if not on_gpu and (hasattr(data, "__array_interface__") or hasattr(data, "__array__")):
            return np.asarray(data.detach() if getattr(data, "requires_grad", False) else data)
        if not on_gpu and hasattr(data, "__dlpack__"):
            return np.from_dlpack(data)
    except (TypeError, ValueError, RuntimeError, BufferError) as e:  # types and memory that NumPy does not have
        raise DataError(f"the source gave a {type(data).__name__} that can't become an array: {e}") from e
    if on_gpu:  # copied to the CPU, as this output is there
        from ..gpu.interchange import on_host

        return on_host(data, stream)
    if _is_buffer(data):
        return np.asarray(data)
    try:
        array = np.asarray([np.asarray(d) if hasattr(d, "__array__") else d for d in data] if _is_list(data) else data)
    except ValueError as e:
        raise DataError(f"the source gave a list that is no array: {e}") from None
    if array.dtype.kind in "OSUV":
        if isinstance(data, int):
            raise DataError(f"the source gave the integer {data}, which no type of numbers can hold")
        raise DataError(f"the source gave a {type(data).__name__}; {_ACCEPTED}")
    return _of_numbers(array, number_type)


def _from_capsule(capsule: Any, stream: Any) -> np.ndarray:
    """The array of a DLPack capsule, which can be consumed once. GPU data is copied to the CPU."""
    try:
        return capsules.array_of(capsule)
    except ValueError as e:
        raise DataError(f"the source gave a bad sample: {e}") from None
    except BufferError:
        from ..gpu.interchange import on_host

        return on_host(capsule, stream)


_DEFAULTS = {"i": np.dtype("i4"), "u": np.dtype("i4"), "f": np.dtype("f4"), "b": np.dtype("?")}


def _of_numbers(array: np.ndarray, number_type: np.dtype | None) -> np.ndarray:
    """Converts Python numbers to the requested type. DataError if integers do not fit; floats never become integers."""
    kind = array.dtype.kind
    dtype = _DEFAULTS.get(kind, array.dtype) if number_type is None else number_type
    if dtype.kind in "iu" and kind in "iu" and array.size:
        limits, smallest, largest = np.iinfo(dtype), int(array.min()), int(array.max())
        if smallest < limits.min or largest > limits.max:
            wrong = smallest if smallest < limits.min else largest
            hint = "" if number_type else "; say dtype=types.INT64, or give an array of NumPy"
            raise DataError(f"the source gave the integer {wrong}, which {dtype.name} can't hold{hint}")
    elif dtype.kind == "b" or kind == "f" != dtype.kind:
        return array.astype(_DEFAULTS.get(kind, array.dtype))  # a mismatch with the requested type is reported later
    return array.astype(dtype, copy=False)


def is_on_gpu(data: Any) -> bool:
    if capsules.is_capsule(data):
        return not capsules.is_spent(data) and capsules.is_on_gpu(data)
    # PyTorch's interface raises for tensors with gradients, and is slower.
    if hasattr(data, "__dlpack_device__") and int(data.__dlpack_device__()[0]) == 2:
        return True
    return hasattr(data, "__cuda_array_interface__")


def _is_list(data: Any) -> bool:
    return isinstance(data, (list, tuple))


def _is_buffer(data: Any) -> bool:
    """Whether it is a typed buffer, such as a memoryview, a bytearray or an array.array."""
    try:
        memoryview(data)
    except TypeError:
        return False
    return True


def layout_of(data: Any) -> str:
    """The layout of a batch or a list of tensors; "" for a single tensor, as in DALI."""
    if not _is_list(data) and not hasattr(data, "is_dense_tensor"):
        return ""
    first = data[0] if _is_list(data) and len(data) else data
    layout = getattr(first, "layout", None)
    if not callable(layout):
        return ""
    found = layout()
    if _is_list(data):
        for i, other in enumerate(data):
            theirs = other.layout() if callable(getattr(other, "layout", None)) else ""
            if theirs and theirs != found:
                raise DataError(f"samples must have the same layout; sample {i} has {theirs!r}, sample 0 {found!r}")
    return found if isinstance(found, str) else ""


def samples_of(
    outputs: list[Any],
    number_types: Sequence[np.dtype | None],
    stream: Any = None,
    on_gpu: Mapping[int, GpuInputs] = MappingProxyType({}),
) -> list[Any]:
    """Converts a source's data for a batch, per output: to an array (n, ...), a list of arrays, or a GPU batch if the
    data is on the GPU and `on_gpu` has an entry for that output."""
    return [_samples_of(d, t, stream, on_gpu.get(i)) for i, (d, t) in enumerate(zip(outputs, number_types))]


def _samples_of(
    data: Any, number_type: np.dtype | None, stream: Any, on_gpu: GpuInputs | None
) -> np.ndarray | list[np.ndarray] | Batch:
    if hasattr(data, "is_dense_tensor"):  # a TensorList of this or another package
        if hasattr(data, "as_array"):
            return data.as_array() if data.is_dense_tensor() else [as_array(data.at(k)) for k in range(len(data))]
        if on_gpu is None or not len(data):
            return _samples_of(data.as_cpu(), number_type, None, None)
        batch = on_gpu.list(data, stream)
        if batch is not None:
            return batch
        data = [data[k] for k in range(len(data))]
    if _is_list(data):
        if rows_of(data) is not None:
            return list(data)
        return together([_sample(d, i, number_type, stream, on_gpu) for i, d in enumerate(data)], stream, on_gpu)
    array = as_sample(data, number_type, stream, on_gpu)
    if array.ndim == 0:
        raise DataError(
            "in batch mode the source gives an array whose first axis is the batch, or a list of samples; got a scalar"
        )
    if isinstance(array, np.ndarray):
        return array
    assert on_gpu is not None
    check_dims(array.ndim - 1, DataError)
    return on_gpu.dense(array, stream) if array.shape[0] else np.empty(array.shape, array.dtype)


def _sample(
    data: Any, i: int, number_type: np.dtype | None, stream: Any, on_gpu: GpuInputs | None
) -> np.ndarray | Foreign:
    try:
        return as_sample(data, number_type, stream, on_gpu)
    except DataError as e:
        raise DataError(f"sample {i}: {e}") from None


def together(samples: list[Any], stream: Any, on_gpu: GpuInputs | None) -> list[np.ndarray] | Batch:
    """The samples returned by `as_sample`, as a batch if they are on the GPU. DataError if only some are."""
    if on_gpu is None or all(isinstance(s, np.ndarray) for s in samples):
        return samples
    there = [not isinstance(s, np.ndarray) for s in samples]
    if not all(there):
        i = there.index(not there[0])
        names = ("in the host's memory", "on the pipeline's GPU")
        raise DataError(
            "the samples of a batch have to lie all in the host's memory or all on the pipeline's GPU; sample 0 is "
            f"{names[there[0]]}, sample {i} {names[there[i]]}"
        )
    check_alike(samples)
    return on_gpu.batch(samples, stream)


def _in_place(samples: Sequence[np.ndarray]) -> Batch:
    """Makes a batch of the samples; not copied if contiguous."""
    try:
        return Batch.from_samples(samples)
    except ValueError:
        check_alike(samples)
        raise


def check_alike(samples: Sequence[np.ndarray]) -> None:
    """Raises DataError, which names the first that differs, unless all samples have one type and number of
    dimensions."""
    first = samples[0]
    check_dims(first.ndim, DataError)
    for i, s in enumerate(samples):
        if s.dtype != first.dtype or s.ndim != first.ndim:
            raise DataError(
                "all samples of a batch need the same number of dimensions and the same type; got "
                f"{first.ndim} dimensions of {first.dtype.name} in sample 0, {s.ndim} of {s.dtype.name} in sample {i}"
            )


def pack(samples: Sequence[np.ndarray], pool: Pool | None = None, memory: Any = Buffer) -> Batch:
    """Copies the samples to memory of the pipeline, by the threads of `pool` if given."""
    batch = _in_place(samples)
    return batch.packed_copy(pool, memory) if samples else batch


def adopt(samples: list[np.ndarray] | Batch, copy: bool, pool: Pool | None = None, memory: Any = Buffer) -> Batch:
    """Makes a batch of the samples: in place if `copy` is False, if nothing else refers to their memory, or if nothing
    can write to it; otherwise by a copy into packed memory."""
    if isinstance(samples, Batch):  # a GPU batch
        return samples
    if not samples:
        return pack(samples)
    if all(is_sole(samples, i) for i in range(len(samples))):
        return _in_place(samples)
    if not copy:
        batch = _in_place(samples)
        batch.protect()
        return batch
    if all(is_frozen(samples, i) or is_sole(samples, i) for i in range(len(samples))):
        batch = _in_place(samples)
        batch.owners = (*batch.owners, Borrowed(None))  # receivers of the outputs may write to them, so they get a copy
        return batch
    return pack(samples, pool, memory)


def batches_of(
    outputs: list[Any], copy: bool, pool: Pool | None = None, memories: Mapping[int, Any] = MappingProxyType({})
) -> list[Batch]:
    """Makes one batch per output from the result of `samples_of`, which is emptied. Copies as `adopt` does, to memory
    from `memories` for some outputs."""
    batches: list[Batch] = []
    while outputs:
        memory = memories.get(len(batches), Buffer)
        if isinstance(outputs[0], (list, Batch)):
            batches.append(adopt(outputs.pop(0), copy, pool, memory))
            continue
        check_dims(outputs[0].ndim - 1, DataError)
        if is_sole(outputs, 0):
            batches.append(_own(outputs.pop(0)))
        elif not copy:
            batches.append(Batch.from_array(outputs.pop(0)))
            batches[-1].protect()
        elif is_frozen(outputs, 0):
            batches.append(Batch.from_array(outputs.pop(0)))
            batches[-1].owners = (*batches[-1].owners, Borrowed(None))
        else:
            batches.append(Batch.from_array(outputs.pop(0)).packed_copy(pool, memory))
    return batches


def _own(array: np.ndarray) -> Batch:
    """Makes a writable batch of an array that has no other reference, also if it is a view of bytes."""
    batch = Batch.from_array(array)
    return batch if array.flags.writeable else batch.with_rows(batch.spec, batch.rows, (array,))


def is_sole(samples: list[Any], i: int) -> bool:
    """Whether the list has the only reference to a contiguous array and its memory."""
    array = samples[i]
    if type(array) is not np.ndarray or not array.flags.c_contiguous or sys.getrefcount(array) > _ONE:
        return False
    base = array.base
    if base is None:
        return array.flags.owndata
    # A view of an array or of bytes without other references, such as np.frombuffer(file.read(), np.uint8).
    if type(base) is np.ndarray:
        return sys.getrefcount(base) <= _ONE_BASE and base.flags.owndata and base.nbytes <= 2 * array.nbytes
    return type(base) is bytes and sys.getrefcount(base) <= _ONE_BASE and len(base) <= 2 * array.nbytes


def is_frozen(samples: list[Any], i: int) -> bool:
    """Whether a contiguous array is read-only down to its memory, which must be owned by an array or bytes object."""
    array = samples[i]
    if array.flags.writeable or type(array) is not np.ndarray or not array.flags.c_contiguous:
        return False
    base = array
    while type(base.base) is np.ndarray:
        base = base.base
        if base.flags.writeable:
            return False
    if base.base is None:
        return base.flags.owndata
    # Bytes without other references are not kept alive for a small part of them.
    bytes_of = base.base
    return type(bytes_of) is bytes and (len(bytes_of) <= 2 * array.nbytes or sys.getrefcount(bytes_of) > _ONE_BASE)


def _counts() -> tuple[int, int]:
    """The result of getrefcount for an object with one reference, which depends on the interpreter."""
    samples = [np.frombuffer(bytes(bytearray(64)), "u1")]
    array = samples[0]
    base = array.base
    return sys.getrefcount(array), sys.getrefcount(base)


_ONE, _ONE_BASE = _counts()


def spread(batch: Batch, n: int, bad: dict[int, str]) -> Batch:
    """A batch of `n` with the good samples at their indices; bad samples get new memory."""
    if not bad:
        return batch
    at = np.array(sorted(bad))
    good = np.setdiff1d(np.arange(n), at)
    spec = batch.spec
    blank = batch.blank(len(at), tuple(spec.shape[0].tolist() if len(batch) else [0] * spec.ndim))
    shapes = np.empty((n, spec.ndim), np.int64)
    rows = np.empty(n, batch.rows.dtype)
    shapes[good], rows[good] = spec.shape, batch.rows
    shapes[at], rows[at] = blank.spec.shape, blank.rows
    return batch.with_rows(Spec(shapes, spec.dtype, spec.layout), rows, (*batch.owners, *blank.owners))


def nothing(spec: Spec, dtype: Any, ndim: int | None) -> Batch:
    """A batch without samples, with the known type and number of dimensions, or as many dimensions as the layout
    has."""
    if dtype is None or dtype == dtypes.DALIDataType.NO_TYPE:
        dtype = spec.dtype
    n_axes = len(spec.layout) or ndim or spec.ndim
    return Batch.from_array(np.empty((0,) * (1 + n_axes), dtypes.to_numpy(dtype)), spec.layout)


def layout_for(i: int, declared: str | None, brought: str) -> str:
    """The layout of a batch of output `i`. DataError if the data's layout differs from the declared one."""
    if declared and brought and declared != brought:
        raise DataError(f'output {i} of the source: expected data with layout: "{declared}" and got: "{brought}"')
    return declared or brought


def check_unchanged(batch: Batch, i: int, kinds: dict[int, tuple[np.dtype, int, str]], of: str) -> None:
    """Raises DataError if output i is not of the same kind as in the first batch, which `kinds` remembers."""
    now = batch.spec.dtype, batch.spec.ndim, batch.spec.layout
    was = kinds.setdefault(i, now)
    if was == now:
        return
    told = [f"{ndim} dimensions of {dtype.name}" for dtype, ndim, _ in (was, now)]
    if was[2] != now[2]:
        told = [f"{text} with the layout '{layout}'" for text, layout in zip(told, (was[2], now[2]))]
    names = ("Type", "Number of dimensions", "Layout")
    what = " and ".join(n for n, a, b in zip(names, was, now) if a != b)
    raise DataError(
        f"{what} of the {of} has changed from the previous iteration: output {i} had "
        f"{told[0]} so far and has {told[1]} now"
    )


def check(batch: Batch, i: int, dtype: Any, ndim: int | None, layout: str) -> None:
    """Raises DataError if a batch of output `i` does not match the arguments; `layout` is the declared layout, or else
    that of the data."""
    spec = batch.spec
    if dtype is not None and dtype != dtypes.DALIDataType.NO_TYPE and spec.dtype != dtypes.to_numpy(dtype):
        raise DataError(
            f"output {i} of the source has type {spec.dtype.name}, but dtype asks for {dtypes.to_numpy(dtype).name}"
        )
    if layout and len(layout) != spec.ndim:
        raise DataError(
            f"output {i} of the source has samples of {spec.ndim} dimensions, which the layout '{layout}' does not fit"
            f": it cannot describe {spec.ndim}-dimensional data"
        )
    if ndim is not None and spec.ndim != ndim:
        raise DataError(f"output {i} of the source has samples of {spec.ndim} dimensions, but ndim asks for {ndim}")
