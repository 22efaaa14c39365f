# SPDX-License-Identifier: Apache-2.0
"""`penstock ls`, `penstock cp` and `penstock doctor URL`."""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ..core import storage

_AT_ONCE = 32
_UNFINISHED = ".unfinished"
_PROBES, _PROBED_BYTES = 64, 64 << 20


def listed(url: str, recursive: bool = False) -> Iterable[str]:
    """Lines with size and name of a folder's contents, or of one object."""
    _check(url)
    if url.startswith("http") and (recursive or url.endswith("/")):
        raise ValueError("servers of http:// and https:// don't list folders; give the URL of a file")
    stores = storage.current().stores()
    if recursive:
        for name, version in stores.list_all(url):
            yield f"{version.size:>14,}  {name}"
        return
    folders, objects = ([], []) if url.startswith("http") else storage.list_folder(url)
    if not folders and not objects and not url.endswith("/"):
        yield f"{storage.size(url):>14,}  {storage.without_secrets(url).rpartition('/')[2]}"
        return
    yield from (f"{'':>14}  {name}/" for name in folders)
    yield from (f"{version.size:>14,}  {name}" for name, version in objects)


def _check(url: str) -> None:
    if not storage.is_url(url):
        raise ValueError(storage.unknown_scheme(url))


def copy(source: str, target: str) -> tuple[int, int]:
    """Copies an object or file, or a whole folder if `source` ends with a slash; `source` and `target` are URLs or
    paths. Returns the number of files and their bytes. Raises OSError."""
    stores, pairs = storage.current().stores(), _pairs(source, target)

    def one(pair: tuple[str, str]) -> int:
        here, there = pair
        if storage.is_url(there):
            data = storage.read(here) if storage.is_url(here) else Path(here)
            stores.patiently(lambda s: s.put(there, data))
            return len(data) if isinstance(data, bytes) else data.stat().st_size
        os.makedirs(os.path.dirname(there) or ".", exist_ok=True)
        try:
            if storage.is_url(here):
                size = stores.patiently(lambda s: s.download(here, there + _UNFINISHED))
            else:
                size = os.path.getsize(shutil.copyfile(here, there + _UNFINISHED))
            os.replace(there + _UNFINISHED, there)
        finally:
            Path(there + _UNFINISHED).unlink(missing_ok=True)
        return size

    sizes, shows = [], sys.stderr.isatty()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for size in pool.map(one, pairs):
            sizes.append(size)
            if shows:
                print(f"\r{len(sizes)} of {len(pairs)}, {sum(sizes) / 1e6:,.1f} MB", end="", file=sys.stderr)
    if shows:
        print(file=sys.stderr)
    return len(sizes), sum(sizes)


def _pairs(source: str, target: str) -> list[tuple[str, str]]:
    """Pairs of (source, target) for each file."""
    if not source.endswith("/"):
        is_folder = target.endswith("/") or (not storage.is_url(target) and os.path.isdir(target))
        name = os.path.basename(storage.without_query(source))
        return [(source, f"{target.rstrip('/')}/{name}" if is_folder else target)]
    if storage.is_url(source):
        names = [name for name, _ in storage.current().stores().list_all(source)]
    else:
        names = [
            os.path.relpath(os.path.join(folder, file), source)
            for folder, _, files in os.walk(source)
            for file in files
        ]
    if not names:
        raise FileNotFoundError(f"there is no object below {storage.without_secrets(source)}")
    below = target.rstrip("/")
    return [(source + name, f"{below}/{name}") for name in _safe(names)]


def _safe(names: list[str]) -> list[str]:
    """Rejects names of objects that lead out of the folder, as names are arbitrary."""
    for name in names:
        if name.startswith("/") or ".." in name.split("/"):
            raise OSError(f"the name {name!r} leads out of the folder that is copied to")
    return names


def speed(url: str) -> str:
    """Whether a bucket, folder or object can be reached, and how fast."""
    _check(url)
    stores = storage.current().stores()
    begin, probes = time.perf_counter(), [url]
    if not url.startswith("http"):
        probes, total = [], 0
        for name, version in stores.list_all(url):
            probes.append(f"{url.rstrip('/')}/{name}" if name else url)
            total += version.size
            if len(probes) == _PROBES or total > _PROBED_BYTES:
                break
        if not probes:
            return f"reached in {(time.perf_counter() - begin) * 1e3:.0f} ms; it is empty"
    waits = [_timed(lambda: storage.size(probes[0])) for _ in range(5)]
    begin = time.perf_counter()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        got = sum(pool.map(lambda probe: len(stores.get(probe, 0, -1)[1]), probes))
    seconds = time.perf_counter() - begin
    return (
        f"a request takes {statistics.median(waits) * 1e3:.1f} ms; {len(probes)} objects, {got / 1e6:.1f} MB at "
        f"{got / 1e6 / seconds:.0f} MB/s, {_AT_ONCE} at once"
    )


def _timed(call: Callable[[], object]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin
