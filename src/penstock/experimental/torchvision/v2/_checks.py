# SPDX-License-Identifier: Apache-2.0
"""Checks of arguments. Errors name the argument, the given value and the accepted values."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

PADDING_MODES = {"constant": "constant", "edge": "edge", "reflect": "reflect_101", "symmetric": "reflect_1001"}


def is_sequence(value: Any) -> bool:
    """Whether it is a list, a tuple, or a 1-D array of any library."""
    if isinstance(value, (str, bytes, dict)):
        return False
    return isinstance(value, Sequence) or getattr(value, "ndim", 0) == 1


def numbers(value: Any, name: str, accepted: str) -> tuple[float, ...]:
    """The numbers of a sequence, which must be finite."""
    if not is_sequence(value):
        raise TypeError(f"{name} takes {accepted}, got {value!r}")
    values = tuple(v.item() if hasattr(v, "item") else v for v in value)
    if not all(isinstance(v, Real) and np.isfinite(v) for v in values):
        raise TypeError(f"{name} takes {accepted}, got {value!r}")
    return tuple(float(v) for v in values)


def integer(value: Any, name: str) -> int:
    if not isinstance(value, Integral):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    return int(value)


def size_of(value: Any, name: str = "size") -> tuple[int, ...]:
    """One or two positive integers."""
    accepted = "a positive integer, or a sequence of one or two: (height, width)"
    if isinstance(value, Integral):
        values: tuple[Any, ...] = (value,)
    elif is_sequence(value):
        values = tuple(v.item() if hasattr(v, "item") else v for v in value)
    else:
        raise TypeError(f"{name} takes {accepted}; got {value!r}")
    if len(values) not in (1, 2) or not all(isinstance(v, Integral) and v > 0 for v in values):
        raise ValueError(f"{name} takes {accepted}; got {value!r}")
    return tuple(int(v) for v in values)


def both(size: tuple[int, ...]) -> tuple[int, int]:
    """Height and width."""
    return size[0], size[-1]


def probability(value: Any, name: str = "p") -> float:
    if isinstance(value, Real) and 0 <= value <= 1:
        return float(value)
    raise ValueError(f"{name} is a probability, a number in [0.0, 1.0]; got {value!r}")


def value_range(value: Any, name: str) -> tuple[float, float]:
    """(min, max)"""
    accepted = "a sequence of two numbers, (min, max)"
    values = numbers(value, name, accepted)
    if len(values) != 2:
        raise TypeError(f"{name} takes {accepted}, got {value!r}")
    if values[0] > values[1]:
        raise ValueError(f"{name} takes {accepted}, where min <= max; got {value!r}")
    return values[0], values[1]


def positive_range(value: Any, name: str) -> tuple[float, float]:
    found = value_range(value, name)
    if found[0] <= 0:
        raise ValueError(f"{name} takes two positive numbers, (min, max); got {value!r}")
    return found


def padding_of(value: Any, lengths: tuple[int, ...] = (2, 4)) -> tuple[int, int, int, int]:
    """Left, top, right, bottom."""
    counts = ", ".join(map(str, lengths[:-1])) + f" or {lengths[-1]}"
    accepted = (
        f"a non-negative integer, or a sequence of {counts}: (left and right, top and bottom) or (left, top, right, "
        "bottom)"
    )
    values: tuple[Any, ...]
    if isinstance(value, Integral):
        values = (value,)
    elif is_sequence(value) and len(value) in lengths:
        values = tuple(v.item() if hasattr(v, "item") else v for v in value)
    elif is_sequence(value) and 1 in lengths:
        raise ValueError(f"padding takes {accepted}; got {value!r}")
    else:
        raise TypeError(f"padding takes {accepted}; got {value!r}")
    if not all(isinstance(v, Integral) for v in values):
        raise TypeError(f"padding takes {accepted}; got {value!r}")
    if min(values) < 0:
        raise ValueError(f"padding takes {accepted}; got {value!r}")
    values = tuple(int(v) for v in values)
    left, top, right, bottom = values * (4 // len(values))
    return left, top, right, bottom


def padding_mode_of(value: Any) -> str:
    """The operators' name of a padding mode."""
    if not isinstance(value, str) or value not in PADDING_MODES:
        raise ValueError(f"padding_mode takes {', '.join(map(repr, PADDING_MODES))}; got {value!r}")
    return PADDING_MODES[value]


def fill_of(value: Any) -> list[float]:
    """One value, or one per channel; None is 0."""
    if value is None:
        return [0.0]
    accepted = "a number, a sequence of one number per channel, or None for 0"
    if isinstance(value, Real):
        return [float(value)]
    found = list(numbers(value, "fill", accepted))
    if not found:
        raise ValueError(f"fill takes {accepted}; got {value!r}")
    return found
