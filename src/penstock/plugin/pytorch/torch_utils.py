# SPDX-License-Identifier: Apache-2.0
"""Batches and samples as PyTorch tensors."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch.utils.dlpack import from_dlpack

from ...tensors import TensorGPU, TensorListCPU, TensorListGPU
from ...types import DALIDataType, to_numpy_type
from ..dense_batches import dense, not_dense
from ..errors import IteratorError, IteratorTypeError
from ..one_pipeline import given_out


def _torch_types() -> dict[DALIDataType, torch.dtype]:
    names: tuple[str, ...] = ("UINT8", "INT8", "INT16", "INT32", "INT64", "FLOAT16", "FLOAT", "FLOAT64", "BOOL")
    # Types of newer PyTorch releases.
    names += tuple(n for n in ("UINT16", "UINT32", "UINT64") if hasattr(torch, n.lower()))
    types = [DALIDataType[n] for n in names]
    return {t: torch.from_numpy(np.empty(0, to_numpy_type(t))).dtype for t in types}


to_torch_type: dict[DALIDataType, torch.dtype] = _torch_types()
"""The PyTorch type for each `DALIDataType`."""


def dense_tensor(output: Any, name: str, keep: int | None = None) -> torch.Tensor:
    """The first `keep` samples of a batch as one tensor that shares its memory."""
    if isinstance(output, TensorListCPU):
        array = dense(output, name)  # sliced as an array, which is ten times as fast as for a tensor
        return torch.from_numpy(array if keep is None or keep >= len(array) else array[:keep])
    tensor = on_gpu(output, name)
    return tensor if keep is None or keep >= len(tensor) else tensor[:keep]


def tensors(names: Sequence[str], batches: Sequence[Any], keep: int | None) -> dict[str, torch.Tensor]:
    """`dense_tensor` of all outputs, given as the executor's batches."""
    made = {}
    for name, batch, capsule in zip(names, batches, TensorListGPU._capsules(batches, _stream_of)):
        if capsule is None:
            made[name] = dense_tensor(given_out(batch), name, keep)
        else:
            tensor = _of_capsule(capsule)
            made[name] = tensor if keep is None else tensor[:keep]
    return made


def on_gpu(output: Any, name: str) -> torch.Tensor:
    """A sample or batch on the GPU as one tensor, which shares its memory. PyTorch's current stream waits for it."""
    if isinstance(output, TensorListGPU) and not output.is_dense_tensor():
        raise not_dense(output.shape(), name)
    # Same as torch.from_dlpack, with fewer checks.
    tensor: torch.Tensor = _of_capsule(output.__dlpack__(stream=_stream_of(output.device_id())))
    return tensor


def _stream_of(device_id: int) -> int:
    """PyTorch's current stream, in DLPack's numbering."""
    return _current_stream(device_id) or 1


def _current_stream(device_id: int) -> int:
    """The handle of PyTorch's current stream."""
    if _raw_stream is not None and torch.cuda.is_initialized():
        return int(_raw_stream(device_id))
    return int(torch.cuda.current_stream(device_id).cuda_stream)


_of_capsule = getattr(torch._C, "_from_dlpack", from_dlpack)
_raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)  # without creating a Stream object


def _as_torch(source: Any) -> torch.Tensor:
    if isinstance(source, (TensorGPU, TensorListGPU)):
        return on_gpu(source, "dali_tensor")
    array = dense(source, "dali_tensor") if isinstance(source, TensorListCPU) else np.asarray(source)
    return torch.from_numpy(array if array.flags.writeable else array.copy())


def feed_ndarray(dali_tensor: Any, arr: torch.Tensor, cuda_stream: Any = None) -> torch.Tensor:
    """Copies a tensor, or a batch whose samples have the same shape, into the PyTorch tensor `arr` of the same shape
    and type; on the GPU in `cuda_stream`, by default PyTorch's current one.

    Tensors of the iterators need no copy; this is for memory that you already own.
    """
    with _stream(cuda_stream, arr.device) if arr.is_cuda else contextlib.nullcontext():
        tensor = _as_torch(dali_tensor)
        if arr.shape != tensor.shape:
            raise IteratorError(
                f"the shapes differ: {list(tensor.shape)} can't be copied into a tensor of shape {list(arr.shape)}"
            )
        if arr.dtype != tensor.dtype:
            types = f"{tensor.dtype} can't be copied into a tensor of type {arr.dtype}"
            raise IteratorTypeError(f"the types differ: {types}")
        return arr.copy_(tensor, non_blocking=arr.is_cuda and tensor.is_cuda)


def _stream(stream: Any, device: torch.device) -> Any:
    """PyTorch's context for a stream, given as an object or a handle."""
    if stream is None:
        return contextlib.nullcontext()
    if not isinstance(stream, torch.cuda.Stream):
        handle = getattr(stream, "ptr", getattr(stream, "value", stream))  # CuPy's, ctypes'
        stream = torch.cuda.ExternalStream(handle, device)
    return torch.cuda.stream(stream)


def to_torch_tensor(dali_tensor: Any, copy: bool) -> torch.Tensor:
    """Returns a sample, or a batch whose samples have the same shape, as a PyTorch tensor on its device; shares its
    memory unless `copy`."""
    tensor = _as_torch(dali_tensor)
    return tensor.clone() if copy else tensor
