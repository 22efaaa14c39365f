# SPDX-License-Identifier: Apache-2.0
"""The steps of automatic augmentation as rows of kernels/augment/augment.h: kind, values and, last, the probability."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..color._color_matrix import color_matrix

FLOATS, PROBABILITY = 16, 15
WARP, COLOR, FILTER, CONTRAST = 1, 2, 3, 9
NAMES = {WARP: "warp", COLOR: "color", FILTER: "sharpness", CONTRAST: "contrast"}
CHANNELS = {COLOR: (3,), CONTRAST: (1, 3)}  # supported numbers of channels


def _shear(p: np.ndarray) -> np.ndarray:
    """From (x, y): the inverse of [[1, x], [y, 1]], as the kernel maps output to input."""
    one, zero = np.ones(len(p)), np.zeros(len(p))
    with np.errstate(divide="ignore", invalid="ignore"):
        inverse = np.stack([one, -p[:, 0], zero, -p[:, 1], one, zero], axis=1) / (1 - p[:, :1] * p[:, 1:])
    return inverse


def _translate(p: np.ndarray) -> np.ndarray:
    """From (x, y): distance by which the content moves right and down."""
    one, zero = np.ones(len(p)), np.zeros(len(p))
    return np.stack([one, zero, -p[:, 0], zero, one, -p[:, 1]], axis=1)


def _translate_relative(p: np.ndarray) -> np.ndarray:
    zero, one = np.zeros((len(p), 1)), np.ones((len(p), 1))
    return np.concatenate([_translate(p), zero, one], axis=1)


def _rotate(p: np.ndarray) -> np.ndarray:
    """From an angle in degrees, counter-clockwise, around the centre."""
    radians = (p[:, 0].astype("f4") * np.float32(np.pi / 180)).astype("f8")
    c, s, zero, one = np.cos(radians), np.sin(radians), np.zeros(len(p)), np.ones(len(p))
    return np.stack([c, -s, zero, s, c, zero, one], axis=1)


def _color(p: np.ndarray) -> np.ndarray:
    return color_matrix(len(p), saturation=p[:, 0])


def _values(p: np.ndarray) -> np.ndarray:
    return p


# The kernel's kind, the number of parameters, and their conversion to the kernel's values.
STEPS: dict[str, tuple[int, int, Callable[[np.ndarray], np.ndarray]]] = {
    "identity": (0, 0, _values),
    "shear": (WARP, 2, _shear),
    "translate": (WARP, 2, _translate),
    "translate_relative": (WARP, 2, _translate_relative),
    "rotate": (WARP, 1, _rotate),
    "color": (COLOR, 1, _color),
    "sharpness": (FILTER, 9, _values),
    "brightness": (4, 1, _values),
    "posterize": (5, 1, _values),
    "solarize": (6, 1, _values),
    "solarize_add": (7, 1, _values),
    "invert": (8, 0, _values),
    "contrast": (CONTRAST, 1, _values),
    "auto_contrast": (10, 0, _values),
    "equalize": (11, 0, _values),
}


def rows_of(name: str, parameters: np.ndarray | None) -> np.ndarray:
    """Steps (n, 1, FLOATS) with probability 1, from parameters (n, ...). Without `parameters`, one step with zeros."""
    kind, count, convert = STEPS[name]
    if parameters is None:
        parameters = np.zeros((1, count))
    values = np.asarray(parameters).reshape(len(parameters), -1)
    if values.shape[1] != count and count:
        raise ValueError(f"{name} takes {count} value{'s' * (count > 1)}, got {values.shape[1]}")
    rows = np.zeros((len(values), 1, FLOATS), "f4")
    rows[:, 0, 0], rows[:, 0, PROBABILITY] = kind, 1
    if count:
        converted = convert(values.astype("f8"))
        rows[:, 0, 1 : 1 + converted.shape[1]] = converted
    return rows
