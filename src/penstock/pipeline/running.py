# SPDX-License-Identifier: Apache-2.0
"""The pipelines of this process that were built and still exist, each under a name of its own."""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .pipeline import Pipeline

_LOCK = threading.Lock()
_RUNNING: weakref.WeakKeyDictionary[Pipeline, str] = weakref.WeakKeyDictionary()
_times_taken: dict[str, int] = {}


def add(pipe: Pipeline, name: str) -> None:
    """Lists a pipeline. Of several with one name, the others are called `name-2`, `name-3`."""
    with _LOCK:
        if pipe not in _RUNNING:
            n = _times_taken[name] = _times_taken.get(name, 0) + 1
            _RUNNING[pipe] = name if n == 1 else f"{name}-{n}"


def remove(pipe: Pipeline) -> None:
    with _LOCK:
        _RUNNING.pop(pipe, None)


def pipelines() -> list[tuple[str, Pipeline]]:
    """Names and pipelines, in the order of their building."""
    with _LOCK:
        return [(name, pipe) for pipe, name in _RUNNING.items()]
