# SPDX-License-Identifier: Apache-2.0
"""Applies to each sample the augmentation selected by its index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import types
from ...data_node import DataNode
from ...graph.branching import if_else
from . import _native
from ._augmentation import Augmentation, _SignedMagnitudeBin


def split_samples_among_ops(
    op_range_lo: int,
    op_range_hi: int,
    ops: Sequence[Any],
    selected_op_idx: DataNode,
    op_args: Sequence[Any],
    op_kwargs: dict[str, Any],
) -> DataNode:
    """Applies `ops[i]`, with i from `op_range_lo` to `op_range_hi` (inclusive), by nested conditionals that halve the
    range."""
    lo, hi = op_range_lo, op_range_hi
    if lo == hi:
        out: DataNode = ops[lo](*op_args, **op_kwargs)
        return out
    mid = (lo + hi) // 2

    def part(first: int, last: int) -> DataNode:
        return split_samples_among_ops(first, last, ops, selected_op_idx, op_args, op_kwargs)

    chosen: DataNode = if_else(selected_op_idx <= mid, lambda: part(lo, mid), lambda: part(mid + 1, hi))
    return chosen


def select(ops: Sequence[Any], selected_op_idx: DataNode, *op_args: Any, **op_kwargs: Any) -> DataNode:
    """Returns `ops[selected_op_idx](*op_args, **op_kwargs)` for each sample; indices are ints below len(ops).

    One operator applies all augmentations of `penstock.auto_aug.augmentations`. For each other augmentation, the batch
    is split.
    """
    fused = _fuse(ops, selected_op_idx, op_args, op_kwargs) if isinstance(selected_op_idx, DataNode) else None
    if fused is not None:
        return fused
    return split_samples_among_ops(0, len(ops) - 1, ops, selected_op_idx, op_args, op_kwargs)


def _fuse(ops: Sequence[Any], index: DataNode, args: Sequence[Any], kwargs: dict[str, Any]) -> DataNode | None:
    kwargs = dict(kwargs)
    data = args[0] if len(args) == 1 else kwargs.pop("data", None) if not args else None
    bins, num_bins = kwargs.pop("magnitude_bin", None), kwargs.pop("num_magnitude_bins", None)
    if data is None or len(ops) < 2:
        return None
    signed = isinstance(bins, _SignedMagnitudeBin)
    magnitude = bins.bin if signed else bins
    if magnitude is not None and not isinstance(magnitude, (int, DataNode)):
        return None
    fixed = None if isinstance(magnitude, DataNode) else [0 if magnitude is None else magnitude]
    found: list[Any] = []
    for op in ops:
        ok = isinstance(op, Augmentation) and not (magnitude is None and op.mag_range is not None)
        ok = ok and (signed or not op.randomly_negate)
        if ok:
            op.check_kwargs(kwargs)
        found.append(_native.rows(op, fixed, num_bins, kwargs) if ok else None)
    native = [op for op, r in zip(ops, found) if r is not None]
    if len(native) < 2:
        return None
    some = next(r for r in found if r is not None)
    table = np.stack([np.zeros_like(some) if r is None else r for r in found])
    if signed:
        sign = bins.random_sign if fixed else bins.signed_magnitude_idx
    else:
        sign = None if fixed else 2 * bins

    def together() -> DataNode:
        given = _native.accepted(native, kwargs)
        return _native.augment(data, table=table, bins=table.shape[1], item=index, bin=sign, **given)

    others = [i for i, r in enumerate(found) if r is None]
    if not others:
        return together()
    # 0 for native operators; 1 + index among the others otherwise.
    places = np.zeros(len(ops), "i4")
    places[others] = 1 + np.arange(len(others))
    place = types.Constant(places)[index]

    def apart() -> DataNode:
        rest = [ops[i] for i in others]
        return split_samples_among_ops(0, len(rest) - 1, rest, place - 1, args, given_kwargs)

    given_kwargs = kwargs | {"magnitude_bin": bins, "num_magnitude_bins": num_bins}
    if not args:
        given_kwargs["data"] = data
    chosen: DataNode = if_else(place == 0, together, apart)
    return chosen
