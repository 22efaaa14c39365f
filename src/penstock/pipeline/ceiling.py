# SPDX-License-Identifier: Apache-2.0
"""Measures how fast a training would be with a pipeline that costs nothing, by repeating one batch."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..core.batch import Batch
from ..exec.scheduling.executor import Executor
from .runner import Runner

if TYPE_CHECKING:
    from ..exec.scheduling.checkpoint import State


class Ceiling:
    """Returned by `Pipeline.ceiling`: within `with pipe.ceiling() as ceiling:`, the pipeline returns its next batch
    again and again, which takes no time.

    Afterwards, `samples_per_s` is the speed with the repeated batch, `before` the previous speed of the pipeline
    (`Pipeline.stats`), and `lost` the share of the speed that the pipeline costs; `str(ceiling)` summarises them. The
    pipeline then continues after the repeated batch. Iterators count the repeated batches, so use whole epochs. If
    epochs end by StopIteration of `run`, pass the number of batches per epoch.

    >>> from penstock import fn, pipeline_def
    >>> @pipeline_def(batch_size=2, num_threads=1)
    ... def numbers():
    ...     return fn.random.uniform()
    >>> pipe = numbers()
    >>> with pipe.ceiling() as ceiling:
    ...     batches = [pipe.run()[0].as_array().tolist() for _ in range(3)]
    >>> batches[0] == batches[1] == batches[2]
    True
    """

    def __init__(self, runner: Runner, batches: int | None):
        self._runner, self._batches = runner, batches
        self._repeated: _Repeated | None = None
        self._before = 0, False  # what was requested from the pipeline itself
        self.samples_per_s = self.before = 0.0

    @property
    def lost(self) -> float:
        """0.02 if the pipeline makes the training 2 % slower than it is with one batch repeated."""
        return 1 - self.before / self.samples_per_s if self.samples_per_s else 0.0

    def __enter__(self) -> Ceiling:
        runner = self._runner
        with runner.lock:
            executor = runner.executor
            if executor is None or isinstance(executor, _Repeated):
                raise RuntimeError("the ceiling of this pipeline is being measured already")
            s = runner.statistics
            self.before = s.samples / max((s.last - s.started) / 1e9, 1e-9)
            self._repeated = _Repeated(executor, runner.next(None), self._batches)
            self._before = runner.requested, runner.end_is_pending
            runner.executor, runner.requested, runner.end_is_pending = self._repeated, 0, False
        return self

    def __exit__(self, *_: Any) -> None:
        repeated = self._repeated
        assert repeated is not None
        with self._runner.lock:
            self._runner.executor = repeated.executor
            self._runner.requested, self._runner.end_is_pending = self._before
        self.samples_per_s = repeated.samples_per_s()

    def __str__(self) -> str:
        if not self.samples_per_s:
            return "Nothing was measured yet: take batches from the pipeline within `with pipe.ceiling()`."
        text = f"{self.samples_per_s:,.0f} samples/s with one batch repeated"
        if not self.before:
            return text + "."
        return f"{text}, {self.before:,.0f} before: the pipeline costs {max(self.lost, 0):.1%} of the speed."


class _Repeated(Executor):
    """Replaces a pipeline's executor, which keeps its prepared batches; makes no batch itself."""

    def __init__(self, executor: Executor, outputs: list[Batch], batches: int | None):
        self.executor, self._outputs, self._batches = executor, outputs, batches
        self.rows, self.merging = executor.rows, executor.merging
        self._asked = self._given = self._in_epoch = self.reads_ahead = 0
        self._first_ns = self._last_ns = 0

    def samples_per_s(self) -> float:
        """The speed between the first and the last batch, which includes the consumer's work."""
        n = (self._given - 1) * len(self._outputs[0])
        return n / ((self._last_ns - self._first_ns) / 1e9) if n > 0 else 0.0

    @property
    def pending(self) -> int:
        return self._asked

    def schedule(self, batch_size: int, ahead: bool = False, at_once: bool = False) -> None:
        self._asked += 1

    def schedule_ahead(self, batch_size: int, depth: int) -> None:
        pass

    def call_sources(self, batch_size: int, iter_setup: Callable[[], None] | None) -> bool:
        return True  # without a call of the user's code

    def has_data(self) -> bool:
        return False  # so that one batch at a time is requested

    def consumer_is_polling(self) -> bool:
        return False

    def withdraw(self) -> None:
        pass

    def ends_next(self) -> bool:
        return False

    def share(self) -> list[Batch]:
        if not self._asked:
            raise StopIteration("no batch was scheduled; call schedule_run() first")  # as in DALI
        self._asked -= 1
        if self._in_epoch == self._batches:
            self._in_epoch = 0
            raise StopIteration
        self._given += 1
        self._in_epoch += 1
        self._last_ns = time.monotonic_ns()
        self._first_ns = self._first_ns or self._last_ns
        return self._outputs

    def reset(self) -> bool:
        return False

    def drain(self) -> None:
        self._asked = 0

    def check_not_busy(self) -> None:
        self.executor.check_not_busy()

    def state(self) -> State:
        return self.executor.state()

    def close(self) -> None:
        self.executor.close()
