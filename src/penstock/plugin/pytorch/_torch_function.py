# SPDX-License-Identifier: Apache-2.0
"""Operator that calls a user's function with PyTorch tensors."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ... import fn as _fn
from ...core.constructors import check_names

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import Unpack

    from ...data_node import DataNode
    from ..function_arguments import CallArguments, FunctionArguments


def _tensor(array: Any) -> Any:
    return [_tensor(a) for a in array] if isinstance(array, list) else torch.from_numpy(array)


def _array(result: Any) -> Any:
    if isinstance(result, (list, tuple)):
        return type(result)(_array(r) for r in result)
    if isinstance(result, torch.Tensor):
        return np.asarray(result.detach().cpu().contiguous().numpy())
    return result


class _OfTorch:
    """GPU tensors. The function runs with the batch's stream as PyTorch's current stream, so no synchronisation is
    needed."""

    waits = False

    def on_stream(self, handle: int) -> Any:
        return torch.cuda.stream(torch.cuda.ExternalStream(handle))

    def give(self, lent: Any) -> torch.Tensor:
        return torch.from_dlpack(lent.__dlpack__())

    def take(self, result: Any) -> torch.Tensor:
        if not isinstance(result, torch.Tensor):
            raise TypeError(f"it has to return tensors of PyTorch; got {type(result).__name__}")
        if not result.is_cuda:
            raise TypeError("it has to return tensors on the GPU, where its inputs are; got one on the CPU")
        return result.detach().contiguous()


class _OnTensors:
    """Adapts a function of tensors to NumPy arrays. On the GPU, it is called with tensors."""

    gpu_arrays = _OfTorch

    def __init__(self, function: Callable[..., Any]):
        self.function = function
        functools.update_wrapper(self, function, updated=())

    def __call__(self, *arrays: Any) -> Any:
        first = next((a[0] if isinstance(a, list) else a for a in arrays if not isinstance(a, list) or a), None)
        if isinstance(first, torch.Tensor):  # on the GPU
            return self.function(*arrays)
        result = self.function(*map(_tensor, arrays))
        for part in result if isinstance(result, tuple) else (result,):
            for r in part if isinstance(part, list) else [part]:
                if r is not None and not isinstance(r, torch.Tensor):
                    raise TypeError(f"it has to return tensors of PyTorch; got {type(r).__name__}")
        return _array(result)


def torch_python_function(
    *inputs: DataNode | Sequence[DataNode] | NDArray[Any] | float,
    function: Callable[..., Any],
    **kwargs: Unpack[FunctionArguments],
) -> DataNode:
    """Calls a function with the samples as PyTorch tensors, or with lists of them if `batch_processing`. The function
    returns tensors. The arguments are those of `fn.python_function`.

    >>> import numpy as np
    >>> from penstock import fn, pipeline_def
    >>> @pipeline_def(batch_size=2)
    ... def pipe():
    ...     x = fn.external_source(source=lambda i: np.float32([[1, 2], [3, 4]]))
    ...     return torch_python_function(x, function=lambda t: t.cumsum(0))
    >>> pipe().run()[0].as_array().tolist()
    [[1.0, 3.0], [3.0, 7.0]]
    """
    if not callable(function):
        raise TypeError(f"torch_python_function: function takes a callable; got {type(function).__name__}")
    return _fn.python_function(*inputs, function=_OnTensors(function), **kwargs)


class TorchPythonFunction:
    """`torch_python_function` as a class: takes the arguments; its objects are called with the inputs."""

    def __init__(
        self,
        function: Callable[..., Any],
        num_outputs: int = 1,
        device: str = "cpu",
        batch_processing: bool = False,
        **kwargs: Unpack[CallArguments],
    ):
        check_names("TorchPythonFunction", kwargs, inspect.signature(_fn.python_function).parameters)
        own = {"function": function, "num_outputs": num_outputs, "device": device, "batch_processing": batch_processing}
        self._kwargs: dict[str, Any] = {**own, **kwargs}

    def __call__(
        self, *inputs: DataNode | Sequence[DataNode] | NDArray[Any] | float, **kwargs: Unpack[CallArguments]
    ) -> DataNode:
        return torch_python_function(*inputs, **{**self._kwargs, **kwargs})

    @property
    def device(self) -> str:
        return str(self._kwargs["device"])

    @property
    def preserve(self) -> bool:
        return bool(self._kwargs.get("preserve", False))
