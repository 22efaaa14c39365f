# SPDX-License-Identifier: Apache-2.0
"""Values of `Pipeline(stream_policy=, concurrency=)`. On the CPU they have no effect."""

from enum import Enum


class StreamPolicy(Enum):
    """How operators share CUDA streams."""

    SINGLE = 16
    """One stream for all operators."""
    PER_BACKEND = 32
    """A stream for each kind of device."""
    PER_OPERATOR = 48
    """A stream for each operator that can run beside others."""
    UNSPECIFIED = 0


class OperatorConcurrency(Enum):
    """Which operators of one batch may run at the same time."""

    NONE = 2
    """None of them."""
    BACKEND = 4
    """Those on different devices."""
    FULL = 6
    """All that do not depend on each other."""
    UNSPECIFIED = 0
