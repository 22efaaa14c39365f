# SPDX-License-Identifier: Apache-2.0
"""Constants of batch scheduling."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class SchedulingConstants:
    """Times are in ns if the name says so, otherwise in seconds. They affect only when a batch is made, not its
    content."""

    in_flight: int = 2
    """While one batch keeps the native threads busy the next is planned, so they never wait for Python."""
    in_flight_on_gpu: int = 3
    """While one's files are read, another's are copied."""
    loaded_at_once: int = 4

    brief_ns: int = 3_000_000
    """Where one of the last batches took less than this to run, the thread that loads also runs: to wake another one
    and to take turns with it at Python's lock takes longer than what overlaps is worth. Those of a GPU overlap: so
    little passes until it is through with one that the next has to be there by then."""
    batches_remembered: int = 8

    tight_loop_ns: int = 150_000
    """A consumer that asks for the next batch within this time, `tight_loops` times in a row, makes brief batches
    itself. Made ahead they would not be there much sooner, and each would cost both threads what it takes to wake the
    other."""
    tight_loops: int = 4

    most_merged_samples: int = 256
    """As many as use a GPU well, of at most `most_merged_batches` small batches, are made as one."""
    most_merged_batches: int = 8
    merges_watched: int = 16
    """After so many of them it is looked at what share of the time the consumer has waited. From `waiting_share` on
    twice as many batches are merged."""
    waiting_share: float = 0.1

    shared_core_least: int = 4
    """Threads are brought together on one core where the process may use so many: with fewer there is none to spare."""
    shared_core_free_batches: int = 32
    """So many batches run wherever the system puts the threads, which knows what else is at work; then they stay for
    `shared_core_stay` seconds on the core where the thread that has called is by then."""
    shared_core_stay: float = 1.0
    shared_core_frequent: float = 0.32
    """In this time these batches have to come: there is nothing to gain otherwise."""

    stop: float = 5.0
    """How long a pipeline that is closed or collected waits for a thread that is in a user's callback."""
    stop_at_exit: float = 1.0
    """The same when Python ends."""


SCHEDULING = SchedulingConstants()
