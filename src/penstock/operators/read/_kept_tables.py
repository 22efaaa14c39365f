# SPDX-License-Identifier: Apache-2.0
"""Cache of the positions of records in the user's cache folder, to avoid scanning large files again."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence

import numpy as np

from ...core import array_files, storage

_VERSION = 1
_WORTH_IT_S = 0.1  # faster scans are not cached


def folder() -> str:
    root = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(root, "penstock", "tables")


def kept(kind: str, paths: str | Sequence[str], scan: Callable[[], dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """The result of `scan` for one or several files, or the cached result. The key is `kind` (of scan) with the files'
    paths, sizes and times of change, or ETags. Raises OSError if a file does not exist."""
    import hashlib  # imported here to keep `import penstock` fast

    identity = os.fsencode(f"{_VERSION}\0{kind}\0") + _versions([paths] if isinstance(paths, str) else paths)
    name = os.path.join(folder(), hashlib.sha256(identity).hexdigest()[:32] + ".npz")
    table = array_files.load(name)
    if table is not None:
        return table
    begin = time.perf_counter()
    table = scan()
    if time.perf_counter() - begin >= _WORTH_IT_S:
        array_files.keep(name, table)
    return table


def _versions(paths: Sequence[str]) -> bytes:
    """Paths, sizes and times of change, or ETags."""
    text = "\0".join((os.getcwd(), *paths))
    if "://" not in text:  # faster for very many files
        found = [(info.st_size, info.st_mtime_ns) for info in map(os.stat, paths)]
        return os.fsencode(text) + np.array(found, "i8").tobytes()
    versions = (storage.version(path) for path in paths)
    return os.fsencode("\0".join((*map(storage.absolute, paths), *(f"{v.size}\0{v.tag}" for v in versions))))
