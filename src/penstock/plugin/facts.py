# SPDX-License-Identifier: Apache-2.0
"""Attributes that wrappers read from an iterator. DALI has them in private attributes, which users' subclasses and
wrappers use nevertheless, such as `_size` for a length."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .epochs import LastBatchPolicy, ReaderEpochs

if TYPE_CHECKING:
    from ..pipeline import Pipeline


class Facts:
    """Base of the iterators."""

    if TYPE_CHECKING:
        _epochs: Any
        _first: list[Any]
        _given: int
        _last_batch_padded: bool
        _last_batch_policy: LastBatchPolicy
        _pipes: list[Pipeline]
        _step: int
        batch_size: int
        output_map: list[Any]
    else:

        def __getattr__(self, name: str) -> Any:
            fact = _FACTS.get(name)
            if fact is None:
                raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
            return fact(self)

    @property
    def size(self) -> int:
        """Samples in this epoch; -1 if it is not known. With a reader it is the number of one pipeline: rounded up to
        whole batches, but with DROP, or if the reader pads, as many as its shard has."""
        epochs = self._epochs
        if epochs is None:
            return -1
        if not isinstance(epochs, ReaderEpochs):
            return epochs.size
        if self._last_batch_policy is LastBatchPolicy.DROP:
            return min(epochs.shard_sizes)
        return max(epochs.shard_sizes) if self._last_batch_padded else epochs.epoch.batches * self.batch_size

    @property
    def _first_batch(self) -> Any:
        """The batch that was prepared by the constructor, until it is returned; then None."""
        return self._first[-1] if self._first else None

    @_first_batch.setter
    def _first_batch(self, value: Any) -> None:
        self._given += len(self._first)
        self._first[:] = [] if value is None else [value]


def _of_reader(fact: Callable[[ReaderEpochs], Any]) -> Callable[[Facts], Any]:
    def read(it: Facts) -> Any:
        if not isinstance(it._epochs, ReaderEpochs):
            raise AttributeError("the iterator has no reader_name, so it knows of no shards")
        return fact(it._epochs)

    return read


def _samples_taken(it: Facts) -> int:
    """Samples taken in this epoch, including the batch prepared by the constructor."""
    pipelines = 1 if isinstance(it._epochs, ReaderEpochs) else len(it._pipes)
    return it._step * pipelines * it.batch_size


_FACTS: dict[str, Callable[[Facts], Any]] = {
    "_size": lambda it: it.size,
    "_num_gpus": lambda it: len(it._pipes),
    "_output_categories": lambda it: set(it.output_map),
    "_ever_consumed": lambda it: it._given > 0,
    "_counter": _samples_taken,
    "_size_no_pad": _of_reader(lambda epochs: sum(epochs.shard_sizes)),
    "_shards_num": _of_reader(lambda epochs: epochs.n_shards),
    "_shards_id": _of_reader(lambda epochs: epochs.shard_ids),
}
