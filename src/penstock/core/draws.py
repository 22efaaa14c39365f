# SPDX-License-Identifier: Apache-2.0
"""Random numbers of kernels that draw by themselves (kernels/random/draws.h)."""

from __future__ import annotations

import numpy as np

from .op import Arguments


def draws(a: Arguments) -> dict[str, object]:
    """The fields of a kernel's arguments that its random numbers follow from."""
    return {
        "key": np.uint64(a.random.key),
        "position": np.asarray(a.random.position).astype("u8"),
        "epoch": np.asarray(a.random.epoch).astype("u4"),
    }
