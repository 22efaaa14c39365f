# SPDX-License-Identifier: Apache-2.0
"""Batches and samples as PyTorch tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ...tensors import TensorCPU, TensorListCPU
from ...types import DALIDataType, to_numpy_type
from ..base_iterator import dense


class _TorchTypes(dict):
    def __missing__(self, key: Any) -> torch.dtype:
        self[key] = value = torch.from_numpy(np.empty(0, to_numpy_type(DALIDataType(key)))).dtype
        return value


to_torch_type: dict[DALIDataType, torch.dtype] = _TorchTypes()
"""The type of PyTorch for each `DALIDataType`."""


def dense_tensor(output: Any, name: str, keep: int | None = None) -> torch.Tensor:
    """The first `keep` samples of a batch as one tensor that shares its memory."""
    if isinstance(output, TensorListCPU):
        return torch.from_numpy(dense(output, name))[:keep]
    return torch.from_dlpack(output.as_tensor())[:keep]


def feed_ndarray(dali_tensor: TensorCPU | TensorListCPU, arr: torch.Tensor, cuda_stream: Any = None) -> torch.Tensor:
    """Copies a tensor, or a batch whose samples have one shape, into the PyTorch tensor `arr` of the same shape and
    type.

    Tensors of the iterators need no copy; this is for memory that you own already.
    """
    source = dense(dali_tensor, "dali_tensor") if isinstance(dali_tensor, TensorListCPU) else np.asarray(dali_tensor)
    if tuple(arr.shape) != source.shape:
        raise ValueError(
            f"the shapes differ: {list(source.shape)} can't be copied into a tensor of shape {list(arr.shape)}"
        )
    tensor = torch.from_numpy(source)
    if arr.dtype != tensor.dtype:
        raise TypeError(f"the types differ: {tensor.dtype} can't be copied into a tensor of type {arr.dtype}")
    return arr.copy_(tensor)


def to_torch_tensor(dali_tensor: TensorCPU | TensorListCPU, copy: bool) -> torch.Tensor:
    """A sample, or a batch whose samples have one shape, as a PyTorch tensor; shares its memory unless `copy`."""
    source = dense(dali_tensor, "dali_tensor") if isinstance(dali_tensor, TensorListCPU) else np.asarray(dali_tensor)
    tensor = torch.from_numpy(source)
    return tensor.clone() if copy else tensor
