# SPDX-License-Identifier: Apache-2.0
"""What the main process and its workers tell each other: `Task` one way, a reply the other. One message each, pickled,
over a socket that keeps messages apart."""

from __future__ import annotations

from typing import NamedTuple

MAX_MESSAGE = 128 << 10
MAX_TEXT = 32 << 10


class Column(NamedTuple):
    """Where a part of one output goes, in bytes from the beginning of the region: its rows (as `kernels.TENSOR`, with
    offsets in the arena for data), and its samples, which are packed at multiples of `step`."""

    rows: int
    begin: int
    end: int
    step: int


class Task(NamedTuple):
    """`n` samples of a batch, from the `first`, or (n = 0) a whole batch of at most `room` samples."""

    number: int  # counts from 1
    source: int
    epoch: int
    iteration: int
    in_epoch: int  # of the first sample of the batch
    first: int
    n: int
    room: int
    offset: int
    capacity: int
    columns: tuple[Column, ...]


class Done(NamedTuple):
    """`n` samples were made; `sizes` are (smallest, largest) numbers of bytes per output; `spilled` the regions
    (offset, bytes) with what did not fit."""

    number: int
    n: int
    sizes: tuple[tuple[int, int], ...]
    spilled: tuple[tuple[int, int], ...]
    ns: int
    bad: dict[int, str]  # by sample, why it could not be made


class Ended(NamedTuple):
    """The source raised StopIteration at this sample of the batch."""

    number: int
    row: int
    spilled: tuple[tuple[int, int], ...]
    bad: dict[int, str]


class Failed(NamedTuple):
    """The source raised, or what it gave can't be used (`is_data`)."""

    number: int
    row: int
    is_data: bool
    text: str
    traceback: str
    exception: bytes | None  # pickled, where that is possible


class Ready(NamedTuple):
    """The worker has its sources; otherwise `problem` says why not."""

    problem: str = ""
