# SPDX-License-Identifier: Apache-2.0
"""Tables of where records lie, kept in the user's cache: scanning a large file again is what they save."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence

import numpy as np

from ...core import array_files, storage

_VERSION = 1
_WORTH_IT_S = 0.1  # scans that are quicker than this are done again


def folder() -> str:
    root = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(root, "penstock", "tables")


def kept(kind: str, paths: str | Sequence[str], scan: Callable[[], dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """What `scan` finds in one or several files, or has found before: by path, size and time of change, or ETag. `kind`
    tells apart the scans that a file may be given to. Raises OSError if there is no such file."""
    import hashlib  # here, as `import penstock` has to be quick

    identity = f"{_VERSION}\0{kind}"
    for path in [paths] if isinstance(paths, str) else paths:
        version = storage.version(path)
        identity += f"\0{storage.absolute(path)}\0{version.size}\0{version.tag}"
    name = os.path.join(folder(), hashlib.sha256(os.fsencode(identity)).hexdigest()[:32] + ".npz")
    table = array_files.load(name)
    if table is not None:
        return table
    begin = time.perf_counter()
    table = scan()
    if time.perf_counter() - begin >= _WORTH_IT_S:
        array_files.keep(name, table)
    return table
