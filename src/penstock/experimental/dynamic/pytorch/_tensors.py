# SPDX-License-Identifier: Apache-2.0
"""Tensors of PyTorch that share memory with ours."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch


def of_array(array: np.ndarray, copy: bool) -> torch.Tensor:
    """PyTorch has no tensors that can't be written to, so memory that can't is copied."""
    return torch.from_numpy(array.copy() if copy or not array.flags.writeable else array)


def of_device(tensor: Any, copy: bool) -> torch.Tensor:
    """Of what speaks DLPack, on a GPU."""
    made = torch.from_dlpack(tensor)
    return made.clone() if copy else made


def on_stream(stream: Any) -> Any:
    """Makes a stream the current one."""
    return torch.cuda.stream(stream)
