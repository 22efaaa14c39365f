# SPDX-License-Identifier: Apache-2.0
"""Running a pipeline: its executor, how many batches are on their way, and `iter_setup` before each of them."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from ..core.batch import Batch
from ..core.errors import ArgumentValueError, of_argument, suggest
from ..core.storage import using
from ..exec import report
from ..exec.limits import Threads
from ..exec.plan import Plan
from ..exec.scheduling.executor import Executor
from ..exec.scheduling.producer import Producer
from ..exec.scheduling.statistics import Statistics
from ..exec.scheduling.tuning import Reading, Setting, Tuner
from .settings import Settings, available_cpus

if TYPE_CHECKING:
    from ..cluster.worker_pool import WorkerPool
    from ..gpu.session import Session

# The JPEG engine's thread, Python, and the driver's own work.
_CORES_FOR_DECODING_ON_GPU = 4
# Of batches prepared ahead, with `autotune`; those of a GPU take its memory.
_MOST_AHEAD, _MOST_AHEAD_ON_GPU = 8, 4


def native_threads(settings: Settings, plan: Plan) -> int:
    """As many as asked for. Where the GPU decodes, fewer on a machine with few cores: the native threads have little to
    do then, and the threads that feed the GPU must not wait for a core."""
    if not plan.decodes_on_gpu:
        return settings.num_threads
    return min(settings.num_threads, max(available_cpus() - _CORES_FOR_DECODING_ON_GPU, 1))


def most_threads(settings: Settings, plan: Plan) -> int:
    """The most threads that `autotune` tries."""
    if settings.cpu_budget is not None:
        return max(int(settings.cpu_budget), 1)
    return max(available_cpus() - (_CORES_FOR_DECODING_ON_GPU if plan.decodes_on_gpu else 0), 1)


def open_session(settings: Settings, defined_at: str) -> Session:
    if settings.device_id is None:
        raise ArgumentValueError(
            f"the pipeline{defined_at} has operators on the GPU and no device_id: set it, for instance device_id=0"
        )
    from ..gpu.session import Session  # only pipelines with a GPU pay for its modules

    return Session(settings.device_id, settings.device_memory_limit)


def _read(statistics: Statistics) -> Reading:
    totals = statistics.totals()
    return Reading(totals.waited_ns, sum(totals.native_ns.values()), report.memory_bytes())


class Runner:
    """`iter_setup`, where a method takes it, is the pipeline's if its class has one, else None."""

    def __init__(self, settings: Settings):
        self.settings, self.statistics = settings, Statistics()
        self.plan: Plan | None = None  # once the pipeline is built
        self.executor: Executor | None = None
        self.batch_size = settings.max_batch_size  # of the batches that are asked for from now on
        self.lock = threading.RLock()  # of building and running: several threads may ask for batches
        self.tuner: Tuner | None = None  # with `autotune`, once the pipeline is built
        self._iter_setup_ended = self._primed = False
        self.parts: tuple[Plan, Plan] | None = None  # what workers do, and the rest
        self._worker_pool: WorkerPool | None = None  # of the workers that make the batches
        self._calls = False  # whether sources are called by who asks for a batch

    def start(
        self,
        plan: Plan,
        defined_at: str,
        prepare: Callable[[Plan, Executor], None],
        start_workers: Callable[[Plan, Statistics], Any] | None = None,
    ) -> None:
        """Opens the sources; `prepare` is called with the executor before it makes a batch. `start_workers` gives the
        producer if workers make the batches."""
        settings = self.settings
        assert settings.max_batch_size is not None
        if plan.uses_gpu:
            plan.session = open_session(settings, defined_at)
            plan.session.worked = self.statistics.worked
            plan.check_device()
        for node in plan.sources:
            if plan.session is not None:
                op = plan.source_op(node)
                op.gpu, op.uploaded = plan.session, plan.uploaded(node)
            try:
                with using(settings.storage):
                    plan.source_op(node).open(settings.max_batch_size, settings.seed)
            except (ValueError, OSError, RuntimeError, TypeError) as e:
                text = node.describe(str(e))
                is_argument = isinstance(e, (ValueError, TypeError))  # of DALI's they are RuntimeErrors
                raise (of_argument(e, text) if is_argument else RuntimeError(text)) from None
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
        if settings.autotune:
            depth = max(_MOST_AHEAD_ON_GPU if plan.uses_gpu else _MOST_AHEAD, settings.depth)
            self.tuner = Tuner(
                Setting(native_threads(settings, plan), settings.depth),
                Setting(most_threads(settings, plan), depth if settings.ahead else settings.depth),
                settings.memory_budget,
                partial(_read, self.statistics),
            )

    @property
    def threads(self) -> Threads:
        """Those that process samples."""
        return Threads(self.settings.num_threads, 0 if self._worker_pool is None else self._worker_pool.size)

    @property
    def tried(self) -> list[str]:
        """What `autotune` has done so far."""
        return [] if self.tuner is None else list(self.tuner.history)

    @property
    def together(self) -> int:
        """How many batches are made as one."""
        return 1 if self.executor is None else self.executor.merging.size

    def made_ahead(self) -> int:
        """How many batches may be made before they are wanted. Programs may count on how far ahead their own code is
        called."""
        assert self.plan is not None
        ahead = self.settings.depth
        if self._worker_pool is not None and self.settings.ahead:
            ahead = max(ahead, self._worker_pool.window)
        ahead += 0 if self._calls else self.settings.ahead * self.plan.ahead
        return ahead * self.together if self.settings.ahead else ahead

    def most_pending(self) -> int:
        """How many batches may be on their way."""
        assert self.plan is not None
        if self._worker_pool is not None:  # workers read ahead by themselves
            return self.made_ahead()
        return self.made_ahead() + self.settings.ahead * self.plan.batches_read_ahead

    def next(self, iter_setup: Callable[[], None] | None) -> list[Batch]:
        """The next batch, as it is; `lock` is held. The one behind it is begun before the GPU is waited for, unless it
        needs something of the user first."""
        executor = self.executor
        assert executor is not None
        if executor.pending == 0:
            self._schedule(iter_setup, at_once=True)
        asks_user = self._calls or iter_setup is not None
        if not asks_user and executor.consumer_is_polling():
            return self.share()
        self._fill_queue(iter_setup)
        batches = self.share()
        if self.settings.ahead and not asks_user:
            executor.schedule_ahead(self._size(), self.most_pending())
        return batches

    def schedule(self, iter_setup: Callable[[], None] | None) -> None:
        """Asks for one batch without waiting for it; the first call also fills the prefetch queue."""
        with self.lock:
            self._schedule(iter_setup)
            if self.settings.ahead and not self._primed:
                self._fill_queue(iter_setup)
            self._primed = True

    def ask_ahead(self, iter_setup: Callable[[], None] | None) -> None:
        """As iterators do before they give out a batch: what the user has to do for the next one is done."""
        if self.settings.ahead and (self._calls or iter_setup is not None):
            with self.lock:
                self._fill_queue(iter_setup)

    def share(self) -> list[Batch]:
        """The oldest batch asked for."""
        assert self.executor is not None
        if self._iter_setup_ended and self.executor.pending == 0:
            raise StopIteration
        batches = self.executor.share()
        if self.tuner is not None:
            self._tune(self.tuner, len(batches[0]) if batches else 0)
        return batches

    def _tune(self, tuner: Tuner, samples: int) -> None:
        setting = tuner.took(samples)
        if setting is not None:
            assert self.executor is not None
            if setting.num_threads != self.settings.num_threads:
                self.executor.set_threads(setting.num_threads)
            self.settings.set_tuned(*setting)
            self.executor.depth = self.settings.depth

    def _fill_queue(self, iter_setup: Callable[[], None] | None) -> None:
        """Asks for as many batches as may be on their way, without waiting for `feed_input`."""
        executor, most = self.executor, self.most_pending()
        assert executor is not None
        while executor.pending < most and (iter_setup is not None or executor.has_data()):
            if not self._schedule(iter_setup):
                break

    def _schedule(self, iter_setup: Callable[[], None] | None, at_once: bool = False) -> bool:
        """Asks for one batch; False if `iter_setup` says that there is none."""
        assert self.executor is not None
        if self._iter_setup_ended:
            return False
        try:
            if self.executor.call_sources(self._size()) and iter_setup is not None:
                iter_setup()
        except StopIteration:
            self._iter_setup_ended = True
            return False
        self.executor.schedule(self._size(), at_once=at_once)
        return True

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
        """The source that is fed under a name."""
        assert self.plan is not None
        feeds = {n.name: n.op for n in self.plan.sources if hasattr(n.op, "feed")}
        if name not in feeds:
            raise KeyError(
                f"the pipeline has no input '{name}'; it has {sorted(feeds) or 'none'}.{suggest(str(name), feeds)}"
            )
        return feeds[name]

    def reset(self) -> None:
        self._iter_setup_ended = False
        if self.executor is not None:
            self.executor.check_not_busy()
            self._primed &= not self.executor.reset()

    def close(self) -> None:
        if self.executor is not None:
            self.executor.close()
        if self.plan is not None and self.plan.session is not None:
            self.plan.session.close()
