# SPDX-License-Identifier: Apache-2.0
"""Iterators that return PaddlePaddle tensors. Those of CPU pipelines share the memory of the batch: nothing is
copied."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import paddle

from ..core.constructors import names_checked, no_attribute
from ..pipeline import Pipeline
from ..tensors import TensorListCPU, TensorListGPU
from ..types import DALIDataType, to_numpy_type
from .base_iterator import Batch, DaliIterator, LastBatchPolicy
from .classification import Classification
from .dense_batches import dense, not_dense
from .iterator_texts import with_parameters

__all__ = [
    "DALIClassificationIterator",
    "DALIGenericIterator",
    "LastBatchPolicy",
    "feed_ndarray",
    "lod_tensor_clip",
    "recursive_length",
    "to_paddle_type",
]

_core = paddle.framework.core
_VarType = _core.VarDesc.VarType
_PADDLE_TYPES: dict[DALIDataType, Any] = {
    DALIDataType.UINT8: _VarType.UINT8,
    DALIDataType.INT8: _VarType.INT8,
    DALIDataType.INT16: _VarType.INT16,
    DALIDataType.INT32: _VarType.INT32,
    DALIDataType.INT64: _VarType.INT64,
    DALIDataType.FLOAT16: _VarType.FP16,
    DALIDataType.FLOAT: _VarType.FP32,
    DALIDataType.FLOAT64: _VarType.FP64,
    DALIDataType.BOOL: _VarType.BOOL,
}


def to_paddle_type(tensor: Any) -> Any:
    """Returns the type of a Paddle `DenseTensor` with the elements of this tensor or batch. Raises TypeError if Paddle
    has none.

    >>> import numpy as np
    >>> from penstock.tensors import TensorCPU
    >>> str(to_paddle_type(TensorCPU(np.zeros(3, np.uint8))))
    'paddle.uint8'
    """
    found = _PADDLE_TYPES.get(tensor.dtype)
    if found is None:
        name = np.dtype(to_numpy_type(tensor.dtype)).name
        raise TypeError(
            f"Paddle's tensors have no type for {name}; convert in the pipeline, as by fn.cast(x, dtype=types.INT32)"
        )
    return found


def feed_ndarray(dali_tensor: Any, ptr: Any, cuda_stream: Any = None) -> Any:
    """Copies a tensor, or a batch whose samples have the same shape, to `ptr`: an address as a number, or a Paddle
    tensor of the same size and type. On the GPU, the copy is asynchronous on `cuda_stream`, by default on a stream of
    its own.

    Tensors of the iterators need no copy; this is for memory that you already own.

    >>> import numpy as np
    >>> from penstock.tensors import TensorCPU
    >>> mine = paddle.zeros([3])
    >>> _ = feed_ndarray(TensorCPU(np.float32([1, 2, 3])), mine)
    >>> mine.tolist()
    [1.0, 2.0, 3.0]
    """
    address = ptr
    if isinstance(ptr, (paddle.Tensor, _core.DenseTensor)):
        eager = isinstance(ptr, paddle.Tensor)
        shape, dtype = (list(ptr.shape), ptr.dtype) if eager else (ptr.shape(), ptr._dtype())
        have = to_paddle_type(dali_tensor)
        if str(have) != str(dtype):
            raise TypeError(f"the types differ: {have} can't be copied into a tensor of type {dtype}")
        if _shape(dali_tensor) != shape:
            raise ValueError(f"the shapes differ: {_shape(dali_tensor)} can't be copied into a tensor of shape {shape}")
        address = ptr.data_ptr() if eager else ptr._ptr()
    elif isinstance(ptr, ctypes.c_void_p):
        address = ptr.value
    elif isinstance(ptr, bool) or not isinstance(ptr, (int, np.integer)):
        raise TypeError(f"ptr takes an address or a Paddle tensor; got {type(ptr).__name__}")
    if hasattr(dali_tensor, "device_id"):
        dali_tensor.copy_to_external(address, cuda_stream, non_blocking=cuda_stream is not None)
    else:
        dali_tensor.copy_to_external(address)
    return ptr


def _shape(output: Any) -> list[int]:
    shape = output.shape()
    if not isinstance(output, (TensorListCPU, TensorListGPU)):
        return list(shape)
    if not output.is_dense_tensor():
        raise not_dense(shape, "dali_tensor")
    return [len(output), *(shape[0] if shape else [])]


def recursive_length(tensor: Any, lod_level: int) -> list[list[int]]:
    """How many parts each part of a batch has, level by level; the first level is the batch itself.

    >>> import numpy as np
    >>> from penstock.tensors import TensorListCPU
    >>> recursive_length(TensorListCPU([np.zeros((2, 3)), np.zeros((1, 3))]), 2)
    [[2], [2, 1]]
    """
    return [[len(tensor)], *_lengths(tensor.shape(), lod_level - 1)][:lod_level]


def _lengths(shapes: Sequence[Sequence[int]], levels: int) -> list[list[int]]:
    """Lengths of `levels` levels: the samples' first extents, then the second extents for each part, and so on."""
    table = np.array([tuple(s)[:levels] for s in shapes], "i8").reshape(len(shapes), levels)
    times = np.cumprod(np.c_[np.ones((len(table), 1), "i8"), table], axis=1)
    return [np.repeat(table[:, k], times[:, k]).tolist() for k in range(levels)]


