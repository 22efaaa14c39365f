# SPDX-License-Identifier: Apache-2.0
"""The way from the trainer to one worker, whatever it is."""

from __future__ import annotations

from typing import Any, Protocol

from .messages import Answer, Order


class WorkerLost(Exception):
    """A worker is gone; the text says how."""


class WorkerRefused(Exception):
    """A worker that can't work for this pipeline, whatever is tried."""


class WorkerLink(Protocol):
    """The way to one worker. `open` and `receive` block; all but `hang_up` raise WorkerLost."""

    name: str

    def open(self) -> None:
        """Starts the worker and waits until it is ready. Raises WorkerRefused, too."""

    def send(self, order: Order) -> None: ...

    def receive(self) -> tuple[Answer, Any]:
        """The next answer, in any order, with its batches or None."""

    def hang_up(self) -> None:
        """Makes the other methods raise WorkerLost, in other threads, too. May be called at any time."""

    def end(self) -> None:
        """Waits for the worker to be gone, at most briefly, and lets go of everything."""
