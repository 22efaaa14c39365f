# SPDX-License-Identifier: Apache-2.0
"""Batches as arrays that frameworks may write to."""

from __future__ import annotations

import numpy as np

from ..tensors import TensorListCPU
from .errors import IteratorError


def dense(output: TensorListCPU, name: str) -> np.ndarray:
    """The batch as one array. Not copied if the samples are contiguous and not the user's own memory."""
    try:
        return writable(output).as_array()
    except ValueError:
        raise not_dense(output.shape(), name) from None


def writable(output: TensorListCPU) -> TensorListCPU:
    """The batch; a copy if it is read-only, as frameworks' tensors do not support this."""
    return TensorListCPU.of(output._batch.packed_copy()) if output._batch.is_read_only else output


def not_dense(shapes: list[tuple[int, ...]], name: str) -> IteratorError:
    """The error for a batch that can't be converted to one tensor."""
    return IteratorError(
        f"output '{name}': a batch whose samples differ in shape can't become one tensor. Shapes: {_few(shapes)}. "
        "Make them alike in the pipeline (resize, crop, pad), or, with PyTorch, use DALIRaggedIterator"
    )


def _few(shapes: list[tuple[int, ...]]) -> str:
    return ", ".join(map(str, shapes[:4])) + (f" and {len(shapes) - 4} more" if len(shapes) > 4 else "")
