# SPDX-License-Identifier: Apache-2.0
"""PyTorch tensors that share memory with penstock's."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch


def of_array(array: np.ndarray, copy: bool) -> torch.Tensor:
    """Converts an array. Read-only memory is copied, as PyTorch has no read-only tensors."""
    return torch.from_numpy(array.copy() if copy or not array.flags.writeable else array)


def of_device(tensor: Any, copy: bool) -> torch.Tensor:
    """Converts an object with DLPack on a GPU."""
    made = torch.from_dlpack(tensor)
    return made.clone() if copy else made


def on_stream(stream: Any) -> Any:
    """Context manager that makes a stream PyTorch's current one."""
    return torch.cuda.stream(stream)
