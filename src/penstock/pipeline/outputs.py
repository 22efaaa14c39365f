# SPDX-License-Identifier: Apache-2.0
"""Wraps batches as pipelines return them, and checks them against `output_dtype`, `output_ndim` and `output_layout`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from ..core.batch import Batch
from ..core.dtypes import DALIDataType
from ..core.errors import ArgumentTypeError, ArgumentValueError, PipelineError
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


def demanded(dtype: Any, ndim: Any, layout: Any) -> dict[str, Any]:
    """The requirements as given to the pipeline, each one value for all outputs or a list. Raises ArgumentTypeError or
    ArgumentValueError for what no output can be."""
    given = {"dtype": dtype, "ndim": ndim, "layout": layout}
    for name, value in given.items():
        for v in value if isinstance(value, (list, tuple)) else [value]:
            if v is not None:
                _CHECKS[name](v)
    return given


def _wrong(name: str, takes: str, value: Any) -> str:
    return f"output_{name} takes {takes}, or a list with one for each output; got {value!r}"


def _check_dtype(value: Any) -> None:
    if not isinstance(value, int) or isinstance(value, bool):  # in serialised pipelines it is the number of the type
        raise ArgumentTypeError(_wrong("dtype", "a DALIDataType, such as types.FLOAT", value))
    if value == DALIDataType.NO_TYPE:
        raise ArgumentValueError(_wrong("dtype", "the type of an output, such as types.FLOAT", value))


def _check_ndim(value: Any) -> None:
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool):
        raise ArgumentTypeError(_wrong("ndim", "a number of dimensions", value))
    if value < 0:
        raise ArgumentValueError(_wrong("ndim", "a number of dimensions from 0", value))


def _check_layout(value: Any) -> None:
    if not isinstance(value, str):
        raise ArgumentTypeError(_wrong("layout", "a string", value))


_CHECKS = {"dtype": _check_dtype, "ndim": _check_ndim, "layout": _check_layout}


def check_numbers(demanded: Mapping[str, Any], n: int) -> None:
    """Raises ArgumentValueError for lists of requirements that are not as long as there are outputs."""
    for name, value in demanded.items():
        if isinstance(value, (list, tuple)) and len(value) != n:
            raise ArgumentValueError(
                f"output_{name} has {len(value)} values, but the pipeline has {n} outputs: {list(value)}"
            )


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
