# SPDX-License-Identifier: Apache-2.0
"""`DALIGenericIterator` and `data_iterator` for JAX."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from ...core.constructors import names_checked
from ...pipeline import Pipeline
from ..base_iterator import Batch, DaliIterator, LastBatchPolicy, list_of_pipelines, policy_of
from ..errors import IteratorError
from ..iterator_texts import with_parameters
from ..one_pipeline import given_out
from . import importing, placement
from .decorator import decorate, default_num_threads_value, iterator_decorator

__all__ = ["DALIGenericIterator", "data_iterator", "default_num_threads_value"]


@with_parameters
class DALIGenericIterator(DaliIterator[dict[str, jax.Array]]):
    """Iterates over pipelines and returns a dictionary {name: jax.Array} per batch.

    The first axis of arrays is the batch. On CPU devices, arrays share the memory of the batch, which is kept as long
    as they exist; batches of GPU pipelines stay on their GPU.

    Parameters
    ----------
    pipelines
        A pipeline, or a list with one for each shard of `sharding` that this process holds. Without a sharding, the
        arrays of several pipelines have the axes (pipeline, batch, ...); if there are fewer devices than pipelines,
        they are copied to the first device.
    {output_map size reader_name auto_reset last_batch_padded}
    last_batch_policy
        `LastBatchPolicy` or its name: FILL, DROP, or, with one pipeline, PARTIAL (a smaller array, for which JAX
        compiles again).
    {prepare_first_batch}
    sharding
        A `jax.sharding.Sharding` that splits the batch axis. The arrays are global and have this sharding. If it also
        splits other axes, each device gets a copy of its part.
    pmap_compatible
        True adds the pipeline axis even for a single pipeline. False omits it: several pipelines then make one batch,
        spread over as many devices.
    devices
        Without a sharding: where the arrays of each pipeline go, by default to the first devices of this process.

    >>> import numpy as np
    >>> from penstock import fn, pipeline_def
    >>> @pipeline_def(batch_size=2)
    ... def pipe():
    ...     return fn.external_source(source=[np.float32([[0], [1]]), np.float32([[2], [3]])])
    >>> [batch["x"].shape for batch in DALIGenericIterator(pipe(), ["x"])]
    [(2, 1), (2, 1)]
    """

    _remake: Callable[[Sequence[str | bytes]], list[Pipeline]] | None = None  # creates its pipelines from checkpoints

    @names_checked
    def __init__(
        self,
        pipelines: Pipeline | Sequence[Pipeline],
        output_map: Sequence[str],
        size: int = -1,
        reader_name: str | None = None,
        auto_reset: str | bool | None = False,
        last_batch_padded: bool = False,
        last_batch_policy: LastBatchPolicy | str = LastBatchPolicy.FILL,
        prepare_first_batch: bool = True,
        sharding: jax.sharding.Sharding | None = None,
        pmap_compatible: bool | None = None,
        *,
        devices: Sequence[jax.Device] | None = None,
    ):
        pipelines = list_of_pipelines(pipelines)
        n = len(pipelines)
        if policy_of(last_batch_policy) is LastBatchPolicy.PARTIAL and (n > 1 or sharding is not None):
            raise IteratorError("last_batch_policy PARTIAL needs a single pipeline without sharding; use FILL or DROP")
        if sharding is not None:
            placement.check_sharding(sharding)
            if pmap_compatible:
                raise ValueError("sharding and pmap_compatible exclude each other")
            n_local = len(placement.shards_of(sharding))
            if n != n_local:
                raise ValueError(
                    f"the sharding has {n_local} shards of the batch in this process, but there are {n} pipelines"
                )
        self._sharding = sharding
        self._stacks = sharding is None and (
            n > 1 or devices is not None if pmap_compatible is None else pmap_compatible
        )
        self._devices = list(devices) if devices is not None else jax.local_devices()[:n]
        if sharding is None and (self._stacks or n > 1):
            if len(self._devices) < n and (devices is not None or not self._stacks):
                raise ValueError(f"{n} pipelines need as many devices; there are {len(self._devices)}")
            if not self._stacks:
                self._sharding = NamedSharding(Mesh(np.array(self._devices), ("batch",)), PartitionSpec("batch"))
        self._takes_one = self._sharding is None and not self._stacks
        super().__init__(
            pipelines,
            output_map,
            size,
            reader_name,
            auto_reset,
            last_batch_padded=last_batch_padded,
            last_batch_policy=last_batch_policy,
            prepare_first_batch=prepare_first_batch,
        )

    def _convert_one(self, outputs: Sequence[Any], keep: int | None) -> dict[str, jax.Array]:
        made = {}
        for name, output, array in zip(self._names, outputs, importing.arrays(outputs)):
            if array is None:
                array = placement.to_jax(placement.tensor(given_out(output), name))
            made[name] = array if keep is None else array[:keep]
        return made

    def _convert(self, batches: list[Batch]) -> dict[str, jax.Array]:
        return {n: self._placed(self._tensors(i, batches), n, batches) for i, n in enumerate(self._names)}

    def _placed(self, tensors: list[Any], name: str, batches: list[Batch]) -> jax.Array:
        """Places one output, given as one tensor per pipeline, on its devices."""
        if self._sharding is not None:
            return placement.spread(tensors, self._sharding, name)
        if self._stacks:
            return placement.stack(tensors, self._devices, name)
        array, (b,) = placement.to_jax(*tensors), batches
        return array if b.keep >= len(b.outputs[0]) else array[: b.keep]

    def _tensors(self, output: int, batches: list[Batch]) -> list[Any]:
        """One output of all pipelines, as one tensor per pipeline."""
        return [placement.tensor(b.outputs[output], self._names[output]) for b in batches]


@iterator_decorator(DALIGenericIterator, DALIGenericIterator)
def data_iterator(*args: Any, **kwargs: Any) -> Any:
    """Turns a function that defines a graph into a function that returns a `DALIGenericIterator`. Also a decorator.

    The new function takes the arguments of `Pipeline` (`batch_size`, `num_threads`, `seed`, ...) in addition to its
    own, and `checkpoints`, the result of `checkpoints()` of such an iterator, to continue from there. The arguments
    here are those of `DALIGenericIterator`, and:

    sharding
        There is one pipeline for each shard of the batch in this process. The function must take `num_shards` and
        `shard_id`, which are passed to it; `batch_size` is that of the global batch, over all processes.
    devices
        Instead of a sharding: one pipeline for each of these devices of this process. Arrays have the axes (device,
        batch, ...), and `batch_size` is their total.

    >>> import numpy as np
    >>> from penstock import fn
    >>> @data_iterator(output_map=["x"], size=4)
    ... def numbers():
    ...     return fn.external_source(source=lambda i: np.float32([[i], [i]]))
    >>> [batch["x"].shape for batch in numbers(batch_size=2)]
    [(2, 1), (2, 1)]
    """
    return decorate("data_iterator", DALIGenericIterator, *args, **kwargs)
