# SPDX-License-Identifier: Apache-2.0
"""Operators that load samples: readers and external sources."""

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

    begin_ns = end_ns = 0  # start and end time by the monotonic clock, if known

    def wait_for_most(self) -> None:
        """Blocks until the next batch should be started, so that the loading threads do not run out of work."""

    def wait(self) -> tuple[Batch, ...]:
        """Returns the samples; call once. Raises SampleErrors for samples that can't be read, with batches where those
        are empty."""
        raise NotImplementedError


class _Later(Loading):
    """A batch that is loaded when `wait` is called."""

    def __init__(self, load: Callable[[], tuple[Batch, ...]]):
        self.wait = load  # type: ignore[method-assign]


class Source(Operator, abstract=True):
    """An operator that loads samples. `take` is called in order, one call at a time; `begin` and `load` at any time, by
    any thread. A source defines `begin` or `load`."""

    inputs = (0, 0)
    devices: ClassVar[tuple[str, ...]] = ("cpu",)
    closing: bool = False  # set when the pipeline ends
    copier: kernels.Pool | None = None  # native threads that may copy data given to `take`, in a built pipeline
    feeding: Any = None  # where fed data waits: a Feed of operators/external/_fed.py
    # Its picks are all that another process with the same data and sources needs to load the samples.
    picks_suffice: ClassVar[bool] = False
    sets_batch_size: ClassVar[bool] = False  # its data determines the batch size
    is_prompt: bool = False  # `take` and `load` do not wait and call no user code
    may_end: bool = False  # it may end without being `called`
    called: Any = None  # called by the user's thread for each iteration: a Called of operators/external/_called.py
    parts: Sequence[Source] = ()  # sources whose samples it returns; used by nothing else
    keeps_state: bool = False  # set if `saved` will be called
    gpu: Any = None  # the pipeline's GPU session, if any: `begin` may start work there and return its batches
    may_leave_rest: ClassVar[bool] = False  # it can return only the beginning of files, if the consumer reads the rest
    leaves_rest: bool = False  # set if it should do so
    gives_parts: bool = False  # also set if only parts of the files are needed
    uploaded: Collection[int] = ()  # outputs that only the GPU reads; may be returned on the GPU
    on_gpu: Collection[int] = ()  # of those, outputs that stay on the GPU if the user's data is there
    name = Arg(str, None, "Name of the operator, for `epoch_size`, `reader_meta` and iterators.")

    def defined(self) -> None:
        """Called when it has become part of the definition of a pipeline."""

    def leave_bad_samples(self) -> None:
        """Called before `open` if the pipeline's `on_error` does not raise."""

    def open(self, max_batch_size: int, seed: int) -> None:
        """Finds the data, when the pipeline is built."""

    def restarts(self) -> bool:
        """Whether `reset` starts a new epoch; False for streams that can't restart."""
        return True

    def is_fed(self) -> bool:
        """Whether its data is provided by `Pipeline.feed_input`."""
        return False

    def has_data(self) -> bool:
        """Whether an iteration can be requested ahead of time."""
        return True

    def ask(self) -> None:
        """Called by the user's thread, in order, for each requested iteration; a call of `take` follows."""

    def take(self, n: int, iteration: int) -> Picks:
        """Picks the samples of the next batch; raises StopIteration at the end of an epoch, if it has one.

        Returns n picks, or fewer if `sets_batch_size`."""
        raise NotImplementedError

    def begin(self, picks: Picks, io: kernels.Pool) -> Loading:
        """Starts loading the samples of the picks, without waiting. Several batches may be loading. `io`: native
        threads for reading."""
        return _Later(lambda: self.load(picks, io))

    def begin_by(self, picks: Picks, io: kernels.Pool, a: Arguments) -> Loading:
        """As `begin` if arguments are data: `a` has their values for these samples. Called when they are known, not
        ahead of time. Sources with such arguments define it."""
        raise NotImplementedError

    def load(self, picks: Picks, io: kernels.Pool) -> tuple[Batch, ...]:
        """Loads the samples of the picks. Raises SampleErrors as `Loading.wait` does."""
        return self.begin(picks, io).wait()

    @property
    def is_remote(self) -> bool:
        """Whether its data comes from other machines. Valid after `open`."""
        return False

    @property
    def batches_ahead(self) -> int:
        """The number of batches it reads ahead in addition to the pipeline's own. Valid after `open`."""
        return 0

    @property
    def loads_ahead(self) -> bool:
        """Whether `begin` starts loading."""
        return type(self).begin is not Source.begin

    def replace(self, picks: Picks, rows: np.ndarray, attempt: int) -> Picks | None:
        """Picks that replace `rows`: the next samples of the same shard; None if not possible."""
        return None

    def state(self) -> dict[str, Any] | None:
        """A few integers that identify the next samples; None if the source can't go back."""
        return None

    def restore(self, state: dict[str, Any]) -> None:
        """Restores a `state`, also one of the same source in another pipeline. Raises ValueError if not possible."""

    def saved(self) -> dict[str, Any] | None:
        """Its position for a checkpoint, as JSON values; None if unknown."""
        return self.state()

    def resume(self, state: dict[str, Any], shards: Sequence[tuple[dict[str, Any], int]] = ()) -> None:
        """Continues, in a new pipeline, from a position returned by `saved`. `shards`: states and seeds of all
        shards."""
        self.restore(state)

    def left_over(self) -> tuple[int, int]:
        """If it continued with another number of shards: the epoch, and the number of samples left in it at that
        time."""
        return 0, 0

    def identity(self) -> dict[str, Any]:
        """What must be equal in a pipeline that continues from another's checkpoint, as JSON values."""
        return {}

    def begins_epoch(self, state: dict[str, Any]) -> bool:
        """Whether `state` is the beginning of an epoch, so that `reset` has no effect."""
        return False

    def reset(self) -> None:
        """Starts the next epoch."""

    def meta(self) -> dict[str, int] | None:
        """The result of `Pipeline.reader_meta`; None for sources without an epoch of known size."""
        return None

    def counted(self) -> dict[str, int]:
        """Counters of its network requests; empty if it makes none."""
        return {}

    def stop_waiting(self) -> None:
        """The pipeline is closing: threads that wait in this source return."""
        self.closing = True

    def close(self) -> None:
        """Releases files and threads."""
