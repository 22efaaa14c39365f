# SPDX-License-Identifier: Apache-2.0
"""Capturing: `reader.next_epoch(batch_size, capture=True)`.

In DALI, it lets the loop's calls run as a pipeline. Here, pending calls are computed together in any case, and the
reader reads ahead, so a captured loop does the same as others.
"""

from typing import TypeVar

_T = TypeVar("_T")


def invariant(value: _T) -> _T:
    """Marks a value as the same in all iterations of a captured loop. Returns the value.

    >>> from penstock.experimental import dynamic as ndd
    >>> ndd.capture.invariant(3)
    3
    """
    return value
