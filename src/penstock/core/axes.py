# SPDX-License-Identifier: Apache-2.0
"""Axes given by index or by name, as columns (n, k): one row per sample."""

from __future__ import annotations

from typing import Any

import numpy as np

from .batch import Spec
from .errors import SampleErrors, no_axis
from .op import Arguments


def rows_of(x: Spec) -> np.ndarray:
    """Sample indices, shape (n, 1). Together with axes (n, k) they index each sample's own axes."""
    return np.arange(x.n)[:, None]


def all_axes(x: Spec) -> np.ndarray:
    return np.broadcast_to(np.arange(x.ndim), (x.n, x.ndim))


def axes_named(x: Spec, names: str, layout: str) -> np.ndarray:
    """The axes of `layout` (the layout of x, or the one assumed for it) that are called `names`."""
    missing = [c for c in names if c not in layout]
    if missing:
        raise ValueError(no_axis(missing[0], f"axis_names='{names}'", x.layout) + "; `axes` takes their numbers")
    return _distinct(np.broadcast_to(np.array([layout.find(c) for c in names], "i8"), (x.n, len(names))))


def axes_at(x: Spec, axes: np.ndarray) -> np.ndarray:
    """Returns `axes` (n, k) with negative values counted from the last axis."""
    n = x.ndim
    axes = axes.astype("i8")
    SampleErrors.where(
        ((axes < -n) | (axes >= n)).any(axis=1),
        lambda i: (
            f"Axis {axes[i][(axes[i] < -n) | (axes[i] >= n)][0]} out of range. Expected range is [{-n}, {n - 1}] "
            f"for an input of {n} dimensions; got axes {axes[i].tolist()}"
        ),
    )
    return _distinct(np.where(axes < 0, axes + n, axes))


def axes_given(a: Arguments, x: Spec) -> tuple[np.ndarray, np.ndarray | None]:
    """Returns the argument `axes`, which is `ragged`, as (n, k). Samples that name none mean all. If samples have
    different numbers of axes, also returns a mask (n, k), true for the axes the sample names. The other entries are
    axes it does not name; they must not be processed."""
    n = x.ndim
    lengths = a.lengths("axes")
    k = a.axes.shape[1]
    if k == 0:
        return all_axes(x), None
    if bool((lengths == k).all()):
        return axes_at(x, a.axes), None
    axes, none = a.axes.astype("i8"), lengths == 0
    if bool(none.any()):
        k = max(k, n)
        axes = np.pad(axes, ((0, 0), (0, k - axes.shape[1])))
        axes[none] = np.pad(np.arange(n), (0, k - n))
        lengths = np.where(none, n, lengths)
    own = np.arange(k) < lengths[:, None]
    SampleErrors.where(
        (own & ((axes < -n) | (axes >= n))).any(axis=1) | (lengths > n),
        lambda i: f"axes {axes[i][own[i]].tolist()} are not those of an input of {n} dimensions, [{-n}, {n - 1}]",
    )
    axes = np.where(axes < 0, axes + n, axes)
    rows = rows_of(x)
    named = np.zeros((x.n, n + 1), bool)
    named[rows, np.where(own, axes, n)] = True
    others = np.argsort(named[:, :n], axis=1, kind="stable")  # axes that are not named come first
    behind = np.clip(np.arange(k) - lengths[:, None], 0, n - 1)
    return _distinct(np.where(own, axes, others[rows, behind])), own


def for_axes(a: Arguments, name: str, axes: np.ndarray, own: np.ndarray | None, otherwise: Any) -> np.ndarray:
    """Returns the values (n, k) of the argument `name`, which has one value per axis, or one for all axes in each
    sample. Axes outside the mask `own` get `otherwise`."""
    values = getattr(a, name)
    lengths = a.lengths(name)
    given, k = values.shape[1], axes.shape[1]
    if bool((lengths == given).all()) and (given == 1 or (own is None and given == k)):
        wide = np.broadcast_to(values, axes.shape)
    else:
        n_axes = np.full(len(axes), k) if own is None else own.sum(axis=1)
        SampleErrors.where(
            lengths != n_axes,
            lambda i: (
                f"Unexpected shape for argument `{name}`: {lengths[i]} values for {n_axes[i]} axes; give one for each "
                "axis, or one value in all samples"
            ),
        )
        wide = np.zeros(axes.shape, values.dtype)
        wide[:, :given] = values[:, :k]
    return wide if own is None else np.where(own, wide, otherwise).astype(values.dtype)


def _distinct(axes: np.ndarray) -> np.ndarray:
    ordered = np.sort(axes, axis=1)
    SampleErrors.where(
        (ordered[:, 1:] == ordered[:, :-1]).any(axis=1),
        lambda i: f"an axis occurs more than once in {axes[i].tolist()}",
    )
    return axes
