# SPDX-License-Identifier: Apache-2.0
"""Chooses how the threads of a LOCAL launch access memory, by shapes, types and axes. This affects only speed, so
current shapes are used without checks for later batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..core.batch import Spec
from ..core.traced import plain
from . import forms
from .source import Kind

if TYPE_CHECKING:
    from .calls import Call


def goes_in_runs(kinds: list[Kind], specs: list[Spec], locals_: list[Call]) -> bool:
    """Whether to read the source and write the last output in runs along their last coordinates."""
    last, out = kinds[-1], specs[-1]
    if last.n == 1:
        # Wider pixels are as fast without runs, which is simpler.
        return last.c == 1 or last.axis < last.n or out.dtype.itemsize <= specs[0].dtype.itemsize
    if not last.unit and any(k.axis == k.n - 1 for k in kinds):
        return False  # neighbouring elements are channels
    columns = [extents_of(k, s)[:, -1] for k, s in ((kinds[0], specs[0]), (last, out))]
    if min(int(c.mean()) for c in columns) < 16:
        return False
    if alignment_of_planes(last, out) < max(4, 2 * out.dtype.itemsize):
        return False
    return _coordinate_of_rows(kinds, locals_) == last.n - 1


def gathers_along_rows(kinds: list[Kind], out: Spec) -> bool:
    """Whether each warp processes rows of the output of a gather and its LOCALs; the head's pixels are units then, and
    its last coordinate runs along their rows."""
    last = kinds[-1]
    return kinds[0].unit and last.n > 1 and float(extents_of(last, out)[:, -1].mean()) >= 16


def turned_coordinate(kinds: list[Kind], specs: list[Spec], locals_: list[Call]) -> int:
    """The coordinate of the last output that runs along rows of the source if tiles should be transposed; otherwise
    -1."""
    at = _coordinate_of_rows(kinds, locals_)
    last = kinds[-1]
    if not 0 <= at < last.n - 1:
        return -1
    extents = extents_of(last, specs[-1])
    return at if min(extents[:, at].mean(), extents[:, -1].mean()) >= 16 else -1


def _coordinate_of_rows(kinds: list[Kind], locals_: list[Call]) -> int:
    """The coordinate of the last output that runs along rows of the source; -1 if none."""
    at = kinds[0].n - 1
    for call, x, to in zip(locals_, kinds, kinds[1:]):
        axes, args = forms.described(call.kernel).axes, call.args
        if axes and args is not None:
            axis = _axis(x, at)
            at = next((d for d in range(to.n) if args[axes][0, _axis(to, d)] == axis), -1)
            if at < 0:
                return -1
    return at


def alignment_of_planes(k: Kind, s: Spec) -> int:
    """The alignment in bytes, at most 16, of the distances between the planes that a thread writes, for most of the
    samples (others are written element by element); 16 if there is one plane."""
    if not (k.unit and k.c > 1 and k.axis < k.n):
        return 16
    distances = plain(s.stored)[:, k.axis + 1 :].prod(axis=1) * s.dtype.itemsize
    return next((a for a in (16, 8, 4, 2) if 2 * np.count_nonzero(distances % a == 0) > len(distances)), 1)


def threads_of_row(runs: int) -> int:
    """How many threads share a row of `runs` runs: a power of two, chosen so that few are idle at the end of the
    row."""
    return next((g for g in (32, 16) if -(-runs // g) * g * 7 <= runs * 8), 8)


def _axis(k: Kind, coordinate: int) -> int:
    return coordinate + (k.unit and coordinate >= k.axis)


def extents_of(k: Kind, s: Spec) -> np.ndarray:
    """Sizes along the coordinates, shape (n, k.n)."""
    stored = plain(s.stored)
    return stored if not k.unit else np.delete(stored, k.axis, axis=1)
