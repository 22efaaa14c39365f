# SPDX-License-Identifier: Apache-2.0
"""Shared by sources and stages: transfer of pipelines to Ray's processes, and columns of samples."""

from __future__ import annotations

import collections
import logging
import threading
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from ...pipeline import Pipeline, serialization

_log = logging.getLogger("penstock")


def imported(module: str) -> Any:
    try:
        return import_module(module)
    except ImportError as e:
        raise ImportError(f"penstock.plugin.ray needs Ray: pip install 'penstock[ray]' ({e})") from None


def defined(user: str, pipeline: Any, arguments: dict[str, Any]) -> Pipeline:
    """A new pipeline: a copy of a Pipeline, or the result of a function made by `pipeline_def`."""
    if isinstance(pipeline, Pipeline):
        if arguments:
            raise TypeError(
                f"{user}: {sorted(arguments)} are for the function that defines a pipeline; this is a Pipeline already"
            )
        functions: dict[str, Any] = {}
        content = serialization.content_of(pipeline, functions)
        s = pipeline._settings.storage
        changed = {"storage_options": s.options, "cache": s.cache, "cache_bytes": s.cache_bytes or None}
        made = serialization.made_of(Pipeline, content, functions, changed)
        for node, known in zip(made.definition.nodes, pipeline.definition.nodes):
            node.sites = known.sites
        return made
    if not callable(pipeline):
        raise TypeError(f"{user} takes a Pipeline or a function made by pipeline_def; got {type(pipeline).__name__}")
    made = pipeline(**arguments)
    if not isinstance(made, Pipeline):
        raise TypeError(f"{user}: the function returned {type(made).__name__}; decorate it with @pipeline_def")
    return made


def names_of(user: str, given: Sequence[str] | None, n: int) -> list[str]:
    names = [f"output_{i}" for i in range(n)] if given is None else list(given)
    if isinstance(given, str) or len(names) != n or len(set(names)) != n:
        raise ValueError(f"{user}: output_names takes {n} different names, one for each output; got {given!r}")
    return names


def pickled(user: str, value: Any) -> bytes:
    try:
        return imported("ray.cloudpickle").dumps(value)
    except Exception as e:
        raise TypeError(
            f"{user}: the pipeline can't be sent to other processes: {type(e).__name__}: {e}. Functions that it calls "
            "must not refer to files, locks or connections"
        ) from e


def column_of(parts: Sequence[Any]) -> np.ndarray:
    """The samples of some batches: one array if they have the same shape, otherwise an array of objects."""
    if len(parts) == 1 and parts[0].is_dense_tensor():
        return parts[0].as_array()
    samples = [p.at(i) for p in parts for i in range(len(p))]
    if samples and len({s.shape for s in samples}) == 1:
        return np.stack(samples)
    column = np.empty(len(samples), object)
    column[:] = samples
    return column


class _Opened:
    """Cache of the objects opened last in this process, by payload, as Ray runs many tasks in one process."""

    def __init__(self) -> None:
        self._free: collections.deque[tuple[bytes, Any]] = collections.deque(maxlen=2)
        self._lock = threading.Lock()

    def lent(self, payload: bytes, make: Callable[[bytes], Any]) -> _Lent:
        with self._lock:
            for i, (key, value) in enumerate(self._free):
                if key == payload:
                    del self._free[i]
                    return _Lent(self, payload, value)
        return _Lent(self, payload, make(payload))

    def give_back(self, payload: bytes, value: Any) -> None:
        with self._lock:
            self._free.append((payload, value))


class _Lent:
    """An object of the cache, used by one thread. Dropped if an exception is raised."""

    def __init__(self, whose: _Opened, payload: bytes, value: Any):
        self._whose, self._payload, self._value = whose, payload, value

    def __enter__(self) -> Any:
        return self._value

    def __exit__(self, kind: Any, *more: Any) -> None:
        if kind is None:
            self._whose.give_back(self._payload, self._value)


OPENED = _Opened()


def warn(errors: Sequence[Any]) -> None:
    for e in errors:
        _log.warning("%s: %s: %s (on_error=%r)", e.source, e.operator, e.reason, e.action)
