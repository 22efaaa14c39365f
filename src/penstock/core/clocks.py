# SPDX-License-Identifier: Apache-2.0
"""Processor time of threads."""

from __future__ import annotations

import ctypes

from .kernels import library

Clocks = ctypes.c_int64 * 3


def clocks() -> ctypes.Array:
    """Processor time of this thread in nanoseconds: all of it, in native calls that take a while, and, of these, in
    calls of the GPU's driver. A thread that waits, for Python's lock or for the GPU, say, takes none."""
    now = Clocks()
    library().thread_clocks(now)
    return now
