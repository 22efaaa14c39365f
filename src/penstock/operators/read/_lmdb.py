# SPDX-License-Identifier: Apache-2.0
"""Records of LMDB databases."""

from __future__ import annotations

import os

import numpy as np

from ...core.source_name import SourceName
from ...core.storage import is_url
from ._file_names import FileNames
from ._records import RecordReader, Records
from ._scanning import scan_all
from ._table import scan


class LmdbReader(RecordReader, abstract=True):
    """Base of readers of LMDB databases, which are given by `path`."""

    def setup(self) -> None:
        super().setup()
        if not self.values["path"]:
            raise ValueError(f"{self.display_name()}: 'path' is an empty list; it takes the folders of databases")

    def find(self) -> Records:
        files = []
        for path in self.values["path"]:
            path = os.path.expanduser(path)
            is_folder = not path.endswith(".mdb") if is_url(path) else os.path.isdir(path)
            files.append(os.path.join(path, "data.mdb") if is_folder else path)
        tables = scan_all("records", files, _values)
        self._keys = [(t["key_end"], t["keys"]) for t in tables]
        self._begins = np.cumsum([0, *(len(t["offset"]) for t in tables)])
        if not self._begins[-1]:
            raise ValueError(f"there are no records in {', '.join(files[:3])}")
        return Records(
            FileNames("", [[os.fsencode(f) for f in files]]),
            np.repeat(np.arange(len(files)), np.diff(self._begins)),
            np.concatenate([t["offset"] for t in tables]),
            np.concatenate([t["length"] for t in tables]),
        )

    def source_name(self, index: int) -> SourceName:
        database = int(np.searchsorted(self._begins, index, "right")) - 1
        record = index - int(self._begins[database])
        key_end, keys = self._keys[database]
        key = os.fsdecode(keys[int(key_end[record - 1]) if record else 0 : int(key_end[record])].tobytes())
        # Up to the first zero byte, as in DALI.
        path = self.values["path"][database]
        given = f"{path} at key {key.partition(chr(0))[0]}"
        return SourceName(f"{self.records.objects.path(database)}, record {record}, key {key!r}", given)


def _values(path: str) -> dict[str, np.ndarray]:
    return scan("lmdb_values", os.fsencode(path), offset="i8", length="i8", key_end="i8", keys="u1")
