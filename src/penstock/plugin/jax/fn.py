# SPDX-License-Identifier: Apache-2.0
"""JAX functions as operators."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Sequence
from typing import Any, overload

import jax
import numpy as np

from ...core.constructors import keywords_checked
from ...data_node import DataNode
from ...registry.batch_function import BatchFunction, call, checked
from . import placement

__all__ = ["jax_function"]

_Made = Callable[..., DataNode]


class _JaxFunction(BatchFunction, abstract=True):
    called = "plugin.jax.fn.jax_function"


@overload
def jax_function(
    function: Callable[..., Any],
    num_outputs: int = ...,
    output_layouts: str | Sequence[str] | None = ...,
    sharding: jax.sharding.Sharding | None = ...,
    device: str | None = ...,
    preserve: bool = ...,
) -> _Made: ...


@overload
def jax_function(
    function: None = ...,
    num_outputs: int = ...,
    output_layouts: str | Sequence[str] | None = ...,
    sharding: jax.sharding.Sharding | None = ...,
    device: str | None = ...,
    preserve: bool = ...,
) -> Callable[[Callable[..., Any]], _Made]: ...


@keywords_checked
def jax_function(
    function: Callable[..., Any] | None = None,
    num_outputs: int = 1,
    output_layouts: str | Sequence[str] | None = None,
    sharding: jax.sharding.Sharding | None = None,
    device: str | None = None,
    preserve: bool = True,
) -> Any:
    """Turns a function of JAX arrays, which may be compiled or mapped, into an operator. Also a decorator.

    The function gets one `jax.Array` (batch, ...) per input and returns one, or a tuple of `num_outputs`. Nothing is
    copied. All samples must have the same shape. Calls don't overlap; threads of the pipeline call the function for
    batches in any order, so it should have no state.

    If the inputs are on the GPU, so are the arrays and the results. JAX's kernels wait there for those of the pipeline,
    and vice versa; the host does not wait.

    Parameters
    ----------
    function
        The function; DataNodes take the place of arrays when it is called in the definition of a pipeline.
    num_outputs
        Number of arrays that it returns; 0 for a function without results.
    output_layouts
        Layouts of the outputs' samples: one for all, or one for each. By default output i has that of input i, if it
        has the same number of dimensions.
    sharding
        If given, the arrays are the shards of global arrays with this sharding, of which this process holds one.
    device
        "cpu" or "gpu", the device of inputs and outputs. By default that of the inputs.
    preserve
        Whether to call it even if its outputs are not used.

    >>> import jax
    >>> import numpy as np
    >>> from penstock import fn, pipeline_def
    >>> @jax_function
    ... @jax.jit
    ... def flip(images):
    ...     return images[:, :, ::-1]
    >>> @pipeline_def(batch_size=2)
    ... def pipe():
    ...     return flip(fn.external_source(source=lambda i: np.arange(12).reshape(2, 2, 3), layout="HW"))
    >>> pipe().run()[0].at(0).tolist()
    [[2, 1, 0], [5, 4, 3]]
    """
    if function is None:
        return functools.partial(
            jax_function,
            num_outputs=num_outputs,
            output_layouts=output_layouts,
            sharding=sharding,
            device=device,
            preserve=preserve,
        )
    checked(function, "jax_function")
    if device not in (None, "cpu", "gpu"):
        raise ValueError(f"jax_function: device takes 'cpu' or 'gpu'; got {device!r}")
    if sharding is not None:
        placement.check_sharding(sharding)
        n = len(sharding.addressable_devices)
        if n != 1:
            raise ValueError(f"jax_function: the sharding has to have one device in each process; it has {n} in this")
    takes_arrays = _of_arrays(function, num_outputs, sharding)

    @functools.wraps(function)
    def operator(*inputs: Any) -> DataNode | list[DataNode] | None:
        return call(
            _JaxFunction,
            inputs,
            function=takes_arrays,
            num_outputs=num_outputs,
            output_layouts=output_layouts,
            device=device,
            preserve=preserve,
        )

    return operator


def _of_arrays(function: Callable[..., Any], num_outputs: int, sharding: Any) -> Callable[..., tuple[Any, ...]]:
    """Wraps the function for arrays in host memory or tensors on a GPU."""

    def run(*arrays: Any, device_id: int | None = None) -> tuple[Any, ...]:
        gpu = None if device_id is None else placement.gpu(device_id)
        if sharding is None:
            given = [placement.to_jax(a) for a in arrays]
        else:
            given = [placement.spread([a], sharding, f"input {i}") for i, a in enumerate(arrays)]
        with jax.default_device(gpu) if gpu is not None else contextlib.nullcontext():
            result = function(*given)
        if num_outputs == 0:
            if result is not None and result != ():
                raise ValueError(f"a function with num_outputs=0 returns nothing; got {type(result).__name__}")
            return ()
        results = (result,) if num_outputs == 1 and not isinstance(result, (tuple, list)) else result
        if not isinstance(results, (tuple, list)):
            raise TypeError(f"returns a tuple of {num_outputs} arrays; got {type(result).__name__}")
        mine = (_addressable(r) for r in results)
        return tuple(np.asarray(r) if gpu is None else jax.device_put(r, gpu) for r in mine)

    return run


def _addressable(result: Any) -> Any:
    if isinstance(result, jax.Array) and (not result.is_fully_addressable or len(result.devices()) > 1):
        return result.addressable_data(0)
    return result
