# SPDX-License-Identifier: Apache-2.0
"""From batches in host memory to `jax.Array`: on one device, or spread over several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.dlpack
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec


def to_jax(array: np.ndarray, device: Any = None) -> jax.Array:
    """The array on a device, by default JAX's default CPU device. Not copied on CPU devices: batches are 64-byte
    aligned.

    64-bit types become 32-bit ones unless `jax_enable_x64` is set, as everywhere in JAX.
    """
    if device is None and array.size:
        return jax.dlpack.from_dlpack(array)
    return jax.device_put(array, device)


def shards_of(sharding: Any) -> list[tuple[int, list[Any]]]:
    """The shards of the batch axis that this process holds: (index of the shard, its devices), and in their order.

    Devices that hold the same part of the batch (because other axes of the mesh split other things) share one pipeline.
    """
    n = len(sharding.device_set)
    step = n // n_shards(sharding)
    by_index: dict[int, list[Any]] = {}
    for device, slices in sharding.addressable_devices_indices_map((n,)).items():
        by_index.setdefault((slices[0].start or 0) // step, []).append(device)
    return sorted(by_index.items())


def n_shards(sharding: Any) -> int:
    """Into how many parts a sharding splits the batch axis, over all processes."""
    n = len(sharding.device_set)
    return n // sharding.shard_shape((n,))[0]


def spread(arrays: Sequence[np.ndarray], sharding: Any, name: str) -> jax.Array:
    """One array whose shards are the batches of the pipelines, one for each shard of this process, in order."""
    check_alike(arrays, name)
    shards = shards_of(sharding)
    shape = (arrays[0].shape[0] * n_shards(sharding), *arrays[0].shape[1:])
    parts = [jax.device_put(a, d) for a, (_, devices) in zip(arrays, shards) for d in devices]
    return jax.make_array_from_single_device_arrays(shape, sharding, parts)


def stack(arrays: Sequence[np.ndarray], devices: Sequence[Any], name: str) -> jax.Array:
    """One array (pipeline, batch, ...), a pipeline's batch on its device, as mapped functions (`jax.pmap`) take it."""
    check_alike(arrays, name)
    sharding = NamedSharding(Mesh(np.array(devices), ("devices",)), PartitionSpec("devices"))
    parts = [jax.device_put(a[None], d) for a, d in zip(arrays, devices)]
    return jax.make_array_from_single_device_arrays((len(arrays), *arrays[0].shape), sharding, parts)


def check_alike(arrays: Sequence[np.ndarray], name: str) -> None:
    shapes = {a.shape for a in arrays}
    if len(shapes) > 1:
        raise ValueError(
            f"output '{name}': all pipelines have to give batches of one shape to make one array of them; got "
            f"{', '.join(map(str, sorted(shapes)))}"
        )
