# SPDX-License-Identifier: Apache-2.0
"""Tables with one sample per row: Parquet files, Arrow tables, and Hugging Face datasets, which are such tables."""

from __future__ import annotations

import io
import os
import zlib
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from ...core import listings, storage
from ...core.kernels import Pool
from ...core.source_name import SourceName
from ._arrow import kind_of, values_of
from ._far_chunks import Chunks, FarChunks
from ._file_names import matcher
from ._parquet_pages import PlainColumn, is_sound, plain_column, read_column, read_file, span
from ._row_groups import RowGroup
from ._scanning import scan_all

_ROWS_AT_ONCE = 1 << 16  # of an Arrow table, whose record batches have any size


class Table:
    """Rows in groups that are read as a whole. `begins` (groups + 1,): first row of each group, and the total."""

    begins: np.ndarray
    kinds: list[tuple[np.dtype, int | None]]  # of the selected columns
    groups_ahead = 2  # groups read ahead if samples are in order

    def __len__(self) -> int:
        return int(self.begins[-1])

    def row(self, index: np.ndarray) -> np.ndarray:
        """Rows (n,) of samples."""
        return index

    def blocks(self) -> np.ndarray | None:
        """The same as `begins` in samples; None if the samples of a group are not contiguous."""
        return self.begins

    def begin(self, group: int, io: Pool) -> Any:
        """Starts reading a remote group, without waiting."""
        return None

    def read(self, group: int, begun: Any = None) -> RowGroup:
        """Reads a group, in any thread. `begun`: the result of `begin`. Raises OSError or ValueError if it can't be
        read."""
        raise NotImplementedError

    def name(self, index: int) -> SourceName:
        raise NotImplementedError

    def folder(self, group: int) -> str:
        """The base of relative paths in columns {bytes, path}."""
        return ""

    def fingerprint(self) -> int:
        raise NotImplementedError


class ParquetFiles(Table):
    def __init__(self, paths: Sequence[str], columns: Sequence[str], objects: storage.Storage):
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.paths, self.columns, self._objects = list(paths), list(columns), objects

        def about(path: str) -> tuple[Any, list, storage.Version]:
            version = storage.version(path)
            try:
                with self._open(path, version) as file:
                    found = pq.ParquetFile(file)
                    return found.metadata, _kinds(found.schema_arrow, columns), version
            except pa.ArrowException as e:
                raise ValueError(str(e)) from None

        found = scan_all("row groups", self.paths, about)
        self._metadata, kinds, self._versions = zip(*found)
        self._plain_columns: list[Any] = [None] * len(found)
        self.kinds = kinds[0]
        for path, its in zip(self.paths, kinds):
            if its != self.kinds:
                different = next(c for c, a, b in zip(columns, its, self.kinds) if a != b)
                raise ValueError(f"{path}: the column '{different}' has another type than in {self.paths[0]}")
        counts = [m.num_row_groups for m in self._metadata]
        self._file = np.repeat(np.arange(len(counts)), counts)
        self._first = np.cumsum([0, *counts])  # first row group of each file
        rows = [m.row_group(i).num_rows for m in self._metadata for i in range(m.num_row_groups)]
        self.begins = np.cumsum([0, *rows])
        self._far: FarChunks | None = None
        if any(map(storage.is_url, self.paths)):
            spans = [self._spans(group) for group in range(len(rows))]
            if any(spans):
                self._far = FarChunks(self.paths, self._file, spans, objects)
                self.groups_ahead = self._far.ahead

    def _about(self, group: int) -> Any:
        k = int(self._file[group])
        return self._metadata[k].row_group(group - int(self._first[k]))

    def _spans(self, group: int) -> list[tuple[int, int]]:
        """The spans of a row group's natively decoded columns, without invalid ones."""
        k, about = int(self._file[group]), self._about(group)
        leaves = [leaf for c in self._plain(k) if c for leaf in (c.content, c.path) if leaf]
        return [s for s in (span(about, leaf) for leaf in leaves) if is_sound(*s, self._versions[k].size)]

    def begin(self, group: int, io: Pool) -> Chunks | None:
        return None if self._far is None else self._far.begin(group, io)

    def _open(self, path: str, version: storage.Version) -> Any:
        if storage.is_url(path):
            return _RemoteFile(path, version, self._objects)
        return open(path, "rb", buffering=0)

    def read(self, group: int, begun: Chunks | None = None) -> RowGroup:
        import pyarrow as pa

        k = int(self._file[group])
        path, version, about = self.paths[k], self._versions[k], self._about(group)
        n_rows = int(self.begins[group + 1] - self.begins[group])
        with self._objects.active():
            if not storage.is_url(path) and storage.version(path) != version:
                raise ValueError("the file has changed since the pipeline was built")
            try:
                with self._open(path, version) as file:
                    if begun is not None:
                        begun.wait()
                    read = partial(read_file, file) if begun is None else begun.read
                    columns = [c and read_column(read, version.size, about, c) for c in self._plain(k)]
                    others = [name for name, values in zip(self.columns, columns) if values is None]
                    table: Any = self._by_arrow(group, file, others) if others else None
            except pa.ArrowException as e:
                raise ValueError(str(e)) from None
        if others and len(table) != n_rows:
            raise ValueError(f"it has {len(table)} rows, but the file's metadata say {n_rows}")
        by_arrow = {name: values_of(name, table.column(name)) for name in others}
        found = tuple(c[0] if c else by_arrow[name] for name, c in zip(self.columns, columns))
        return RowGroup(found, sum(c[1] for c in columns if c) + int(table.nbytes if others else 0))

    def _plain(self, k: int) -> list[PlainColumn | None]:
        """The columns of file k; None for those that are not decoded natively."""
        if self._plain_columns[k] is None:
            schema = self._metadata[k].schema
            self._plain_columns[k] = [plain_column(schema, name, kind) for name, kind in zip(self.columns, self.kinds)]
        return self._plain_columns[k]

    def _by_arrow(self, group: int, file: Any, columns: list[str]) -> Any:
        import pyarrow.parquet as pq

        k = int(self._file[group])
        reader = pq.ParquetFile(file, metadata=self._metadata[k], pre_buffer=storage.is_url(self.paths[k]))
        return reader.read_row_group(group - int(self._first[k]), columns=columns, use_threads=False)

    def name(self, index: int) -> SourceName:
        group = int(np.searchsorted(self.begins, index, "right")) - 1
        k = int(self._file[group])
        path = storage.without_secrets(self.paths[k])
        first = int(self._first[k])
        text = f"{path}, row group {group - first}, row {index - int(self.begins[group])}"
        return SourceName(text, f"{path} at row {index - int(self.begins[first])}")

    def folder(self, group: int) -> str:
        path = self.paths[int(self._file[group])]
        return storage.folder_of(path)

    def fingerprint(self) -> int:
        return zlib.crc32(self.begins.tobytes(), zlib.crc32("\0".join(self.paths).encode("utf-8", "surrogateescape")))


