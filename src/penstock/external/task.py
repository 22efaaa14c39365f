# SPDX-License-Identifier: Apache-2.0
"""Messages between the main process and its workers: a `Task`, and a reply. Each is one pickled message
over a socket that preserves message boundaries."""

from __future__ import annotations

from typing import NamedTuple

MAX_MESSAGE = 128 << 10
MAX_TEXT = 32 << 10


class Column(NamedTuple):
    """The location of a part of one output, in bytes from the start of the region: its rows (`kernels.TENSOR`, with
    arena offsets as data), and its samples, aligned to `step`."""

    rows: int
    begin: int
    end: int
    step: int


class Task(NamedTuple):
    """`n` samples of a batch, starting at `first`, or (n = 0) a whole batch of at most `room` samples."""

    number: int  # counts from 1
    source: int
    epoch: int
    iteration: int
    in_epoch: int  # index of the first sample of the batch
    first: int
    n: int
    room: int
    offset: int
    capacity: int
    columns: tuple[Column, ...]
    indices: tuple[int, ...] = ()  # numbers of the samples, if they are not counted from `in_epoch` on

    def place(self, row: int) -> int:
        """What the source is told of the sample `row` of the batch."""
        return self.indices[row - self.first] if self.indices else self.in_epoch + row


class Done(NamedTuple):
    """`n` samples were made. `sizes`: (smallest, largest) bytes per output; `spilled`: regions (offset, bytes) for
    samples that did not fit."""

    number: int
    n: int
    sizes: tuple[tuple[int, int], ...]
    spilled: tuple[tuple[int, int], ...]
    ns: int
    bad: dict[int, str]  # by sample, the reason why it could not be made


class Ended(NamedTuple):
    """The source raised StopIteration at this sample of the batch."""

    number: int
    row: int
    spilled: tuple[tuple[int, int], ...]
    bad: dict[int, str]


class Failed(NamedTuple):
    """The source raised, or its data can't be used (`is_data`)."""

    number: int
    row: int
    is_data: bool
    text: str
    traceback: str
    exception: bytes | None  # pickled, if possible


class Ready(NamedTuple):
    """The worker has its sources; otherwise `problem` says why not."""

    problem: str = ""
