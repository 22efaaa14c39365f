# SPDX-License-Identifier: Apache-2.0
"""Starts the workers of a pipeline by the requested method."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

METHODS = ("fork", "spawn", "forkserver", "thread")


def start_pool(sources: Sequence[Any], n_workers: int, method: str, pickler: Any) -> Any:
    """Starts one pool for all `sources` and passes it to them by `join`."""
    if method not in METHODS:
        raise ValueError(f"py_start_method takes {', '.join(map(repr, METHODS))}; got {method!r}")
    callings = [s.calling for s in sources]
    if method == "thread":
        from .threads import ThreadPool

        pool: Any = ThreadPool(callings, n_workers, [not s.values.get("no_copy") for s in sources])
    else:
        from .pool import Pool

        pool = Pool(callings, n_workers, method, pickler, [s.values.get("bytes_per_sample_hint") for s in sources])
    for i, s in enumerate(sources):
        pool.timeouts[i] = s.values["timeout"]
        s.join(pool, i)
    return pool
