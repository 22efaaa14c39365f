# SPDX-License-Identifier: Apache-2.0
"""Axes given by index or by name, as columns (n, k): one row a sample."""

from __future__ import annotations

import numpy as np

from .batch import Spec
from .columns import constant
from .errors import SampleErrors, no_axis


def rows_of(x: Spec) -> np.ndarray:
    """(n, 1) the numbers of the samples: with axes (n, k) an index of each sample's own axes."""
    return constant(np.arange(x.n)[:, None])


def axes_named(x: Spec, names: str, layout: str) -> np.ndarray:
    """The axes of `layout` (that of x, or what x is taken for) that are called `names`."""
    missing = [c for c in names if c not in layout]
    if missing:
        raise ValueError(no_axis(missing[0], f"axis_names='{names}'", x.layout) + "; `axes` takes their numbers")
    return _distinct(constant(np.broadcast_to(np.array([layout.find(c) for c in names], "i8"), (x.n, len(names)))))


def axes_at(x: Spec, axes: np.ndarray) -> np.ndarray:
    """`axes` (n, k) with negative ones counted from the last."""
    n = x.ndim
    axes = axes.astype("i8")
    SampleErrors.where(
        ((axes < -n) | (axes >= n)).any(axis=1),
        lambda i: f"axes {axes[i].tolist()} are not in [{-n}, {n - 1}], the axes of an input of {n} dimensions",
    )
    return _distinct(np.where(axes < 0, axes + n, axes))


def _distinct(axes: np.ndarray) -> np.ndarray:
    ordered = np.sort(axes, axis=1)
    SampleErrors.where(
        (ordered[:, 1:] == ordered[:, :-1]).any(axis=1), lambda i: f"an axis is named twice: {axes[i].tolist()}"
    )
    return axes
