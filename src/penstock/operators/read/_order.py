# SPDX-License-Identifier: Apache-2.0
"""The order of a data set's samples in each shard: a function (shard, epoch, offset) -> index.

A `SampleOrder` applies from its `first` epoch on. When a run is resumed with another number of shards, the samples that
the previous shards had left in their epochs come first, divided among the new shards: the `head`.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from ...core.kernels import library
from ...core.rows import address, allocate
from ._lengths import Lengths
from ._windows import Windows

# Up to this many samples, the permutation of `random_shuffle` is stored (8 bytes per sample).
_MOST_STORED = 1 << 16
# Up to this many samples, one call makes the picks of several epochs.
_SMALL = 4096
_INT64 = np.dtype("i8")


class SampleOrder:
    """Order of `size` samples in `num_shards` shards. If there is a `head` (epochs, indices), the epoch `first`
    consists of its samples."""

    def __init__(self, size: int, num_shards: int, *, pads: bool, sticks: bool, way: str, shared_key: int):
        """`way`: "" (in order), "random_shuffle", "shuffle_after_epoch", "shuffle", "windows", or "turns" (in order,
        shards take turns)."""
        self.size, self.num_shards, self.pads, self.sticks = size, num_shards, pads, sticks
        self.way, self.shared_key = way, shared_key
        self.buffer_key = self.initial_fill = 0  # of random_shuffle
        self.buffer_keys: list[int] = []  # by shard, if they differ
        self.lengths: Lengths | None = None  # if set, batches of `batch_size` have similar lengths
        self.batch_size = 0
        self.windows: Windows | None = None  # if `way` is "windows"
        self.first = 0
        self.head: tuple[np.ndarray, np.ndarray] | None = None
        self._lock = threading.Lock()
        self._orders: dict[tuple[int, int], np.ndarray] = {}  # by (epoch, part)
        self._shuffled: np.ndarray | None = None  # see `_data_set`; only for small data sets

    def begin(self, part) -> Any:
        """Index of the first sample of a part of the data set."""
        return part * self.size // self.num_shards

    def part(self, shard: int, epoch) -> Any:
        """The part of the data set that a shard reads in an epoch."""
        return (shard + epoch * (not self.sticks)) % self.num_shards

    def length(self, shard: int, epoch) -> Any:
        """Number of samples of a shard in an epoch."""
        part = self.part(shard, epoch)
        length = self.begin(part + 1) - self.begin(part)
        if self.head is None:
            return length
        mine = (len(self.head[1]) - shard + self.num_shards - 1) // self.num_shards
        return np.where(np.asarray(epoch) == self.first, mine, length)

    def padded_length(self, epoch: int) -> int:
        """Number of samples of the largest shard in an epoch."""
        size = self.size if self.head is None or epoch != self.first else len(self.head[1])
        return -(-size // self.num_shards)

    def index(self, shard: int, epoch: int, offset: np.ndarray) -> np.ndarray:
        """Indices (n,) of the samples at `offset` (n,) of a shard in one epoch."""
        if self.head is not None and epoch == self.first:
            return self.head[1][self._in_head(shard, offset)]
        part = self.part(shard, epoch)
        if self.lengths is not None:
            return self.lengths.index(epoch, self._turn(part, offset), self.num_shards * self.batch_size)
        if self.way in ("shuffle", "turns"):
            turns = self._turn(part, offset)
            return turns if self.way == "turns" else self._permute(epoch, turns)
        place = offset + self.begin(part)
        if self.windows is not None:
            return self.windows.index(self.shared_key, epoch, place)
        if self.way == "shuffle_after_epoch":
            return self._permute(epoch, place)
        if self.way == "random_shuffle":
            order = self._buffer_order(shard, epoch, part)[offset]
            return order if self.size <= _MOST_STORED else self._permute(0, self.begin(part) + order)
        return place

    def picks(self, shard: int, spans: list[tuple[int, int, int]]) -> np.ndarray:
        """Picks of a shard in some epochs, as columns (5, n): offset, epoch, index, epoch that the sample belongs to,
        index again. `spans`: (epoch, first offset, end offset)."""
        count = sum(end - begin for _, begin, end in spans)
        columns, at = allocate((5, count), _INT64)
        if self.way == "random_shuffle" and self.size <= _SMALL and self.head is None:  # many epochs, in one call
            rows = []
            for epoch, begin, end in spans:
                part = self.part(shard, epoch)
                rows.append((epoch, part, self.begin(part), self.length(shard, epoch), begin, end))
            key, order = self.buffer_keys[shard] if self.buffer_keys else self.buffer_key, self._data_set()
            native = library().shuffled_picks
            native(key, self.initial_fill, address(order), np.array(rows, "i8").tobytes(), len(rows), at, count)
            return columns
        at = 0
        for epoch, begin, end in spans:
            of_epoch = columns[:, at : at + end - begin]
            at += end - begin
            of_epoch[0], of_epoch[1] = np.arange(begin, end), epoch
            of_epoch[2], of_epoch[3] = self.index(shard, epoch, of_epoch[0]), self.epoch_of(shard, epoch, of_epoch[0])
        columns[4] = columns[2]
        return columns

    def _data_set(self) -> np.ndarray:
        """The indices of a small data set after the initial permutation of `random_shuffle`."""
        if self._shuffled is None:
            self._shuffled = self._permute(0, np.arange(self.size))
        return self._shuffled

    def epoch_of(self, shard: int, epoch: int, offset: np.ndarray) -> Any:
        """The epochs that the samples at `offset` belong to; differs from `epoch` for left-over samples."""
        if self.head is not None and epoch == self.first:
            return self.head[0][self._in_head(shard, offset)]
        return epoch

    def _in_head(self, shard: int, offset: np.ndarray) -> np.ndarray:
        """Places in the head. A shard without left-over samples is padded with the last one."""
        assert self.head is not None
        return np.minimum(np.maximum(offset, 0) * self.num_shards + shard, len(self.head[1]) - 1)

    def _turn(self, part: int, offset: np.ndarray) -> np.ndarray:
        """Places of one shard's samples in the whole order, if shards take turns.

        The last turn may be incomplete: it includes the shards that have one more sample according to `begin`."""
        n = self.num_shards
        turns, rest = divmod(self.size, n)
        return np.where(offset < turns, offset * n + part, turns * n + part * rest // n)

    def _permute(self, epoch: int, places: np.ndarray) -> np.ndarray:
        places, (out, at) = np.asarray(places, _INT64), allocate(len(places), _INT64)
        library().permute(self.shared_key, epoch % 2**32, self.size, places.tobytes(), len(places), at)
        return out

    def _buffer_order(self, shard: int, epoch: int, part: int) -> np.ndarray:
        with self._lock:
            order = self._orders.get((epoch, part))
            if order is None:
                order, at = allocate(int(self.length(shard, epoch)), _INT64)
                key = self.buffer_keys[shard] if self.buffer_keys else self.buffer_key
                library().buffer_shuffle(key, epoch % 2**32, part, len(order), self.initial_fill, at)
                if self.size <= _MOST_STORED:
                    order = self._data_set()[self.begin(part) + order]
                # Batches in progress and replacements of bad samples are at most one epoch apart.
                recent = {k: o for k, o in self._orders.items() if k[0] >= epoch - 1}
                self._orders = recent | {(epoch, part): order}
            return order

    # Resuming with another number of shards ---------------------------------------------------------------------

    def place(self, shard: int, state: dict[str, Any]) -> tuple[int, int]:
        """Epoch and offset of a shard, given the `state` of any shard: all have taken the same number of samples."""
        if self.pads:
            return state["epoch"], state["offset"]
        epoch, left = state["since"], state["taken"]
        while left >= (length := int(self.length(shard, epoch))):
            epoch, left = epoch + 1, left - length
        return epoch, left

    def divide(self, state: dict[str, Any], num_shards: int) -> SampleOrder:
        """The order for another number of shards from `state` on. Together, the shards still return each sample exactly
        once per epoch."""
        places = [self.place(s, state) for s in range(self.num_shards)]
        last = max(e for e, _ in places)
        epochs, offsets, shards, indices = [], [], [], []
        for shard, (epoch, offset) in enumerate(places):
            for e in range(epoch, last + 1):
                left = np.arange(offset if e == epoch else 0, int(self.length(shard, e)))
                if not len(left):
                    continue
                indices.append(self.index(shard, e, left))
                epochs.append(np.broadcast_to(self.epoch_of(shard, e, left), len(left)))
                offsets.append(left)
                shards.append(np.full(len(left), shard))
        new = SampleOrder(
            self.size, num_shards, pads=self.pads, sticks=self.sticks, way=self.way, shared_key=self.shared_key
        )
        new.lengths, new.batch_size, new.windows = self.lengths, self.batch_size, self.windows
        new.buffer_key, new.initial_fill = self.buffer_key, self.initial_fill
        new.first = last
        if indices:
            of_epoch = np.concatenate(epochs)
            order = np.lexsort((np.concatenate(shards), np.concatenate(offsets), of_epoch))
            new.head = of_epoch[order], np.concatenate(indices)[order]
        else:
            new.first = last + 1
        return new
