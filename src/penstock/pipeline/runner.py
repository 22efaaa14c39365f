# SPDX-License-Identifier: Apache-2.0
"""Runs a pipeline: its executor, the number of batches in flight, and `iter_setup` before each of them."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, TypeVar

from ..core.batch import Batch
from ..core.clocks import clocks
from ..core.errors import ArgumentValueError, UnknownInput, suggest
from ..core.storage import using
from ..exec import report
from ..exec.limits import Threads
from ..exec.plan import Plan
from ..exec.scheduling.executor import Executor
from ..exec.scheduling.producer import Producer
from ..exec.scheduling.statistics import Statistics
from ..exec.scheduling.tuning import Reading, Setting, Tuner
from . import outputs
from .reports import not_opened
from .settings import Settings, available_cpus

if TYPE_CHECKING:
    from ..cluster.worker_pool import WorkerPool
    from ..gpu.session import Session

_Method = TypeVar("_Method", bound=Callable[..., Any])

# Cores for the JPEG engine's thread, Python, and the driver.
_CORES_FOR_DECODING_ON_GPU = 4
# Maximum batches prepared ahead with `autotune`; on the GPU they use its memory.
_MOST_AHEAD, _MOST_AHEAD_ON_GPU = 8, 4
# Decoding on the CPU is tried only by pipelines that hold less GPU memory than this, as it takes up to as much pinned
# memory.
_MOST_PINNED = 4 << 30


def native_threads(settings: Settings, plan: Plan) -> int:
    """The requested number of threads. If the GPU decodes, cores are left for the threads that feed it: half of them
    if the native threads only read and prepare images for it, as more threads get in each other's way."""
    if not plan.decodes_on_gpu or (settings.decode_on != "gpu" and plan.moves_decoding):
        return settings.num_threads
    most = available_cpus() - _CORES_FOR_DECODING_ON_GPU
    if plan.only_feeds_gpu:
        most = min(most, available_cpus() // 2)
    return min(settings.num_threads, max(most, 1))


def most_threads(settings: Settings, plan: Plan) -> int:
    """The maximum number of threads for `autotune`."""
    if settings.cpu_budget is not None:
        return max(int(settings.cpu_budget), 1)
    return max(available_cpus() - (_CORES_FOR_DECODING_ON_GPU if plan.decodes_on_gpu else 0), 1)


def open_session(settings: Settings, defined_at: str) -> Session:
    if settings.device_id is None:
        raise ArgumentValueError(
            f"the pipeline{defined_at} has operators on the GPU and no device_id: set it, for instance device_id=0"
        )
    from ..gpu.session import Session  # imported only by pipelines with a GPU

    return Session(settings.device_id, settings.device_memory_limit)


def _read(statistics: Statistics) -> Reading:
    totals = statistics.totals()
    return Reading(totals.waited_ns, sum(totals.native_ns.values()), report.memory_bytes())


def _may_decode_on_cpu(session: Session) -> bool:
    return session.budget.peak < _MOST_PINNED


def _measured(method: _Method) -> _Method:
    """Adds the CPU time of the calling thread to the statistics."""

    @wraps(method)
    def call(self: Runner, *args: Any) -> Any:
        since = clocks()
        try:
            return method(self, *args)
        finally:
            self.statistics.worked(since)

    return call  # type: ignore[return-value]


class Runner:
    """The argument `iter_setup` of methods is the pipeline's method if its class overrides it, else None."""

    def __init__(self, settings: Settings):
        self.settings, self.statistics = settings, Statistics()
        self.plan: Plan | None = None  # None until the pipeline is built
        self.executor: Executor | None = None
        self.batch_size = settings.max_batch_size  # size of the batches requested from now on
        self.lock = threading.RLock()  # for building and running, as several threads may request batches
        # Once the pipeline is built, with `autotune`, or if it chooses where to decode.
        self.tuner: Tuner | None = None
        self._iter_setup_ended = self._primed = False
        # Batches requested and not taken, counted as in DALI. The executor makes others ahead.
        self.requested = 0
        self.end_is_pending = False  # whether the last batch of the executor is the end of a source
        self.parts: tuple[Plan, Plan] | None = None  # plans of the workers and of this process
        self._worker_pool: WorkerPool | None = None  # the workers that make the batches
        self._calls = False  # whether the consumer's thread calls sources

    def start(
        self,
        plan: Plan,
        defined_at: str,
        prepare: Callable[[Plan, Executor], None],
        start_workers: Callable[[Plan, Statistics], Any] | None = None,
    ) -> None:
        """Opens the sources. `prepare` is called with the executor before its first batch. `start_workers` returns the
        producer if workers make the batches."""
        settings = self.settings
        assert settings.max_batch_size is not None
        outputs.check_numbers(settings.demanded, len(plan.outputs))
        if plan.uses_gpu:
            plan.session = open_session(settings, defined_at)
            plan.session.worked = self.statistics.worked
            plan.session.decode_on = settings.decode_on
            plan.check_device()
        for node in plan.sources:
            if plan.session is not None:
                op = plan.source_op(node)
                op.gpu, op.uploaded = plan.session, plan.uploaded(node)
            try:
                with using(settings.storage):
                    plan.source_op(node).open(settings.max_batch_size, settings.seed)
            except (ValueError, OSError, RuntimeError, TypeError) as e:
                raise not_opened(node, e) from None
        for node, unused in plan.unused.items():
            which = ", ".join(map(str, unused))
            which = f"output at the index {which} is" if len(unused) == 1 else f"outputs at the indices {which} are"
            text = f"the source produces {node.n_outputs} outputs, but the {which} not used"
            file, line, _ = node.sites[-1] if node.sites else (__file__, 0, "")
            warnings.warn_explicit(f"penstock.{node.op.display_name()}: {text}", UserWarning, file, line)
        if start_workers is None:
            producer = Producer(plan, settings.policy, native_threads(settings, plan), self.statistics.record)
        else:
            producer = start_workers(plan, self.statistics)
            self.parts = producer.away, producer.rest
            self._worker_pool = producer.workers
        executor = Executor(plan, producer, settings.policy, self.statistics)
        self._calls = any(plan.source_op(n).called is not None for n in plan.sources)
        prepare(plan, executor)
        self.plan, self.executor = plan, executor
        executor.depth = settings.depth
        moves_decoding = settings.chooses_decoding and plan.moves_decoding
        if settings.autotune or (moves_decoding and start_workers is None):
            start = Setting(native_threads(settings, plan), settings.depth, settings.decode_on)
            depth = max(_MOST_AHEAD_ON_GPU if plan.uses_gpu else _MOST_AHEAD, settings.depth)
            most = Setting(most_threads(settings, plan), depth if settings.ahead else settings.depth)
            self.tuner = Tuner(
                start,
                most if settings.autotune else None,
                settings.memory_budget,
                partial(_read, self.statistics),
                partial(_may_decode_on_cpu, plan.session) if moves_decoding and plan.session else lambda: False,
            )

    @property
    def threads(self) -> Threads:
        """The threads that process samples."""
        return Threads(self.settings.num_threads, 0 if self._worker_pool is None else self._worker_pool.size)

    @property
    def tried(self) -> list[str]:
        """What was tried to make the pipeline faster, one line each."""
        return [] if self.tuner is None else list(self.tuner.history)

    @property
    def together(self) -> int:
        """Number of batches merged into one."""
        return 1 if self.executor is None else self.executor.merging.size

    def made_ahead(self) -> int:
        """Maximum number of batches made ahead. Programs may rely on how far ahead their own code is called."""
        assert self.plan is not None
        ahead = self.settings.depth
        if self._worker_pool is not None and self.settings.ahead:
            ahead = max(ahead, self._worker_pool.window)
        ahead += 0 if self._calls else self.settings.ahead * self.plan.ahead
        return ahead * self.together if self.settings.ahead else ahead

    def most_pending(self) -> int:
        """Maximum number of batches in flight."""
        assert self.executor is not None
        return self.made_ahead() + self.settings.ahead * self.executor.reads_ahead

    @_measured
    def next(self, iter_setup: Callable[[], None] | None) -> list[Batch]:
        """The next batch, not wrapped. Requires `lock`. Starts another one before waiting for the GPU, unless that
        needs the user's code first."""
        executor = self.executor
        assert executor is not None
        if executor.pending == 0:
            self._schedule(iter_setup, at_once=True)
        asks_user = self._calls or iter_setup is not None
        is_polling = not asks_user and executor.consumer_is_polling()
        most = self.most_pending()
        if not is_polling:
            self._fill_queue(iter_setup, most)
        n = self.settings.depth
        if asks_user or not executor.has_data():
            n = min(n, self._coming)
        self.requested = max(self.requested, n)
        batches = self._take()
        if self.settings.ahead and not asks_user and not is_polling:
            executor.schedule_ahead(self._size(), most)
        else:
            executor.make_due()
        return batches

    @_measured
    def schedule(self, iter_setup: Callable[[], None] | None) -> None:
        """Requests one batch without waiting for it; the first call also fills the prefetch queue."""
        executor = self.executor
        assert executor is not None
        with self.lock:
            n = 1 if self._primed else self.settings.scheduled_at_first
            self._primed = True
            executor.withdraw()
            for i in range(n):
                if self._coming <= self.requested:
                    if i and iter_setup is None and not executor.has_data():
                        break
                    if not self._schedule(iter_setup):
                        break
                self.requested += 1
            if self.settings.ahead:
                self._fill_queue(iter_setup, self.requested + self.most_pending() - self.settings.depth)

    @_measured
    def ask_ahead(self, iter_setup: Callable[[], None] | None) -> None:
        """For iterators, before they return a batch: calls the user's code for the next batches."""
        if self.settings.ahead and (self._calls or iter_setup is not None):
            with self.lock:
                self._fill_queue(iter_setup, self.most_pending())

    @_measured
    def share(self) -> list[Batch]:
        """The oldest requested batch."""
        executor = self.executor
        assert executor is not None
        if not self.requested:
            raise StopIteration("no batch was scheduled; call schedule_run() first")  # as in DALI
        if executor.pending == 0:  # `next` doesn't make batches ahead for a program that polls
            self._schedule(None, at_once=True)
        batches = self._take()
        executor.make_due()
        return batches

    def empty(self) -> bool:
        """Whether all requested batches were taken. Waits for the next one if only that tells whether its source has
        ended."""
        return not self.requested or (self.executor is not None and self.executor.ends_next())

    def _take(self) -> list[Batch]:
        executor = self.executor
        assert executor is not None
        pending = executor.pending
        if self._iter_setup_ended and pending == 0:
            raise StopIteration
        try:
            batches = executor.share()
        except StopIteration:
            self.requested, self.end_is_pending = 0, False
            raise
        finally:
            if executor.pending < pending:  # it is not if the wait was interrupted
                self.requested = max(self.requested - 1, 0)
        if self.tuner is not None:
            self._tune(self.tuner, len(batches[0]) if batches else 0)
        return batches

    def _tune(self, tuner: Tuner, samples: int) -> None:
        setting, settings, executor = tuner.took(samples), self.settings, self.executor
        if setting is None:
            return
        assert executor is not None
        settings.decode_on = setting.decode_on
        if executor.plan.session is not None:
            executor.plan.session.decode_on = setting.decode_on
        if settings.autotune:
            settings.set_tuned(setting.num_threads, setting.depth)
            executor.depth = settings.depth
            executor.set_threads(setting.num_threads)
        else:
            executor.set_threads(native_threads(settings, executor.plan))

    @property
    def _coming(self) -> int:
        """Number of batches in flight, without the end of a source."""
        assert self.executor is not None
        return self.executor.pending - self.end_is_pending

    def _fill_queue(self, iter_setup: Callable[[], None] | None, most: int) -> None:
        """Has the executor make batches until `most` are in flight, without waiting for `feed_input`."""
        executor = self.executor
        assert executor is not None
        while executor.pending < most and (iter_setup is not None or executor.has_data()):
            if not self._schedule(iter_setup):
                break

    def _schedule(self, iter_setup: Callable[[], None] | None, at_once: bool = False) -> bool:
        """Has the executor make one more batch; False if a source or `iter_setup` has ended the epoch."""
        assert self.executor is not None
        if self._iter_setup_ended or self.end_is_pending:
            return False
        try:
            follows = self.executor.call_sources(self._size(), iter_setup)
        except StopIteration:
            self._iter_setup_ended = True
            return False
        self.executor.schedule(self._size(), at_once=at_once)
        self.end_is_pending = not follows
        return follows

    def _size(self) -> int:
        assert self.batch_size is not None
        return self.batch_size

    def set_batch_size(self, batch_size: int) -> None:
        most = self.settings.max_batch_size
        assert most is not None
        if not 0 < batch_size <= most:
            raise ValueError(f"the batch size of an iteration is 1 to {most}; got {batch_size}")
        self.batch_size = batch_size

    def input(self, name: Any) -> Any:
        """The source with this name that can be fed."""
        if not isinstance(name, str):
            raise TypeError(f"an input is given by its name or its DataNode; got {type(name).__name__}")
        assert self.plan is not None
        feeds = {n.name: n.op for n in self.plan.sources if hasattr(n.op, "feed")}
        if name not in feeds:
            raise UnknownInput(
                f"the pipeline has no input '{name}'; it has {sorted(feeds) or 'none'}.{suggest(str(name), feeds)}"
            )
        return feeds[name]

    def reset(self) -> None:
        ended, self._iter_setup_ended = self._iter_setup_ended, False
        if self.executor is not None:
            self.executor.check_not_busy()
            if self.executor.reset():
                ended, self.requested, self.end_is_pending = True, 0, False
            self._primed &= not ended

    def close(self) -> None:
        if self.executor is not None:
            self.executor.close()
        if self.plan is not None and self.plan.session is not None:
            self.plan.session.close()
