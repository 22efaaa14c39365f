# SPDX-License-Identifier: Apache-2.0
"""Operators that bring samples in: readers and external sources."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, ClassVar

import numpy as np

from . import kernels
from .batch import Batch
from .op import Arg, Arguments, Operator
from .picks import Picks


class Loading:
    """A batch that a source is loading."""

    begin_ns = end_ns = 0  # when that began and ended, if the source knows, of the monotonic clock

    def wait_for_most(self) -> None:
        """Until it is time to begin with the next batch, so that what loads does not run out of work."""

    def wait(self) -> tuple[Batch, ...]:
        """The samples; once. Raises SampleErrors for what can't be read, with the batches in which those are empty."""
        raise NotImplementedError


class _Later(Loading):
    """One that is loaded when somebody waits for it."""

    def __init__(self, load: Callable[[], tuple[Batch, ...]]):
        self.wait = load  # type: ignore[method-assign]


class Source(Operator, abstract=True):
    """An operator that brings samples in. `take` is called in order, one by one; `begin` and `load` any time, by any
    thread. A source defines one of these two."""

    inputs = (0, 0)
    devices: ClassVar[tuple[str, ...]] = ("cpu",)
    closing: bool = False  # set when the pipeline ends
    copier: kernels.Pool | None = None  # native threads that may copy what `take` was given, in a built pipeline
    feeding: Any = None  # where what the user feeds waits: a Feed of operators/external/_fed.py
    # What it picks says all that any process needs to load the samples, if it has the same data and sources open.
    picks_suffice: ClassVar[bool] = False
    sets_batch_size: ClassVar[bool] = False  # its data decides how many samples a batch has
    is_prompt: bool = False  # `take` and `load` wait for nothing and call no code of the user's
    called: Any = None  # what the user's thread calls for each iteration: a Called of operators/external/_called.py
    parts: Sequence[Source] = ()  # other sources whose samples it gives; nobody else may use these
    keeps_state: bool = False  # set where `saved` will be asked for
    gpu: Any = None  # the GPU's session where the pipeline has one: `begin` may begin work there, and give its batches
    may_leave_rest: ClassVar[bool] = False  # it can give the beginning of files alone, to who reads the rest
    leaves_rest: bool = False  # set where it is to do so
    gives_parts: bool = False  # set beside it where only parts of the files are needed
    uploaded: Collection[int] = ()  # the outputs of which the GPU alone gets anything; may be given there
    on_gpu: Collection[int] = ()  # of those, the outputs that stay there if the user's data lies there
    name = Arg(str, None, "Name of the operator, for `epoch_size`, `reader_meta` and iterators.")

    def leave_bad_samples(self) -> None:
        """Called before `open` where the pipeline's `on_error` does not raise."""

    def open(self, max_batch_size: int, seed: int) -> None:
        """Finds the data, when the pipeline is built."""

    def restarts(self) -> bool:
        """Whether `reset` brings it to the beginning of an epoch; False for streams that only go on."""
        return True

    def is_fed(self) -> bool:
        """Whether its data comes by `Pipeline.feed_input`."""
        return False

    def has_data(self) -> bool:
        """Whether an iteration can be asked for ahead of time."""
        return True

    def ask(self) -> None:
        """An iteration was asked for; `take` will be called for it. Called by the user's thread, in order."""

    def take(self, n: int, iteration: int) -> Picks:
        """Picks the samples of the next batch; raises StopIteration at the end of an epoch, if it has one.

        Gives n picks, or fewer only if `sets_batch_size`."""
        raise NotImplementedError

    def begin(self, picks: Picks, io: kernels.Pool) -> Loading:
        """Begins to load the samples of the picks, and does not wait. Several batches may be on their way. `io`: native
        threads for reading."""
        return _Later(lambda: self.load(picks, io))

    def begin_by(self, picks: Picks, io: kernels.Pool, a: Arguments) -> Loading:
        """The same where arguments are data: `a` has their values for these samples. Called when those are known, not
        ahead. Sources that have such arguments define it."""
        raise NotImplementedError

    def load(self, picks: Picks, io: kernels.Pool) -> tuple[Batch, ...]:
        """The samples of the picks. Raises SampleErrors as `Loading.wait` does."""
        return self.begin(picks, io).wait()

    @property
    def batches_ahead(self) -> int:
        """Once it is open: how many batches it reads beyond those that the pipeline makes ahead."""
        return 0

    @property
    def loads_ahead(self) -> bool:
        """Whether `begin` begins anything."""
        return type(self).begin is not Source.begin

    def replace(self, picks: Picks, rows: np.ndarray, attempt: int) -> Picks | None:
        """Picks for the samples that stand in for `rows`: the next ones of the same shard; None if it can't."""
        return None

    def state(self) -> dict[str, Any] | None:
        """A few integers that say which samples come next; None if the source can't go back to where it was."""
        return None

    def restore(self, state: dict[str, Any]) -> None:
        """Goes back to where it was when `state` was taken, also by the same source of another pipeline. ValueError if
        that is not possible."""

    def saved(self) -> dict[str, Any] | None:
        """Where it is, for a checkpoint: values of JSON. None if it can't be said."""
        return self.state()

    def resume(self, state: dict[str, Any], shards: Sequence[tuple[dict[str, Any], int]] = ()) -> None:
        """Goes on, in a new pipeline, from where a source was that `saved` this; `shards`: states and seeds of all."""
        self.restore(state)

    def left_over(self) -> tuple[int, int]:
        """Where it went on with another number of shards: the epoch, and the samples that they had left of it."""
        return 0, 0

    def identity(self) -> dict[str, Any]:
        """What has to be the same in a pipeline that goes on from a checkpoint of another; values of JSON."""
        return {}

    def begins_epoch(self, state: dict[str, Any]) -> bool:
        """Whether `state` is at the beginning of an epoch, so that `reset` would do nothing."""
        return False

    def reset(self) -> None:
        """Starts the next epoch."""

    def meta(self) -> dict[str, int] | None:
        """What `Pipeline.reader_meta` tells, None for sources without an epoch of known size."""
        return None

    def counted(self) -> dict[str, int]:
        """What came of its requests over the network; nothing for sources that make none."""
        return {}

    def stop_waiting(self) -> None:
        """The pipeline ends: whoever waits for something in this source gives up."""
        self.closing = True

    def close(self) -> None:
        """Gives back files and threads."""
