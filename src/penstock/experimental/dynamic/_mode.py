# SPDX-License-Identifier: Apache-2.0
"""When a call is computed."""

from __future__ import annotations

import threading
from enum import Enum
from typing import Any

_local = threading.local()


class EvalMode(Enum):
    """When the call of an operator is computed. `with EvalMode.sync_cpu:` sets it for the calls inside, in this thread.

    ``deferred``
        When a result is looked at. Calls that depend on each other are then computed together: a sample goes through
        all of them at once, and a picture of which a crop needs a part is decoded in that part.
    ``eager``
        Soon, by a thread in the background, while the program goes on; or when a result is looked at, if that is
        earlier. Calls that wait are computed together, too. This is the default.
    ``sync_cpu``
        At once: errors are raised by the call itself. What the GPU has to do is only started.
    ``sync_full``
        The same, and the call waits for the GPU.

    Calls that read memory of the program, which the program might write to, are computed at once in each mode.

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
        """The mode of this thread."""
        modes = getattr(_local, "modes", None)
        return modes[-1] if modes else EvalMode.eager

    def __enter__(self) -> EvalMode:
        if not hasattr(_local, "modes"):
            _local.modes = []
        _local.modes.append(self)
        return self

    def __exit__(self, *exception: Any) -> None:
        _local.modes.pop()
