# SPDX-License-Identifier: Apache-2.0
"""Iterators with `peek`, for training loops that use CLU's dataset iterators, as T5X does. Requires `clu`."""

from __future__ import annotations

import concurrent.futures
import inspect
import json
import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from etils import epath
from jax.sharding import NamedSharding, PartitionSpec

from ...core.constructors import of_signature, with_signature_of
from ...pipeline import Pipeline
from .. import resume
from ..base_iterator import Batch, LastBatchPolicy
from . import placement
from .decorator import decorate, iterator_decorator
from .iterator import DALIGenericIterator

if TYPE_CHECKING:  # CLU has no types, and an untyped base class would hide misspelt methods
    from dataclasses import dataclass

    @dataclass(frozen=True)
    class ArraySpec:
        dtype: np.dtype[Any]
        shape: tuple[int | None, ...]

    class PeekableDatasetIterator:
        def get_next(self) -> dict[str, jax.Array]: ...
        def load(self, filename: Any) -> None: ...
else:
    from clu.data.dataset_iterator import ArraySpec, PeekableDatasetIterator

__all__ = ["DALIGenericPeekableIterator", "get_spec_for_array", "peekable_data_iterator"]

_SIGNATURE = inspect.signature(DALIGenericIterator)
_KIND = "penstock iterator"
_VERSION = 1


def get_spec_for_array(jax_array: jax.Array) -> ArraySpec:
    """Shape and type of an array, in CLU's form."""
    return ArraySpec(shape=jax_array.shape, dtype=jax_array.dtype)


class DALIGenericPeekableIterator(DALIGenericIterator, PeekableDatasetIterator):
    """A `DALIGenericIterator`, with the same parameters, that is also CLU's `PeekableDatasetIterator`.

    All arrays of an output must have the same shape and type, given by `element_spec`; otherwise ValueError is raised.
    May be used by several threads.

    >>> import numpy as np
    >>> from penstock import fn, pipeline_def
    >>> @pipeline_def(batch_size=2)
    ... def pipe():
    ...     return fn.external_source(source=[np.float32([[0], [1]]), np.float32([[2], [3]])])
    >>> it = DALIGenericPeekableIterator(pipe(), ["x"])
    >>> it.element_spec
    {'x': ArraySpec(dtype=float32, shape=(2, 1))}
    >>> it.peek()["x"] is it.peek_async().result()["x"] is next(it)["x"]
    True
    """

    @with_signature_of(DALIGenericIterator.__init__)
    def __init__(self, pipelines: Pipeline | Sequence[Pipeline], *args: Any, **kwargs: Any):
        self._mutex = threading.RLock()
        self._future: concurrent.futures.Future[dict[str, jax.Array]] | None = None  # of the batch not yet returned
        self._error: Exception | None = None  # raised by `peek`; the next `next` also raises it
        self._spec: dict[str, ArraySpec] | None = None
        self._belonging_taken: list[int] | None = None
        self._belonging_given: list[int] | None = None
        settings = of_signature(type(self).__name__, _SIGNATURE, (pipelines, *args), kwargs).arguments
        self._settings = {k: v for k, v in settings.items() if k != "pipelines"}
        super().__init__(pipelines, **self._settings)

    def _convert(self, batches: list[Batch]) -> dict[str, jax.Array]:
        value = super()._convert(batches)
        if self._spec is None:
            self._spec = {name: get_spec_for_array(a) for name, a in value.items()}
            if self._last_batch_policy is LastBatchPolicy.PARTIAL:
                self._spec = {n: ArraySpec(s.dtype, (None, *s.shape[1:])) for n, s in self._spec.items()}
        for name, array in value.items():
            spec = self._spec[name]
            if array.dtype != spec.dtype or not _fits(array.shape, spec.shape):
                raise ValueError(
                    f"output '{name}': a batch of {array.dtype.name}{list(array.shape)} follows batches of {spec}; an "
                    f"iterator that can be peeked at gives arrays of one shape and type. Make them alike in the "
                    f"pipeline (resize, crop, pad)"
                )
        self._belonging_taken = None if self._epochs is None else self._epochs.belonging(self._step - 1)
        return value

    def _settle(self) -> None:
        """Waits for a running `peek_async`, so that its batch is seen."""
        future = self._future
        if future is not None:
            concurrent.futures.wait([future])

    def __next__(self) -> dict[str, jax.Array]:
        self._settle()
        with self._mutex:
            self._future = None
            if self._error is not None:
                error, self._error = self._error, None
                raise error
            value: dict[str, jax.Array] = super().__next__()
            self._belonging_given = self._belonging_taken
            return value

    def __iter__(self) -> Iterator[dict[str, jax.Array]]:
        with self._mutex:
            super().__iter__()
        return self

    def peek(self) -> dict[str, jax.Array]:
        """Returns the batch that `next` will return, any number of times. StopIteration at the end of the epoch, and
        any other exception, is raised by both."""
        with self._mutex:
            if self._error is not None:
                raise self._error
            if not self._first:
                if self._ended:
                    raise StopIteration
                self._remember()
                try:
                    self._first.append(self._take())
                except StopIteration:
                    raise
                except Exception as e:
                    self._error = e
                    raise
            value: dict[str, jax.Array] = self._first[0]
            return value

    def peek_async(self) -> concurrent.futures.Future[dict[str, jax.Array]]:
        """Returns a future of the result of `peek`, computed in the background, for example while a model is compiled.
        `next` waits for it."""
        with self._mutex:
            future = self._future
            if future is None or future.cancelled():
                future = self._future = concurrent.futures.Future()
                # A daemon thread, so that a blocked source does not prevent the interpreter from exiting.
                threading.Thread(target=self._peek_into, args=(future,), name="penstock-peek", daemon=True).start()
            return future

    def _peek_into(self, future: concurrent.futures.Future[dict[str, jax.Array]]) -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            future.set_result(self.peek())
        except BaseException as e:
            future.set_exception(e)

    def reset(self) -> None:
        """Begins the next epoch. A batch that was peeked at but not taken is dropped with the rest of its epoch, unless
        it is the first."""
        self._settle()
        with self._mutex:
            self._future = self._error = None
            super().reset()

    # State ----------------------------------------------------------------------------------------------------------

    def _remember(self) -> None:
        """Saves the iterator's state before a batch is taken that is not returned yet."""
        if self._keeps_state():
            self._before_first = resume.states(self)

    def _keeps_state(self) -> bool:
        return all(p._checkpoints.is_enabled for p in self._pipes)

    def checkpoints(self) -> list[bytes]:
        """Returns the position of the iterator, a checkpoint for each of its pipelines. A batch that was only peeked at
        counts as not taken. The pipelines must be built with `enable_checkpointing=True`."""
        if not self._keeps_state():
            raise RuntimeError("create the iterator with enable_checkpointing=True to save its position")
        self._settle()
        with self._mutex:
            found: list[bytes] = super().checkpoints()
            return found

    def save(self, filename: Any) -> None:
        """Writes the position of the iterator in this process to a file, as JSON. Other processes need their own
        file."""
        content = {_KIND: _VERSION, "pipelines": [json.loads(c) for c in self.checkpoints()]}
        epath.Path(filename).write_text(json.dumps(content))

    def restore(self, filename: Any) -> None:
        """Continues from a file written by `save`, with new pipelines. Only for iterators made by a function decorated
        with `peekable_data_iterator`. Raises ValueError if the file belongs to another pipeline."""
        if self._remake is None:
            raise RuntimeError(
                "restore() has to create the pipelines again, which is not possible for an iterator made of pipelines; "
                "decorate the function with peekable_data_iterator, or pass checkpoint= to the pipelines"
            )
        states = _read(filename)
        self._settle()
        with self._mutex:
            pipes, before = self._remake(states), self._pipes
            spread = any(self._settings.get(k) is not None for k in ("sharding", "devices"))
            made = type(self)(
                pipes if spread else pipes[0], **self._settings
            )  # if this fails, the iterator is unchanged
            vars(self).update({k: v for k, v in vars(made).items() if k not in ("_mutex", "_remake")})
            for p in before:
                p.close()

    # Properties of batches -------------------------------------------------------------------------------------

    @property
    def element_spec(self) -> dict[str, ArraySpec]:
        """Shape and type of each output, by name. Makes the first batch if there is none yet."""
        with self._mutex:
            if self._spec is None:
                self.peek()
            assert self._spec is not None
            return dict(self._spec)

    @property
    def is_nonpadding(self) -> jax.Array:
        """(batch_size,) booleans: which samples of the last batch belong to its epoch. The others are padding, or
        belong to the next epoch. Has the sharding of the batch."""
        with self._mutex:
            belonging = self._belonging_given or [self.batch_size] * len(self._pipes)
            masks = [np.arange(self.batch_size) < n for n in belonging]
            if self._sharding is None:
                return jax.numpy.asarray(np.concatenate(masks))
            sharding = self._sharding
            if isinstance(sharding, NamedSharding):
                sharding = NamedSharding(sharding.mesh, PartitionSpec(*sharding.spec[:1]))
            return placement.spread(masks, sharding, "is_nonpadding")


