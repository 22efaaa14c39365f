# SPDX-License-Identifier: Apache-2.0
"""The order in which readers return the samples of a data set: shards, epochs, padding, shuffling.

The order is a function (epoch, offset in the shard) -> index of the sample. A reader's state is its place in this
order, a few integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core import rng, storage
from ...core.errors import PipelineError
from ...core.picks import Picks
from ._lengths import Lengths, lengths_of
from ._order import SampleOrder
from ._order_arguments import OrderArguments, by_length
from ._weights import Weights, weights_of
from ._windows import Windows

# Seed of orders that must be the same in all shards, even if their pipelines' seeds differ.
_SHARED_SEED = 0
_AHEAD = 1024  # picks made at once, from at most `_EPOCHS_AHEAD` epochs
_EPOCHS_AHEAD = 16
# Columns of picks: offset and epoch in the shard, index of the sample, and epoch and position for random numbers.
_COLUMNS = ("offset", "place", "index", "epoch", "position")
_INT64 = np.dtype("i8")


class ShardedSource(OrderArguments, abstract=True):
    """Base of readers of data sets with a known number of samples. Determines which samples come next; `_records.py`
    and the readers read them."""

    picks_suffice = True

    def found(self) -> int:
        """Finds the samples and returns their number, at least one. Otherwise raises ValueError or OSError."""
        raise NotImplementedError

    def labels_found(self) -> np.ndarray | None:
        """Labels (samples,), if they are known before reading."""
        return None

    def lengths_found(self) -> np.ndarray | None:
        """Lengths (samples,), 0 or more, in any unit, if they are known before reading."""
        return None

    def blocks_found(self) -> np.ndarray | None:
        """Index (blocks + 1,) of the first sample of each block that is read as a whole, and the total; None if there
        are no blocks."""
        return None

    def setup(self) -> None:
        super().setup()
        v = self.values
        has_own_order = bool(v["shuffle_after_epoch"] or v["shuffle"] or v["weights"] is not None or by_length(v))
        self.size = 0  # samples of the data set
        self.weighted: Weights | None = None  # if set, the order is of draws, which it maps to samples
        self.lengths: Lengths | None = None  # if set, batches have similar lengths
        self.windows: Windows | None = None  # if set, blocks of samples are shuffled
        self.sticks = bool(v["stick_to_shard"] or has_own_order)
        self.pads = bool(v["pad_last_batch"] or by_length(v))
        self.epoch = self.offset = self.last = 0  # the next sample, and the size of the last batch
        self.since = self.taken = 0  # epoch, and samples taken since its start
        self.past: list[dict[str, int]] = []  # states at which the number of shards changed
        self.order: SampleOrder
        self.storage: storage.Storage  # set by `open`
        self._epochs_ahead = 1
        # Picks made in advance: their order, (epoch, offset) of the next one, the columns, and its column index.
        self._ahead: tuple[SampleOrder | None, tuple[int, int], np.ndarray, int] = (
            *(None, (0, 0), np.empty((len(_COLUMNS), 0), _INT64), 0),
        )

    def open(self, max_batch_size: int, seed: int) -> None:
        v = self.values
        own = v["seed"] if self._has_own_seed() else None
        self._buffer_key = rng.key(seed if own is None else own, None)
        if v["shuffle"] or v["weights"] is not None:
            shared = own if own is not None else seed if v["num_shards"] == 1 else _SHARED_SEED
        else:
            shared = v["shuffle_after_epoch_seed"] if v["shuffle_after_epoch_seed"] is not None else _SHARED_SEED
        self.shared_seed = shared
        self._batch_size = max_batch_size
        self.storage = storage.Storage()
        if not v["lazy_init"]:
            self._prepare()

    def _has_own_seed(self) -> bool:
        return self.values["seed"] is not None and self.values["seed"] >= 0

    def _prepare(self) -> None:
        if self.size:
            return
        with self.storage.active():
            size = self.found()
        v, draws = self.values, size
        if v["weights"] is not None:
            weight = weights_of(v["weights"], size, self.labels_found())
            self.weighted = Weights(weight, v["num_samples"], v["replacement"], rng.key(self.shared_seed, None))
            draws = self.weighted.draws
        if by_length(v):
            known = None
            if v["batch_by_length"] is True:
                with self.storage.active():
                    known = self.lengths_found()
            self.lengths = Lengths(lengths_of(v["batch_by_length"], size, known), v["num_buckets"], None)
        if v["shuffle"] == "windows":
            blocks = self.blocks_found()
            if blocks is None:
                raise ValueError(
                    "shuffle='windows' needs samples that lie together in files; for this data set use shuffle='global'"
                )
            self.windows = Windows(blocks, v["shuffle_window"])
        if draws < v["num_shards"]:
            raise ValueError(
                f"there are {draws} samples, fewer than num_shards={v['num_shards']}; every shard needs one"
            )
        self.size = size
        self.order = self._sample_order(v["num_shards"])

    def _sample_order(self, num_shards: int) -> SampleOrder:
        v = self.values
        if self.weighted is not None:
            self.weighted.key = rng.key(self.shared_seed, None)
        if self.lengths is not None and v["shuffle"]:
            self.lengths.key = rng.key(self.shared_seed, None)
        way = next((k for k in ("random_shuffle", "shuffle_after_epoch", "shuffle") if v[k]), "")
        order = SampleOrder(
            self.size if self.weighted is None else self.weighted.draws,
            num_shards,
            pads=self.pads,
            sticks=self.sticks,
            way="turns" if self.weighted is not None else "windows" if self.windows is not None else way,
            shared_key=rng.key(self.shared_seed, None),
        )
        order.windows = self.windows
        order.lengths, order.batch_size = self.lengths, self._batch_size
        order.buffer_key, order.initial_fill = self._buffer_key, v["initial_fill"]
        return order

    def _at(self, epoch: int, offset: np.ndarray) -> tuple[np.ndarray, Any]:
        """Indices of the samples at `offset` (n,) of this shard in one epoch, and the epochs that they belong to."""
        shard = self.values["shard_id"]
        return self.order.index(shard, epoch, offset), self.order.epoch_of(shard, epoch, offset)

    def _length(self, epoch):
        """Number of samples of this shard in an epoch."""
        return self.order.length(self.values["shard_id"], epoch)

    # Called by the pipeline ------------------------------------------------------------------------------------

    def take(self, n: int, iteration: int) -> Picks:
        self._prepare()
        columns = self._take_padded(n) if self.pads else self._take(n)
        self.last = n
        self.taken += n
        return _picks(columns)

    def _take(self, n: int) -> np.ndarray:
        """Columns (5, n) of the next picks. They are a function of epoch and offset, so they are made for several
        batches at once."""
        order, place, columns, begin = self._ahead
        end = begin + n
        if order is not self.order or place != (self.epoch, self.offset) or end >= columns.shape[1]:
            columns, begin, end = self._following(n + 1), 0, n
        self.offset, self.epoch = columns[:2, end].tolist()
        self._ahead = self.order, (self.epoch, self.offset), columns, end
        return columns[:, begin:end]

    def _following(self, count: int) -> np.ndarray:
        """Columns (5, `count` or more) of the next picks. For small data sets they cover several epochs. This number
        grows gradually, as the picks may not be needed."""
        spans: list[tuple[int, int, int]] = []
        epoch, offset, made = self.epoch, self.offset, 0
        while made < count or (made < _AHEAD and len(spans) < self._epochs_ahead):
            end = min(offset + max(_AHEAD, count) - made, int(self._length(epoch)))
            if end > offset:
                spans.append((epoch, offset, end))
            made += end - offset
            epoch, offset = epoch + 1, 0
        self._epochs_ahead = min(2 * self._epochs_ahead, _EPOCHS_AHEAD)
        return self._draw(self.order.picks(self.values["shard_id"], spans))

    def _take_padded(self, n: int) -> np.ndarray:
        """The same as `_take`, from one epoch only; starts the next epoch if this one is complete."""
        order, place, columns, begin = self._ahead
        end = begin + n
        if order is not self.order or place != (self.epoch, self.offset) or end > columns.shape[1]:
            length = int(self._length(self.epoch))
            last = max(self.offset + n, min(self.offset + _AHEAD, length))
            columns, begin, end = self._of_epoch(self.epoch, np.arange(self.offset, last), length), 0, n
        self.offset += n
        if self.offset >= self.order.padded_length(self.epoch):
            self.epoch, self.offset = self.epoch + 1, 0
        self._ahead = self.order, (self.epoch, self.offset), columns, end
        return columns[:, begin:end]

    def _of_epoch(self, epoch: int, offset: np.ndarray, length: int) -> np.ndarray:
        """Columns (5, n) of picks. Offsets beyond the end of the shard repeat its last sample."""
        columns = np.empty((len(_COLUMNS), len(offset)), _INT64)
        columns[0], columns[1] = offset, epoch
        if not len(offset):
            return columns
        if offset.max() < length:
            columns[2], columns[3] = self._at(epoch, offset)
            columns[4] = columns[2]
        else:
            columns[2], columns[3] = self._at(epoch, np.minimum(offset, length - 1))
            # A repeated sample gets different random numbers.
            columns[4] = np.where(offset >= length, self.order.size + offset, columns[2])
        return self._draw(columns)

    def _draw(self, columns: np.ndarray) -> np.ndarray:
        """Replaces draws by their samples; each draw keeps its own random numbers."""
        if self.weighted is not None:
            columns[2] = self.weighted.index(columns[3], columns[2])
        return columns

    def replace(self, picks: Picks, rows: np.ndarray, attempt: int) -> Picks:
        epoch, offset = picks.columns["place"][rows], picks.columns["offset"][rows]
        columns = np.empty((len(_COLUMNS), len(offset)), _INT64)
        for e in sorted(set(epoch.tolist())):
            length, its = int(self._length(e)), epoch == e
            if attempt >= length:
                raise PipelineError(
                    f"all {length} samples of the shard are bad; see errors() of the pipeline for the reasons"
                )
            columns[:, its] = self._of_epoch(e, (np.minimum(offset[its], length - 1) + 1) % length, length)
        return _picks(columns)

    def state(self) -> dict[str, Any]:
        v = self.values
        state = {
            "epoch": self.epoch,
            "offset": self.offset,
            "last": self.last,
            "since": self.since,
            "taken": self.taken,
            "shared_seed": self.shared_seed,
            "num_shards": v["num_shards"],
            "shard_id": v["shard_id"],
        }
        return {**state, "past": self.past} if self.past else state

    def resume(self, state: dict[str, Any], shards: Sequence[tuple[dict[str, Any], int]] = ()) -> None:
        """If shards used different seeds for shuffling buffers, the states of all shards are required."""
        if not shards:
            return self.restore(state)
        states, seeds = zip(*shards)
        same = ("num_shards", "since", "taken", "shared_seed", "past")
        n = states[0]["num_shards"]
        if sorted(s["shard_id"] for s in states) != list(range(n)):
            got = ", ".join(str(s["shard_id"]) for s in states)
            raise ValueError(f"of {n} shards the checkpoints of all are needed, each once; got those of shards {got}")
        if any(s.get(k) != states[0].get(k) for s in states for k in same):
            raise ValueError(
                "the shards' checkpoints are of different moments: they have not taken equally many samples"
            )
        if n == self.values["num_shards"] and len(set(seeds)) > 1:
            raise ValueError(f"there are {n} shards, as before; give each its own checkpoint")
        by_shard = dict(zip((s["shard_id"] for s in states), seeds))
        return self.restore({**states[0], "seeds": [by_shard[i] for i in range(n)]})

    def restore(self, state: dict[str, Any]) -> None:
        self._prepare()
        v, n = self.values, state["num_shards"]
        past = list(state.get("past", ()))
        if n != v["num_shards"]:
            past.append({k: state[k] for k in ("epoch", "offset", "since", "taken", "num_shards")})
            seeds = state.get("seeds")
            if v["random_shuffle"] and not self._has_own_seed() and seeds is not None and len(set(seeds)) > 1:
                past[-1]["seeds"] = seeds
        if past != self.past or state["shared_seed"] != self.shared_seed:
            self.past, self.shared_seed = past, state["shared_seed"]
            numbers = [*(p["num_shards"] for p in past), v["num_shards"]]
            self.order = self._sample_order(numbers[0])
            for place, after in zip(past, numbers[1:]):
                self.order.buffer_keys = [rng.key(s, None) for s in place.get("seeds", ())]
                self.order = self.order.divide(place, after)
        self.last = state["last"]
        if n != v["num_shards"]:
            self.epoch = self.since = self.order.first
            self.offset = self.taken = 0
            return
        self.since, self.taken = state["since"], state["taken"]
        if state["shard_id"] == v["shard_id"]:
            self.epoch, self.offset = state["epoch"], state["offset"]
        else:
            self.epoch, self.offset = self.order.place(v["shard_id"], state)

    def left_over(self) -> tuple[int, int]:
        return self.order.first, 0 if self.order.head is None else len(self.order.head[1])

    def identity(self) -> dict[str, Any]:
        self._prepare()
        v = self.values
        same = {k: v[k] for k in ("random_shuffle", "shuffle_after_epoch", "shuffle")}
        same |= {
            "pad_last_batch": self.pads,
            "samples": self.size,
            "stick_to_shard": self.sticks,
            "seed": v["seed"],
            "fingerprint": self.fingerprint(),
        }
        if self.weighted is not None:
            same |= {"weights": self.weighted.fingerprint(), "num_samples": self.weighted.draws}
            same["replacement"] = v["replacement"]
        if self.windows is not None:
            same["shuffle_window"] = v["shuffle_window"]
        if self.lengths is not None:
            same |= {"batch_by_length": self.lengths.fingerprint(), "num_buckets": v["num_buckets"]}
            same["batch_size"] = self._batch_size
        return {**same, "initial_fill": v["initial_fill"]} if v["random_shuffle"] else same

    def stop_waiting(self) -> None:
        super().stop_waiting()
        if hasattr(self, "storage"):
            self.storage.close()

    def counted(self) -> dict[str, int]:
        return self.storage.counts()

    def fingerprint(self) -> int:
        """A checksum to distinguish data sets of equal size; 0 if the reader has none."""
        return 0

    def begins_epoch(self, state: dict[str, int]) -> bool:
        """True also after a batch that extended into the next epoch."""
        return state["offset"] == 0 or state["offset"] < state["last"]

    def reset(self) -> None:
        if not self.begins_epoch(self.state()):
            self.epoch, self.offset = self.epoch + 1, 0
            self.since, self.taken = self.epoch, 0

    def meta(self) -> dict[str, int]:
        self._prepare()
        v = self.values
        size = self.order.size
        padded = -(-size // v["num_shards"]) * v["num_shards"] if self.pads else size
        return {
            "epoch_size": size,
            "epoch_size_padded": padded,
            "number_of_shards": v["num_shards"],
            "shard_id": v["shard_id"],
            "pad_last_batch": int(self.pads),
            "stick_to_shard": int(self.sticks),
        }


def _picks(columns: np.ndarray) -> Picks:
    return Picks(**dict(zip(_COLUMNS, columns)))
