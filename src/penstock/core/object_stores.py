# SPDX-License-Identifier: Apache-2.0
"""Requests to object stores and servers through obstore (the extra `penstock[remote]`)."""

from __future__ import annotations

import os
import random
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

import numpy as np

from . import signed_urls, store_options
from .request_limits import RequestLimits
from .rows import address
from .storage import Version, without_secrets
from .store_errors import FOR_GOOD, NOT_REACHABLE, SERVER_BUSY, RequestFailed, failure, first_line, too_short

TO_THE_END, ONLY_SIZE = -1, -2
_PIECE = 4 << 20  # bytes per piece of a copied object
_GZIP = 31  # zlib's window bits for gzip data
_IDENTITY = ("endpoint", "base_url", "account_name", "use_emulator", "service_account")
T = TypeVar("T")

_first_used_by: int | None = None  # process id, as a client library's threads do not survive a fork


class Unchanged(Exception):
    """The object still has the version that the caller already has."""


def _obstore() -> Any:
    global _first_used_by
    try:
        import obstore
    except ImportError:
        raise ImportError("URLs are read by obstore, which is not installed: pip install 'penstock[remote]'") from None
    if _first_used_by not in (None, os.getpid()):
        raise RuntimeError(
            "this process was forked from one that had read URLs already, and what reads them does not survive a fork; "
            "start workers with the method 'spawn' or 'forkserver', or read nothing by URL before they are forked"
        )
    _first_used_by = os.getpid()
    return obstore


