# SPDX-License-Identifier: Apache-2.0
"""The order in which readers hand out the samples of a data set: shards, epochs, padding, shuffling.

The order is a function: (epoch, offset in the shard) -> index of a sample. A reader's state is its place in it, a few
integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core import rng, storage
from ...core.errors import PipelineError
from ...core.op import Arg, Seeded
from ...core.picks import Picks
from ...core.source import Source
from ._order import SampleOrder
from ._weights import Weights, weights_of

# Keys of orders on which all shards have to agree whatever seeds their pipelines have.
_SHARED_SEED = 0
_AHEAD = 1024  # samples whose picks are made at once, of at most so many epochs
_EPOCHS_AHEAD = 16
# Of picks: offset and epoch as the shard counts them, the sample's number, and what random numbers depend on.
_COLUMNS = ("offset", "place", "index", "epoch", "position")
_INT64 = np.dtype("i8")


class ShardedSource(Source, Seeded, abstract=True):
    """Base of readers of data sets with a known number of samples. It says which samples come next; `_records.py` and
    the readers say what they are."""

    num_shards = Arg(int, 1, "Parts that the data set is divided into, such as processes of a distributed training.")
    shard_id = Arg(
        int,
        0,
        "The part to read, 0 to num_shards - 1. It begins with sample floor(shard_id * size / num_shards) and ends "
        "where the next begins.",
    )
    stick_to_shard = Arg(bool, False, "Reads the same shard in every epoch, instead of the next one.")
    pad_last_batch = Arg(
        bool,
        False,
        "Ends each epoch by repeating the shard's last sample, until all shards have given equally many and the "
        "batch is full. Otherwise batches run on into the next epoch.",
    )
    random_shuffle = Arg(
        bool,
        False,
        "Shuffles: the data set once, the same way in all shards, and each epoch of a shard anew, by a buffer of "
        "`initial_fill` samples.",
    )
    initial_fill = Arg(int, 1024, "Size of the buffer of `random_shuffle`; it holds numbers, not data.")
    shuffle_after_epoch = Arg(
        bool,
        False,
        "Shuffles the whole data set anew before each epoch, the same way in all shards. Implies `stick_to_shard`.",
    )
    shuffle_after_epoch_seed = Arg(int, None, "Seed of `shuffle_after_epoch`, the same in all shards.", bits=64)
    shuffle = Arg(
        str,
        None,
        '"global": an exact random permutation of the whole data set in each epoch, a function of (`seed`, epoch) '
        "without a buffer. Shards take turns along it, so what all shards together have seen after k batches does not "
        "depend on how many there are. Without a `seed` of its own the reader takes the pipeline's if there is one "
        "shard, otherwise 0, so that shards agree.",
    )
    weights = Arg(
        object,
        None,
        "Draws samples at random: by a weight for each, an array (samples,), or by those of labels, a dictionary, "
        "where the reader knows labels beforehand (`readers.file`). Draws are a function of (`seed`, epoch, draw), and "
        'shards take turns along them; without a `seed` as with `shuffle="global"`.',
    )
    num_samples = Arg(
        int,
        None,
        "How many samples an epoch of `weights` has, over all shards; by default as many as the data set, without "
        "replacement those with a weight above 0.",
        bits=64,
    )
    replacement = Arg(
        bool,
        True,
        "Whether `weights` may draw a sample again in the same epoch. Otherwise each draw is of those that are left.",
    )
    lazy_init = Arg(
        bool, False, "Looks for the samples when the first batch is read instead of when the pipeline is built."
    )
    prefetch_queue_depth = Arg(int, 1, "Accepted for compatibility; the pipeline's depth decides.", hidden=True)
    read_ahead = Arg(bool, False, "Accepted for compatibility; whole files are always read ahead.", hidden=True)
    dont_use_mmap = Arg(bool, False, "Accepted for compatibility; files are never mapped.", hidden=True)
    skip_cached_images = Arg(bool, False, "Accepted for compatibility; decoders keep no cache.", hidden=True)
    tensor_init_bytes = Arg(int, 1048576, "Accepted for compatibility; memory comes from a pool.", hidden=True)

    def found(self) -> int:
        """Finds the samples and says how many there are; at least one, or ValueError or OSError."""
        raise NotImplementedError

    def labels_found(self) -> np.ndarray | None:
        """(samples,) labels of what was found, if they are known before reading."""
        return None

    def setup(self) -> None:
        v = self.values
        if not 0 <= v["shard_id"] < v["num_shards"]:
            raise ValueError(
                f"{self.display_name()}: shard_id takes 0 to num_shards - 1, num_shards at least 1; "
                f"got shard_id={v['shard_id']}, num_shards={v['num_shards']}"
            )
        if v["shuffle"] not in (None, "global"):
            raise ValueError(f"{self.display_name()}: shuffle takes 'global'; got {v['shuffle']!r}")
        is_weighted = v["weights"] is not None
        ways = [k for k in ("random_shuffle", "shuffle_after_epoch", "shuffle") if v[k]] + ["weights"] * is_weighted
        if len(ways) > 1:
            raise ValueError(f"{self.display_name()}: only one of {' and '.join(ways)} can be used")
        if v["shuffle_after_epoch"] and v["stick_to_shard"]:
            raise ValueError(f"{self.display_name()}: shuffle_after_epoch implies stick_to_shard; leave the latter out")
        if v["random_shuffle"] and v["initial_fill"] < 1:
            raise ValueError(f"{self.display_name()}: initial_fill takes at least 1; got {v['initial_fill']}")
        for name in self.given & {"num_samples", "replacement"} if not is_weighted else ():
            raise ValueError(f"{self.display_name()}: '{name}' can be used only together with 'weights'")
        if v["num_samples"] is not None and v["num_samples"] < 1:
            raise ValueError(f"{self.display_name()}: num_samples takes at least 1; got {v['num_samples']}")
        self.size = 0  # of the data set
        self.weighted: Weights | None = None  # then the order is one of draws, which it gives samples for
        self.sticks = bool(v["stick_to_shard"] or v["shuffle_after_epoch"] or v["shuffle"] or is_weighted)
        self.epoch = self.offset = self.last = 0  # the next sample, and how many were taken before it at once
        self.since = self.taken = 0  # samples taken in all since an epoch that began with no sample taken
        self.past: list[dict[str, int]] = []  # where the run was when the number of shards changed
        self.order: SampleOrder
        self.storage: storage.Storage  # once it is open
        self._epochs_ahead = 1
        # Picks made ahead: of which order, and where in it and in them the next one is.
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
        order = SampleOrder(
            self.size if self.weighted is None else self.weighted.draws,
            num_shards,
            pads=v["pad_last_batch"],
            sticks=self.sticks,
            way=next((k for k in ("random_shuffle", "shuffle_after_epoch", "shuffle") if v[k]), "")
            if self.weighted is None
            else "turns",
            shared_key=rng.key(self.shared_seed, None),
        )
        order.buffer_key, order.initial_fill = self._buffer_key, v["initial_fill"]
        return order

    def _at(self, epoch: int, offset: np.ndarray) -> tuple[np.ndarray, Any]:
        """Indices of the samples at `offset` (n,) of the shard in one epoch, and the epochs that they belong to."""
        shard = self.values["shard_id"]
        return self.order.index(shard, epoch, offset), self.order.epoch_of(shard, epoch, offset)

    def _length(self, epoch):
        """Samples of the shard that is read in an epoch."""
        return self.order.length(self.values["shard_id"], epoch)

    # What the pipeline calls ------------------------------------------------------------------------------------

    def take(self, n: int, iteration: int) -> Picks:
        self._prepare()
        columns = self._take_padded(n) if self.values["pad_last_batch"] else self._take(n)
        self.last = n
        self.taken += n
        return _picks(columns)

    def _take(self, n: int) -> np.ndarray:
        """(5, n) columns of the next picks. They are a function of epoch and offset, so they are made for some batches
        at once."""
        order, place, columns, begin = self._ahead
        end = begin + n
        if order is not self.order or place != (self.epoch, self.offset) or end >= columns.shape[1]:
            columns, begin, end = self._following(n + 1), 0, n
        self.offset, self.epoch = columns[:2, end].tolist()
        self._ahead = self.order, (self.epoch, self.offset), columns, end
        return columns[:, begin:end]

    def _following(self, count: int) -> np.ndarray:
        """(5, `count` or more) columns of the next picks. Small data sets have many epochs ahead, but not at once: it
        may be that nobody wants them."""
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
        """The same, of one epoch, which ends with them if it is over."""
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
        """(5, n) columns of picks. Offsets beyond the end of the shard are its last sample again."""
        columns = np.empty((len(_COLUMNS), len(offset)), _INT64)
        columns[0], columns[1] = offset, epoch
        if not len(offset):
            return columns
        if offset.max() < length:
            columns[2], columns[3] = self._at(epoch, offset)
            columns[4] = columns[2]
        else:
            columns[2], columns[3] = self._at(epoch, np.minimum(offset, length - 1))
            # A repeated sample draws random numbers of its own.
            columns[4] = np.where(offset >= length, self.order.size + offset, columns[2])
        return self._draw(columns)

    def _draw(self, columns: np.ndarray) -> np.ndarray:
        """The samples of draws; each draw keeps random numbers of its own."""
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
        """Shards whose buffers were shuffled with seeds of their own are known only together."""
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
        same = {k: v[k] for k in ("random_shuffle", "shuffle_after_epoch", "shuffle", "pad_last_batch")}
        same |= {
            "samples": self.size,
            "stick_to_shard": self.sticks,
            "seed": v["seed"],
            "fingerprint": self.fingerprint(),
        }
        if self.weighted is not None:
            same |= {"weights": self.weighted.fingerprint(), "num_samples": self.weighted.draws}
            same["replacement"] = v["replacement"]
        return {**same, "initial_fill": v["initial_fill"]} if v["random_shuffle"] else same

    def stop_waiting(self) -> None:
        super().stop_waiting()
        if hasattr(self, "storage"):
            self.storage.close()

    def counted(self) -> dict[str, int]:
        return self.storage.counts()

    def fingerprint(self) -> int:
        """A number that tells data sets of equal size apart; 0 if the reader has none."""
        return 0

    def begins_epoch(self, state: dict[str, int]) -> bool:
        """Also after a batch that ran on into the next epoch."""
        return state["offset"] == 0 or state["offset"] < state["last"]

    def reset(self) -> None:
        if not self.begins_epoch(self.state()):
            self.epoch, self.offset = self.epoch + 1, 0
            self.since, self.taken = self.epoch, 0

    def meta(self) -> dict[str, int]:
        self._prepare()
        v = self.values
        size = self.order.size
        padded = -(-size // v["num_shards"]) * v["num_shards"] if v["pad_last_batch"] else size
        return {
            "epoch_size": size,
            "epoch_size_padded": padded,
            "number_of_shards": v["num_shards"],
            "shard_id": v["shard_id"],
            "pad_last_batch": int(v["pad_last_batch"]),
            "stick_to_shard": int(self.sticks),
        }


def _picks(columns: np.ndarray) -> Picks:
    return Picks(**dict(zip(_COLUMNS, columns)))
