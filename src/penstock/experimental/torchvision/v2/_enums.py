# SPDX-License-Identifier: Apache-2.0
"""Interpolation modes, with torchvision's names."""

from __future__ import annotations

from enum import Enum
from typing import Any

from ....types import DALIInterpType


class InterpolationMode(Enum):
    """Interpolation modes; the members of torchvision's class of that name.

    NEAREST, BILINEAR, BICUBIC and LANCZOS are supported here.
    """

    NEAREST = "nearest"
    NEAREST_EXACT = "nearest-exact"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"


# Pillow's numbers.
BY_NUMBER = {
    0: InterpolationMode.NEAREST,
    1: InterpolationMode.LANCZOS,
    2: InterpolationMode.BILINEAR,
    3: InterpolationMode.BICUBIC,
    4: InterpolationMode.BOX,
    5: InterpolationMode.HAMMING,
}
SUPPORTED = {
    InterpolationMode.NEAREST: DALIInterpType.INTERP_NN,
    InterpolationMode.BILINEAR: DALIInterpType.INTERP_LINEAR,
    InterpolationMode.BICUBIC: DALIInterpType.INTERP_CUBIC,
    InterpolationMode.LANCZOS: DALIInterpType.INTERP_LANCZOS3,
}


def mode_of(interpolation: Any) -> InterpolationMode:
    """The mode of a member or of one of Pillow's numbers. Raises ValueError for anything else."""
    if isinstance(interpolation, int):
        if interpolation not in BY_NUMBER:
            raise ValueError(f"interpolation takes Pillow's numbers 0 to 5, got {interpolation}")
        return BY_NUMBER[interpolation]
    # torchvision's own members have the same values.
    try:
        return InterpolationMode(getattr(interpolation, "value", None))
    except ValueError:
        raise ValueError(
            f"interpolation takes an InterpolationMode or one of Pillow's numbers 0 to 5, got {interpolation!r}"
        ) from None


def check_mode(interpolation: Any) -> DALIInterpType:
    """The operators' interpolation type for a mode. Raises NotImplementedError for unsupported modes."""
    mode = mode_of(interpolation)
    if mode not in SUPPORTED:
        raise NotImplementedError(
            f"interpolation={mode} is not supported; supported: {', '.join(m.name for m in SUPPORTED)}"
        )
    return SUPPORTED[mode]
