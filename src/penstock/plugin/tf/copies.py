# SPDX-License-Identifier: Apache-2.0
"""Copies of a pipeline, one per iterator of a dataset, and their epochs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from ...pipeline import Pipeline, serialization
from ..base_iterator import Batch, DaliIterator
from .elements import Elements


class Epochs(DaliIterator):
    """Iterates over the elements of a dataset, epoch by epoch."""

    def __init__(self, pipeline: Pipeline, elements: Elements, **kwargs: Any):
        self._elements = elements
        super().__init__(pipeline, [str(i) for i in range(elements.n_outputs)], **kwargs)

    def _convert(self, batches: list[Batch]) -> Any:
        (batch,) = batches
        return self._elements.of(batch.outputs, batch.keep)

    @property
    def end_is_ragged(self) -> bool:
        """Whether the last batch of an epoch is known to be smaller."""
        if self._epochs is None or not len(self):
            return False
        return min(self._epochs.keep(len(self) - 1), default=self.batch_size) < self.batch_size

    @property
    def has_given_all(self) -> bool:
        """Whether all batches of the epoch were returned."""
        return not self._first and self._epochs is not None and self._step >= self._epochs.epoch.batches

    @property
    def constant_length(self) -> int | None:
        """The number of batches, if it is the same in every epoch."""
        skips = self._pipes[0]._settings.policy.on_error == "skip"
        return None if self._epochs is None or not self._epochs.all_alike or skips else len(self)

    def close(self) -> None:
        for p in self._pipes:
            p.close()


class Copier:
    """Creates copies of a pipeline with other arguments. They share Python sources and functions. `replaced`: by name
    of an external source, arguments that replace its own."""

    def __init__(self, pipeline: Pipeline, arguments: dict[str, Any], replaced: dict[str, dict[str, Any]]):
        self._arguments, self._functions = arguments, dict[str, Any]()
        self._content = serialization.content_of(pipeline, self._functions)
        for node in self._content["nodes"]:
            for key, value in replaced.get(node["name"], {}).items():
                if callable(value):
                    self._functions[f"{node['name']}.{key}"] = value
                    value = {"function": f"{node['name']}.{key}"}
                node["arguments"][key] = value

    def __call__(self) -> Pipeline:
        return serialization.made_of(Pipeline, self._content, self._functions, self._arguments)


class Iterators:
    """Creates the iterators of a dataset. With `goes_on`, an iterator reuses the pipeline of a completed one for the
    next epoch; otherwise each starts at the first epoch with a new pipeline."""

    def __init__(self, make: Callable[[], Epochs], goes_on: bool):
        self._make, self._goes_on = make, goes_on
        self._lock = threading.Lock()
        self._idle: list[Epochs] = []

    def prepare(self) -> Epochs:
        """Creates the first iterator in advance, to report errors early."""
        epochs = self._make()
        self._idle.append(epochs)
        return epochs

    def take(self) -> Epochs:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        return self._make()

    def give_back(self, epochs: Epochs) -> None:
        if self._goes_on:
            epochs.reset()
            with self._lock:
                self._idle.append(epochs)
        else:
            epochs.close()

    def close(self) -> None:
        """Closes unused pipelines when the dataset is deleted. TensorFlow keeps the functions of datasets, and so this
        object, until the process exits."""
        self._goes_on = False
        with self._lock:
            idle, self._idle = self._idle, []
        for epochs in idle:
            epochs.close()

    def __call__(self) -> Run:
        return Run(self)


class Run:
    """One pass over the dataset. An error of one batch does not end it."""

    _epochs: Epochs | None = None

    def __init__(self, iterators: Iterators):
        self._iterators = iterators
        self._epochs = iterators.take()

    def __iter__(self) -> Run:
        return self

    def __next__(self) -> Any:
        if self._epochs is None:
            raise StopIteration
        try:
            value = next(self._epochs)
        except StopIteration:
            self.close()
            raise
        # Loops that count batches, such as Keras's, request the next iterator before this one raises StopIteration.
        if self._epochs.has_given_all:
            self.close()
        return value

    def close(self) -> None:
        epochs, self._epochs = self._epochs, None
        if epochs is not None:
            self._iterators.give_back(epochs)

    def __del__(self) -> None:
        self.close()
