# SPDX-License-Identifier: Apache-2.0
"""Base of readers whose data sets are tables of spans.

A reader is a class in its own file: it `find`s the positions of its samples, names the native function that parses
their bytes, and describes the outputs. `ShardedSource` provides order, shards, epochs, padding, shuffling and
checkpoints; the native Fetcher (kernels/read/fetcher.h) reads ahead, in parallel, and adjacent spans in one call; this
module provides bad samples, sources of samples and statistics.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ...core import dtypes, kernels, storage
from ...core.batch import Batch, Spec
from ...core.errors import SampleErrors
from ...core.fetch import FETCH, OUTPUT
from ...core.op import Arguments
from ...core.picks import Picks
from ...core.rows import MAX_DIMS, TENSOR, ArgumentRows, address, allocate, check_dims
from ...core.source import Loading
from ...core.source_name import SourceName, SourceNames
from ._file_names import FileNames
from ._sharded import ShardedSource

_INT64, _ADDRESS, _BYTE = np.dtype("i8"), np.dtype("u8"), np.dtype("u1")
# Spans with gaps of up to `_GAP` bytes are read in one call of up to `_RUN_BYTES`, so that local data is still in the
# CPU's cache when it is parsed. By URL, larger reads are worth it to save requests.
_GAP, _RUN_BYTES = 4096, 256 << 10
_GAP_BY_URL, _RUN_BYTES_BY_URL = 64 << 10, 1 << 20
APART = -1  # a `gap` for spans that are never read in one call


class Records:
    """Positions of the samples of a data set, as columns, without a Python object per sample.

    Each sample has one span, or `parts` spans (columns (n, parts)), or any number: spans `first[i]` to `first[i + 1]`
    of columns (spans,), with `first` (n + 1,). A span is `length` bytes from `offset` on of an object; `object` is its
    index in `objects`. An object of -1 is a missing part; a length of -1 extends to the end of the object. Without
    `object`, sample i is object i; without `offset`, spans begin at 0; without `length`, they are whole objects.

    Spans with at most `gap` bytes between them are read in one call, by URL up to `most_by_url` bytes; with `APART`,
    each is read and parsed separately. With `by_parser`, only the parser reads.
    """

    def __init__(
        self,
        objects: FileNames,
        object: np.ndarray | None = None,
        offset: np.ndarray | None = None,
        length: np.ndarray | None = None,
        first: np.ndarray | None = None,
        gap: int = _GAP,
        most_by_url: int = _RUN_BYTES_BY_URL,
        by_parser: bool = False,
    ):
        def column(x: np.ndarray | None) -> np.ndarray | None:
            return None if x is None else np.ascontiguousarray(x, _INT64)

        self.objects, self.first, self.gap, self._most_by_url = objects, column(first), gap, most_by_url
        self._none = np.zeros(len(objects), _INT64) if by_parser else None  # lengths of 0
        self.object, self.offset, self.length = column(object), column(offset), column(length)
        given = [c for c in (self.object, self.offset, self.length) if c is not None]
        if len({c.shape for c in given}) > 1:
            raise ValueError(f"[internal error] columns of the shapes {[c.shape for c in given]}")
        self.parts = 0 if first is not None else given[0].shape[1] if given and given[0].ndim == 2 else 1
        self._n = len(self.first) - 1 if self.first is not None else len(given[0]) if given else len(objects)

    def __len__(self) -> int:
        return self._n

    def fill(self, request: np.ndarray) -> None:
        """Writes the addresses of the table into a `struct Fetch`."""
        o = self.objects
        request["root"], request["text"], request["begins"] = o.root_address, o.text_address, o.begins_address
        request["n_objects"], request["n_samples"], request["n_parts"] = len(o), self._n, self.parts
        request["gap"], request["run_bytes"] = self.gap, _RUN_BYTES
        if o.has_urls:
            request["gap"], request["run_bytes"] = (
                max(self.gap, _GAP_BY_URL) if self.gap > 0 else self.gap,
                self._most_by_url,
            )
        for name in ("first", "object", "offset", "length"):
            column = getattr(self, name)
            request[name] = 0 if column is None else address(column)
        if self._none is not None:
            request["length"], request["gap"] = address(self._none), APART

    def name(self, i: int) -> SourceName:
        """Source of sample i for error messages: path, number of the record in the file, offset."""
        if self.object is None:
            return self.objects.path(i)
        k = i * self.parts if self.first is None else int(self.first[i])
        objects = self.object.ravel()
        path = self.objects.path(max(int(objects[k]), 0))
        if self.length is None or self.offset is None or self.length.ravel()[k] < 0:
            return path
        offset = int(self.offset.ravel()[k])
        of_file = self.object[:i] if self.object.ndim == 1 else self.object[:i, 0]
        number = i if self.first is not None else int((of_file == objects[k]).sum())
        return SourceName(f"{path}, record {number}, offset {offset}", f"{path.given} at index {offset}")

    def mean_bytes(self) -> int:
        """Mean size of a sample in bytes; 0 if objects are read to their ends, as their sizes are unknown."""
        length = self.length
        return 0 if length is None or (length < 0).any() else int(length.sum()) // max(self._n, 1)

    def sizes(self) -> np.ndarray:
        """Size (n,) of each sample in bytes. A missing file has size 0: it is a bad sample when it is read."""
        object, length = self.object, self.length
        if length is None or (length < 0).any():
            of_object = np.fromiter((_size(self.objects, i) for i in range(len(self.objects))), _INT64)
            to_the_end = of_object if object is None else of_object[object]
            to_the_end = np.maximum(to_the_end - (0 if self.offset is None else self.offset), 0)
            length = to_the_end if length is None else np.where(length < 0, to_the_end, length)
        if object is not None:
            length = np.where(object < 0, 0, length)  # missing parts
        if self.first is not None:
            sums = np.concatenate([np.zeros(1, _INT64), np.cumsum(length)])
            return np.asarray(sums[self.first[1:]] - sums[self.first[:-1]])
        return np.asarray(length.reshape(self._n, -1).sum(axis=1))

    def blocks(self) -> np.ndarray | None:
        """Index (files + 1,) of the first sample of each file, and the total; None if samples are whole files."""
        if self.object is None or self.length is None or self.first is not None or (self.length < 0).any():
            return None
        of_file = self.object.reshape(self._n, -1).max(axis=1)  # -1 for missing parts
        return np.concatenate([[0], np.flatnonzero(np.diff(of_file)) + 1, [self._n]])

    def fingerprint(self) -> int:
        """A checksum, to distinguish tables of equal size."""
        crc = zlib.crc32(self.objects.text.tobytes())
        for column in (self.first, self.object, self.offset, self.length):
            crc = crc if column is None else zlib.crc32(column.tobytes(), crc)
        return crc


def _size(objects: FileNames, index: int) -> int:
    try:
        return storage.size(objects.full_path(index))
    except OSError:
        return 0


class Parsed(NamedTuple):
    """An output of the parser, as far as it is known before reading.

    If `shape` has no None, all samples have this shape: the engine allocates memory for the parser, and the batch is
    dense. Otherwise the parser sets all extents. If `dtype` or `shape` itself is None, the parser also sets the type or
    the number of dimensions; they must be the same in a batch."""

    dtype: np.dtype | None = _BYTE
    shape: tuple[int | None, ...] | None = (None,)
    layout: str = ""

    @property
    def is_dense(self) -> bool:
        return self.dtype is not None and self.shape is not None and None not in self.shape


def request_for(records: Records, known: Sequence[Parsed]) -> tuple[np.ndarray, int, list[Any]]:
    """A `struct Fetch` for the records and outputs, its address, and the objects it points to."""
    outputs, at = allocate(len(known), OUTPUT)
    for row, o in zip(outputs, known):
        shape = o.shape or ()
        check_dims(len(shape))
        row["dtype"] = 0 if o.dtype is None else dtypes.from_numpy(o.dtype)
        row["ndim"], row["shape"][: len(shape)] = len(shape), [n or 0 for n in shape]
        if o.is_dense and o.dtype is not None:
            row["bytes"] = math.prod(row["shape"][: len(shape)].tolist()) * o.dtype.itemsize
    request, request_address = allocate(1, FETCH)
    records.fill(request)
    request["outputs"], request["n_out"] = at, len(known)
    return request, request_address, [outputs, records]


class RecordReader(ShardedSource, abstract=True):
    """Base of readers. A reader defines:

    * `find()`: the Records of its samples;
    * `parser`: kernels/read/<name>.{h,cpp} that parses one sample (see kernels/read/parser.h), "" if each part is an
      unchanged output; `parser_arguments()`: the fields of its argument struct, as in `params` of operators;
    * `parsed()`: a Parsed for each output of the parser;
    * `finish(index, batches)`, if there are other outputs: adds those that are known without reading the samples at
      `index`, such as labels, by column.
    """

    parser: ClassVar[str] = ""  # such as "read/tf_example"
    allow_empty: ClassVar[bool] = False  # whether an empty object is a good sample
    # Known once the samples are found:
    records: Records
    known: tuple[Parsed, ...]
    dense: dict[int, Parsed]  # outputs with a fixed shape
    request: np.ndarray  # a `struct Fetch`
    request_address: int
    alive: list[Any]  # the objects it points to

    def find(self) -> Records:
        """Finds the samples, at least one. Otherwise raises ValueError or OSError with what was searched for."""
        raise NotImplementedError

    def parsed(self) -> tuple[Parsed, ...]:
        """The outputs of the parser; by default the bytes of one part."""
        return (Parsed(),)

    def parser_arguments(self) -> dict[str, Any]:
        """The fields of the parser's argument struct: numbers, or arrays (1, ...) for pointers."""
        return {}

    def parser_arguments_by(self, a: Arguments) -> dict[str, Any]:
        """The same for one batch if some of the reader's arguments are data: `a` has their columns."""
        raise NotImplementedError

    def finish(self, index: np.ndarray, batches: tuple[Batch, ...]) -> tuple[Batch, ...]:
        """The outputs for the samples at `index`, from the parsed batches. Raises SampleErrors with the batches if
        samples are bad."""
        return batches

    def source_name(self, index: int) -> SourceName:
        """Source of a sample: "file, record, offset"; its `given` is the `source_info`."""
        return self.records.name(index)

    # The same for all readers -------------------------------------------------------------------------------

    def n_outputs(self) -> int:
        return len(self.parsed())

    def found(self) -> int:
        self.records, self.known = self.find(), self.parsed()
        self.dense = {k: o for k, o in enumerate(self.known) if o.is_dense}
        self.request, self.request_address, self.alive = request_for(self.records, self.known)
        if self.parser:
            self.request["parser"] = kernels.kernel(self.parser).address
            self.alive += self._give_parser(self.request, self.parser_arguments())
        self.request["direct"], self.request["allow_empty"] = bool(self.values.get("use_o_direct")), self.allow_empty
        return len(self.records)

    @property
    def is_remote(self) -> bool:
        return self.records.objects.has_urls

    @property
    def batches_ahead(self) -> int:
        """By URL: number of batches with twice as many requests as may be in flight, assuming that the samples of a
        batch are contiguous. At most half an epoch, so that data is in the cache when the next epoch reads it again."""
        if not self.size:
            return 0
        if not self.is_remote:
            return self.values["prefetch_queue_depth"]
        limits = self.storage.connection.limits
        batch = self.records.mean_bytes() * self._batch_size
        requests = max(batch // _RUN_BYTES_BY_URL, 1) if batch else self._batch_size
        half = self.size // self.values["num_shards"] // self._batch_size // 2
        return min(-(-2 * limits.at_once // requests), half)

    def lengths_found(self) -> np.ndarray | None:
        return self.records.sizes()

    def blocks_found(self) -> np.ndarray | None:
        return self.records.blocks()

    def _give_parser(self, request: np.ndarray, fields: dict[str, Any]) -> list[Any]:
        """Writes the parser's arguments into a request. Returns the objects that it must keep alive."""
        parser = kernels.kernel(self.parser)
        rows = ArgumentRows(1, parser.args, parser.pointers)
        request["args"] = rows.address
        return [rows, *rows.fill(fields)]

    def fingerprint(self) -> int:
        return self.records.fingerprint()

    def begin(self, picks: Picks, io: kernels.Pool) -> Loading:
        return _Reading(self, picks, io, self.request_address)

    def begin_by(self, picks: Picks, io: kernels.Pool, a: Arguments) -> Loading:
        request, at = allocate(1, FETCH)
        request[...] = self.request
        return _Reading(self, picks, io, at, (request, self._give_parser(request, self.parser_arguments_by(a))))


class _Reading(Loading):
    """A batch that is being read and parsed."""

    def __init__(self, reader: RecordReader, picks: Picks, io: kernels.Pool, request: int, own: tuple[Any, ...] = ()):
        """`request`: the address of a `struct Fetch`. `own`: objects to keep alive if it is not the reader's."""
        index, places, dense = np.ascontiguousarray(picks.columns["index"], _INT64), None, 0
        self._reader, self._index, n = reader, index, len(index)
        self._out, out = allocate((len(reader.known), n), TENSOR)
        self._dense = {k: np.zeros((n, *o.shape), o.dtype) for k, o in reader.dense.items()}  # type: ignore[misc]
        if self._dense:
            places, dense = allocate(len(reader.known), _ADDRESS)
            for k, array in self._dense.items():
                places[k] = address(array)
        is_remote = reader.is_remote
        remote = reader.storage.handle() if is_remote else 0
        alive = (self._out, self._dense, places, reader.request, reader.alive, reader.storage, own)
        limits = reader.storage.connection.limits
        fetcher = io.fetcher(limits.at_once, limits.ahead_bytes) if is_remote else io.fetcher()
        self._fetch = fetcher.begin(request, index, out, dense, remote, alive)

    def wait_for_most(self) -> None:
        self._fetch.wait_for_most()

    def wait(self) -> tuple[Batch, ...]:
        reader, index, fetch = self._reader, self._index, self._fetch
        reasons = fetch.reasons() if fetch.wait() else {}
        self.begin_ns, self.end_ns = fetch.begin_ns, fetch.end_ns
        reader.storage.read_ahead(fetch.most_held)
        sources, batches = SourceNames(reader.source_name, index), []
        for k, o in enumerate(reader.known):
            if k in self._dense:
                batches.append(Batch.from_array(self._dense[k], o.layout, sources))
            else:
                batches.append(_batch(o, self._out[k], fetch.owner, sources, reasons))
        try:
            loaded = reader.finish(index, tuple(batches))
        except SampleErrors as e:
            assert e.batches is not None
            reasons, loaded = {**reasons, **e.reasons}, e.batches
        if reasons:
            raise SampleErrors(reasons, sources, loaded)
        return loaded


def _batch(o: Parsed, rows: np.ndarray, owner: object, sources: SourceNames, reasons: dict[int, str]) -> Batch:
    """A batch of parsed samples. Samples whose type or number of dimensions differs are bad."""
    if o.dtype is not None and o.shape is not None:
        dtype, ndim = o.dtype, len(o.shape)
    else:
        good = np.setdiff1d(np.arange(len(rows)), list(reasons)) if reasons else np.arange(len(rows))
        first = rows[good[0]] if len(good) else None
        dtype = _BYTE if first is None else dtypes.to_numpy(dtypes.DALIDataType(int(first["dtype"])))
        ndim = 1 if first is None else int(first["ndim"])
        number = dtypes.from_numpy(dtype)
        for i in good[(rows["dtype"][good] != number) | (rows["ndim"][good] != ndim)].tolist():
            got = dtypes.to_numpy(dtypes.DALIDataType(int(rows[i]["dtype"])))
            reasons[i] = (
                f"the sample has {int(rows[i]['ndim'])} dimensions of {got.name}, the first of the batch {ndim} of "
                f"{dtype.name}; all samples of a batch need the same"
            )
        for i in reasons:
            rows[i]["data"], rows[i]["shape"], rows[i]["ndim"], rows[i]["dtype"] = 0, np.zeros(MAX_DIMS), ndim, number
    batch = Batch(Spec(rows["shape"][:, :ndim], dtype, o.layout), rows, (owner,), sources)
    batch.rows_address = address(rows)
    return batch
