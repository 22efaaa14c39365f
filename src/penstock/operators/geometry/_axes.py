# SPDX-License-Identifier: Apache-2.0
"""Axes given by index or by name."""

import numpy as np

from ...core.batch import Spec
from ...core.errors import SampleErrors
from ...core.op import Arguments


def resolve_axes(a: Arguments, x: Spec, by_index: bool) -> np.ndarray:
    """(n, k) indices from `a.axes` or `a.axis_names`. An input without a layout is taken for an image or a volume."""
    if not by_index:
        layout = x.layout or {2: "HW", 3: "HWC", 4: "DHWC"}.get(x.ndim, "")
        missing = [c for c in a.axis_names if c not in layout]
        if missing:
            raise ValueError(f"input 0 has the layout '{x.layout}', which has no axis '{missing[0]}' (axis_names='{a.axis_names}')")
        axes = np.broadcast_to(np.array([layout.find(c) for c in a.axis_names], "i8"), (x.n, len(a.axis_names)))
    else:
        axes = a.axes.astype("i8")
        SampleErrors.where(
            ((axes < -x.ndim) | (axes >= x.ndim)).any(axis=1),
            lambda i: f"axes {axes[i].tolist()} are not in [{-x.ndim}, {x.ndim - 1}], the axes of an input of {x.ndim} dimensions",
        )
        axes = axes % max(x.ndim, 1)
    ordered = np.sort(axes, axis=1)
    SampleErrors.where(
        (ordered[:, 1:] == ordered[:, :-1]).any(axis=1), lambda i: f"an axis is named twice: {axes[i].tolist()}"
    )
    return axes