def _read(filename: Any) -> list[bytes]:
    """The checkpoints in a file written by `save`."""
    try:
        content = json.loads(epath.Path(filename).read_text())
    except ValueError as e:
        raise ValueError(f"{filename}: not the state of an iterator: {e}") from None
    version = content.get(_KIND) if isinstance(content, dict) else None
    if version != _VERSION or not isinstance(content.get("pipelines"), list):
        raise ValueError(
            f"{filename}: not the state of an iterator"
            if version is None
            else f"{filename}: the state has format {version}; this version of penstock reads format {_VERSION}"
        )
    return [json.dumps(c).encode() for c in content["pipelines"]]


def _fits(shape: tuple[int, ...], spec: tuple[int | None, ...]) -> bool:
    return len(shape) == len(spec) and all(w is None or n == w for n, w in zip(shape, spec))


@iterator_decorator(DALIGenericPeekableIterator, DALIGenericIterator)
def peekable_data_iterator(*args: Any, **kwargs: Any) -> Any:
    """`data_iterator` for `DALIGenericPeekableIterator`: takes the same arguments and returns an iterator with `peek`.

    >>> import numpy as np
    >>> from penstock import fn
    >>> @peekable_data_iterator(output_map=["x"], size=4)
    ... def numbers():
    ...     return fn.external_source(source=lambda i: np.float32([[i], [i]]))
    >>> it = numbers(batch_size=2)
    >>> [it.peek()["x"][0, 0].item(), next(it)["x"][0, 0].item(), it.peek()["x"][0, 0].item()]
    [0.0, 0.0, 1.0]
    """
    return decorate("peekable_data_iterator", DALIGenericPeekableIterator, *args, **kwargs)
