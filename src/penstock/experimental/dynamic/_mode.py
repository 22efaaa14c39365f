# SPDX-License-Identifier: Apache-2.0
"""Modes of computing calls."""

from __future__ import annotations

import threading
from enum import Enum
from typing import Any

_local = threading.local()


class EvalMode(Enum):
    """When the call of an operator is computed. `with EvalMode.sync_cpu:` sets it for the calls inside, in this thread.

    ``deferred``
        When a result is read. Calls that depend on each other are then computed together: a sample goes through all of
        them at once, and only the part of an image that a crop needs is decoded.
    ``eager``
        Soon, by a background thread, while the program continues; or when a result is read, if that is earlier. Pending
        calls are computed together, too. This is the default.
    ``sync_cpu``
        Immediately: errors are raised by the call itself. GPU work is only started.
    ``sync_full``
        Immediately, and the call waits for the GPU.

    In all modes, calls that read memory which the program might write to are computed immediately.

    >>> from penstock.experimental import dynamic as ndd
    >>> with ndd.EvalMode.deferred:
    ...     x = ndd.zeros(shape=[2])
    >>> x.shape  # computes it
    (2,)
    """

    deferred = 1
    eager = 2
    sync_cpu = 3
    sync_full = 4
    default = 2

    @staticmethod
    def current() -> EvalMode:
        """Returns the mode of this thread."""
        modes = getattr(_local, "modes", None)
        return modes[-1] if modes else EvalMode.eager

    def __enter__(self) -> EvalMode:
        if not hasattr(_local, "modes"):
            _local.modes = []
        _local.modes.append(self)
        return self

    def __exit__(self, *exception: Any) -> None:
        _local.modes.pop()
