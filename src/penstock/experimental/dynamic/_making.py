# SPDX-License-Identifier: Apache-2.0
"""Creates tensors and batches from the program's data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import dtypes
from ...core.batch import Batch as Samples
from ...core.batch import Spec
from ...core.errors import ArgumentTypeError, ArgumentValueError
from ...tensors import TensorCPU, TensorListCPU
from ...tensors.arrays import as_numpy
from . import _dtype
from ._device import Device, device
from ._value import Value, relabelled

if TYPE_CHECKING:
    from ._batch import Batch
    from ._tensor import Tensor

_NARROW = {"i8": "i4", "u8": "u4", "f8": "f4"}


def _checked(layout: str | None, ndim: int, what: str) -> str:
    if layout and len(layout) != ndim:
        raise ValueError(f"the layout '{layout}' has {len(layout)} axes and {what} {ndim} dimensions")
    return layout or ""


def is_on_gpu(data: Any) -> bool:
    if isinstance(data, np.ndarray):
        return False
    if getattr(data, "__cuda_array_interface__", None) is not None:
        return True
    about = getattr(data, "__dlpack_device__", None)
    return about is not None and about()[0] in (2, 13)


def array_of(data: Any) -> tuple[np.ndarray, bool]:
    """The data as a dense NumPy array, and whether the program can change its memory.

    Python numbers, also in lists, become 32-bit if they fit."""
    if isinstance(data, str) or data is None:
        file = "; ndd.imread reads an image, np.fromfile(path, np.uint8) the bytes of a file" * isinstance(data, str)
        raise ArgumentTypeError(f"a tensor is made of an array, a number or a list of numbers; got {data!r}{file}")
    if isinstance(data, (bytes, bytearray, memoryview)):
        array = np.frombuffer(data, "u1") if isinstance(data, bytes) else np.asarray(memoryview(data))
    elif isinstance(data, (bool, int, float, list, tuple)):
        array = np.asarray(data)
        short = _NARROW.get(array.dtype.str[1:])
        if short is not None and not isinstance(data, np.generic):
            narrow = array.astype(short)
            array = narrow if array.dtype.kind == "f" or (narrow == array).all() else array
        dtypes.from_numpy(array.dtype)
        return array, False
    else:
        array = as_numpy(data)
    dtypes.from_numpy(array.dtype)
    dense = array if array.flags.c_contiguous else np.ascontiguousarray(array).reshape(array.shape)
    return dense, dense is array and _can_change(array)


def _can_change(array: Any) -> bool:
    """Whether the memory of an array is writable, through this array or one that it is a view of."""
    while isinstance(array, np.ndarray):
        if array.flags.writeable:
            return True
        array = array.base
    return not (array is None or isinstance(array, bytes))


def one_sample(array: np.ndarray, layout: str = "", source: str = "") -> Samples:
    """An array as a batch of one sample that shares its memory."""
    return samples_of(array[np.newaxis], layout, [source] if source else None)


def samples_of(array: np.ndarray, layout: str = "", sources: list[str] | None = None) -> Samples:
    """An array as a batch that shares its memory. Writable if the array is."""
    made = Samples.from_array(array, layout, sources)
    if not array.flags.writeable:
        made.protect()
    return made


def _on_gpu(data: Any, layout: str, of_batch: bool) -> Any:
    from ...tensors import TensorGPU, TensorListGPU

    made = (TensorListGPU if of_batch else TensorGPU)(data)
    samples = made._batch
    _checked(layout, samples.spec.ndim, "the data has")
    return relabelled(samples, layout) if layout else samples


def _finished(made: Value, dtype: Any, on: Device | None, layout: str | None, copy: bool) -> Any:
    """Converts a value to the requested type, device and layout."""
    from ._functions import cast

    if layout is not None and (layout or None) != made.layout:
        samples = made._samples()
        what = "the samples have" if made._is_batch else "the tensor has"
        made = made._made_of(relabelled(samples, _checked(layout, samples.spec.ndim, what)), made._external)
    wanted = None if dtype is None else _dtype.dtype(dtype)
    if wanted is not None and made.dtype != wanted:
        made, copy = cast(made, dtype=_dtype.type_id(wanted)), False
    if on is not None and made.device != on:
        made, copy = made.to_device(on), False
    return made.to_device(made.device, force_copy=True) if copy else made


def make_tensor(data: Any, dtype: Any, on: Any, layout: str | None, pad: bool, copy: bool) -> Any:
    from ._tensor import Tensor

    on = device(on)
    if isinstance(data, Tensor):
        made = data
    elif isinstance(data, Value):
        made = _stacked(data, pad)
    elif isinstance(data, TensorCPU):
        made = Tensor._made_of(one_sample(np.asarray(data), data.layout(), data._source), True)
    elif is_on_gpu(data):
        given = data.layout() if callable(getattr(data, "layout", None)) else ""
        made = Tensor._made_of(_on_gpu(data, given, False), True)
    else:
        array, external = array_of(data)
        if dtype is not None and not external and (on is None or on.device_type == "cpu"):
            array = array.astype(_dtype.to_numpy(dtype), copy=False)
        copy = copy and (external or not array.flags.writeable)
        made = Tensor._made_of(one_sample(array, ""), external)
    return _finished(made, dtype, on, layout, copy)


def _stacked(batch: Any, pad: bool) -> Any:
    """A batch as one tensor, with the batch as the first axis."""
    from ._functions import call_by_name
    from ._tensor import Tensor

    samples = batch._samples()
    if not samples.spec.is_dense:
        if not pad:
            raise ValueError(
                f"the samples differ in shape: {samples.spec.shape.tolist()[:4]}...; make them alike (resize, crop), "
                "or give pad=True to fill them up with zeros"
            )
        samples = call_by_name("pad", batch)._samples()
    spec = samples.spec
    layout = "N" + spec.layout if spec.layout else ""
    shape = (len(samples), *(samples.spec.shape[0].tolist() if len(samples) else spec.shape.shape[1:]))
    if samples.on_host:
        array = samples.array()
        return Tensor._made_of(one_sample(array, layout), batch._external)
    whole = samples if samples.is_packed else samples.packed_copy()
    one = Spec(np.array([shape], "i8"), spec.dtype, layout)
    rows = one.packed()
    rows["data"] = whole.rows["data"][:1] if len(whole) else 0
    return Tensor._made_of(whole.with_rows(one, rows, whole.owners))


def make_batch(data: Any, dtype: Any, on: Any, layout: str | None, copy: bool) -> Any:
    from ._batch import Batch
    from ._tensor import Tensor

    on = device(on)
    if isinstance(data, Batch):
        return _finished(data, dtype, on, layout, copy)
    if isinstance(data, TensorListCPU):
        return _finished(Batch._made_of(data._batch, True), dtype, on, layout, copy)
    if isinstance(data, Tensor):
        return _finished(_unstacked(data), dtype, on, layout, copy)
    if type(data).__name__ == "TensorListGPU":
        return _finished(Batch._made_of(data._batch, True), dtype, on, layout, copy)
    if not isinstance(data, (list, tuple)):
        if is_on_gpu(data):
            return _finished(Batch._made_of(_on_gpu(data, "", True), True), dtype, on, layout, copy)
        if _is_array(data):
            array, external = array_of(data)
            if not array.ndim:
                raise TypeError("the first axis of an array is the batch; got a scalar")
            copy = copy and (external or not array.flags.writeable)
            return _finished(Batch._made_of(samples_of(array), external), dtype, on, layout, copy)
        if isinstance(data, (str, bytes)) or not isinstance(data, Iterable):
            raise TypeError(f"a batch is made of a list of tensors, or of an array; got {type(data).__name__}")
        data = list(data)
    return _batch_of_list(list(data), dtype, on, layout, copy)


def _is_array(data: Any) -> bool:
    return any(hasattr(data, name) for name in ("__array_interface__", "__array__", "__dlpack__"))


def _batch_of_list(items: list, dtype: Any, on: Device | None, layout: str | None, copy: bool) -> Any:
    from ._batch import Batch

    if not items:
        if dtype is None:
            raise ValueError("the dtype of an empty batch has to be given")
        ndim = len(layout or "")
        empty = Samples.allocate(Spec(np.empty((0, ndim), "i8"), _dtype.to_numpy(dtype), layout or ""))
        return _finished(Batch._made_of(empty), None, on, None, False)
    if all(isinstance(x, (bool, int, float)) for x in items):
        array, _ = array_of(items)
        return _finished(Batch._made_of(Samples.from_array(array)), dtype, on, layout, False)
    tensors = [make_tensor(x, None, on, None, False, False) for x in items]
    if dtype is None and any(t.dtype != tensors[0].dtype for t in tensors):
        if not any(isinstance(x, (Value, np.ndarray, np.generic)) for x in items):
            dtype = np.result_type(*(t._samples().spec.dtype for t in tensors))  # lists of Python numbers
    if dtype is not None:
        tensors = [_finished(t, dtype, None, None, False) for t in tensors]
    parts = [t._samples() for t in tensors]
    kinds = {"cpu" if p.on_host else f"gpu:{t._device_id()}" for p, t in zip(parts, tensors)}
    if len(kinds) > 1:
        raise ValueError(f"the tensors are on {' and '.join(sorted(kinds))}; pass the device of the batch")
    first = parts[0].spec
    shared = next((p.spec.layout for p in parts if p.spec.layout), "")
    for i, p in enumerate(parts):
        for what, a, b in (
            ("dtype", p.spec.dtype.name, first.dtype.name),
            ("number of dimensions", p.spec.ndim, first.ndim),
            ("layout", p.spec.layout or shared, shared),
        ):
            if a != b:
                raise (TypeError if what == "dtype" else ArgumentValueError)(
                    f"all tensors of a batch need the same {what}: tensor {i} has {a!r}, tensor 0 {b!r}"
                )
    external = any(t._external for t in tensors)
    made = Batch._made_of(joined(parts, shared), external)
    return _finished(made, None, on, layout, copy)


def joined(parts: list[Samples], layout: str) -> Samples:
    """Concatenates batches without copying."""
    first = parts[0]
    spec = Spec(np.concatenate([p.spec.shape for p in parts]), first.spec.dtype, layout)
    rows = np.concatenate([p.rows for p in parts])
    owners = tuple(o for p in parts for o in p.owners)
    sources = None
    if any(p.sources for p in parts):
        sources = [s for p in parts for s in (p.sources or [""] * len(p))]
    if not first.on_host:
        for p in parts:
            p.wait()
    return first.with_rows(spec, rows, owners, sources)


def _unstacked(tensor: Any) -> Any:
    """A tensor as a batch along its first axis."""
    from ._batch import Batch

    samples = tensor._samples()
    spec = samples.spec
    if not spec.ndim:
        raise ArgumentTypeError("the first axis of a tensor is the batch; got a scalar")
    n, *shape = spec.shape[0].tolist()
    layout = spec.layout[1:]
    one = Spec.uniform(n, tuple(shape), spec.dtype, layout)
    rows = one.packed()
    step = int(np.prod(shape)) * spec.dtype.itemsize
    rows["data"] = samples.rows["data"][0] + np.arange(n, dtype="u8") * np.uint64(step)
    return Batch._made_of(samples.with_rows(one, rows, (*samples.owners, samples)), tensor._external)


def as_tensor(data: Any, dtype: Any = None, device: Any = None, layout: str | None = None, pad: bool = False) -> Tensor:
    """Returns a tensor that shares the memory of the data, unless another type, memory order or device is required.

    Parameters
    ----------
    data
        A number, a (nested) list of numbers, or an array: of NumPy, PyTorch or anything with `__array__`, DLPack,
        `__cuda_array_interface__` or the buffer protocol; a `Tensor`; or a `Batch`, whose samples are stacked.
    dtype
        The type of the elements. By default that of the data; Python numbers become 32-bit ones.
    device
        The device of the tensor. By default that of the data.
    layout
        The meaning of the axes, such as "HWC".
    pad
        Whether to pad samples of a batch that differ in shape with zeros. Otherwise it is an error.

    >>> import numpy as np
    >>> from penstock.experimental import dynamic as ndd
    >>> ndd.as_tensor(np.zeros((4, 6, 3), np.uint8), layout="HWC").shape
    (4, 6, 3)
    """
    return make_tensor(data, dtype, device, layout, pad, False)


def tensor(data: Any, dtype: Any = None, device: Any = None, layout: str | None = None, pad: bool = False) -> Tensor:
    """Returns a tensor with a copy of the data. Parameters are those of `as_tensor`.

    >>> from penstock.experimental import dynamic as ndd
    >>> ndd.tensor([1, 2, 3]).dtype == ndd.int32
    True
    """
    return make_tensor(data, dtype, device, layout, pad, True)


def as_batch(tensors: Any, dtype: Any = None, device: Any = None, layout: str | None = None) -> Batch:
    """Returns a batch that shares the memory of the data, unless another type, memory order or device is required.

    Parameters
    ----------
    tensors
        A list of objects accepted by `as_tensor`, of the same type, number of dimensions and layout; an array, whose
        first axis is the batch; a `Batch`; or a `TensorListCPU` or `TensorListGPU`.
    dtype, device, layout
        As in `as_tensor`; the layout is that of a sample. An empty list requires a `dtype`.

    >>> import numpy as np
    >>> from penstock.experimental import dynamic as ndd
    >>> ndd.as_batch([np.zeros((4, 6, 3)), np.zeros((2, 5, 3))]).shape
    [(4, 6, 3), (2, 5, 3)]
    """
    return make_batch(tensors, dtype, device, layout, False)


def batch(tensors: Any, dtype: Any = None, device: Any = None, layout: str | None = None) -> Batch:
    """Returns a batch with a copy of the data. Parameters are those of `as_batch`.

    >>> from penstock.experimental import dynamic as ndd
    >>> ndd.batch([1, 2, 3]).batch_size
    3
    """
    return make_batch(tensors, dtype, device, layout, True)