def lod_tensor_clip(lod_tensor: Any, size: int) -> Any:
    """The first `size` sequences of a tensor with lengths of sequences, as a copy."""
    array, clipped, kept = np.array(lod_tensor), [], int(size)
    for offsets in lod_tensor.lod():
        lengths = np.diff(offsets)[:kept]
        clipped.append(lengths.tolist())
        kept = int(lengths.sum())
    out = _core.DenseTensor()
    out.set(array[:kept], paddle.CPUPlace())
    out.set_recursive_sequence_lengths(clipped)
    return out


def _tensor(output: Any, name: str, keep: int) -> Any:
    """The first `keep` samples of a batch as one tensor that shares its memory."""
    if isinstance(output, TensorListCPU):
        return _of_array(dense(output, name)[:keep])
    if not output.is_dense_tensor():
        raise not_dense(output.shape(), name)
    tensor = _on_gpu(output)
    return tensor if keep >= len(output) else tensor._slice(0, keep)


def _of_array(array: np.ndarray) -> Any:
    try:
        capsule = array.__dlpack__()
    except BufferError:  # read-only memory, not supported by DLPack 0
        capsule = array.copy().__dlpack__()
    return _core.from_dlpack(capsule)


def _on_gpu(output: Any) -> Any:
    """A batch on the GPU as one tensor, for use in Paddle's current stream."""
    return _core.from_dlpack(output.__dlpack__(stream=_current_stream(output.device_id()) or 1))


def _current_stream(device_id: int) -> int:
    if not paddle.is_compiled_with_cuda():
        raise RuntimeError(
            "the pipeline's output is on a GPU, and this Paddle was built without CUDA: install paddlepaddle-gpu, or "
            "end the pipeline with .cpu()"
        )
    return int(paddle.device.cuda.current_stream(device_id).cuda_stream)


def _sequences(output: Any, name: str, keep: int, levels: int) -> Any:
    """The first `keep` samples, concatenated, with the lengths of their sequences."""
    shapes = output.shape()[:keep]
    if levels > output.ndim():
        raise ValueError(f"output '{name}': samples of {output.ndim()} dimensions have no {levels} levels of sequences")
    rest = {s[levels:] for s in shapes}
    if len(rest) > 1:
        raise ValueError(
            f"output '{name}': with {levels} levels of sequences samples may differ in their first {levels} extents "
            f"only; got {', '.join(map(str, shapes[:4]))}"
        )
    shape = (int(sum(np.prod(s[:levels], dtype="i8") for s in shapes)), *(rest.pop() if rest else ()))
    if isinstance(output, TensorListCPU):
        flat = [output.at(i).reshape(-1) for i in range(keep)]
        tensor = _of_array(np.concatenate(flat).reshape(shape))
    else:
        stream, tensor = _current_stream(output.device_id()), _core.DenseTensor()
        tensor._set_dims(shape)
        address = tensor._mutable_data(paddle.CUDAPlace(output.device_id()), to_paddle_type(output))
        kept = TensorListGPU(output._batch.take(np.arange(keep)))
        kept.copy_to_external(address, stream or 1, non_blocking=True)
    tensor.set_recursive_sequence_lengths(_lengths(shapes, levels))
    return tensor


