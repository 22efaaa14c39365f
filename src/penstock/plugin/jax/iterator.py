# SPDX-License-Identifier: Apache-2.0
"""`DALIGenericIterator` and `data_iterator` for JAX."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import jax

from ...pipeline import Pipeline, pipeline_def
from ..base_iterator import Batch, DaliIterator, LastBatchPolicy, dense, policy_of
from . import placement


class DALIGenericIterator(DaliIterator):
    """Iterates over pipelines and gives a dictionary {name: jax.Array}.

    Arrays have the batch axis first. On CPU devices they share the memory of the batch, which stays theirs for as long
    as they live.

    Parameters
    ----------
    pipelines
        A pipeline, or a list with one for each shard of `sharding` that this process holds. Without a sharding, the
        arrays of
        several pipelines have the axes (pipeline, batch, ...).
    output_map
        A name for each output of the pipelines.
    size
        Samples in an epoch over all pipelines; -1 to iterate until the pipeline's source ends. Excludes `reader_name`.
    reader_name
        Name of the reader that tells the size of the epoch, the shards and the padding.
    auto_reset
        How the next epoch begins. False or "no": by `reset()` or `iter()`. True or "yes": by itself.
        "raise": by `reset()` only.
    last_batch_padded
        With `size`: whether the last batch is padded by the source, so that epochs start afresh, or goes on into the
        next epoch.
    last_batch_policy
        `LastBatchPolicy` or its name: FILL, DROP, or, with one pipeline, PARTIAL (a smaller array, for which JAX
        compiles again).
    prepare_first_batch
        Whether the first batch is made at once, on construction, which also brings up mistakes early.
    sharding
        A `jax.sharding.Sharding` that splits the batch axis. The arrays are global and have this sharding.
    pmap_compatible
        True adds the axis of pipelines also for a single one; False leaves it out.

    >>> import numpy as np
    >>> from penstock import fn, pipeline_def
    >>> @pipeline_def(batch_size=2)
    ... def pipe():
    ...     return fn.external_source(source=[np.float32([[0], [1]]), np.float32([[2], [3]])])
    >>> [batch["x"].shape for batch in DALIGenericIterator(pipe(), ["x"])]
    [(2, 1), (2, 1)]
    """

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
        sharding: Any = None,
        pmap_compatible: bool | None = None,
        _devices: Sequence[Any] | None = None,
    ):
        n = 1 if isinstance(pipelines, Pipeline) else len(pipelines)
        if policy_of(last_batch_policy) is LastBatchPolicy.PARTIAL and (n > 1 or sharding is not None):
            raise ValueError("last_batch_policy PARTIAL needs a single pipeline without sharding; use FILL or DROP")
        if sharding is not None:
            if pmap_compatible:
                raise ValueError("sharding and pmap_compatible exclude each other")
            n_local = len(placement.shards_of(sharding))
            if n != n_local:
                raise ValueError(
                    f"the sharding has {n_local} shards of the batch in this process, but there are {n} pipelines"
                )
        self._sharding = sharding
        self._stacks = sharding is None and (n > 1 if pmap_compatible is None else pmap_compatible)
        if n > 1 and sharding is None and not self._stacks:
            raise ValueError(f"pmap_compatible=False with {n} pipelines needs a sharding")
        self._devices = list(_devices) if _devices is not None else jax.local_devices()[:n]
        if self._stacks and len(self._devices) < n:
            raise ValueError(f"{n} pipelines need as many devices; JAX has {len(self._devices)} here")
        super().__init__(
            pipelines,
            output_map,
            size,
            reader_name,
            auto_reset,
            None,
            last_batch_padded,
            last_batch_policy,
            prepare_first_batch,
        )

    def _convert(self, batches: list[Batch]) -> dict[str, jax.Array]:
        if self._sharding is None and not self._stacks:
            (b,) = batches
            return {n: placement.to_jax(dense(o, n)[: b.keep]) for n, o in zip(self._names, b.outputs)}
        values = {}
        for i, name in enumerate(self._names):
            arrays = [dense(b.outputs[i], name) for b in batches]
            values[name] = (
                placement.spread(arrays, self._sharding, name)
                if self._sharding is not None
                else placement.stack(arrays, self._devices, name)
            )
        return values


def default_num_threads_value() -> int:
    """Threads of the pipelines of `data_iterator`, if it is not told how many."""
    return 4


def data_iterator(
    pipeline_fn: Callable[..., Any] | None = None,
    output_map: Sequence[str] = [],  # noqa: B006  never changed
    size: int = -1,
    reader_name: str | None = None,
    auto_reset: str | bool | None = False,
    last_batch_padded: bool = False,
    last_batch_policy: LastBatchPolicy | str = LastBatchPolicy.FILL,
    prepare_first_batch: bool = True,
    sharding: Any = None,
    devices: Sequence[Any] | None = None,
    pmap_compatible: bool | None = None,
) -> Any:
    """Makes a function that defines a graph into a function that returns a `DALIGenericIterator`. Also a decorator.

    The new function takes the arguments of `Pipeline` (`batch_size`, `num_threads`, `seed`, ...) besides its own. The
    arguments here
    are those of `DALIGenericIterator`, and:

    sharding
        There is a pipeline for each shard of the batch in this process. The function has to take `num_shards` and
        `shard_id`, and is
        given them; `batch_size` is that of the global batch.
    devices
        Instead of a sharding: one pipeline for each of these devices of this process; arrays have the axes (device,
        batch, ...).

    >>> import numpy as np
    >>> from penstock import fn
    >>> @data_iterator(output_map=["x"], size=4)
    ... def numbers():
    ...     return fn.external_source(source=lambda i: np.float32([[i], [i]]))
    >>> [batch["x"].shape for batch in numbers(batch_size=2)]
    [(2, 1), (2, 1)]
    """
    settings = {
        "output_map": output_map,
        "size": size,
        "reader_name": reader_name,
        "auto_reset": auto_reset,
        "last_batch_padded": last_batch_padded,
        "last_batch_policy": last_batch_policy,
        "prepare_first_batch": prepare_first_batch,
        "sharding": sharding,
        "pmap_compatible": pmap_compatible,
    }
    return iterator_decorator(DALIGenericIterator, pipeline_fn, settings, devices)


def iterator_decorator(
    iterator: type[DALIGenericIterator],
    pipeline_fn: Callable[..., Any] | None,
    settings: dict[str, Any],
    devices: Sequence[Any] | None,
) -> Any:
    """What `data_iterator` does, for any class of iterators."""
    sharding = settings["sharding"]
    if sharding is not None and devices is not None:
        raise ValueError("sharding and devices exclude each other")
    if pipeline_fn is None:
        return lambda f: iterator_decorator(iterator, f, settings, devices)
    if not callable(pipeline_fn):
        raise TypeError(f"data_iterator decorates a function that defines a graph; got {type(pipeline_fn).__name__}")
    fn = pipeline_fn
    define = pipeline_def(fn)
    takes = inspect.signature(fn).parameters
    spread = sharding is not None or devices is not None

    @functools.wraps(fn)
    def create(*args: Any, checkpoints: Any = None, **kwargs: Any) -> DALIGenericIterator:
        if checkpoints is not None:
            raise NotImplementedError("checkpoints are not available in this version; leave the argument out")
        kwargs.setdefault("num_threads", default_num_threads_value())
        if not spread:
            kwargs.setdefault("device_id", 0)
            return iterator(define(*args, **kwargs), **settings)
        return iterator(_pipelines(args, kwargs), _devices=devices, **settings)

    def _pipelines(args: tuple, kwargs: dict[str, Any]) -> list[Pipeline]:
        if sharding is not None:
            total = placement.n_shards(sharding)
            places = [(i, local[0]) for i, local in placement.shards_of(sharding)]
        else:
            assert devices is not None
            total = len(devices) * jax.process_count()
            places = [(jax.process_index() * len(devices) + i, d) for i, d in enumerate(devices)]
        if not {"num_shards", "shard_id"} <= set(takes) and not any(p.kind is p.VAR_KEYWORD for p in takes.values()):
            raise TypeError(
                f"{fn.__name__}() has to take num_shards and shard_id, and pass them to its reader, for the batch to "
                f"be spread"
            )
        for name in ("num_shards", "shard_id", "device_id"):
            if name in kwargs:
                raise TypeError(f"{fn.__name__}(): '{name}' follows from the sharding and can't be given")
        batch_size = kwargs.pop("batch_size", None)
        if batch_size is None:
            raise ValueError(f"{fn.__name__}() needs a batch_size")
        if batch_size % total:
            raise ValueError(f"batch_size={batch_size} can't be split evenly into {total} shards")
        return [
            define(
                *args,
                **kwargs,
                batch_size=batch_size // total,
                device_id=_local_index(device),
                num_shards=total,
                shard_id=shard,
            )
            for shard, device in places
        ]

    return create


def _local_index(device: Any) -> int:
    return getattr(device, "local_hardware_id", None) or jax.local_devices(backend=device.platform).index(device)
