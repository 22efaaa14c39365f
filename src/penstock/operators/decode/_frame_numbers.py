# SPDX-License-Identifier: Apache-2.0
"""Selection of the frames that the video decoder decodes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...core.errors import SampleErrors
from ...core.op import Arguments

_RANGE = ("start_frame", "end_frame", "sequence_length", "stride")


def wanted_frames(
    a: Arguments, total: np.ndarray, is_key: Callable[[int], np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Numbers (n, most) of the frames to decode, which may be outside the video, and their count (n,). `total` (n,):
    frames of the videos; `is_key(i)`: booleans, the key frames of sample i."""
    _check_given(a)
    if "frames" in a.given:
        return _listed(a, total)
    if a.key_frames:
        return _key_frames(a, total, is_key)
    if a.uniform_sample:
        return _evenly(a, total)
    return _range(a, total)


def _check_given(a: Arguments) -> None:
    """Raises ValueError for contradictory arguments."""
    samplers = [k for k in ("clip_pos", "uniform_sample", "key_frames") if k in a.given and getattr(a, k) is not False]
    ranges = [k for k in (*_RANGE, *samplers) if k in a.given]
    if "frames" in a.given and ranges:
        raise ValueError(f"Cannot specify both `frames` and any of {', '.join(f'`{k}`' for k in ranges)}")
    if len(samplers) > 1:
        raise ValueError(f"Cannot specify both `{samplers[0]}` and `{samplers[1]}`")
    if {"end_frame", "sequence_length"} <= a.given and not (a.uniform_sample or a.key_frames):
        raise ValueError("Cannot specify both `sequence_length` and `end_frame`")
    if {"clip_pos", "start_frame"} <= a.given:
        raise ValueError("Cannot specify both `clip_pos` and `start_frame`")
    if "sequence_length" not in a.given and samplers and not a.key_frames:
        raise ValueError(f"`{samplers[0]}` needs `sequence_length`, the number of frames")


def _listed(a: Arguments, total: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    lengths, numbers = a.lengths("frames"), a.frames.astype("i8")
    outside = (numbers < 0) | (numbers >= total[:, None])
    outside &= np.arange(numbers.shape[1]) < lengths[:, None]
    if a.pad_mode == "none":
        SampleErrors.where(
            outside.any(1),
            lambda i: (
                f"Unexpected out-of-bounds frame index {numbers[i][outside[i]][0]} for pad_mode='none' and a video of "
                f"{total[i]} frames; choose another pad_mode, or numbers 0 to {total[i] - 1}"
            ),
        )
    return numbers, lengths


def _range(a: Arguments, total: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    stride = _stride(a)
    if a.sequence_length is not None:
        counts = _counts(a)
        start = _start(a, total) if a.clip_pos is None else _placed(a, total - ((counts - 1) * stride + 1))
    else:
        start, end = _bounds(a, total)
        counts = -((start - end) // stride)
    if a.pad_mode == "none":
        SampleErrors.where(start < 0, lambda i: f"start_frame takes 0 or more for pad_mode='none'; got {start[i]}")
        counts = np.minimum(counts, -((start - total) // stride))
    return start[:, None] + np.arange(_most(counts)) * stride[:, None], counts


def _evenly(a: Arguments, total: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    (start, end), counts = _bounds(a, total), _counts(a)
    first, last = np.maximum(start, 0), np.minimum(end, total) - 1
    distance = (last - first) / np.maximum(counts - 1, 1)
    at = first[:, None] + np.arange(_most(counts)) * distance[:, None]
    return np.floor(at + 0.5).astype("i8"), counts


def _key_frames(a: Arguments, total: np.ndarray, is_key: Callable[[int], np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    (start, end), stride = _bounds(a, total), _stride(a)
    found = []
    for i in range(a.n):
        keys = np.flatnonzero(is_key(i))
        keys = keys[(keys >= start[i]) & (keys < end[i])][:: stride[i]]
        found.append(keys if a.sequence_length is None else keys[: _counts(a)[i]])
    counts = np.array([len(keys) for keys in found])
    numbers = np.full((a.n, _most(counts)), -1)
    for row, keys in zip(numbers, found):
        row[: len(keys)] = keys
    return numbers, counts


def _start(a: Arguments, total: np.ndarray) -> np.ndarray:
    start = np.zeros(a.n, "i8") if a.start_frame is None else a.start_frame.astype("i8")
    SampleErrors.where(
        start >= total,
        lambda i: f"Start frame {start[i]} is out of bounds, expected range [0, {total[i]})",
    )
    return start


def _bounds(a: Arguments, total: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First frame (n,) and end (n,), exclusive."""
    start, end = _start(a, total), total if a.end_frame is None else a.end_frame.astype("i8")
    SampleErrors.where(end <= start, lambda i: f"end_frame ({end[i]}) must be greater than start_frame ({start[i]})")
    return start, end


def _placed(a: Arguments, last: np.ndarray) -> np.ndarray:
    """First frames by `clip_pos`. `last` (n,): the last first frame with the whole range inside the video."""
    at, last = a.clip_pos.astype("f8"), np.maximum(last, 0)
    SampleErrors.where(~((at >= 0) & (at <= 1)), lambda i: f"clip_pos takes 0 to 1; got {at[i]:g}")
    return np.minimum((at * (last + 1)).astype("i8"), last)


def _stride(a: Arguments) -> np.ndarray:
    stride = np.ones(a.n, "i8") if a.stride is None else a.stride.astype("i8")
    SampleErrors.where(stride < 1, lambda i: f"stride takes at least 1; got {stride[i]}")
    return stride


def _counts(a: Arguments) -> np.ndarray:
    counts = a.sequence_length.astype("i8")
    SampleErrors.where(counts < 0, lambda i: f"sequence_length takes at least 0; got {counts[i]}")
    return counts


def _most(counts: np.ndarray) -> int:
    return max(int(counts.max(initial=0)), 1)
