# SPDX-License-Identifier: Apache-2.0
"""The metrics, read from the pipelines on request."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from ..exec import report
from ..pipeline import Pipeline, running

_RANKS = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")


class Value(NamedTuple):
    labels: dict[str, str]
    value: float


class Family(NamedTuple):
    """A metric: its Prometheus name, "counter" or "gauge", description, and values by labels."""

    name: str
    kind: str
    meaning: str
    values: list[Value]


_MEANINGS = {
    "penstock_samples_total": "Samples in the batches that were made.",
    "penstock_batches_total": "Batches that were made.",
    "penstock_consumer_wait_seconds_total": "Time for which the training waited for batches.",
    "penstock_operator_busy_seconds_total": "Time of the native threads, by operator.",
    "penstock_operator_python_seconds_total": "Time in Python, planning and the user's functions, by operator.",
    "penstock_operator_load_seconds_total": "Time that sources took to return data, by operator.",
    "penstock_bad_samples_total": "Samples that could not be read, decoded or processed, by on_error.",
    "penstock_remote_requests_total": "Requests over the network.",
    "penstock_remote_retries_total": "Requests that were repeated.",
    "penstock_remote_failed_total": "Requests that failed after all retries.",
    "penstock_remote_bytes_total": "Bytes read over the network.",
    "penstock_cached_bytes_total": "Bytes read from the cache on the disk.",
    "penstock_decoded_total": "Images of GPU pipelines, by what decoded them.",
    "penstock_threads": "Native threads.",
    "penstock_memory_bytes": "Memory of batches and scratch, of the whole process.",
    "penstock_device_memory_bytes": "Memory of the pipeline on the GPU.",
}
_REMOTE = {
    "requests": "penstock_remote_requests_total",
    "retries": "penstock_remote_retries_total",
    "failed": "penstock_remote_failed_total",
    "bytes": "penstock_remote_bytes_total",
    "cached_bytes": "penstock_cached_bytes_total",
}


def families() -> list[Family]:
    """All metrics of the pipelines of this process that are built. Reading them takes no lock that a batch waits for
    longer than microseconds.

    >>> from penstock import fn, metrics, pipeline_def
    >>> @pipeline_def(batch_size=2, num_threads=1)
    ... def counted():
    ...     return fn.random.uniform()
    >>> pipe = counted()
    >>> batch = pipe.run()
    >>> samples = next(f for f in metrics.families() if f.name == "penstock_samples_total")
    >>> [v.value >= 2 for v in samples.values if v.labels["pipeline"] == "counted"]
    [True]
    """
    found: dict[str, list[Value]] = {name: [] for name in _MEANINGS}
    rank = {"rank": next((os.environ[name] for name in _RANKS if name in os.environ), "0")}
    for title, pipe in running.pipelines():
        for name, labels, value in _of_pipeline(pipe):
            found[name].append(Value({"pipeline": title, **labels, **rank}, value))
    found["penstock_memory_bytes"].append(Value(rank, report.memory_bytes()))
    return [
        Family(name, "counter" if name.endswith("_total") else "gauge", meaning, found[name])
        for name, meaning in _MEANINGS.items()
    ]


def _of_pipeline(pipe: Pipeline) -> Iterator[tuple[str, dict[str, str], float]]:
    plan = pipe._plan
    if plan is None:
        return
    totals = pipe._runner.statistics.totals()
    yield "penstock_samples_total", {}, totals.samples
    yield "penstock_batches_total", {}, totals.batches
    yield "penstock_consumer_wait_seconds_total", {}, totals.waited_ns / 1e9
    for name, sums in (
        ("penstock_operator_busy_seconds_total", totals.native_ns),
        ("penstock_operator_python_seconds_total", totals.python_ns),
        ("penstock_operator_load_seconds_total", totals.load_ns),
    ):
        for node in plan.nodes:
            yield name, {"operator": report.title(node)}, sums.get(node.number, 0) / 1e9
    actions = {pipe._settings.policy.on_error: 0, **Counter(e.action for e in list(pipe._settings.policy.errors))}
    for action, count in actions.items():
        yield "penstock_bad_samples_total", {"action": action}, count
    for key, count in report.remote(plan).items():
        if key in _REMOTE:
            yield _REMOTE[key], {}, count
    yield "penstock_threads", {}, pipe.num_threads
    if plan.session is not None:
        yield "penstock_device_memory_bytes", {}, plan.session.budget.used
        for decoder, count in report.decoded(plan).items():
            yield "penstock_decoded_total", {"decoder": decoder}, count
