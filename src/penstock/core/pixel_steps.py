# SPDX-License-Identifier: Apache-2.0
"""A warning about means and deviations meant for pixels in [0, 1]."""

from __future__ import annotations

import warnings

import numpy as np


def are_fractions(mean, std) -> bool:
    """Whether these float constants are all within [0, 1], as those of torchvision's models. False if they are only 0
    and 1."""
    values = [np.ravel(v) for v in (mean, std)]
    return all(v.dtype.kind == "f" and v.size and 0 < v.max() < 1 and v.min() >= 0 for v in values)


def warn_of_fractions(operator: str, names: tuple[str, str], mean, std) -> None:
    """Warns, with the values to use for pixels in 0 to 255."""
    scaled = ", ".join(f"{n}=[{', '.join(f'{255 * x:g}' for x in np.ravel(v))}]" for n, v in zip(names, (mean, std)))
    warnings.warn(
        f"{operator}: {names[0]} and {names[1]} are all within [0, 1], but the pixels are uint8, from 0 to 255, and "
        f"are not divided by 255 first, as torchvision's are. These numbers times 255: {scaled}",
        stacklevel=2,
    )
