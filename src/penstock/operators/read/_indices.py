# SPDX-License-Identifier: Apache-2.0
"""Positions of records in files: read from index files, or found by scanning the files."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

import numpy as np

from ...core import kernels, storage
from ...core.rows import address
from ._file_names import FileNames
from ._kept_tables import kept
from ._records import Records
from ._scanning import scan_all
from ._table import scan

_INT64 = np.dtype("i8")


def records_of(
    paths: Sequence[str], scanner: str, indices: Sequence[str] | None, rows: Callable[[str, str], np.ndarray]
) -> Records:
    """The records of files, found by a scanner of kernels/read/record_scan.h, or read from an index per file by
    `rows(index, path)`, which returns offsets and sizes (n, 2)."""
    paths = [os.path.expanduser(p) for p in paths]
    for p in paths:
        _size(p)
    if indices is None:
        found = kept(scanner, paths, lambda: _scan(paths, scanner))
        count, offset, size = found["count"], found["offset"], found["size"]
    else:
        parts = []
        for index, path in zip(map(os.path.expanduser, indices), paths):
            parts.append(rows(index, path))
            _check_fits(parts[-1], index, path)
        count = np.array([len(p) for p in parts])
        offset, size = np.concatenate(parts).T
    records = Records(
        FileNames("", [[os.fsencode(p) for p in paths]]), np.repeat(np.arange(len(paths)), count), offset, size
    )
    if not len(records):
        raise ValueError(f"there are no records in {', '.join(paths[:3])}{', ...' if len(paths) > 3 else ''}")
    return records


def scan_file(scanner: str, path: str) -> np.ndarray:
    """Offsets and sizes (n, 2) of the records of a file."""
    try:
        return np.stack([*scan(scanner, os.fsencode(path), offset="i8", size="i8").values()], axis=1)
    except ValueError as e:
        raise ValueError(f"{path}: {e}") from None


def _scan(paths: Sequence[str], scanner: str) -> dict[str, np.ndarray]:
    found = scan_all("records", paths, lambda p: scan(scanner, os.fsencode(p), offset="i8", size="i8"))
    columns = {name: np.concatenate([f[name] for f in found]) for name in ("offset", "size")}
    return {"count": np.array([len(f["offset"]) for f in found]), **columns}


def read_pairs(path: str) -> np.ndarray:
    """The pairs of integers (n, 2) in an index file."""
    try:
        text = storage.read(path)
    except OSError as e:
        raise OSError(e.errno, f"the index can't be read: {e.strerror}", path) from None
    numbers = np.empty(len(text) // 2 + 1, _INT64)
    n = kernels.library().read_integers(text, len(text), address(numbers), len(numbers))
    if n < 0:
        begin = -1 - n
        word = text[begin : begin + 40].split()[0].decode("utf-8", "replace")
        line = 1 + text.count(b"\n", 0, begin)
        raise ValueError(f"line {line} of the index {path} has something else than integers: {word!r}")
    if n % 2:
        raise ValueError(f"the index {path} is cut off: it has {n} numbers, and takes two for each record")
    return numbers[:n].reshape(-1, 2)


def _check_fits(records: np.ndarray, index: str, path: str) -> None:
    """Raises ValueError if records (n, 2) (offsets and sizes) exceed the end of the file."""
    size = _size(path)
    wrong = ((records[:, 0] > size) | (records[:, 1] > size - records[:, 0])).nonzero()[0]
    if len(wrong):
        i = int(wrong[0])
        raise ValueError(
            f"the index {index} does not fit the file {path}: its record {i} has {records[i, 1]} bytes from byte "
            f"{records[i, 0]} on, the file has {size}"
        )


def _size(path: str) -> int:
    try:
        return storage.size(path)
    except OSError as e:
        raise OSError(e.errno, f"the file can't be opened: {e.strerror}", storage.without_secrets(path)) from None
