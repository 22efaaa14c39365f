# SPDX-License-Identifier: Apache-2.0
"""CPU time of threads."""

from __future__ import annotations

import ctypes

from .kernels import library

Clocks = ctypes.c_int64 * 3


def clocks() -> ctypes.Array:
    """CPU time of this thread in nanoseconds: total; in long native calls; and, as part of those, in calls of the GPU
    driver. Waiting, such as for the GIL or the GPU, does not count."""
    now = Clocks()
    library().thread_clocks(now)
    return now
