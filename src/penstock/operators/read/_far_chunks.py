# SPDX-License-Identifier: Apache-2.0
"""Reads column chunks of Parquet files by URL ahead; adjacent chunks are read in one request."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from ...core import kernels
from ...core.memory import view
from ...core.rows import TENSOR, allocate
from ...core.storage import Storage
from ._file_names import FileNames
from ._records import Parsed, Records, request_for

# In bytes. Whole row groups are needed, so large requests cause no delay.
_MOST_IN_A_REQUEST = 16 << 20
_BYTE = np.dtype("u1")
Span = tuple[int, int]  # (offset in the file, size in bytes)


class FarChunks:
    """The spans to read for each row group."""

    def __init__(self, paths: Sequence[str], file: np.ndarray, spans: Sequence[Sequence[Span]], objects: Storage):
        """`file` (groups,): index in `paths` of each row group's file."""
        width = max(map(len, spans))
        object, offset, length = (np.full((len(spans), width), missing) for missing in (-1, 0, 0))
        for group, its in enumerate(spans):
            object[group, : len(its)] = file[group]
            for k, (begin, n_bytes) in enumerate(its):
                offset[group, k], length[group, k] = begin, n_bytes
        names = FileNames("", [[os.fsencode(p) for p in paths]])
        records = Records(names, object, offset, length, most_by_url=_MOST_IN_A_REQUEST)
        self.spans, self.width, self.objects = spans, width, objects
        self.request, self.address, self.alive = request_for(records, [Parsed()] * width)
        limits = objects.connection.limits
        # In row groups. Decoded ones have a separate limit.
        self.ahead = min(max(limits.ahead_bytes // max(records.mean_bytes(), 1), 2), 2 * limits.at_once)

    def begin(self, group: int, io: kernels.Pool) -> Chunks:
        return Chunks(self, group, io)


class Chunks:
    """The chunks of one row group, being read."""

    def __init__(self, of: FarChunks, group: int, io: kernels.Pool):
        self._spans, self._objects = of.spans[group], of.objects
        self._rows, out = allocate((of.width, 1), TENSOR)
        limits = of.objects.connection.limits
        fetcher = io.fetcher(limits.at_once, limits.ahead_bytes)
        alive = (self._rows, of.request, of.alive, of.objects)
        self._fetch = fetcher.begin(of.address, np.array([group], "i8"), out, 0, of.objects.handle(), alive)

    def wait(self) -> None:
        """Raises OSError if a chunk can't be read."""
        if self._fetch.wait():
            raise OSError(self._fetch.reasons()[0])
        self._objects.read_ahead(self._fetch.most_held)

    def read(self, begin: int, n_bytes: int) -> np.ndarray:
        """Returns the bytes of one of the spans."""
        row = self._rows[self._spans.index((begin, n_bytes)), 0]
        return view(int(row["data"]), (n_bytes,), _BYTE, self._fetch.owner)
