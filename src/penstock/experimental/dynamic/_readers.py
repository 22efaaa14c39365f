# SPDX-License-Identifier: Apache-2.0
"""Readers: objects that read a data set, epoch by epoch."""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, overload

from ...core.batch import Batch as Samples
from ...core.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    PipelineError,
    SampleErrors,
    of_argument,
    user_sites,
)
from ...core.op import Operator
from ...core.source import Source
from ...core.storage import StorageSettings, using
from ...graph import trace
from . import _device
from ._batch import Batch
from ._context import EvalContext
from ._errors import describe, of_calls, of_samples
from ._tensor import Tensor

_READING_THREADS = 4
_loaders: list[ThreadPoolExecutor] = []


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_loaders.clear)  # the threads belong to the parent


def _loader() -> ThreadPoolExecutor:
    if not _loaders:
        _loaders.append(ThreadPoolExecutor(_READING_THREADS, "penstock-reading"))
    return _loaders[0]


class ReaderState(str):
    """The position of a reader, as a string."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"ReaderState({str.__repr__(self)})"


class Reader:
    """Base of all readers.

    A reader is used in one of three ways for its whole life: `next_epoch(batch_size)` returns batches, `next_epoch()`
    samples, and a call returns the next batch or sample without end.

    Parameters
    ----------
    max_batch_size
        Size of batches if `next_epoch` gets none.
    name
        Accepted for compatibility.
    device
        Device of the outputs: "gpu" copies them there.
    num_inputs, enable_checkpointing
        Accepted for compatibility: a reader has no inputs, and always provides its state.
    storage_options, cache, cache_bytes
        Settings for URLs, as in `Pipeline`.
    """

    _operator: type[Operator]
    _name: str

    def __init__(
        self,
        max_batch_size: int | None = None,
        name: str | None = None,
        device: Any = "cpu",
        num_inputs: int | None = None,
        *,
        enable_checkpointing: bool = False,
        storage_options: dict[str, Any] | None = None,
        cache: str | os.PathLike[str] | None = None,
        cache_bytes: int | None = None,
        _backend: Any = None,
        **kwargs: Any,
    ):
        if num_inputs:
            raise ValueError(f"{self._name}: readers have no inputs; got num_inputs={num_inputs}")
        if max_batch_size is not None and max_batch_size < 1:
            raise ValueError(f"{self._name}: max_batch_size is at least 1; got {max_batch_size}")
        self._storage = StorageSettings.checked(storage_options, cache, cache_bytes)
        self._batch_size, self._device = max_batch_size, _device.device(device)
        self._sites = user_sites(2)
        given = {k: v for k, v in kwargs.items() if v is not None}
        with of_calls():
            values, _ = trace.check_constants(self._operator, given)
        missing = [n for n, a in self._operator.schema.items() if a.required and n not in values]
        if missing:
            raise TypeError(f"{self._name}() needs {', '.join(missing)}")
        schema = self._operator.schema
        chosen = {n: values.get(n, None if a.required else a.default) for n, a in schema.items()}
        with of_calls():
            op = self._operator(chosen, values)
        assert isinstance(op, Source)
        self._op = op
        self._way = ""  # "batches", "samples" or "calls"
        self._seed: int | None = None
        self._turn = 0  # number of completed epochs, for the current shard
        self._iteration = 0
        # Batches being read ahead: size, reader's state before, future.
        self._ahead: deque[tuple[int, Any, Future]] = deque()

    # Reading ------------------------------------------------------------------------------------------------------

    def _use(self, way: str) -> None:
        if self._way not in ("", way):
            raise RuntimeError(f"{self._name}: this reader gives {self._way} already; for {way} make another one")
        self._way = way

    def _open(self) -> None:
        if self._seed is not None:
            return
        from ._rng import get_default_rng

        seed = get_default_rng()()
        try:
            with using(self._storage):
                self._op.open(self._batch_size or 1, seed)
        except (ValueError, OSError, RuntimeError, TypeError) as e:
            text = describe(self._name, "cpu", self._sites, str(e))
            raise (of_argument(e, text) if isinstance(e, (ValueError, TypeError)) else RuntimeError(text)) from None
        self._seed = seed

    def _load(self, picks: Any, pool: Any) -> tuple[Samples, ...]:
        try:
            return self._op.load(picks, pool)
        except SampleErrors as e:
            raise of_samples(self._name, "cpu", self._sites, e.reasons, e.sources) from None
        except (OSError, ValueError) as e:
            raise PipelineError(describe(self._name, "cpu", self._sites, str(e))) from None

    def _begin(self, n: int, context: EvalContext) -> None:
        """Starts loading the next batch."""
        before = self._op.saved()
        picks = self._op.take(n, self._iteration)
        self._iteration += 1
        self._ahead.append((n, before, _loader().submit(self._load, picks, context.pool())))

    def _read(self, n: int, context: EvalContext | None, ahead: bool) -> tuple[Samples, ...]:
        self._open()
        context = context or EvalContext.current()
        if self._ahead and self._ahead[0][0] != n:  # another size: restores the state before
            before = self._ahead[0][1]
            self._ahead.clear()
            self._op.restore(before)
        if not self._ahead:
            self._begin(n, context)
        _, _, future = self._ahead.popleft()
        if ahead:
            self._begin(n, context)
        return future.result()

    def _outputs(self, n: int | None, context: EvalContext | None, ahead: bool = True) -> Any:
        batches = self._read(n or 1, context, ahead)
        made = [(Tensor if n is None else Batch)._made_of(b) for b in batches]
        if self._device.device_type == "gpu":
            made = [m.to_device(self._device) for m in made]
        names = self._op.output_names()
        return tuple(made) if names is None else dict(zip(names, made))

    @overload
    def __call__(self, *, batch_size: int) -> tuple[Batch, ...]: ...
    @overload
    def __call__(self, *, batch_size: None = None) -> tuple[Any, ...]: ...
    def __call__(self, *, batch_size: int | None = None) -> tuple[Any, ...]:
        """Returns the next batch of this size, by default that of the constructor; or, without one, the next sample."""
        self._use("calls")
        return self._outputs(self._size(batch_size), None)

    def _size(self, batch_size: int | None) -> int | None:
        n = self._batch_size if batch_size is None else batch_size
        if n is not None and (isinstance(n, bool) or not hasattr(n, "__index__")):
            raise ArgumentTypeError(f"{self._name}: batch_size is an integer; got {n!r}")
        if n is not None and n < 1:
            raise ArgumentValueError(f"{self._name}: batch_size is at least 1; got {n}")
        return n

    @overload
    def next_epoch(
        self, batch_size: int, ctx: EvalContext | None = None, capture: bool = False
    ) -> Iterator[tuple[Batch, ...]]: ...
    @overload
    def next_epoch(
        self, batch_size: None = None, ctx: EvalContext | None = None, capture: bool = False
    ) -> Iterator[tuple[Any, ...]]: ...
    def next_epoch(
        self, batch_size: int | None = None, ctx: EvalContext | None = None, capture: bool = False
    ) -> Iterator[Any]:
        """Iterates over the data set, or the reader's shard of it, once.

        Parameters
        ----------
        batch_size
            Size of batches. By default that of the constructor. Without either, samples are returned. An incomplete
            last batch is filled with the samples that follow, or with the last one if the reader pads.
        ctx
            Context for reading. By default the current context.
        capture
            Accepted: see `capture`.

        Returns
        -------
        An iterator of tuples, with one tensor or batch per output; of dictionaries with those by feature for
        `TFRecord`. The next batch is read meanwhile. An epoch must be completed before the next one begins.
        """
        return self._epoch_from(batch_size, 0, ctx)

    def _epoch_from(self, batch_size: int | None, done: int, ctx: EvalContext | None = None) -> Iterator[Any]:
        """The rest of an epoch of which `done` samples were already returned."""
        n = self._size(batch_size)
        self._use("samples" if n is None else "batches")
        return self._epoch(n, ctx, done)

    def _epoch(self, n: int | None, context: EvalContext | None, done: int) -> Iterator[Any]:
        self._open()
        size = self._epoch_size()
        while done < size:
            yield self._outputs(n, context)
            done += n or 1
        self._turn += 1

    def _epoch_size(self) -> int:
        """Number of samples of the shard that is read in this epoch."""
        meta = self.get_metadata()
        size, shards = meta["epoch_size"], meta["number_of_shards"]
        if meta["pad_last_batch"]:
            return meta["epoch_size_padded"] // shards
        shard = (meta["shard_id"] + (0 if meta["stick_to_shard"] else self._turn)) % shards
        return size * (shard + 1) // shards - size * shard // shards

    def get_metadata(self, batch_size: int | None = None) -> dict[str, int]:
        """Properties of the data set: "epoch_size", "epoch_size_padded" (over the shards), "number_of_shards",
        "shard_id", "pad_last_batch" and "stick_to_shard"."""
        self._open()
        meta = self._op.meta()
        if meta is None:
            raise RuntimeError(f"{self._name}: the size of the data set is not known")
        return meta

    # State --------------------------------------------------------------------------------------------------------

    def get_state(self, *, cuda_stream: Any = None) -> ReaderState:
        """Returns the position of the reader: the beginning of the next batch."""
        self._open()
        place = self._ahead[0][1] if self._ahead else self._op.saved()
        if place is None:
            raise RuntimeError(f"{self._name}: this reader can't tell where it is")
        return ReaderState(json.dumps({"place": place, "seed": self._seed, "turn": self._turn}))

    def set_state(self, state: Any) -> None:
        """Continues from the state of a reader of the same data set, or its text. Only for readers not used yet."""
        if self._way:
            raise RuntimeError(f"{self._name}: a state is set before the reader is used; make a new reader")
        try:
            given = json.loads(state)
            place, seed, turn = given["place"], given["seed"], given["turn"]
        except (TypeError, ValueError, KeyError):
            raise ValueError(f"{self._name}: {state!r} is not a state of a reader") from None
        self._seed = None
        try:
            with using(self._storage):
                self._op.open(self._batch_size or 1, seed)
            self._op.resume(place)
        except (ValueError, OSError, RuntimeError, TypeError, KeyError) as e:
            raise ValueError(describe(self._name, "cpu", self._sites, str(e))) from None
        self._seed, self._turn = seed, turn

    def __repr__(self) -> str:
        given = {n: v for n, v in self._op.values.items() if n in self._op.given}
        return f"{self._name}({', '.join(f'{k}={v!r}' for k, v in given.items())})"
