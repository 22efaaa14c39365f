# SPDX-License-Identifier: Apache-2.0
"""Constants of batch scheduling."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class SchedulingConstants:
    """Times are in ns if the name says so, otherwise in seconds. They affect only when a batch is made, not its
    content."""

    in_flight: int = 2
    """While the native threads process one batch, the next one is planned, so they never wait for Python."""
    in_flight_on_gpu: int = 3
    """While files of one batch are read, those of another are copied."""
    loaded_at_once: int = 4

    brief_ns: int = 3_000_000
    """If one of the last batches took less than this to run, the loading thread also runs batches: waking another
    thread and contending with it for the GIL costs more than the overlap gains. Mixed decoders, and what waits for the
    GPU midway, are run by other threads, as the next batch must be ready by then."""
    batches_remembered: int = 8

    tight_loop_ns: int = 150_000
    """A consumer that requests the next batch within this time, `tight_loops` times in a row, makes brief batches
    itself: made ahead they would not be ready much sooner, and each would cost both threads a wake-up."""
    tight_loops: int = 4

    most_merged_samples: int = 256
    """Up to `most_merged_batches` small batches, with up to this many samples in total, which use a GPU well, are
    merged."""
    most_merged_batches: int = 8
    merges_watched: int = 16
    """Number of batches per merged one after which the share of the time that the consumer waited is checked. From
    `waiting_share` on, twice as many batches are merged."""
    waiting_share: float = 0.1

    shared_core_least: int = 4
    """Threads are moved to one core only if the process may use at least this many: with fewer there is none to
    spare."""
    shared_core_free_batches: int = 32
    """This many batches run wherever the system schedules the threads, as it knows the other load; then the threads
    stay for `shared_core_stay` seconds on the core that the calling thread is on."""
    shared_core_stay: float = 1.0
    shared_core_frequent: float = 0.32
    """The threads are moved only if these batches came within this time; otherwise there is nothing to gain."""

    stop: float = 5.0
    """How long a closed or collected pipeline waits for a thread that runs a user callback."""
    stop_at_exit: float = 1.0
    """The same at interpreter exit."""


SCHEDULING = SchedulingConstants()
