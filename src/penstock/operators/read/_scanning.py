# SPDX-License-Identifier: Apache-2.0
"""Scans of many files at once, with a line of progress if they take a while."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_SILENT_S = 2.0
T = TypeVar("T")


def scan_all(what: str, paths: Sequence[str], scan: Callable[[str], T]) -> list[T]:
    """`scan(path)` of each path, by several threads. Its ValueError and OSError get the path put before them. After two
    seconds a line on stderr says how far it is."""

    def one(path: str) -> T:
        try:
            return scan(path)
        except ValueError as e:
            raise ValueError(f"{path}: {e}") from None

    begin, shown = time.monotonic(), False
    found = []
    threads = max(1, min(len(paths), os.cpu_count() or 1))
    with ThreadPoolExecutor(threads, "penstock scan") as pool:
        for i, result in enumerate(pool.map(one, paths)):
            found.append(result)
            if time.monotonic() - begin > _SILENT_S:
                shown = True
                print(f"\rpenstock: looking for {what}: {i + 1} of {len(paths)} files", end="", file=sys.stderr)
    if shown:
        print(f", {time.monotonic() - begin:.1f} s", file=sys.stderr)
    return found
