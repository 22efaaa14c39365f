# SPDX-License-Identifier: Apache-2.0
"""The built pipelines of this process that still exist, with unique names."""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .pipeline import Pipeline

_LOCK = threading.Lock()
_RUNNING: dict[weakref.ref[Pipeline], str] = {}  # in the order they were built
_times_taken: dict[str, int] = {}


def add(pipe: Pipeline, name: str) -> None:
    """Adds a pipeline. Further pipelines of the same name are called `name-2`, `name-3`."""
    with _LOCK:
        if weakref.ref(pipe) not in _RUNNING:
            n = _times_taken[name] = _times_taken.get(name, 0) + 1
            _RUNNING[weakref.ref(pipe, _forget)] = name if n == 1 else f"{name}-{n}"


def _forget(reference: weakref.ref[Pipeline]) -> None:
    _RUNNING.pop(reference, None)


def remove(pipe: Pipeline) -> None:
    with _LOCK:
        _RUNNING.pop(weakref.ref(pipe), None)


def pipelines() -> list[tuple[str, Pipeline]]:
    """Names and pipelines, in the order they were built."""
    with _LOCK:
        running = _RUNNING.copy()  # pipelines may be deleted at any time, in any thread
    return [(name, pipe) for r, name in running.items() if (pipe := r()) is not None]
