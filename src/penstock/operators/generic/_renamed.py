# SPDX-License-Identifier: Apache-2.0
"""Base of operators that change the axes without copying."""

from __future__ import annotations

from ...core.op import Operator


class _Renamed(Operator, abstract=True):
    """Nothing is copied. Sequences are processed including their axis F."""

    by_frame = False
    aliases = True


def position(axis: int, ndim: int, what: str = "axis") -> int:
    """Converts an axis, which may be negative, to [0, ndim)."""
    if not -ndim <= axis < ndim:
        raise ValueError(f"{what} {axis} is out of range for {ndim} axes: accepted are {-ndim} to {ndim - 1}")
    return axis % ndim
