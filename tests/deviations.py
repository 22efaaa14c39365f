# SPDX-License-Identifier: Apache-2.0
"""How an operator may differ from DALI: bounded, so that any other disagreement is seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Either:
    """A reason why two results may differ, and how far: each element of output 0, DALI's and ours, has to be that of
    one of the arrays that `outputs(x, layout, **arguments)` gives for a sample (a frame, without F in the layout), or
    lie `between` them."""

    reason: str
    outputs: Callable[..., list[np.ndarray]]
    between: bool = False