class Stores:
    """A client for each bucket or server, made when it is first needed."""

    def __init__(self, options: Mapping[str, Any], limits: RequestLimits):
        self.options, self.limits, self.pid = dict(options), limits, os.getpid()
        self._stores: dict[str, Any] = {}
        self._signers: dict[str, signed_urls.Signer | None] = {}  # of buckets
        self._lock = threading.Lock()
        self._obstore = _obstore()

    def get(
        self, url: str, offset: int, length: int, unless: str = "", has_begun: Callable[[], object] = lambda: None
    ) -> tuple[Version, Any, int]:
        """Returns the object's version, its bytes, and the address of these. `length` may be TO_THE_END or ONLY_SIZE.
        Calls `has_begun` when the response arrives. Raises RequestFailed, or Unchanged if the object's ETag is
        `unless`."""
        store, path = self._store(url)
        try:
            if length == ONLY_SIZE:
                return self._head(store, path), b"", 0
            options: Any = None
            if length >= 0:
                options = {"range": (offset, offset + length)}
            elif offset:
                options = {"range": {"offset": offset}}
            elif unless:
                options = {"if_none_match": unless}
            result = self._obstore.get(store, path, options=options)
            has_begun()
            meta, coding = result.meta, result.attributes.get("Content-Encoding", "")
            data = result.bytes()
        except self._obstore.exceptions.NotModifiedError:
            raise Unchanged from None
        except Exception as e:
            raise failure(e) from None
        size = meta["size"]
        if coding == "gzip" and length == TO_THE_END and not offset:
            data = _unzipped(data)
            size = len(data)
        elif coding in ("gzip", "deflate", "br", "zstd"):
            raise RequestFailed(
                FOR_GOOD,
                f"the object is stored compressed (Content-Encoding: {coding}), and parts of it can't be read; store "
                "it as it is",
            )
        if offset + length > size:  # the answer is complete, a retry would get the same
            raise too_short(size, offset, length)
        content = np.frombuffer(data, "u1")
        return Version(size, _tag(meta)), content, address(content)

    def _head(self, store: Any, path: str) -> Version:
        meta = self._obstore.head(store, path)
        return Version(meta["size"], _tag(meta))

    def list_folder(self, url: str) -> tuple[list[str], list[tuple[str, Version]]]:
        """Names of the folders and objects directly in a folder, in byte order."""
        store, path = self._store(url.rstrip("/") + "/")
        try:
            found = self._obstore.list_with_delimiter(store, path)
        except Exception as e:
            raise failure(e, f" when {without_secrets(url)} was listed") from None
        objects = [(m["path"].rpartition("/")[2], Version(m["size"], _tag(m))) for m in found["objects"]]
        folders = [p.rstrip("/").rpartition("/")[2] for p in found["common_prefixes"]]
        return sorted(folders, key=os.fsencode), sorted(objects, key=lambda o: os.fsencode(o[0]))

    def list_pages(
        self, url: str, n: int, behind: str = ""
    ) -> Iterator[tuple[list[bytes], list[int], list[str], int, str]]:
        """Lists objects below a folder in pages of `n`, starting after the key `behind`. Yields names, sizes and tags
        of the objects directly in it, the number of objects in subfolders, and the last key."""
        store, path = self._store(url.rstrip("/") + "/")
        skip = len(path)
        try:
            for page in self._obstore.list(store, path, offset=behind or None, chunk_size=n):
                last = page[-1]["path"]
                page = [m for m in page if m["path"] > behind]  # some servers ignore the offset and start over
                # Some tools create empty objects named like folders, listed before the objects in these folders.
                inner = {m["path"][skip:].partition("/")[0] for m in page if "/" in m["path"][skip:]}
                direct = [m for m in page if len(m["path"]) > skip and "/" not in m["path"][skip:]]
                direct = [m for m in direct if m["size"] or m["path"][skip:] not in inner]
                names = [os.fsencode(m["path"][skip:]) for m in direct]
                yield (
                    names,
                    [m["size"] for m in direct],
                    list(map(_tag, direct)),
                    len(page) - len(direct),
                    last,
                )
        except Exception as e:
            raise failure(e, f" when {without_secrets(url)} was listed") from None

    def identity(self, url: str) -> str:
        """Identifies the store among those where the same URL names a different object."""
        config = getattr(self._store(url)[0], "config", {})
        return repr(sorted((k, str(v)) for k, v in config.items() if k in _IDENTITY))

    def list_all(self, url: str) -> Iterator[tuple[str, Version]]:
        """All objects below the URL, with names relative to it, in the order of the listing."""
        store, path = self._store(url)
        try:
            for page in self._obstore.list(store, path):
                for m in page:
                    yield m["path"].removeprefix(path.rstrip("/")).lstrip("/"), Version(m["size"], _tag(m))
        except Exception as e:
            raise failure(e, f" when {without_secrets(url)} was listed") from None

    def download(self, url: str, file: str) -> int:
        """Writes an object's content to a local file in pieces, as it may be larger than memory. Returns the number of
        bytes. Raises RequestFailed, and OSError for the file."""
        store, path = self._store(url)
        with open(file, "wb") as f:
            try:
                result = self._obstore.get(store, path)
                pieces, coding = iter(result.stream(min_chunk_size=_PIECE)), result.attributes.get("Content-Encoding")
            except Exception as e:
                raise failure(e) from None
            if coding not in (None, "gzip"):
                raise RequestFailed(FOR_GOOD, f"the object is stored compressed (Content-Encoding: {coding})")
            unpacker = zlib.decompressobj(_GZIP) if coding else None
            while True:
                try:
                    piece = next(pieces, None)
                except Exception as e:
                    raise failure(e) from None
                if piece is None:
                    break
                f.write(_unzipped(piece, unpacker) if unpacker else piece)
            if unpacker and not unpacker.eof:
                raise RequestFailed(NOT_REACHABLE, "the answer was cut off")
            return f.tell()

    def put(self, url: str, data: bytes | Path) -> None:
        """Writes an object from bytes, or from a file in pieces. Raises RequestFailed."""
        store, path = self._store(url)
        try:
            self._obstore.put(store, path, data)
        except Exception as e:
            raise failure(e, f" when {without_secrets(url)} was written") from None

    def patiently(self, ask: Callable[[Stores], T]) -> T:
        """Returns the result of `ask`. Retries temporary failures by the same rules as native code."""
        patience_s, most_tries = self.limits.patience_s, self.limits.most_tries
        begin, tries, said = time.monotonic(), 0, False
        while True:
            try:
                return ask(self)
            except RequestFailed as e:
                tries, waited = tries + 1, time.monotonic() - begin
                if e.why == FOR_GOOD or (e.why == SERVER_BUSY and tries >= most_tries) or waited > patience_s:
                    raise
                if waited > 3 and not said:
                    said = True
                    print(f"penstock: {e.reason}; trying again for up to {patience_s:.0f} s", file=sys.stderr)
                time.sleep(min(10, 0.05 * 2**tries) * random.uniform(0.5, 1))

    def signed(self, urls: Sequence[str]) -> signed_urls.Signed:
        """URLs by which native code can read objects of buckets; "" for those that it can't."""
        paths: dict[str, list[int]] = {}
        for i, url in enumerate(urls):
            paths.setdefault(_bucket(url), []).append(i)
        signed, used_for_s = [""] * len(urls), signed_urls.USED_FOR_S
        for base, places in paths.items():
            try:
                self._made(base)
                sign = self._signers[base]
                if sign:
                    found = sign([_key(urls[i]) for i in places])
                    used_for_s = min(used_for_s, found.used_for_s)
                    for i, url in zip(places, found.urls, strict=True):
                        signed[i] = url
            except BaseException:  # the store's own client is asked next, and tells the reason
                used_for_s = min(used_for_s, signed_urls.TRIED_AGAIN_S)
        return signed_urls.Signed(signed, used_for_s)

    def _store(self, url: str) -> tuple[Any, str]:
        parts = urlsplit(url)
        if parts.scheme in ("http", "https"):
            if parts.query:  # a signed URL: its query is needed by the server
                return self._made(url), ""
            return self._made(f"{parts.scheme}://{parts.netloc}/"), unquote(parts.path).lstrip("/")
        return self._made(_bucket(url)), _key(url)

    def _made(self, base: str) -> Any:
        store = self._stores.get(base)
        if store is None:
            with self._lock:
                store = self._stores.get(base)
                if store is None:
                    store = self._stores[base] = self._make(base)
        return store

    def _make(self, base: str) -> Any:
        options, is_plain, name = dict(self.options), base.startswith("http://"), base
        client = {
            "connect_timeout": timedelta(seconds=self.limits.connect_s),
            "timeout": timedelta(seconds=self.limits.request_s),
            "read_timeout": timedelta(seconds=self.limits.read_s),
            **options.pop("client_options", {}),
        }
        # Retries for all kinds of clients are made, and counted, in one place.
        retry = {"max_retries": 0}
        try:
            if base.startswith("http"):
                options = {k: v for k, v in options.items() if k == "headers"}
                if options:
                    client["default_headers"] = options.pop("headers")
            else:
                base, options, is_plain = store_options.complete(base, options)
            if is_plain:
                client["allow_http"] = True
            store = self._obstore.store.from_url(base, client_options=client, retry_config=retry, **options)
            if not base.startswith("http"):
                self._signers[name] = signed_urls.signer(self._obstore, store, base, options)
            return store
        except Exception as e:
            raise RequestFailed(FOR_GOOD, f"the store can't be used: {first_line(e)}") from None


def _bucket(url: str) -> str:
    """The URL of an object's bucket."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}"


def _key(url: str) -> str:
    return url.partition("://")[2].partition("/")[2]


def _tag(meta: Mapping[str, Any]) -> str:
    return meta.get("e_tag") or f"{meta['last_modified']} {meta['size']}"


def _unzipped(data: Any, unpacker: Any = None) -> bytes:
    """Decompresses gzip data; with `unpacker`, one piece of a stream."""
    try:
        return unpacker.decompress(data) if unpacker else zlib.decompress(data, _GZIP)
    except zlib.error as e:
        raise RequestFailed(
            NOT_REACHABLE, f"the object's Content-Encoding is gzip, but its bytes are not: {e}"
        ) from None
