# SPDX-License-Identifier: Apache-2.0
"""Mixes several readers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np

from ...core import kernels, rng
from ...core.batch import Batch, Spec
from ...core.errors import SampleErrors
from ...core.op import Arg, Returned, Seeded
from ...core.picks import Picks
from ...core.rows import TENSOR
from ...core.source import Loading, Source
from ...core.source_name import SourceName, SourceNames
from ...core.storage import total
from ._sharded import ShardedSource

_SHARED_SEED = 0  # used if the seeds of the shards' pipelines may differ
_STREAM = 0x4D  # random stream; differs from those of operators with the same seed
_INT64 = np.dtype("i8")


class Mix(Source, Seeded):
    """Mixes the samples of several readers, in proportion to weights.

    Takes the outputs of readers and returns the same kind: one output, a list, or a dictionary.

    Of any k consecutive samples, a reader provides its share, k * weight / sum of the weights, within one sample per
    reader. The reader of a sample is a function of (`seed`, number of the sample), the same in all shards and for any
    batch size. Each reader goes through its own epochs in its own order: one with a large weight may start a new epoch
    while others are in their first one.

    Shards are those of the readers, which must have the same `num_shards` and `shard_id`. Each sample of a reader is
    returned once in an epoch of that reader, for any number of shards, even if training is resumed with another number.
    A checkpoint stores the position of every reader. The output of a reader that is mixed can't be used elsewhere. To
    apply different operators to each reader, call them after `fn.mix`, or use separate pipelines.

    The outputs of the readers must have the same types, numbers of dimensions and layouts. `name` is the reader's name
    for `epoch_size`, `reader_meta` and iterators.

    >>> import os, tempfile
    >>> from penstock import fn, pipeline_def
    >>> root = tempfile.mkdtemp()
    >>> for name in ("photo", "drawing"):
    ...     _ = open(os.path.join(root, name), "w").write(name)
    >>> @pipeline_def(batch_size=8)
    ... def pipe():
    ...     photos = fn.readers.file(file_root=root, files=["photo"], labels=[0])
    ...     drawings = fn.readers.file(file_root=root, files=["drawing"], labels=[1])
    ...     return tuple(fn.mix(photos, drawings, weights=[3, 1], seed=1))
    >>> contents, labels = pipe().run()
    >>> int(labels.as_array().sum())
    2
    """

    positional = ("readers",)
    picks_suffice = True

    readers = Arg(object, None, "Outputs of readers, passed by position.")
    weights = Arg([float], None, "A number above 0 for each reader. By default all are equal. Need not add up to 1.")
    num_samples = Arg(
        int,
        None,
        "Number of samples in an epoch, over all shards. By default the sum over the readers.",
        bits=64,
    )

    @classmethod
    def by_name(cls, given: tuple, kwargs: dict[str, Any]) -> dict[str, Any]:
        if "readers" in kwargs:
            raise TypeError("fn.mix takes the outputs of readers by position: fn.mix(a, b, weights=[3, 1])")
        return {"readers": Returned(given), **kwargs}

    keys: tuple[str, ...] | None = None  # if outputs are a dictionary
    is_list = False

    def setup(self) -> None:
        v, given = self.values, self.values["readers"]
        if not isinstance(given, Returned):
            raise TypeError("it takes the outputs of readers by position: fn.mix(a, b, weights=[3, 1])")
        if len(given.outputs) < 2:
            raise ValueError(f"it takes the outputs of at least two readers; got {len(given.outputs)}")
        found = [_reader_of(i, outputs) for i, outputs in enumerate(given.outputs, 1)]
        self.parts = tuple(op for op, _, _ in found)
        self.indices = [indices for _, indices, _ in found]
        self.keys, self.is_list = found[0][2], not hasattr(given.outputs[0], "source")
        for i, (op, indices, keys) in enumerate(found, 1):
            if any(op is other for other in self.parts[: i - 1]):
                raise ValueError(f"reader {i} is the same as one before it; call the reader once more")
            if len(indices) != len(found[0][1]) or keys != self.keys:
                raise ValueError(
                    f"reader {i} gives {_told(indices, keys)}, the first one {_told(found[0][1], self.keys)}; they "
                    "have to give the same"
                )
            for name in ("num_shards", "shard_id"):
                if op.values[name] != self.parts[0].values[name]:
                    raise ValueError(
                        f"reader {i} has {name}={op.values[name]}, the first one {self.parts[0].values[name]}; the "
                        "shards of all readers have to be the same"
                    )
            if op.pads:
                raise ValueError(
                    f"reader {i} pads its epochs (pad_last_batch or batch_by_length), which can't be mixed"
                )
        weights = np.array(v["weights"] if v["weights"] is not None else [1.0] * len(found), "f8")
        with np.errstate(over="ignore"):
            total = weights.sum()
        if len(weights) != len(found) or not ((weights > 0).all() and np.isfinite(total)):
            raise ValueError(f"weights takes a number above 0 for each of the {len(found)} readers; got {v['weights']}")
        if v["num_samples"] is not None and v["num_samples"] < 1:
            raise ValueError(f"num_samples takes at least 1; got {v['num_samples']}")
        self.weight = weights / total
        # New readers, as those of the calls may also be part of other graphs.
        self.sources = [type(op)(op.values, op.given) for op in self.parts]
        self.num_shards, self.shard_id = (self.parts[0].values[k] for k in ("num_shards", "shard_id"))
        self.taken = [0] * len(found)  # samples taken from each reader
        self.epoch = self.offset = self.last = 0  # of the mixture: the next sample, and the size of the last batch
        self.first: tuple[int, int] | None = None  # after resuming with other shards: epoch, left-over samples

    def n_outputs(self) -> int:
        return len(self.indices[0]) if self.values["readers"] is not None else 1

    def returns_list(self) -> bool:
        return self.is_list

    def output_names(self) -> tuple[str, ...] | None:
        return self.keys

    def open(self, max_batch_size: int, seed: int) -> None:
        for source in self.sources:
            source.open(max_batch_size, seed)
        own = self.values["seed"]
        has_own = own is not None and own >= 0
        self.shared_seed = own if has_own else seed if self.num_shards == 1 else _SHARED_SEED

    @property
    def is_remote(self) -> bool:
        return any(source.is_remote for source in self.sources)

    @property
    def batches_ahead(self) -> int:
        return max(source.batches_ahead for source in self.sources)

    @cached_property
    def _begins(self) -> np.ndarray:
        """First number (readers + 1,) of each reader's samples in the numbering of all samples."""
        return np.cumsum([0, *((source.meta() or {})["epoch_size"] for source in self.sources)])

    @property
    def _size(self) -> int:
        return self.values["num_samples"] or int(self._begins[-1])

    def _length(self, epoch: int) -> int:
        """Number of samples of this shard in an epoch."""
        if self.first is not None and epoch == self.first[0]:
            return (self.first[1] - self.shard_id + self.num_shards - 1) // self.num_shards
        part, size = (self.shard_id + epoch) % self.num_shards, self._size
        return (part + 1) * size // self.num_shards - part * size // self.num_shards

    # Called by the pipeline --------------------------------------------------------------------------------------

    def _choose(self, n: int) -> np.ndarray:
        """Readers (n,) of the next samples.

        Sample k of a reader is due at a random time between k / weight and (k + 1) / weight; samples come in the order
        of these times."""
        due = []
        for i, weight in enumerate(self.weight):
            k = self.taken[i] + np.arange(n, dtype=_INT64)
            draw = rng.Random(rng.key(self.shared_seed, None), np.full(n, i, "u4"), k).uniform(1, _STREAM)[:, 0]
            due.append((k + draw) / weight)
        return np.argsort(np.concatenate(due), kind="stable")[:n] // max(n, 1)

    def take(self, n: int, iteration: int) -> Picks:
        reader = self._choose(n)
        picked: dict[int, Picks] = {}
        for i, count in enumerate(np.bincount(reader, minlength=len(self.sources)).tolist()):
            if count:
                picked[i] = self.sources[i].take(count, iteration)
                self.taken[i] += count
        self.last = n
        self.offset += n
        while self.offset >= (length := self._length(self.epoch)):
            self.epoch, self.offset = self.epoch + 1, self.offset - length
        return self._joined(reader, picked)

    def _joined(self, reader: np.ndarray, picked: dict[int, Picks]) -> Picks:
        """Merges picks of the readers in the order of `reader` (n,). Samples of different readers get different random
        numbers."""
        columns: dict[str, np.ndarray] = {"reader": reader}
        begins = self._begins
        for i, picks in picked.items():
            its = reader == i
            for name, values in picks.columns.items():
                column = columns.setdefault(name, np.empty(len(reader), _INT64))
                column[its] = values + begins[i] if name == "position" else values
        return Picks(**columns)

    def replace(self, picks: Picks, rows: np.ndarray, attempt: int) -> Picks | None:
        reader, picked = picks.columns["reader"][rows], {}
        for i in np.unique(reader).tolist():
            of_reader = self.sources[i].replace(picks, rows[reader == i], attempt)
            if of_reader is None:
                return None
            picked[i] = of_reader
        return self._joined(reader, picked)

    def begin(self, picks: Picks, io: kernels.Pool) -> Loading:
        reader = picks.columns["reader"]
        begun = []
        for i in np.unique(reader).tolist():
            rows = np.flatnonzero(reader == i)
            begun.append((i, rows, self.sources[i].begin(picks.select(rows), io)))
        return _Loading(self, len(reader), begun, io)

    def state(self) -> dict[str, Any]:
        state = {k: getattr(self, k) for k in ("epoch", "offset", "last", "shared_seed", "num_shards", "shard_id")}
        return {**state, "first": self.first, "taken": [*self.taken], "readers": [s.state() for s in self.sources]}

    def resume(self, state: dict[str, Any], shards: Sequence[tuple[dict[str, Any], int]] = ()) -> None:
        for i, source in enumerate(self.sources):
            source.resume(state["readers"][i], [(s["readers"][i], seed) for s, seed in shards])
        self._restore(shards[0][0] if shards else state)

    def restore(self, state: dict[str, Any]) -> None:
        for source, its in zip(self.sources, state["readers"]):
            source.restore(its)
        self._restore(state)

    def _restore(self, state: dict[str, Any]) -> None:
        self.epoch, self.offset, self.last = state["epoch"], state["offset"], state["last"]
        self.taken, self.shared_seed = list(state["taken"]), state["shared_seed"]
        self.first = None if state["first"] is None else (state["first"][0], state["first"][1])
        n = state["num_shards"]
        if n != self.num_shards:
            size = self._size if self.first is None or self.first[0] != self.epoch else self.first[1]
            left = size - self.offset * n
            self.epoch += left <= 0
            self.first, self.offset = (self.epoch, left) if left > 0 else None, 0

    def left_over(self) -> tuple[int, int]:
        return self.first if self.first is not None else (0, 0)

    def identity(self) -> dict[str, Any]:
        readers = [{"operator": s.fn_name, **s.identity()} for s in self.sources]
        return {
            "readers": readers,
            "weights": self.weight.tolist(),
            "samples": self._size,
            "seed": self.values["seed"],
        }

    def begins_epoch(self, state: dict[str, Any]) -> bool:
        return state["offset"] == 0 or state["offset"] < state["last"]

    def reset(self) -> None:
        """Starts the next epoch of the mixture; the readers continue their epochs."""
        if not self.begins_epoch(self.state()):
            self.epoch, self.offset = self.epoch + 1, 0

    def meta(self) -> dict[str, int]:
        size = self._size
        return {
            "epoch_size": size,
            "epoch_size_padded": size,
            "number_of_shards": self.num_shards,
            "shard_id": self.shard_id,
            "pad_last_batch": 0,
            "stick_to_shard": 0,
        }

    def counted(self) -> dict[str, int]:
        return total(source.counted() for source in self.sources)

    def stop_waiting(self) -> None:
        super().stop_waiting()
        for source in self.sources:
            source.stop_waiting()

    def close(self) -> None:
        for source in self.sources:
            source.close()


