# SPDX-License-Identifier: Apache-2.0
"""Scans many files in parallel, and shows progress if it takes long."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import copy_context
from typing import TypeVar

from ...core import storage

_SILENT_S = 2.0
_SCANS_BY_URL = 16  # threads; they mostly wait
T = TypeVar("T")


def scan_all(what: str, paths: Sequence[str], scan: Callable[[str], T]) -> list[T]:
    """Returns `scan(path)` of each path, called by several threads. Adds the path to the text of a ValueError. After
    two seconds, progress is written to stderr."""

    def one(path: str) -> T:
        try:
            return scan(path)
        except ValueError as e:
            raise ValueError(f"{storage.without_secrets(path)}: {e}") from None

    from concurrent.futures import ThreadPoolExecutor  # imported here to keep `import penstock` fast

    found = []
    most = _SCANS_BY_URL if any(map(storage.is_url, paths)) else os.cpu_count() or 1
    threads, contexts = max(1, min(len(paths), most)), [copy_context() for _ in paths]
    with ThreadPoolExecutor(threads, "penstock scan") as pool, progress(what, len(paths)) as done:
        for result in pool.map(lambda context, path: context.run(one, path), contexts, paths):
            found.append(result)
            done(len(found))
    return found


@contextmanager
def progress(what: str, files: int) -> Iterator[Callable[[int], None]]:
    """Yields a function to be called with the number of completed files. After two seconds, it writes progress to
    stderr."""
    begin, shown = time.monotonic(), False

    def done(number: int) -> None:
        nonlocal shown
        if time.monotonic() - begin > _SILENT_S:
            shown = True
            print(f"\rpenstock: looking for {what}: {number} of {files} files", end="", file=sys.stderr)

    yield done
    if shown:
        print(f", {time.monotonic() - begin:.1f} s", file=sys.stderr)
