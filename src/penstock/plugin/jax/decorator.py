# SPDX-License-Identifier: Apache-2.0
"""Decorator that turns a function that defines a graph into one that returns an iterator, over one pipeline or one per
device."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, overload

import jax

from ...core.constructors import of_signature
from ...pipeline import Pipeline, pipeline_def
from . import placement


def default_num_threads_value() -> int:
    """Default number of threads of the pipelines of `data_iterator`."""
    return 4


_Iterator = TypeVar("_Iterator", covariant=True)
_Settings = ParamSpec("_Settings")


class IteratorDecorator(Protocol[_Settings, _Iterator]):
    """Type of `data_iterator` for type checkers: called with a function or as a decorator, with the arguments of the
    iterator's constructor."""

    @overload
    def __call__(
        self, pipeline_fn: Callable[..., Any], *args: _Settings.args, **kwargs: _Settings.kwargs
    ) -> Callable[..., _Iterator]: ...

    @overload
    def __call__(
        self, pipeline_fn: None = ..., *args: _Settings.args, **kwargs: _Settings.kwargs
    ) -> Callable[[Callable[..., Any]], Callable[..., _Iterator]]: ...


def iterator_decorator(
    iterator: type[_Iterator], constructor: Callable[Concatenate[Any, _Settings], Any]
) -> Callable[[Callable[..., Any]], IteratorDecorator[_Settings, _Iterator]]:
    """Adds the arguments of the iterator's `constructor` to the signature of a function that calls `decorate`."""

    def give(function: Any) -> IteratorDecorator[_Settings, _Iterator]:
        function.__signature__ = _signature(iterator)
        typed: IteratorDecorator[_Settings, _Iterator] = function
        return typed

    return give


def _signature(iterator: type[Any]) -> inspect.Signature:
    """The signature of `data_iterator`, derived from the iterator's constructor."""
    settings = dict(inspect.signature(iterator).parameters)
    function = settings.pop("pipelines").replace(name="pipeline_fn", default=None, annotation=Callable[..., Any] | None)
    settings["output_map"] = settings["output_map"].replace(default=[])
    # Last, as in DALI, whose iterators do not accept devices.
    settings["pmap_compatible"] = settings.pop("pmap_compatible")
    return inspect.Signature([function, *(p.replace(kind=function.kind) for p in settings.values())])


def decorate(called: str, iterator: type[Any], *args: Any, **kwargs: Any) -> Any:
    """Implements `data_iterator` for a class of iterators. `called`: the decorator's name, for messages."""
    bound = of_signature(called, _signature(iterator), args, kwargs)
    bound.apply_defaults()
    return _decorate(iterator, **bound.arguments)


def _decorate(iterator: type[Any], pipeline_fn: Callable[..., Any] | None, devices: Any, **settings: Any) -> Any:
    sharding = settings["sharding"]
    if sharding is not None and devices is not None:
        raise ValueError("sharding and devices exclude each other")
    if sharding is not None:
        placement.check_sharding(sharding)
    if devices is not None:
        devices = list(devices)
        placement.check_devices(devices)
    if pipeline_fn is None:
        return lambda f: _decorate(iterator, f, devices, **settings)
    if not callable(pipeline_fn):
        raise TypeError(f"data_iterator decorates a function that defines a graph; got {type(pipeline_fn).__name__}")
    spread = _Spread(pipeline_fn, sharding, devices) if sharding is not None or devices is not None else None
    define = pipeline_def(pipeline_fn)

    @functools.wraps(pipeline_fn)
    def create(*args: Any, checkpoints: Sequence[str | bytes] | None = None, **kwargs: Any) -> Any:
        kwargs.setdefault("num_threads", default_num_threads_value())
        if spread is None:
            kwargs.setdefault("device_id", 0)
            calls = [kwargs]
        else:
            calls = spread.arguments(kwargs)

        def pipelines(checkpoints: Sequence[str | bytes] | None) -> list[Pipeline]:
            if checkpoints is None:
                return [define(*args, **c) for c in calls]
            _check_checkpoints(checkpoints, len(calls))
            return [define(*args, **{**c, "checkpoint": state}) for c, state in zip(calls, checkpoints)]

        pipes = pipelines(checkpoints)
        if spread is None:
            made = iterator(pipes[0], **settings)
        else:
            spread.check_reader(pipes, settings["reader_name"])
            made = iterator(pipes, devices=devices, **settings)
        made._remake = pipelines
        return made

    return create


def _check_checkpoints(checkpoints: Any, n: int) -> None:
    if isinstance(checkpoints, (str, bytes)) or not isinstance(checkpoints, Sequence):
        raise TypeError(
            f"checkpoints takes the list that checkpoints() of an iterator gave; got {type(checkpoints).__name__}"
        )
    if len(checkpoints) != n:
        raise ValueError(f"checkpoints has {len(checkpoints)} states, but there are {n} pipelines in this process")


class _Spread:
    """Distribution of a function's pipelines over devices."""

    def __init__(self, fn: Callable[..., Any], sharding: Any, devices: list[Any] | None):
        self.name = getattr(fn, "__name__", "the function")
        takes = inspect.signature(fn).parameters
        if not {"num_shards", "shard_id"} <= set(takes) and not any(p.kind is p.VAR_KEYWORD for p in takes.values()):
            raise TypeError(
                f"{self.name}() has to take num_shards and shard_id, and pass them to its reader, for the batch to "
                f"be spread"
            )
        if sharding is not None:
            self.total = placement.n_shards(sharding)
            self.places = [(i, local[0]) for i, local in placement.shards_of(sharding)]
        else:
            assert devices is not None
            self.total = len(devices) * jax.process_count()
            self.places = [(jax.process_index() * len(devices) + i, d) for i, d in enumerate(devices)]

    def arguments(self, kwargs: dict[str, Any]) -> list[dict[str, Any]]:
        """The keyword arguments of each pipeline of this process."""
        for name in ("num_shards", "shard_id", "device_id"):
            if name in kwargs:
                raise TypeError(f"{self.name}(): '{name}' follows from the sharding and can't be given")
        batch_size = kwargs.get("batch_size")
        if batch_size is None:
            raise ValueError(f"{self.name}() needs a batch_size")
        if batch_size % self.total:
            raise ValueError(f"batch_size={batch_size} can't be split evenly into {self.total} shards")
        return [
            {
                **kwargs,
                "batch_size": batch_size // self.total,
                "device_id": _gpu_number(device),
                "num_shards": self.total,
                "shard_id": shard,
            }
            for shard, device in self.places
        ]

    def check_reader(self, pipes: list[Pipeline], reader_name: str | None) -> None:
        """Warns if the reader is not sharded, so that all devices would get the same samples."""
        meta = pipes[0].reader_meta().get(reader_name, {}) if reader_name is not None else {}
        if meta and self.total > 1 and meta["number_of_shards"] == 1:
            warnings.warn(
                f"{self.name}(): reader '{reader_name}' reads the whole data set for each of the {self.total} shards "
                f"of the batch; pass it num_shards=num_shards and shard_id=shard_id",
                stacklevel=3,
            )


def _gpu_number(device: Any) -> int | None:
    """`device_id` of a pipeline for a device; None for the CPU."""
    if device.platform == "cpu":
        return None
    number = getattr(device, "local_hardware_id", None)
    return jax.local_devices(backend=device.platform).index(device) if number is None else int(number)