class Rows(Table):
    """The rows of an Arrow table, or the selected ones."""

    def __init__(self, table: Any, columns: Sequence[str], rows: np.ndarray | None = None, identity: str = ""):
        """`rows` (n,): the selected rows; None for all. `identity` distinguishes tables of equal size."""
        self.kinds = _kinds(table.schema, columns)
        self._rows, self._identity = rows, identity
        self._columns, begins, n = list(columns), [0], 0
        self._groups: list[list] = []
        for batch in table.select(self._columns).to_batches():
            if not n:
                self._groups.append([])
            self._groups[-1].append(batch)
            n += len(batch)
            if n >= _ROWS_AT_ONCE:
                begins.append(begins[-1] + n)
                n = 0
        self.begins = np.array([*begins, begins[-1] + n] if n else begins)

    def __len__(self) -> int:
        return int(self.begins[-1]) if self._rows is None else len(self._rows)

    def row(self, index: np.ndarray) -> np.ndarray:
        return index if self._rows is None else self._rows[index]

    def blocks(self) -> np.ndarray | None:
        return self.begins if self._rows is None else None

    def read(self, group: int, begun: Any = None) -> RowGroup:
        import pyarrow as pa

        table = pa.Table.from_batches(self._groups[group])
        return RowGroup(tuple(values_of(name, table.column(name)) for name in self._columns), 0)

    def name(self, index: int) -> SourceName:
        return SourceName(f"the table, row {index}", f"row {index}")

    def fingerprint(self) -> int:
        return zlib.crc32(self._identity.encode())


def dataset_rows(dataset: Any, columns: Sequence[str]) -> Rows:
    """The rows of a `datasets.Dataset` of Hugging Face."""
    indices = getattr(dataset, "_indices", None)  # set if it was shuffled or selected from
    rows = None if indices is None else indices.column(0).to_numpy().astype("i8")
    return Rows(dataset.data.table, columns, rows, str(getattr(dataset, "_fingerprint", "")))


def _kinds(schema: Any, columns: Sequence[str]) -> list[tuple[np.dtype, int | None]]:
    for name in columns:
        if schema.get_field_index(name) < 0:
            raise ValueError(f"there is no column '{name}'; there are {', '.join(schema.names)}")
    return [kind_of(name, schema.field(name).type) for name in columns]


def parquet_files(given: str) -> list[str]:
    """The files of a path, sorted: a file, the files in a folder, or the matches of a pattern."""
    given = os.path.expanduser(given)
    if storage.is_url(given):
        folder, _, name = storage.without_query(given).rpartition("/")
        if not any(c in name for c in "*["):
            return [given]
        matches = matcher([name], True)
        pages = listings.objects_in(folder).pages()
        return [f"{folder}/{n}" for page in pages for n in map(os.fsdecode, page) if matches(n)]
    import glob  # imported here to keep `import penstock` fast

    if os.path.isdir(given):
        given = os.path.join(glob.escape(given), "**", "*.parquet")
    elif os.path.exists(given) or not any(c in given for c in "*?["):
        return [given]
    found = sorted(p for p in glob.glob(given, recursive=True) if not os.path.isdir(p))
    if not found:
        raise ValueError(f"no file matches {given}")
    return found


class _RemoteFile(io.RawIOBase):
    """A file object for Arrow that reads from a URL."""

    def __init__(self, url: str, version: storage.Version, objects: storage.Storage):
        self._url, self._version, self._objects, self._at = url, version, objects, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = offset + (0, self._at, self._version.size)[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def size(self) -> int:
        return self._version.size

    def readinto(self, to: Any) -> int:
        """Reads up to the size of `to`."""
        n = min(max(self._version.size - self._at, 0), len(memoryview(to).cast("B")))
        data = self.read(n) if n else b""
        memoryview(to).cast("B")[: len(data)] = data
        return len(data)

    def read(self, size: int = -1) -> bytes:
        left = max(self._version.size - self._at, 0)
        n = left if size is None or size < 0 else min(size, left)
        if not n:
            return b""
        data = self._objects.read(self._url, self._at, n)
        self._at += n
        return data
