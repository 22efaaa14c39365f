# SPDX-License-Identifier: Apache-2.0
"""Reads columns of Parquet files, of Arrow's tables and of Hugging Face's datasets."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from typing import Any

import numpy as np

from ...core import dtypes, kernels
from ...core.batch import Batch, Spec
from ...core.errors import SampleErrors
from ...core.memory import Kept
from ...core.op import Arg
from ...core.picks import Picks
from ...core.rows import TENSOR, address, allocate
from ...core.source import Loading
from ...core.source_name import SourceName, SourceNames
from ._blocks import whole_files
from ._row_groups import RowGroups
from ._sharded import ShardedSource
from ._tables import ParquetFiles, Rows, Table, dataset_rows, parquet_files

_INT64 = np.dtype("i8")


class Parquet(ShardedSource):
    """Reads columns of Parquet files, of a `pyarrow.Table`, or of a `datasets.Dataset` from Hugging Face. Each row is a
    sample.

    Each entry of `columns` is an output, whose form depends on the column's type:

    * bytes and strings: uint8 of shape (bytes,);
    * numbers and booleans: the column's type, of shape (1,);
    * lists of numbers: the numbers' type, of shape (values,);
    * {bytes, path}, in which Hugging Face stores images and audio: the content as stored, uint8 of shape (bytes,); that
      of the file at `path` if `bytes` is empty.

    A row without a value (null) is a bad sample, and so are the rows of a row group that can't be read (see `on_error`
    of the pipeline).

    Parquet files can only be read by row groups. They are decoded ahead, by as many threads as the pipeline reads with.
    `shuffle="windows"` reads each row group once per epoch. Other ways to shuffle read a row group for almost every
    sample, and are fast only if all row groups fit into 1 GB of memory. The rows of a table or a
    `Dataset` can be read in any order. Requires pyarrow: the extra `penstock[parquet]`.

    Columns of bytes, strings, numbers and {bytes, path} are decoded without pyarrow, in a third of the time, if their
    pages are plain, dictionary or DELTA_LENGTH_BYTE_ARRAY encoded and uncompressed or compressed with Snappy or zstd.
    pyarrow decodes lists, booleans, and pages with other encodings and compressions.

    >>> import os, tempfile
    >>> import pyarrow, pyarrow.parquet
    >>> from penstock import fn, pipeline_def
    >>> path = os.path.join(tempfile.mkdtemp(), "train.parquet")
    >>> table = pyarrow.table({"image": [b"a picture", b"another"], "label": [7, 3]})
    >>> pyarrow.parquet.write_table(table, path)
    >>> @pipeline_def(batch_size=2)
    ... def pipe():
    ...     return tuple(fn.readers.parquet(path=path, columns=["image", "label"]))
    >>> images, labels = pipe().run()
    >>> bytes(images.at(0)), labels.as_array().tolist()
    (b'a picture', [[7], [3]])
    """

    module = "readers"

    path = Arg(
        object,
        doc='A path, a folder, a pattern such as "data/train-*.parquet", a list of these, a `pyarrow.Table`, or a '
        "`datasets.Dataset`.",
    )
    columns = Arg([str], doc='Names of the columns to return, such as ["image", "label"].')

    groups: RowGroups | None = None

    def setup(self) -> None:
        super().setup()
        v = self.values
        if not v["columns"]:
            raise ValueError("'columns' is an empty list")
        self.is_dataset = hasattr(v["path"], "data") and hasattr(v["path"], "features")
        self.is_table = hasattr(v["path"], "to_batches") and hasattr(v["path"], "num_rows")
        if self.is_dataset or self.is_table:
            return
        paths = v["path"] if isinstance(v["path"], (list, tuple)) else [v["path"]]
        if not paths:
            raise ValueError("'path' is an empty list")
        if not all(isinstance(p, (str, os.PathLike)) for p in paths):
            hint = "; pass pyarrow.Table.from_pandas(df)" if type(v["path"]).__name__ == "DataFrame" else ""
            got = type(v["path"]).__name__ if hint else repr(v["path"])
            raise TypeError(f"'path' takes paths, a pyarrow.Table or a datasets.Dataset; got {got}{hint}")
        self.paths = [os.fspath(p) for p in paths]

    def n_outputs(self) -> int:
        return len(self.values["columns"] or [""])

    def found(self) -> int:
        columns = self.values["columns"]
        try:
            if self.is_dataset:
                self.table: Table = dataset_rows(self.values["path"], columns)
            elif self.is_table:
                self.table = Rows(self.values["path"], columns)
            else:
                self.table = ParquetFiles([f for p in self.paths for f in parquet_files(p)], columns, self.storage)
        except ImportError as e:
            raise RuntimeError(f"it needs pyarrow ({e}); install it by pip install 'penstock[parquet]'") from None
        if not len(self.table):
            raise ValueError("there are no rows in what was given")
        return len(self.table)

    def blocks_found(self) -> np.ndarray | None:
        return self.table.blocks()

    def fingerprint(self) -> int:
        return self.table.fingerprint()

    def source_name(self, index: int) -> SourceName:
        return self.table.name(index)

    def begin(self, picks: Picks, io: kernels.Pool) -> Loading:
        if self.groups is None or self.groups.pid != os.getpid():
            self.groups = RowGroups(lambda k: self.table.begin(k, io), self.table.read, io.n)
        index = np.ascontiguousarray(picks.columns["index"], _INT64)
        return _Reading(self, self.groups, index, self._soon(picks), io)

    def _soon(self, picks: Picks) -> Iterable[int]:
        """Row groups that later batches need: those of this window, and the same fraction of the next window as is
        already complete of this one."""
        order, n = self.order, len(self.table.begins) - 1
        if order.windows is None:
            if order.way or not len(picks):
                return ()
            last = int(self.table.row(picks.columns["index"][-1:])[0])
            group = int(np.searchsorted(self.table.begins, last, "right")) - 1
            return [(group + k) % n for k in range(1, 1 + min(self.table.groups_ahead, n - 1))]
        epoch, offset = int(picks.columns["place"][-1]), int(picks.columns["offset"][-1])
        begin = order.begin(order.part(self.values["shard_id"], epoch))
        current, upcoming, share = order.windows.upcoming(order.shared_key, epoch, min(begin + offset, self.size - 1))
        if not len(upcoming):
            first = order.begin(order.part(self.values["shard_id"], epoch + 1))
            upcoming = order.windows.upcoming(order.shared_key, epoch + 1, first)[0]
        return [*current.tolist(), *upcoming[: math.ceil(share * len(upcoming))].tolist()]

    def close(self) -> None:
        super().close()
        if self.groups is not None:
            self.groups.close()


class _Reading(Loading):
    """A batch whose row groups are being decoded."""

    def __init__(self, reader: Parquet, groups: RowGroups, index: np.ndarray, soon: Iterable[int], io: kernels.Pool):
        self._reader, self._index, self._io = reader, index, io
        self._row = reader.table.row(index)
        self._group = np.searchsorted(reader.table.begins, self._row, "right") - 1
        self._wanted = np.unique(self._group).tolist()
        self._futures = groups.begin(self._wanted, soon)

    def wait(self) -> tuple[Batch, ...]:
        from concurrent.futures import CancelledError  # imported here to keep `import penstock` fast

        table, n = self._reader.table, len(self._index)
        outputs = [allocate(n, TENSOR)[0] for _ in table.kinds]
        for rows, (dtype, _) in zip(outputs, table.kinds):
            rows["ndim"], rows["dtype"] = 1, dtypes.from_numpy(dtype)
        reasons: dict[int, str] = {}
        files: list[dict[int, str]] = [{} for _ in outputs]
        owners: list[Any] = []
        for group, future in zip(self._wanted, self._futures):
            its = np.flatnonzero(self._group == group)
            try:
                found = future.result()
            except (OSError, ValueError, CancelledError, MemoryError) as e:
                reasons.update(dict.fromkeys(its.tolist(), f"the row group can't be read: {e or type(e).__name__}"))
                continue
            owners.append(found)
            within = self._row[its] - int(table.begins[group])
            for rows, paths, values in zip(outputs, files, found.columns):
                rows["data"][its] = values.address[within]
                rows["shape"][its, 0] = values.length[within]
                if values.why or values.paths:
                    for i, row in zip(its.tolist(), within.tolist()):
                        if row in values.why:
                            reasons.setdefault(i, values.why[row])
                        elif row in values.paths:
                            paths[i] = os.path.join(table.folder(group), values.paths[row])
        sources = SourceNames(self._reader.source_name, self._index)
        batches = tuple(
            self._batch(rows, dtype, size, paths, owners, reasons, sources)
            for rows, paths, (dtype, size) in zip(outputs, files, table.kinds)
        )
        if reasons:
            raise SampleErrors(reasons, sources, batches)
        return batches

    def _batch(
        self,
        rows: np.ndarray,
        dtype: np.dtype,
        size: int | None,
        paths: dict[int, str],
        owners: list[Any],
        reasons: dict[int, str],
        sources: SourceNames,
    ) -> Batch:
        kept: tuple[Any, ...] = (Kept(owners),)
        if paths:
            which = list(paths)
            names = [np.frombuffer(os.fsencode(p), "u1") for p in paths.values()]
            contents, owner, bad = whole_files(names, False, self._io)
            rows["data"][which], rows["shape"][which] = contents["data"], contents["shape"]
            reasons.update({which[i]: f"{paths[which[i]]}: {why}" for i, why in bad.items()})
            kept = (*kept, owner)
        if size is not None:  # a dense batch in new memory
            empty = np.zeros(max(size, 1), dtype)
            missing = rows["shape"][:, 0] != size
            rows["data"][missing], rows["shape"][missing, 0] = address(empty), size
            return Batch(Spec.uniform(len(rows), (size,), dtype), rows, (owners, empty), sources).packed_copy()
        return Batch(Spec(rows["shape"][:, :1].copy(), dtype), rows, kept, sources)
