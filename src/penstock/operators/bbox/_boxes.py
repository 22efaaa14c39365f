# SPDX-License-Identifier: Apache-2.0
"""Checks of boxes and their labels."""

from __future__ import annotations

import numpy as np

from ...core.batch import Spec
from ...core.errors import SampleErrors

_FLOAT32, _INT32 = np.dtype("f4"), np.dtype("i4")


def check_boxes(boxes: Spec, numbers: tuple[int, ...] = (4,)) -> None:
    """Checks that boxes are float32 of shape (boxes, one of `numbers`)."""
    if boxes.dtype != _FLOAT32:
        raise ValueError(f"boxes (input 0) must be float32, got {boxes.dtype.name}; fn.cast them")
    accepted = " or ".join(f"(boxes, {k})" for k in numbers)
    if boxes.ndim != 2:
        raise ValueError(f"boxes (input 0) must have the shape {accepted}, got {boxes.ndim} dimensions")
    shape = boxes.shape
    if (shape[:, 1] == numbers[0]).all():
        return
    bad = (shape[:, 0] > 0) & ~np.isin(shape[:, 1], numbers)
    SampleErrors.where(bad, lambda i: f"boxes (input 0) must have the shape {accepted}, got {shape[i].tolist()}")


def check_labels(labels: Spec, counts: np.ndarray) -> None:
    """Checks that labels are int32, with one slice along the first axis for each of `counts` (n,) boxes."""
    if labels.dtype != _INT32:
        raise ValueError(f"labels (input 1) must be int32, got {labels.dtype.name}; fn.cast them")
    given = labels.shape[:, 0] if labels.ndim else np.zeros(labels.n, "i8")
    SampleErrors.where(
        given != counts, lambda i: f"there are {given[i]} labels for {counts[i]} boxes; give one for each"
    )
