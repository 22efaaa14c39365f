# SPDX-License-Identifier: Apache-2.0
"""One batch in flight: its tasks, their output locations, and the resulting batch."""

from __future__ import annotations

import numpy as np

from ..core import dtypes
from ..core.batch import Batch, Spec
from ..core.errors import DataError, InternalError
from ..core.kernels import TENSOR
from .arena import Lease, Regions, Spilled, align
from .task import Column, Done, Ended, Task

_GROWTH = 1.25  # extra room for samples larger than any before, if sizes vary
_MOST_INDICES = 8192  # in a task, whose message has a limited size
_AIM_NS = 2_000_000  # target duration of a task: low overhead, and well balanced


class Sizes:
    """Statistics of a source's samples: bytes per output, and time."""

    def __init__(self, n_outputs: int, hint: list[int] | None):
        hints = list(hint or [0])
        self.largest = (hints + hints[-1:] * n_outputs)[:n_outputs]
        self.smallest = list(self.largest)
        self.ns = 0.0  # per sample; or per batch with n = 0
        self._known = False

    def saw(self, done: Done) -> None:
        if done.n == 0 or not done.sizes:
            return
        per = done.ns / done.n
        self.ns = per if not self._known else self.ns + 0.2 * (per - self.ns)
        for o, (smallest, largest) in enumerate(done.sizes):
            # Samples of constant size are packed without gaps.
            self.smallest[o] = min(self.smallest[o], smallest) if self._known else smallest
            self.largest[o] = max(self.largest[o], largest) if self._known else largest
        self._known = True

    def step(self, o: int) -> tuple[int, int]:
        """Bytes to reserve per sample of output `o`, and the alignment."""
        if self.smallest[o] == self.largest[o]:
            return self.largest[o], 1
        return align(int(self.largest[o] * _GROWTH)), 64

    def chunk(self, n: int, n_workers: int) -> int:
        """Number of samples per task, for a batch of `n`."""
        most = -(-n // n_workers)
        return most if not self.ns else max(1, min(most, int(_AIM_NS / self.ns)))


class Job:
    """A batch of `n` samples, or (n = 0) of one call."""

    def __init__(
        self, source: int, epoch: int, iteration: int, in_epoch: int, n: int, room: int, indices: tuple[int, ...] = ()
    ):
        self.source, self.epoch, self.iteration, self.in_epoch, self.n, self.room = (
            source,
            epoch,
            iteration,
            in_epoch,
            n,
            room,
        )
        self.indices = indices
        self.tasks: dict[int, Task] = {}  # not answered yet
        self.lease: Lease | None = None
        self.columns: list[int] = []  # offset of each output's rows
        self.spilled: list[Spilled] = []
        self.made = 0
        self.end: int | None = None  # the sample at which the source ended
        self.errors: dict[int, Exception] = {}  # by sample
        self.bad: dict[int, str] = {}  # by sample, the reason why it could not be made; left to on_error
        self.cancelled = False

    @property
    def n_samples(self) -> int:
        """Number of samples, including bad ones."""
        return self.made if self.end is None else self.end

    @property
    def done(self) -> bool:
        return not self.tasks

    def is_lost_from(self, row: int) -> bool:
        """Whether the sample `row` is no longer needed, because of an earlier one."""
        return self.cancelled or min(self.errors, default=row) < row or (self.end is not None and self.end < row)

    def lay_out(self, regions: Regions, sizes: Sizes, n_outputs: int, n_workers: int, number: int) -> list[Task]:
        """Takes a region for the batch and divides it among tasks with numbers from `number` on."""
        rows = self.n or self.room
        chunk = sizes.chunk(self.n, n_workers) if self.n else rows
        if self.indices:
            chunk = min(chunk, _MOST_INDICES)
        at, begins, steps = 0, [], []
        for _ in range(n_outputs):
            self.columns.append(at)
            at += rows * TENSOR.itemsize
        for o in range(n_outputs):
            at = align(at)
            steps.append(sizes.step(o))
            begins.append(at)
            at += rows * steps[o][0]
        self.lease = regions.take(at)
        region = self.lease.region
        for first in range(0, rows, chunk):
            n = min(chunk, rows - first)
            columns = tuple(
                Column(self.columns[o], begins[o] + first * steps[o][0], begins[o] + (first + n) * steps[o][0], step)
                for o, (_, step) in enumerate(steps)
            )
            task = Task(
                *(number + len(self.tasks), self.source, self.epoch, self.iteration, self.in_epoch, first),
                *(n if self.n else 0, self.room, region.offset, region.capacity, columns),
                indices=self.indices[first : first + n],
            )
            self.tasks[task.number] = task
        return list(self.tasks.values())

    def finish(self, done: Done | Ended, fd: int) -> None:
        if isinstance(done, Done):
            self.made += done.n
        else:
            self.end = done.row if self.end is None else min(self.end, done.row)
        self.bad |= done.bad
        self.spilled += [Spilled(fd, offset, nbytes) for offset, nbytes in done.spilled]

    def leave_out(self, task: Task, row: int, why: str, number: int) -> list[Task]:
        """Replaces a task of which sample `row` failed by tasks for the samples before and after it, with numbers from
        `number` on."""
        del self.tasks[task.number]
        self.bad[row] = why
        left: list[Task] = []
        for first, end in ((task.first, row), (row + 1, task.first + task.n)):
            if first == end:
                continue
            columns = []
            for c in task.columns:
                room = (c.end - c.begin) // task.n  # per sample
                begin, stop = c.begin + (first - task.first) * room, c.begin + (end - task.first) * room
                columns.append(c._replace(begin=begin, end=stop))
            indices = task.indices[first - task.first : end - task.first]
            part = task._replace(
                number=number + len(left), first=first, n=end - first, columns=tuple(columns), indices=indices
            )
            self.tasks[part.number] = part
            left.append(part)
        self.made += 1  # counts the bad one
        return left

    def first_problem(self, keeps_rest: bool = False) -> Exception | None:
        """The exception of the first sample that has one; None if there is none. The end of the source does not count
        if the samples before it must be kept."""
        row = min(self.errors, default=None)
        if self.end is not None and (row is None or self.end <= row):
            if keeps_rest and self.end:
                return None
            return StopIteration(self.end)
        return None if row is None else self.errors[row]

    def batches(self) -> list[Batch]:
        """One Batch per output, without the bad samples. Their shared memory is reused when they are deleted."""
        assert self.lease is not None
        region, n = self.lease.region, self.n_samples
        owners = (self.lease, *self.spilled)
        out = []
        for o, at in enumerate(self.columns):
            rows = np.ndarray((n,), TENSOR, region.memory, at).copy()
            good = np.setdiff1d(np.arange(n), list(self.bad))
            rows = rows[good]
            if len(good):
                self._check_alike(rows, o, good)
            data = rows["data"]
            inside = (data >= region.offset) & (data < region.offset + region.capacity)
            address = data - np.uint64(region.offset) + np.uint64(region.address)
            for s in self.spilled:
                r = s.region
                there = (data >= r.offset) & (data < r.offset + r.capacity)
                address = np.where(there, data - np.uint64(r.offset) + np.uint64(r.address), address)
                inside |= there
            if not inside.all():
                raise InternalError("a worker wrote outside of its memory")
            rows["data"] = address
            ndim = int(rows["ndim"][0]) if len(good) else 0
            dtype = dtypes.to_numpy(dtypes.DALIDataType(int(rows["dtype"][0]))) if len(good) else np.dtype("f4")
            out.append(Batch(Spec(rows["shape"][:, :ndim].copy(), dtype), rows, owners))
        return out

    def _check_alike(self, rows: np.ndarray, o: int, numbers: np.ndarray) -> None:
        differs = (rows["ndim"] != rows["ndim"][0]) | (rows["dtype"] != rows["dtype"][0])
        if differs.any():
            at = int(differs.argmax())
            i = int(numbers[at])
            kinds = [f"{r['ndim']} of {dtypes.DALIDataType(int(r['dtype'])).name}" for r in (rows[0], rows[at])]
            where = f"iteration {self.iteration}, epoch {self.epoch}, idx_in_epoch {self.in_epoch + i}"
            if self.indices:
                where = f"sample {self.indices[i]} of the data set"
            raise DataError(
                "all samples of a batch need the same number of dimensions and the same type; got "
                f"{kinds[0]} in sample {numbers[0]}, {kinds[1]} in sample {i} of output {o} ({where})"
            )
