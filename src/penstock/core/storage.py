# SPDX-License-Identifier: Apache-2.0
"""Access to data sets on this machine, or by URL in object stores and on servers. Readers open, measure and list any
kind of path with these functions."""

from __future__ import annotations

import contextlib
import contextvars
import ctypes
import os
import re
import threading
import weakref
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from . import kernels, request_limits

SCHEMES = ("http", "https", "s3", "s3a", "gs", "gcs", "az", "azure", "abfs", "abfss")
_URL = re.compile(rf"({'|'.join(SCHEMES)})://")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
# In abfs://container@account... the part before the @ is not a user.
_SECRETS = re.compile(r"(?<=://)(?<!abfs://)(?<!abfss://)[^/?#\s]*@|[?#]\S*")


def is_url(path: str | bytes) -> bool:
    return _URL.match(os.fsdecode(path)) is not None


def why_missing(error: OSError) -> str:
    """What else to say of a file or folder that does not exist: "" or "; ..."."""
    path = error.filename
    if not isinstance(error, FileNotFoundError) or not isinstance(path, str) or is_url(path):
        return ""
    if _SCHEME.match(path):
        return f"; {unknown_scheme(path)}"
    if re.search(r"[*?\[{]", path):
        return "; patterns are not expanded here: pass the list of paths that Python's glob.glob() finds"
    if os.path.isabs(path):
        return ""
    with contextlib.suppress(OSError):  # the current directory may have been removed
        return f"; the current directory is {os.getcwd()}"
    return ""


def unknown_scheme(path: str) -> str:
    """What is wrong with a path that is no URL, or begins with another scheme, such as ftp://."""
    return f"{path!r} is not one of the URLs that can be read: {', '.join(f'{s}://' for s in SCHEMES)}" + (
        "; leave 'file://' out" if path.startswith("file://") else ""
    )


def without_secrets(text: str) -> str:
    """Removes users, passwords and queries, which hold signatures, from the URLs in a text."""
    return _SECRETS.sub("", text) if "://" in text else text


@dataclass(frozen=True)
class Version:
    """Identifies the version of an object."""

    size: int
    tag: str

    @property
    def number(self) -> int:
        return kernels.library().remote_version(self.tag.encode())

    @property
    def condition(self) -> bytes:
        """The ETag; b"" if the server sent none."""
        return self.tag.encode() if self.tag.endswith('"') else b""


_SIGN = -3  # a task's length: not a request, but names of objects whose URLs are to be signed
_IDLE_S = 10.0  # after so long without a request, threads for requests end, except one


class _Task(ctypes.Structure):
    _fields_ = [
        *(("request", ctypes.c_void_p), ("name", ctypes.c_void_p), ("offset", ctypes.c_int64)),
        *(("length", ctypes.c_int64), ("unless", ctypes.c_char_p), ("waiting", ctypes.c_int64)),
    ]


class _Counts(ctypes.Structure):
    names = ("requests", "retries", "failed", "bytes", "cached_bytes", "hedged")
    _fields_ = [(name, ctypes.c_int64) for name in names]


class Connection:
    """How URLs are requested: obstore's store options. Its threads, and the client library's, start with the first
    request. A forked child starts its own, which is only possible if its parent had started none."""

    def __init__(self, options: Mapping[str, Any]):
        self.limits, self._options = request_limits.from_options(options)
        self._lock = threading.Lock()
        self._queue, self._pid, self._threads = 0, os.getpid(), 0
        self._stores: Any = None

    def __repr__(self) -> str:
        return f"Connection(options={sorted(self._options)})"  # the values are secrets

    def stores(self) -> Any:
        """The Stores of object_stores.py, which carry out requests."""
        stores = self._stores
        if stores is None or stores.pid != os.getpid():
            from .object_stores import Stores

            stores = self._stores = Stores(self._options, self.limits)
        return stores

    def queue(self) -> int:
        """The native RemoteQueue."""
        with self._lock:
            if self._queue and self._pid == os.getpid():
                return self._queue
            self.stores()  # raises if URLs can't be read
            self._pid, self._threads = os.getpid(), 0
            n = self.limits
            times = n.patience_s, n.most_tries, n.connect_s, n.read_s, n.request_s, n.hedge_s
            self._queue = kernels.library().remote_queue_create(*times, self._asks_natively())
            if not self._queue:
                raise MemoryError("out of memory for the threads that read URLs")
            self._start(1)
            return self._queue

    def _asks_natively(self) -> bool:
        """Whether native code sends requests itself, which it can't with headers, a proxy, or own rules for TLS."""
        with contextlib.suppress(ImportError):
            import ssl  # noqa: F401 - loads the OpenSSL that native code then finds

        has_proxy = any(k.lower() in ("http_proxy", "https_proxy", "all_proxy") and v for k, v in os.environ.items())
        return not {"client_options", "headers"} & self._options.keys() and not has_proxy

    def _start(self, n: int) -> None:
        for _ in range(min(n, self.limits.at_once - self._threads)):
            self._threads += 1
            threading.Thread(target=self._work, name="penstock remote", daemon=True).start()

    def _work(self) -> None:
        task, stores, library, queue = _Task(), self.stores(), kernels.library(), self._queue
        from .object_stores import Unchanged
        from .store_errors import RequestFailed

        while True:
            if not library.remote_take(queue, ctypes.addressof(task), _IDLE_S):
                with self._lock:
                    self._threads -= 1
                return
            if task.waiting and self._threads < self.limits.at_once:
                with self._lock:
                    self._start(task.waiting)
            if task.length == _SIGN:
                names = ctypes.string_at(task.name, task.offset).split(b"\0")[:-1]
                urls, used_for_s = stores.signed([os.fsdecode(name) for name in names])
                library.remote_are_signed(queue, task.request, os.fsencode("\0".join(urls)), used_for_s)
                continue
            try:
                what = os.fsdecode(ctypes.string_at(task.name)), task.offset, task.length, task.unless.decode()
                found, data, at = stores.get(*what, lambda: library.remote_has_begun(queue, task.request))
                about = found.size, found.number, found.condition
                library.remote_answer(queue, task.request, at, len(data), *about)
                data = None  # frees the client library's memory before waiting for the next request
            except Unchanged:
                library.remote_is_unchanged(queue, task.request)
            except RequestFailed as e:
                library.remote_refuse(queue, task.request, e.why, os.fsencode(e.reason))
            except BaseException as e:  # the waiting thread must get the error
                text = f"[internal error] {type(e).__name__}: {e}"
                library.remote_refuse(queue, task.request, 0, os.fsencode(without_secrets(text)))