@with_parameters
class DALIGenericIterator(DaliIterator[list[dict[str, Any]]]):
    """Iterates over pipelines and returns a list with one dictionary {name: tensor} for each pipeline.

    The tensors are Paddle's `DenseTensor` (formerly LoDTensor), as in DALI: an executor of a static graph accepts them,
    and `paddle.to_tensor` converts them to the `paddle.Tensor` of dynamic graphs. Neither copies: both share the memory
    of the batch, which is kept as long as they exist. The first axis is the batch.

    Parameters
    ----------
    {pipelines}
    output_map
        A name for each output of the pipelines. A pair (name, levels) is for samples of different lengths: the tensor
        then has all samples concatenated and this number of levels of lengths (`lod`); with one level, for example,
        samples of shapes (2, 3) and (1, 3) become a tensor of shape (3, 3) with the lengths [[2, 1]].
    {size reader_name auto_reset fill_last_batch dynamic_shape last_batch_padded last_batch_policy prepare_first_batch}

    `reset()` works in the middle of an epoch: the rest is dropped, and the readers begin their next epoch.

    >>> import numpy as np
    >>> from penstock import fn, pipeline_def
    >>> @pipeline_def(batch_size=2)
    ... def pipe():
    ...     return fn.external_source(source=[np.float32([[0], [1]]), np.float32([[2], [3]])])
    >>> for batch in DALIGenericIterator(pipe(), ["x"]):
    ...     print(paddle.to_tensor(batch[0]["x"]).tolist())
    [[0.0], [1.0]]
    [[2.0], [3.0]]
    """

    @names_checked
    def __init__(
        self,
        pipelines: Pipeline | Sequence[Pipeline],
        output_map: Sequence[str | tuple[str, int]],
        size: int = -1,
        reader_name: str | None = None,
        auto_reset: str | bool | None = False,
        fill_last_batch: bool | None = None,
        dynamic_shape: bool | None = False,
        last_batch_padded: bool = False,
        last_batch_policy: LastBatchPolicy | str = LastBatchPolicy.FILL,
        prepare_first_batch: bool = True,
    ):
        names, self._levels = _with_levels(output_map)
        super().__init__(
            pipelines,
            names,
            size,
            reader_name,
            auto_reset,
            fill_last_batch,
            dynamic_shape,
            last_batch_padded,
            last_batch_policy,
            prepare_first_batch,
        )

    def _convert(self, batches: list[Batch]) -> list[dict[str, Any]]:
        return [
            {n: self._one(o, n, b.keep, levels) for n, o, levels in zip(self._names, b.outputs, self._levels)}
            for b in batches
        ]

    @staticmethod
    def _one(output: Any, name: str, keep: int, levels: int) -> Any:
        if output.dtype not in _PADDLE_TYPES:
            try:
                to_paddle_type(output)
            except TypeError as e:
                raise TypeError(f"output '{name}': {e}") from None
        return _sequences(output, name, keep, levels) if levels else _tensor(output, name, keep)


def _with_levels(output_map: Any) -> tuple[Any, list[int]]:
    """Splits `output_map` into names, for the base class to check, and levels."""
    if isinstance(output_map, str) or not isinstance(output_map, Sequence):
        return output_map, []
    names, levels = [], []
    for item in output_map:
        name, level = item if isinstance(item, (tuple, list)) and len(item) == 2 else (item, 0)
        if not isinstance(name, str) or isinstance(level, bool) or not isinstance(level, int) or level < 0:
            raise ValueError(
                f"output_map takes names, or pairs (name, levels of sequences) such as ('words', 1); got {item!r}"
            )
        names.append(name)
        levels.append(level)
    return names, levels


class DALIClassificationIterator(Classification, DALIGenericIterator):
    """`DALIGenericIterator` for pipelines with two outputs, which are named "data" and "label"."""


if not TYPE_CHECKING:

    def __getattr__(name):
        raise no_attribute(__name__, name)
