# SPDX-License-Identifier: Apache-2.0
"""The reference of erosion and dilation."""

import numpy as np

from harness import per_sample

_PADDING = {"reflect_101": "reflect", "reflect": "symmetric", "wrap": "wrap", "replicate": "edge"}


def extreme(first, best, outside):
    """The extreme value in a rectangle, for images whose height is axis `first`. `outside` (element type) -> value that
    is never selected."""

    def reference(x, mask_size=(3, 3), anchor=(-1, -1), iterations=1, border_mode="constant"):
        if x.size == 0:
            return x
        w, h = (3, 3) if np.any(np.equal(mask_size, -1)) else np.broadcast_to(mask_size, 2)
        ax, ay = np.broadcast_to(anchor, 2)
        ax, ay = w // 2 if ax < 0 else ax, h // 2 if ay < 0 else ay
        pad = [(0, 0)] * x.ndim
        pad[first : first + 2] = (ay, h - 1 - ay), (ax, w - 1 - ax)
        for _ in range(iterations):
            if border_mode == "constant":
                padded = np.pad(x, pad, constant_values=outside(x.dtype))
            else:
                padded = np.pad(x, pad, mode=_PADDING[border_mode])
            windows = np.lib.stride_tricks.sliding_window_view(padded, (h, w), (first, first + 1))
            x = best(windows, axis=(-2, -1))
        return x

    return reference


ARGS = [
    {},
    {"mask_size": [5, 2]},
    {"mask_size": [4, 7], "anchor": [0, 6]},
    {"mask_size": -1, "iterations": 3},
    {"border_mode": "replicate"},
    {"border_mode": "reflect", "mask_size": [9, 4], "anchor": [8, 0], "iterations": 2},
    {"border_mode": "reflect_101", "mask_size": 6, "anchor": [5, 5]},
    {"border_mode": "wrap", "mask_size": [3, 5]},
    {"mask_size": per_sample(1, 12, (2,), "i4")},
]
PER_FRAME = [{"mask_size": per_sample(1, 6, (2,), "i4", frames=True)}]
ERRORS = [
    ({"mask_size": 0}, RuntimeError, r"`mask_size` must be positive, got \[0\]"),
    ({"mask_size": [1, 2, 3]}, RuntimeError, "`mask_size` has 3 values; it takes one, or two"),
    ({"anchor": 3}, RuntimeError, r"`anchor` \[3, 3\] is not inside of the mask of size \[3, 3\]"),
    ({"iterations": 0}, ValueError, "iterations=0 must be at least 1"),
    ({"border_mode": "clamp"}, ValueError, "border_mode='clamp' is not known; known are reflect_101, reflect"),
]
GPU_ONLY = {"dali_differs": {"-": "DALI has it on the GPU only"}}
