# SPDX-License-Identifier: Apache-2.0
"""Pipelines whose batches workers make: which pipelines support it, and what is sent to the workers."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..core.errors import ArgumentTypeError, ArgumentValueError, Site
from ..core.storage import StorageSettings
from ..exec.context import Context
from ..exec.plan import Plan
from ..exec.scheduling.policy import Policy
from ..exec.scheduling.producer import Producer
from ..exec.scheduling.statistics import Statistics
from ..graph.cutting import Cut, cut, windows_first, with_less_sent
from ..graph.node import DataNode, Edge, Node
from ..graph.trace import Definition
from . import serialization
from .settings import Settings

if TYPE_CHECKING:
    from ..cluster.autoscaling import Limits
    from ..cluster.batch_maker import BatchMaker
    from ..cluster.pool_producer import PoolProducer
    from ..cluster.worker_link import WorkerLink
    from ..external.arena import Pin


_CANNOT = "{} can't be sent to workers: {}. Define it in a module that workers can import, or leave out workers"
_TRIAL_SAMPLES = 8  # samples used to measure the size of each output


class SerializedPipeline(NamedTuple):
    """A pipeline serialized for a worker."""

    content: dict[str, Any]
    functions: dict[str, Any]
    sites: list[tuple[Site, ...]]  # the user's code lines, by node
    storage: StorageSettings
    checkpoint: list[str] | None
    worker: int

    def for_worker(self, worker: int) -> bytes:
        """Pickles it for one worker; its index determines the numbers of its threads in traces."""
        return pickle.dumps(self._replace(worker=worker), 5)

    def open(self) -> BatchMaker:
        """In the worker: opens the sources and returns the BatchMaker."""
        from ..cluster.batch_maker import BatchMaker
        from .pipeline import Pipeline

        s, changed = self.storage, dict[str, Any](checkpoint=self.checkpoint)
        changed |= {"storage_options": s.options, "cache": s.cache, "cache_bytes": s.cache_bytes or None}
        pipe = serialization.made_of(Pipeline, self.content, self.functions, changed)
        for node, sites in zip(pipe.definition.nodes, self.sites):
            node.sites = sites
        pipe.build()
        plan, threads = pipe._plan, pipe.num_threads
        assert plan is not None
        return BatchMaker(plan, pipe._settings.policy.on_error, threads, self.worker * (threads + 1))


def sends_over_network(settings: Settings) -> bool:
    """Whether batches are sent between machines, so that sending less data pays off."""
    return bool(settings.cluster)


def arrange_nodes(definition: Definition, settings: Settings) -> list[Node]:
    """The nodes of a definition, arranged so that little data is sent where it is cut."""
    if sends_over_network(settings):
        windows_first(definition)
    return definition.nodes


def why_only_here(plan: Plan, node: Node, others: str) -> str:
    """Why batches with this operator can be made only in this process, and not by `others`; empty if they can."""
    if node.op.in_order:
        return "it runs for one batch after the other, in order, in one process"
    if node in plan.sources and not plan.source_op(node).picks_suffice:
        return f"its data is in this process, which {others} can't reach. Read it by one of fn.readers"
    return ""


def check_supported(plan: Plan, made: Cut, workers: Any) -> None:
    """Raises ValueError, which says what to change, for a pipeline whose batches workers can't make."""
    for node in plan.nodes:
        if node in plan.sources and node.number not in made.on_workers:
            why = "an argument that says what it reads comes from the GPU, which workers have none of"
        else:
            why = why_only_here(plan, node, "workers")
        if why:
            raise ArgumentValueError(
                node.describe(f"workers={workers!r} can't be used with this operator: {why}; or leave out workers")
            )
    if not made.sent:
        raise ArgumentValueError(f"workers={workers!r} have nothing to make: all of this pipeline is on the GPU")


def producer_starter(
    plan: Plan, definition: Definition, sinks: list[Any], settings: Settings
) -> Callable[[Plan, Statistics], PoolProducer] | None:
    """A function that starts the workers once the sources are open; None without workers."""
    if not settings.workers:
        return None
    outputs = [definition.nodes[number].outputs[index] for number, index in plan.outputs]
    made = cut(plan.nodes, outputs + sinks)
    check_supported(plan, made, settings.cluster or settings.workers)
    return partial(_start, definition, outputs, sinks, made, settings)


