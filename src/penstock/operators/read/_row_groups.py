# SPDX-License-Identifier: Apache-2.0
"""Cache of row groups of Parquet files, which are decoded as a whole by threads."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from ._arrow import Values

if TYPE_CHECKING:
    from concurrent.futures import Future

MOST_BYTES = 1 << 30  # of cached row groups that no batch needs now


class RowGroup(NamedTuple):
    columns: tuple[Values, ...]
    nbytes: int


class RowGroups:
    """`begin(k)` starts reading row group k if it is remote; `read(k, begun)` decodes it in one of `n_threads`
    threads."""

    def __init__(self, begin: Callable[[int], Any], read: Callable[[int, Any], RowGroup], n_threads: int):
        from concurrent.futures import ThreadPoolExecutor  # imported here to keep `import penstock` fast

        self._begin_to_read, self._read = begin, read
        self._lock, self.pid = threading.Lock(), os.getpid()
        self._pool = ThreadPoolExecutor(n_threads, "penstock row groups")
        self._kept: OrderedDict[int, Future[RowGroup]] = OrderedDict()  # least recently used first

    def begin(self, wanted: Iterable[int], soon: Iterable[int] = ()) -> list[Future[RowGroup]]:
        """Returns the `wanted` row groups. Row groups that are not cached are read: first `wanted`, then `soon`."""
        needed, later = list(wanted), list(soon)
        with self._lock:
            found = [self._begin(k) for k in needed]
            for k in later:
                self._begin(k)
            n_needed = len({*needed, *later})
            held = sum(f.result().nbytes for f in self._kept.values() if _is_there(f))
            while held > MOST_BYTES and len(self._kept) > n_needed:
                dropped = self._kept.popitem(last=False)[1]
                held -= dropped.result().nbytes if _is_there(dropped) else 0
            return found

    def _begin(self, k: int) -> Future[RowGroup]:
        future = self._kept.get(k)
        if future is None or (future.done() and future.exception() is not None):  # retries after an error
            future = self._kept[k] = self._pool.submit(self._read, k, self._begin_to_read(k))
        self._kept.move_to_end(k)
        return future

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


def _is_there(future: Future[RowGroup]) -> bool:
    return future.done() and not future.cancelled() and future.exception() is None
