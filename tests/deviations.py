# SPDX-License-Identifier: Apache-2.0
"""Allowed, bounded deviations of operators from DALI. Any other difference is detected."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Either:
    """Reason and bound of a deviation: each element of output 0, DALI's and ours, must be equal to that of one of the
    arrays returned by `outputs(x, layout, **arguments)` for a sample (or a frame, without F in the layout), or lie
    `between` them."""

    reason: str
    outputs: Callable[..., list[np.ndarray]]
    between: bool = False
