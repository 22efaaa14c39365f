# SPDX-License-Identifier: Apache-2.0
"""The systematic cases of operators on tensors of any layout. Their own tests have only a few."""

from __future__ import annotations

import numpy as np

from conformance.grid import Recipe

_TYPES = ("u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8")
_PHOTO_LAYOUTS = ("HW", "HWC", "CHW", "FHW", "FHWC", "FCHW")


def _like(dtype):
    return lambda rng, n: [[np.zeros((i, 2), dtype) for i in range(n)]]


RECIPES: dict[str, Recipe] = {
    "per_frame": Recipe(_TYPES, ("", "FHWC", "HWC"), [{}, {"replace": True}]),
    "equalize": Recipe(("u1",), _PHOTO_LAYOUTS, [{}], steps=1),
    "equalize of one channel": Recipe(("u1",), ("HWC", "CHW", "FHWC"), [{}], channels=1, steps=1),
    "equalize of four channels": Recipe(("u1", "u2"), ("HWC", "CHW", "FHWC"), [{}], channels=4, steps=1),
    **{
        f"cast_like {t}": Recipe(_TYPES, ("HWC", ""), [{}], extra_inputs=_like(t))
        for t in ("u1", "i2", "u4", "i8", "f2", "f4", "f8")
    },
}
