# SPDX-License-Identifier: Apache-2.0
"""Wraps foreign memory as `jax.Array`, like `jax.dlpack.from_dlpack` without its unnecessary work.

The public function creates each array twice, to convert 64-bit types, and on the CPU raises an internal exception to
find that there are no streams; this is most of its cost. Here, jaxlib is called directly if its internals are as
expected; otherwise the public function is used."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import jax
import jax.dlpack
import numpy as np

from ...tensors import TensorGPU, TensorListGPU

_CPU, _CUDA = 1, 2  # DLPack's device types
_PLATFORMS = {_CPU: "cpu", _CUDA: "cuda"}
_usable: bool | None = None  # whether jaxlib's internals are as expected; None: not tried yet


def from_dlpack(tensor: Any) -> jax.Array:
    """Wraps an object with DLPack as an array on its device, which shares the memory. JAX's stream waits for the
    data."""
    if isinstance(tensor, np.ndarray):
        dtype = tensor.dtype
    elif isinstance(tensor, (TensorListGPU, TensorGPU)):
        dtype = tensor._batch.spec.dtype
    else:
        return jax.dlpack.from_dlpack(tensor)
    # 64-bit types are converted.
    if dtype.itemsize < 8 and (_usable or _try()):
        return _direct(tensor)
    return jax.dlpack.from_dlpack(tensor)


def arrays(batches: Sequence[Any]) -> list[jax.Array | None]:
    """Wraps the outputs of a batch, given as the executor's batches, as arrays that share their GPU memory; None for
    those that need `from_dlpack` or are not on the GPU."""
    if not (_usable or _try()):
        return [None] * len(batches)
    device: Any = None
    stream = 0

    def stream_of(number: int) -> int:
        nonlocal device, stream
        device = _get_backend(_PLATFORMS[_CUDA]).device_from_local_hardware_id(number)
        stream = device.get_stream_for_external_ready_events()
        return stream

    made: list[jax.Array | None] = []
    small: list[Any] = [b if b.spec.dtype.itemsize < 8 else None for b in batches]
    for batch, capsule in zip(small, TensorListGPU._capsules(small, stream_of)):
        if capsule is None:
            made.append(None)
        else:
            made.append(_made(capsule, device, None if batch.ready.passed else stream, None, _CUDA))
    return made


def _direct(tensor: Any) -> jax.Array:
    kind, number = tensor.__dlpack_device__()
    device = _get_backend(_PLATFORMS[kind]).device_from_local_hardware_id(number)
    stream = behind = None if kind == _CPU else device.get_stream_for_external_ready_events()
    capsule = tensor.__dlpack__(stream=stream)
    if stream is not None and tensor._batch.ready is not None and tensor._batch.ready.passed:
        behind = None  # already complete
    array: jax.Array = _made(capsule, device, behind, None, int(kind))
    return array


def _try() -> bool:
    """Checks jaxlib with a small array on the CPU, once."""
    global _usable
    if _usable is None:
        _usable = False
        if _made is not None:
            try:
                memory = np.arange(1024, dtype="i4")
                sample = memory[-(memory.ctypes.data // 4) % 16 :][:512].reshape(2, 256)  # 64-byte aligned
                one, other = _direct(sample), jax.dlpack.from_dlpack(sample)
                _usable = (
                    type(one) is type(other)
                    and one.aval == other.aval
                    and one.sharding == other.sharding
                    and one.committed == other.committed
                    and one.unsafe_buffer_pointer() == other.unsafe_buffer_pointer()
                    and bool((np.asarray(one) == sample).all())
                )
            except Exception:
                _usable = False
    return _usable


try:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from jax.extend.backend import get_backend as _get_backend
        from jaxlib._jax import dlpack_managed_tensor_to_buffer as _made
except ImportError:  # older or newer jaxlib
    _get_backend = _made = None
