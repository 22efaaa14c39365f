# SPDX-License-Identifier: Apache-2.0
"""Converts batches of pipelines to `jax.Array`, on one device or several. Batches that are already on their device are
not copied."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec, Sharding

from ...tensors import TensorListCPU, TensorListGPU
from ..dense_batches import dense
from ..errors import IteratorError, IteratorTypeError
from .importing import from_dlpack


def tensor(output: Any, name: str) -> Any:
    """A batch as one tensor: a NumPy array in host memory, or an object with DLPack on a GPU. Raises ValueError if its
    samples differ in shape."""
    if isinstance(output, TensorListCPU):
        return dense(output, name)
    return output if output.is_dense_tensor() else dense(output.as_cpu(), name)


def to_jax(tensor: Any, device: Any = None) -> jax.Array:
    """The tensor on a device, by default its own. There it is not copied, as batches are 64-byte aligned.

    64-bit types become 32-bit ones unless `jax_enable_x64` is set, as everywhere in JAX.
    """
    if isinstance(tensor, np.ndarray) and (device is not None or not tensor.size):
        return jax.device_put(tensor, device)
    array = tensor if isinstance(tensor, jax.Array) else from_dlpack(tensor)
    return array if device is None or array.devices() == {device} else jax.device_put(array, device)


def gpu(number: int) -> jax.Device:
    """JAX's device for a pipeline's `device_id`."""
    try:
        devices = jax.local_devices(backend="gpu")
    except RuntimeError as e:
        raise RuntimeError(f"JAX finds no GPU here; is it installed with CUDA (pip install jax[cuda13])? {e}") from None
    for d in devices:
        if getattr(d, "local_hardware_id", d.id) == number:
            return d
    raise RuntimeError(f"JAX does not use GPU {number} of this machine; it has {devices}")


def check_sharding(sharding: Any) -> None:
    if not isinstance(sharding, Sharding):
        got = type(sharding).__name__
        raise IteratorTypeError(f"sharding takes a jax.sharding.Sharding, such as NamedSharding; got {got}")


def check_devices(devices: Any) -> None:
    local = set(jax.local_devices()).union(*(jax.local_devices(backend=b) for b in {_platform(d) for d in devices}))
    for d in devices:
        if d not in local:
            raise ValueError(f"devices takes a list of devices of this process, see jax.local_devices(); got {d!r}")
    if not devices or len(set(devices)) < len(devices):
        raise ValueError(f"devices takes a list of devices that differ from each other; got {list(devices)}")


def _platform(device: Any) -> str:
    if not isinstance(device, jax.Device):
        raise TypeError(f"devices takes a list of jax.Device, see jax.local_devices(); got {type(device).__name__}")
    return str(device.platform)


def _sample_shape(sharding: Any) -> tuple[int, ...]:
    """A shape with as few dimensions as possible that the sharding can split."""
    spec = getattr(sharding, "spec", None)
    rank = len(getattr(sharding, "shape", ())) if spec is None else len(spec)
    return (len(sharding.device_set),) * max(rank, 1)


def shards_of(sharding: Any) -> list[tuple[int, list[Any]]]:
    """The shards of the batch axis in this process, in order: (index of the shard, its devices).

    Devices that hold the same part of the batch (if the mesh has other axes) share one pipeline.
    """
    shape = _sample_shape(sharding)
    step = sharding.shard_shape(shape)[0]
    by_index: dict[int, list[Any]] = {}
    for device, slices in sharding.addressable_devices_indices_map(shape).items():
        by_index.setdefault((slices[0].start or 0) // step, []).append(device)
    return sorted(by_index.items())


def n_shards(sharding: Any) -> int:
    """Number of parts into which a sharding splits the batch axis, over all processes."""
    shape = _sample_shape(sharding)
    return int(shape[0] // sharding.shard_shape(shape)[0])


@functools.lru_cache(maxsize=256)
def _plan(sharding: Any, shape: tuple[int, ...]) -> tuple[Any, tuple[int, ...], list[tuple[int, Any, Any]]]:
    """For batches of `shape`: the sharding for their rank, the shape of the global array, and for each device of this
    process (index of the batch, device, part of each sample or None for all)."""
    own = getattr(sharding, "shape", shape)
    if getattr(sharding, "spec", None) is None and len(own) != len(shape):
        # A PositionalSharding has a fixed rank; missing axes are not split.
        sharding = sharding.reshape(*(*own, *(1,) * len(shape))[: len(shape)])
    shards = shards_of(sharding)
    full = (shape[0] * n_shards(sharding), *shape[1:])
    slices = sharding.addressable_devices_indices_map(full)
    parts = []
    for i, (_, devices) in enumerate(shards):
        for d in devices:
            window = slices[d][1:]
            whole = all(s.indices(n) == (0, n, 1) for s, n in zip(window, shape[1:]))
            parts.append((i, d, None if whole else (slice(None), *window)))
    return sharding, full, parts


def spread(tensors: Sequence[Any], sharding: Any, name: str) -> jax.Array:
    """One array whose shards are the pipelines' batches, one per shard of this process, in order."""
    shape = _shape_of_all(tensors, name)
    try:
        fitted, full, parts = _plan(sharding, shape)
    except (ValueError, AssertionError) as e:
        raise ValueError(f"output '{name}', batches of shape {shape}, can't be split by {sharding}: {e}") from None
    arrays = [to_jax(tensors[i] if window is None else _window(tensors[i], window), d) for i, d, window in parts]
    return jax.make_array_from_single_device_arrays(full, fitted, arrays)


def _window(tensor: Any, window: Any) -> Any:
    """Copies a part of every sample."""
    return np.ascontiguousarray(tensor[window]) if isinstance(tensor, np.ndarray) else to_jax(tensor)[window]


def stack(tensors: Sequence[Any], devices: Sequence[Any], name: str) -> jax.Array:
    """One array (pipeline, batch, ...) for mapped functions (`jax.pmap`), with each pipeline's batch on its device; if
    there are too few devices, all on the first."""
    shape = _shape_of_all(tensors, name)
    if len(devices) < len(tensors):
        return jax.numpy.stack([to_jax(t, devices[0]) for t in tensors])
    sharding = NamedSharding(Mesh(np.array(devices), ("devices",)), PartitionSpec("devices"))
    parts = [to_jax(t[None] if isinstance(t, np.ndarray) else to_jax(t)[None], d) for t, d in zip(tensors, devices)]
    return jax.make_array_from_single_device_arrays((len(tensors), *shape), sharding, parts)


def _shape_of_all(tensors: Sequence[Any], name: str) -> tuple[int, ...]:
    shapes = {_shape(t) for t in tensors}
    if len(shapes) > 1:
        raise IteratorError(
            f"output '{name}': all pipelines have to give batches of one shape to make one array of them; got "
            f"{', '.join(map(str, sorted(shapes)))}"
        )
    return shapes.pop()


def _shape(tensor: Any) -> tuple[int, ...]:
    if isinstance(tensor, np.ndarray):
        return tensor.shape
    return (len(tensor), *tensor.shape()[0]) if isinstance(tensor, TensorListGPU) else tuple(tensor.shape())
