# SPDX-License-Identifier: Apache-2.0
"""The trainer's interface to one worker, of any kind."""

from __future__ import annotations

from typing import Any, Protocol

from .messages import Answer, Order


class WorkerLost(Exception):
    """A worker is gone; the text says how."""


class WorkerRefused(Exception):
    """A worker can't work for this pipeline, and retrying does not help."""


class WorkerLink(Protocol):
    """The interface to one worker. `open` and `receive` block; all but `hang_up` may raise WorkerLost."""

    name: str

    def open(self) -> None:
        """Starts the worker and waits until it is ready. May also raise WorkerRefused."""

    def send(self, order: Order) -> None: ...

    def receive(self) -> tuple[Answer, Any]:
        """The next answer, in any order, with its batches or None."""

    def hang_up(self) -> None:
        """Makes the other methods raise WorkerLost, also in other threads. May be called at any time."""

    def end(self) -> None:
        """Waits briefly for the worker to end, and releases all resources."""