_connections: dict[str, Connection] = {}


def _connection(options: Mapping[str, Any]) -> Connection:
    """Returns the one Connection of this process for a set of options and environment variables."""
    import hashlib  # imported only if URLs are read
    import json

    from .store_options import VARIABLES

    # Each value that is looked up is decoded, so not all are.
    variables = {k: os.environ.get(k) for k in os.environ if k.startswith(VARIABLES)}
    text = json.dumps([options, variables], sort_keys=True, default=repr)
    key = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
    return _connections.get(key) or _connections.setdefault(key, Connection(options))


class Storage:
    """URL access of one reader. Each object is read in the version in which it was listed or first read."""

    def __init__(self) -> None:
        settings = _settings.get()
        self.connection, self._settings = _connection(settings.options or {}), settings
        self._handle, self._pid, self._lock = 0, os.getpid(), threading.Lock()
        self._most_ahead = 0

    def handle(self) -> int:
        """The native RemoteStorage, which lives as long as this object."""
        with self._lock:
            if not self._handle or self._pid != os.getpid():
                queue = self.connection.queue()
                cache = _disk_cache(self._settings.cache, self._settings.cache_bytes)
                self._handle, self._pid = kernels.library().remote_create(queue, cache), os.getpid()
                if not self._handle:
                    raise MemoryError("out of memory for what is known of objects")
                # Native threads may use it until the process exits.
                weakref.finalize(self, kernels.library().remote_destroy, self._handle).atexit = False
            return self._handle

    def stores(self) -> Any:
        return self.connection.stores()

    def close(self) -> None:
        """Threads waiting for an answer get an error."""
        if self._handle and self._pid == os.getpid():
            kernels.library().remote_close(self._handle)

    def listing_file(self, url: str, kind: str) -> str | None:
        """The cache file of a listing; None if listings are not reused."""
        import hashlib

        if self._settings.cache is None or not self.connection.limits.listing_s:
            return None
        identity = f"{kind}\n{without_secrets(url).rstrip('/')}\n{self.stores().identity(url)}"
        name = hashlib.sha256(identity.encode("utf-8", "surrogateescape")).hexdigest()[:32]
        return os.path.join(_absolute_folder(self._settings.cache), "listings", f"{name}.npz")

    def know(self, url: str, version: Version) -> None:
        """Records the version of a listed object; it must then be read in this version."""
        kernels.library().remote_know(self.handle(), os.fsencode(url), version.size, version.number)

    def read(self, url: str, offset: int, length: int) -> bytes:
        """Reads bytes of an object; the range must be inside it. Raises OSError."""
        data, error = bytearray(length), ctypes.create_string_buffer(kernels.ERROR_SIZE)
        to = (ctypes.c_char * length).from_buffer(data)
        what = os.fsencode(url), offset, length, ctypes.addressof(to), ctypes.addressof(error)
        if kernels.library().remote_read(self.handle(), *what):
            raise OSError(error.value.decode("utf-8", "replace"))
        return bytes(data)

    def counts(self) -> dict[str, int]:
        """Request counters: requests, retries, final failures, bytes received and cached; and the most bytes read
        ahead."""
        counts = _Counts()
        if self._handle:
            kernels.library().remote_counts(self._handle, ctypes.addressof(counts))
        return {**{name: getattr(counts, name) for name in _Counts.names}, "most_bytes_ahead": self._most_ahead}

    def read_ahead(self, most_bytes: int) -> None:
        """Records the most bytes read ahead so far."""
        self._most_ahead = max(self._most_ahead, most_bytes)

    @contextlib.contextmanager
    def active(self) -> Iterator[None]:
        """Context manager: this module's functions and scanners read URLs with this storage."""
        token = _active.set(self)
        try:
            yield
        finally:
            _active.reset(token)


