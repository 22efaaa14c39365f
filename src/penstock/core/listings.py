# SPDX-License-Identifier: Apache-2.0
"""Listings of folders in object stores, of any number of objects: stored as columns and cached."""

from __future__ import annotations

import contextvars
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import array_files, kernels, storage
from .store_errors import RequestFailed

_AT_ONCE = 32  # folders listed concurrently
_PER_PAGE = 1000
# A folder is listed recursively, page by page, until its subfolders have more objects than this and than itself.
_MOST_DEEPER = 10_000


@dataclass(frozen=True)
class Listing:
    """Objects directly in a folder, in the byte order of their names."""

    names: np.ndarray  # uint8, each name terminated by a zero
    sizes: np.ndarray  # (n,) int64
    versions: np.ndarray  # (n,) uint64: hashes of the ETags

    def pages(self) -> Iterator[list[bytes]]:
        """Names, at most _PER_PAGE at a time."""
        ends = np.flatnonzero(self.names == 0)
        for first in range(0, len(ends), _PER_PAGE):
            begin = ends[first - 1] + 1 if first else 0
            yield self.names[begin : ends[min(first + _PER_PAGE, len(ends)) - 1]].tobytes().split(b"\0")

    def is_sound(self) -> bool:
        n = len(self.sizes)
        counts = len(self.versions) == n == int(np.count_nonzero(self.names == 0))
        return counts and (n == 0 or self.names[-1] == 0)


class _Columns:
    """A listing being received."""

    def __init__(self) -> None:
        self._parts: list[tuple[bytes, np.ndarray, np.ndarray]] = []
        self._last, self.is_sorted = b"", True
        self.count = 0

    def add(self, names: Sequence[bytes], sizes: Sequence[int], tags: Sequence[str]) -> None:
        if not names:
            return
        versions = np.empty(len(names), "u8")
        kernels.library().remote_versions(
            b"\0".join(t.encode() for t in tags) + b"\0", len(names), versions.ctypes.data
        )
        self.is_sorted &= self._last <= names[0] and all(a <= b for a, b in zip(names, names[1:], strict=False))
        self._last = names[-1]
        self._parts.append((b"\0".join(names) + b"\0", np.array(sizes, "i8"), versions))
        self.count += len(names)

    def listing(self) -> Listing:
        text = b"".join(part[0] for part in self._parts)
        sizes, versions = (
            np.concatenate([*(p[k] for p in self._parts), np.empty(0, t)]) for k, t in ((1, "i8"), (2, "u8"))
        )
        if not self.is_sorted:
            names = text[:-1].split(b"\0")
            order = sorted(range(len(names)), key=names.__getitem__)
            text, sizes, versions = b"\0".join(names[i] for i in order) + b"\0", sizes[order], versions[order]
        return Listing(np.frombuffer(text, "u1"), sizes, versions)


def objects_in(url: str) -> Listing:
    """Lists the objects directly in a folder. They must then be read in these versions. Raises OSError."""
    active = storage.current()
    name, age = active.listing_file(url, "objects"), active.connection.limits.listing_s
    found = _kept(name, age)
    listing = Listing(**found) if found is not None else None
    if listing is None or not listing.is_sound():
        begun = time.time()
        listing = _objects_in(active.stores(), url)
        _keep(name, begun, {"names": listing.names, "sizes": listing.sizes, "versions": listing.versions})
    if len(listing.sizes):
        kernels.library().remote_know_all(
            *(active.handle(), os.fsencode(url.rstrip("/") + "/"), listing.names.ctypes.data, len(listing.sizes)),
            *(listing.sizes.ctypes.data, listing.versions.ctypes.data),
        )
    return listing


def folders_in(url: str) -> list[str]:
    """Names of the folders directly in a folder, in byte order. Raises OSError."""
    active = storage.current()
    name = active.listing_file(url, "folders")
    found = _kept(name, active.connection.limits.listing_s)
    if found is not None:
        return [os.fsdecode(n) for n in found["names"].tobytes().split(b"\0")[:-1]]
    begun = time.time()
    folders = active.stores().patiently(lambda s: s.list_folder(url))[0]
    _keep(name, begun, {"names": np.frombuffer(b"".join(os.fsencode(f) + b"\0" for f in folders), "u1")})
    return folders


def objects_in_each(urls: Sequence[str]) -> Iterator[Listing]:
    """Listings of several folders, which are listed concurrently."""
    from concurrent.futures import ThreadPoolExecutor  # imported here to keep `import penstock` fast

    with ThreadPoolExecutor(_AT_ONCE, "penstock listing") as pool:
        futures = [pool.submit(contextvars.copy_context().run, objects_in, url) for url in urls]
        try:
            for i, future in enumerate(futures):
                yield future.result()
                futures[i] = None  # type: ignore[call-overload]
        finally:
            pool.shutdown(cancel_futures=True)


def _objects_in(stores: Any, url: str) -> Listing:
    found, deeper, behind, is_done = _Columns(), 0, "", False

    def go_on(s: Any) -> None:
        """Retries only the failed page, not those before it."""
        nonlocal found, deeper, behind, is_done
        before = behind
        try:
            for names, sizes, tags, n_deeper, last in s.list_pages(url, _PER_PAGE, behind):
                found.add(names, sizes, tags)
                deeper, behind = deeper + n_deeper, max(behind, last)
                if deeper > max(_MOST_DEEPER, found.count):
                    objects = s.list_folder(url)[1]
                    found = _Columns()
                    found.add(
                        [os.fsencode(n) for n, _ in objects], [v.size for _, v in objects], [v.tag for _, v in objects]
                    )
                    break
            is_done = True
        except RequestFailed:
            if not found.is_sorted:  # a listing that is not sorted can't be resumed
                found, deeper, behind = _Columns(), 0, ""
            elif behind != before:
                return
            raise

    while not is_done:
        stores.patiently(go_on)
    return found.listing()


def _kept(name: str | None, age: float) -> dict[str, np.ndarray] | None:
    found = array_files.load(name) if name is not None else None
    begun = float(found.pop("begun", 0)) if found is not None else 0
    return found if 0 <= time.time() - begun <= age else None


def _keep(name: str | None, begun: float, arrays: dict[str, np.ndarray]) -> None:
    if name is not None:
        array_files.keep(name, {"begun": np.array(begun), **arrays})