def _reader_of(number: int, outputs: Any) -> tuple[ShardedSource, list[int], tuple[str, ...] | None]:
    """The reader, the indices of its outputs, and their keys (None if not a dictionary)."""
    keys = tuple(outputs) if isinstance(outputs, dict) else None
    nodes = list(outputs.values()) if isinstance(outputs, dict) else outputs
    nodes = list(nodes) if isinstance(nodes, (list, tuple)) else [nodes]
    found = [getattr(getattr(node, "source", None), "op", None) for node in nodes]
    if not nodes or not all(isinstance(op, ShardedSource) for op in found):
        wrong = next((op for op in found if op is not None and not isinstance(op, ShardedSource)), None)
        got = wrong.display_name() if wrong is not None else repr(outputs)
        raise TypeError(
            f"it takes the outputs of readers, on the CPU; argument {number} comes from {got}. Call other "
            "operators, and .gpu(), behind fn.mix"
        )
    if any(op is not found[0] for op in found):
        raise ValueError(f"argument {number} has outputs of different readers; give those of each by themselves")
    if nodes[0].source.args:
        raise ValueError(f"reader {number} has arguments that are data, which can't be mixed")
    op = found[0]
    assert isinstance(op, ShardedSource)
    return op, [node.index for node in nodes], keys


def _told(indices: list[int], keys: tuple[str, ...] | None) -> str:
    return f"a dictionary of {', '.join(keys)}" if keys is not None else f"{len(indices)} outputs"


class _Loading(Loading):
    """A batch with samples from several readers."""

    def __init__(self, mix: Mix, n: int, begun: list[tuple[int, np.ndarray, Loading]], io: kernels.Pool):
        self._mix, self._n, self._begun, self._io = mix, n, begun, io

    def wait_for_most(self) -> None:
        for _, _, loading in self._begun:
            loading.wait_for_most()

    def wait(self) -> tuple[Batch, ...]:
        reasons: dict[int, str] = {}
        loaded: list[tuple[int, np.ndarray, tuple[Batch, ...]]] = []
        for i, rows, loading in self._begun:
            try:
                batches = loading.wait()
            except SampleErrors as e:
                if e.batches is None:
                    raise
                reasons.update({int(rows[row]): reason for row, reason in e.reasons.items()})
                batches = e.batches
            loaded.append((i, rows, tuple(batches[k] for k in self._mix.indices[i])))
        spans = [(loading.begin_ns, loading.end_ns) for _, _, loading in self._begun if loading.end_ns]
        if spans:
            self.begin_ns, self.end_ns = min(b for b, _ in spans), max(e for _, e in spans)
        outputs = tuple(
            self._merged(k, [(i, rows, batches[k]) for i, rows, batches in loaded], reasons)
            for k in range(self._mix.n_outputs())
        )
        if reasons:
            raise SampleErrors(reasons, outputs[0].sources, outputs)
        return outputs

    def _merged(self, k: int, parts: list[tuple[int, np.ndarray, Batch]], reasons: dict[int, str]) -> Batch:
        """Output k, merged from the batches of the readers."""
        sources = _sources([(i, rows, batch.sources) for i, rows, batch in parts], self._n)
        good = [p for p in parts if not all(row in reasons for row in p[1].tolist())] or parts[:1]
        first, spec = good[0][0], good[0][2].spec
        for i, _, batch in good[1:]:
            about, of_first = ((s.dtype.name, s.ndim, s.layout) for s in (batch.spec, spec))
            if about != of_first:
                told = "{} of {} dimensions, layout '{}'"
                raise ValueError(
                    f"reader {i + 1} gives output {k} as {told.format(*about)}, reader {first + 1} as "
                    f"{told.format(*of_first)}; readers that are mixed have to give the same"
                )
        if len(good) == 1 and len(good[0][1]) == self._n:
            return good[0][2]
        shape, all_rows = np.zeros((self._n, spec.ndim), _INT64), np.zeros(self._n, TENSOR)
        all_rows["ndim"], all_rows["dtype"] = spec.ndim, good[0][2].rows["dtype"][0]
        for _, rows, batch in good:
            shape[rows], all_rows[rows] = batch.spec.shape, batch.rows
        owners = tuple(owner for _, _, batch in good for owner in batch.owners)
        merged = Batch(Spec(shape, spec.dtype, spec.layout), all_rows, owners, sources)
        is_dense = all(batch.is_packed for _, _, batch in good) and merged.spec.is_dense
        return merged.packed_copy(self._io) if is_dense else merged


def _sources(parts: list[tuple[int, np.ndarray, Any]], n: int) -> Sequence[str]:
    """The sources of all parts' samples, created on access."""
    part, place = np.zeros(n, _INT64), np.zeros(n, _INT64)
    for k, (_, rows, _) in enumerate(parts):
        part[rows], place[rows] = k, np.arange(len(rows))
    return SourceNames(partial(_name, [sources for _, _, sources in parts], part, place), np.arange(n))


def _name(sources: list[Any], part: np.ndarray, place: np.ndarray, row: int) -> SourceName:
    of_part = sources[int(part[row])]
    name = "" if of_part is None else of_part[int(place[row])]
    return name if isinstance(name, SourceName) else SourceName(name, name)