def total(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The total over the readers of a pipeline, which read ahead together."""
    each = [c for c in counts if c]
    names = each[0] if each else ()
    return {name: (max if name == "most_bytes_ahead" else sum)(c[name] for c in each) for name in names}


@dataclass(frozen=True)
class StorageSettings:
    """How URLs are read: options of obstore's stores, and a cache folder of at most `cache_bytes` bytes (0: no
    limit)."""

    options: Mapping[str, Any] | None = None
    cache: str | None = None
    cache_bytes: int = 0

    @classmethod
    def checked(
        cls, options: Any = None, cache: str | os.PathLike[str] | None = None, cache_bytes: int | None = None
    ) -> StorageSettings:
        """Validates the arguments of a pipeline or reader. Raises TypeError and ValueError."""
        if options is not None and not isinstance(options, dict):
            raise TypeError(f"storage_options takes a dictionary; got {type(options).__name__}")
        if cache_bytes is not None and (cache is None or cache_bytes < 1):
            raise ValueError(f"cache_bytes takes a positive integer, and a folder in 'cache'; got {cache_bytes!r}")
        request_limits.from_options(options or {})
        return cls(options, None if cache is None else os.fspath(cache), cache_bytes or 0)


_settings: contextvars.ContextVar[StorageSettings] = contextvars.ContextVar("storage", default=StorageSettings())  # noqa: B039


@contextlib.contextmanager
def using(settings: StorageSettings) -> Iterator[None]:
    """Context manager: readers opened inside use these settings."""
    token = _settings.set(settings)
    try:
        yield
    finally:
        _settings.reset(token)


_caches: dict[tuple[str, int, int], int] = {}
_making_cache = threading.Lock()


def _disk_cache(folder: str | None, most_bytes: int) -> int:
    """The native DiskCache, one per folder and process; 0 if `folder` is None."""
    if folder is None:
        return 0
    folder = _absolute_folder(folder)
    key = folder, most_bytes, os.getpid()
    with contextlib.suppress(OSError):  # reported when something is written
        os.makedirs(folder, exist_ok=True)
    with _making_cache:  # nothing blocks while holding it, so a fork rarely finds it held
        if key not in _caches:
            _caches[key] = kernels.library().disk_cache_create(os.fsencode(folder), most_bytes)
        return _caches[key]


def _absolute_folder(folder: str) -> str:
    return os.path.abspath(os.path.expanduser(folder))


_active: contextvars.ContextVar[Storage | None] = contextvars.ContextVar("storage", default=None)


def current() -> Storage:
    return _active.get() or Storage()


@contextlib.contextmanager
def scanning(has_urls: bool) -> Iterator[None]:
    """Context manager: native scanners may open URLs, if there are any."""
    if not has_urls:
        yield
        return
    kernels.library().remote_select(current().handle())
    try:
        yield
    finally:
        kernels.library().remote_select(0)


# Single paths -------------------------------------------------------------------------------------------------------


def read(path: str) -> bytes:
    """Reads the whole content. Raises OSError."""
    if not is_url(path):
        with open(path, "rb") as f:
            return f.read()
    return bytes(current().stores().patiently(lambda s: s.get(path, 0, -1))[1])


def size(path: str) -> int:
    """The size in bytes. Raises OSError."""
    return version(path).size


def version(path: str) -> Version:
    """The current version. Raises OSError."""
    if not is_url(path):
        info = os.stat(path)
        return Version(info.st_size, str(info.st_mtime_ns))
    found = current().stores().patiently(lambda s: s.get(path, 0, -2))[0]
    current().know(path, found)
    return found


def absolute(path: str) -> str:
    return path if is_url(path) else os.path.abspath(path)


def folder_of(path: str) -> str:
    """The folder of a file's path."""
    return without_query(path).rpartition("/")[0] if is_url(path) else os.path.dirname(path)


def without_query(url: str) -> str:
    return re.split("[?#]", url, maxsplit=1)[0]


def list_folder(url: str) -> tuple[list[str], list[tuple[str, Version]]]:
    """Lists the folder that a URL names: folder names, and object names with versions."""
    return current().stores().patiently(lambda s: s.list_folder(url))
