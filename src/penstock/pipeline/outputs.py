# SPDX-License-Identifier: Apache-2.0
"""Wraps batches as pipelines return them, and checks them against `output_dtype`, `output_ndim` and `output_layout`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from ..core.batch import Batch
from ..core.errors import PipelineError
from ..tensors import TensorListCPU


@cache
def _gpu_tensors() -> Any:
    from ..tensors import TensorListGPU  # imported only by pipelines with a GPU

    return TensorListGPU


def wrap(batch: Batch, cuda_stream: Any = None) -> Any:
    """A batch as a `TensorListCPU` or `TensorListGPU`."""
    return TensorListCPU.of(batch) if type(batch) is Batch else _gpu_tensors().given_out(batch, cuda_stream)


def per_output(value: Any, n: int) -> list[Any]:
    """The requirement for each of n outputs, from one value for all or a list."""
    return list(value) if isinstance(value, (list, tuple)) else [value] * n


def check(outputs: tuple[Any, ...], demanded: Mapping[str, Any]) -> None:
    """Raises PipelineError for outputs that do not have the required "dtype", "ndim" or "layout"; None requires
    nothing."""
    for key, value in demanded.items():
        if value is None:
            continue
        for i, (out, want) in enumerate(zip(outputs, per_output(value, len(outputs)))):
            got = getattr(out, key)
            got = got() if callable(got) else got
            if want is not None and got != want:
                raise PipelineError(f"output {i} has {key} {got}, but output_{key} asks for {want}")