def _start(
    definition: Definition,
    outputs: list[DataNode],
    sinks: list[DataNode],
    made: Cut,
    settings: Settings,
    plan: Plan,
    statistics: Statistics,
) -> PoolProducer:
    from ..cluster.autoscaling import Autoscaler
    from ..cluster.batch_maker import described
    from ..cluster.pool_producer import PoolProducer
    from ..cluster.worker_pool import WorkerPool

    if sends_over_network(settings):
        made = with_less_sent(plan.nodes, outputs + sinks, made, _sample_sizes(plan, definition, made, settings))
    here = {n.number for n in plan.nodes} - made.on_workers
    worker_sinks, local_sinks = (
        [s for s in sinks if (s.source.number in here) == is_here] for is_here in (False, True)
    )
    worker_plan = Plan(definition.nodes, made.sent, worker_sinks, plan.seed, here)
    local_plan = Plan(definition.nodes, outputs, local_sinks, plan.seed, made.on_workers)
    functions: dict[str, Any] = {}
    content = serialization.content_of_plan(worker_plan, definition, worker_sinks, settings, functions)
    for number in here:  # nodes preserved in this process are not needed by workers
        content["nodes"][number]["arguments"].pop("preserve", None)
    for name, function in functions.items():
        if getattr(function, "__module__", "") == "__main__" or "<" in name:
            why = "only functions that a module defines can be imported there"
            raise ArgumentTypeError(_with_line(definition, function, _CANNOT.format(name, why)))
    sent = SerializedPipeline(
        *(content, functions, [n.sites for n in definition.nodes], settings.storage),
        *(None if settings.checkpoint is None else settings.checkpoint.texts(), 0),
    )
    link = _cluster_link if settings.cluster else _local_link
    try:
        pickle.dumps(sent, 5)
    except Exception as e:
        what = ", ".join(functions) or "the pipeline"
        raise ArgumentTypeError(_CANNOT.format(what, f"{type(e).__name__}: {e}")) from None
    make_link = link(settings, sent, described(worker_plan), sys.modules["penstock"].__version__, _pin(plan))
    n, limits = _worker_counts(settings)
    pool = WorkerPool(make_link, n, settings.depth, Autoscaler(limits, lambda: statistics.totals().waited_ns))
    return PoolProducer(pool, plan, worker_plan, local_plan, settings.policy, settings.num_threads, statistics)


def _sample_sizes(plan: Plan, definition: Definition, made: Cut, settings: Settings) -> dict[Edge, float]:
    """Bytes per sample at each possible cut of the graph, measured with a few samples. Empty if these can't be made."""
    nodes = [n for n in definition.nodes if n.number in made.on_workers and n.scope is None and n.branch is None]
    known = {n.number for n in plan.nodes}
    outputs = [d for n in nodes if n.number in known for d in n.outputs]
    sources = [plan.source_op(n) for n in plan.sources]
    before, n = [op.state() for op in sources], min(_TRIAL_SAMPLES, settings.max_batch_size or 1)
    context = Context(n, np.zeros(n, "u4"), np.arange(n), 0)
    try:
        trial = Plan(definition.nodes, outputs, [], plan.seed)
        picks = {node.number: op.take(n, 0) for node, op in zip(plan.sources, sources)}
        producer = Producer(trial, Policy("skip"), 1, lambda ctx: None)
        made_of_them, rows = producer.produce(context, picks)
        return {
            e: float(b.spec.volumes().sum() * b.spec.dtype.itemsize) / max(len(rows), 1)
            for e, b in zip(trial.outputs, made_of_them)
        }
    except Exception:  # the error is reported when it occurs again
        return {}
    finally:
        for op, state in zip(sources, before):
            if state is not None:
                op.restore(state)


def _pin(plan: Plan) -> Pin | None:
    """What registers the memory of batches as pinned memory; None if no GPU reads them."""
    if plan.session is None:
        return None
    from ..gpu.registered import register

    return partial(register, plan.session.device)


def _local_link(
    settings: Settings, sent: SerializedPipeline, expected: dict[str, Any], version: str, pin: Pin | None
) -> Callable[[int], WorkerLink]:
    from ..cluster.local_link import LocalLink

    return lambda index: LocalLink(index, sent.for_worker(index), expected, version, pin)


def _cluster_link(
    settings: Settings, sent: SerializedPipeline, expected: dict[str, Any], version: str, pin: Pin | None
) -> Callable[[int], WorkerLink]:
    """Connects to the Ray cluster."""
    from ..cluster import ray_link

    try:
        ray_link.connect(settings.cluster)
    except ImportError as e:
        raise ImportError(f"workers={settings.cluster!r} needs Ray: pip install 'penstock[ray]' ({e})") from None
    except ConnectionError as e:
        raise ConnectionError(f"workers={settings.cluster!r} finds no cluster of Ray: {e}") from None
    threads = settings.num_threads
    return lambda index: ray_link.RayLink(
        index, sent.for_worker(index), expected, version, threads, settings.depth, pin
    )


def _worker_counts(settings: Settings) -> tuple[int, Limits]:
    """The number of workers to start with, and its limits."""
    from ..cluster.autoscaling import Limits, fixed

    least, most = settings.min_workers, settings.max_workers
    if settings.cluster:
        from ..cluster import ray_link

        places = partial(ray_link.places, settings.num_threads)  # varies as machines join and leave
        limits = Limits(fixed(least or 1) if least or most else places, fixed(most) if most else places)
        return limits.least(), limits
    given = settings.workers
    if least is None and most is None:
        return given, Limits(fixed(given), fixed(given))
    return given, Limits(fixed(least or 1), fixed(most or given))


def _with_line(definition: Definition, function: Any, text: str) -> str:
    """The text, with the user's line that calls the function."""
    of = next((n for n in definition.nodes if any(v is function for v in n.op.values.values())), None)
    return text if of is None else of.describe(text)
