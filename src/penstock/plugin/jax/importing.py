# SPDX-License-Identifier: Apache-2.0
"""Memory of others as `jax.Array`: what `jax.dlpack.from_dlpack` does, without what it does in vain.

It has the new array made once more, to change 64-bit types, and on the CPU it raises an exception inside to find out
that there are no streams: most of what an array costs. Here jaxlib is asked itself where it is as it is known to be;
whatever is not goes through the public function."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import jax
import jax.dlpack
import numpy as np

from ...tensors import TensorGPU, TensorListGPU

_CPU, _CUDA = 1, 2  # DLPack's numbers of kinds of devices
_PLATFORMS = {_CPU: "cpu", _CUDA: "cuda"}
_usable: bool | None = None  # whether jaxlib is as it is known to be; None: not tried yet


def from_dlpack(tensor: Any) -> jax.Array:
    """What speaks DLPack as an array on its device, which shares the memory; JAX's stream waits until it is there."""
    if isinstance(tensor, np.ndarray):
        dtype = tensor.dtype
    elif isinstance(tensor, (TensorListGPU, TensorGPU)):
        dtype = tensor._batch.spec.dtype
    else:
        return jax.dlpack.from_dlpack(tensor)
    # 64-bit types become others.
    if dtype.itemsize < 8 and (_usable or _try()):
        return _direct(tensor)
    return jax.dlpack.from_dlpack(tensor)


def arrays(batches: Sequence[Any]) -> list[jax.Array | None]:
    """Of each output of a batch, given as the pipeline has them, an array that shares its memory on the GPU; None where
    it takes `from_dlpack`, or is not on the GPU."""
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
        behind = None  # it is there already
    array: jax.Array = _made(capsule, device, behind, None, int(kind))
    return array


def _try() -> bool:
    """Tries jaxlib with a small array on the CPU, the first time."""
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
except ImportError:  # an older or a newer one
    _get_backend = _made = None
