# SPDX-License-Identifier: Apache-2.0
"""The systematic cases of cropping, resampling and warping."""

from __future__ import annotations

from typing import Any

import numpy as np

from conformance.grid import Recipe, within
from penstock import types

EVERY = ("u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8")
NN, LINEAR, CUBIC = types.INTERP_NN, types.INTERP_LINEAR, types.INTERP_CUBIC
LANCZOS, TRIANGULAR, GAUSSIAN = types.INTERP_LANCZOS3, types.INTERP_TRIANGULAR, types.INTERP_GAUSSIAN
FILTERS = (NN, LINEAR, CUBIC, LANCZOS, TRIANGULAR, GAUSSIAN)
_PAD, _TRIM = {"out_of_bounds_policy": "pad"}, {"out_of_bounds_policy": "trim_to_shape"}
_HW, _WH = {"axis_names": "HW"}, {"axis_names": "WH"}
_RELATIVE = {"roi_start": [0.1, 0.2], "roi_end": [0.8, 0.7], "roi_relative": True}

CROP_ARGS: list[dict[str, Any]] = [
    {},
    {"crop": [4.0, 6.0], **_PAD},
    {"crop_h": 4.0, "crop_w": 3.0, **_PAD, "fill_values": [7.0]},
    {"crop": [5.0, 5.0], "crop_pos_x": 0.0, "crop_pos_y": 1.0, **_PAD},
    {"crop": [5.0, 4.0], "crop_pos_x": 0.3, "crop_pos_y": 0.7, **_TRIM},
    {"crop": [3.5, 2.5], "rounding": "truncate", **_PAD},
    {"crop": [3.5, 2.5], "rounding": "round", **_PAD},
    {"crop": [7.0, 7.0]},  # larger than some samples
    {"crop": [3.0, 3.0], "crop_h": 2.0, "crop_w": 2.0, **_PAD},
    {"crop_w": 2.0, **_PAD},
    {"crop": [1.0, 1.0], "dtype": types.FLOAT},
    {"crop": [1.0, 1.0], "dtype": types.UINT8, "crop_pos_x": 0.5},
    {"crop": [4.0, 6.0], **_PAD, "fill_values": [1.0, 2.0, 3.0]},
    {"crop": [1.0, 1.0], "crop_pos_x": 1.5},
    {"crop": [-1.0, 1.0]},
    {"crop": [1.0, 1.0], "rounding": "nonsense"},
    {"crop": [1.0, 1.0], "out_of_bounds_policy": "nonsense"},
]
_CROP_3D = [
    {"crop": [2.0, 4.0, 6.0], **_PAD},
    {"crop_d": 2.0, "crop_pos_z": 1.0, "crop_h": 3.0, "crop_w": 3.0, **_PAD},
]

_RESIZE_ARGS: list[dict[str, Any]] = [
    {"resize_x": 20.0},
    {"resize_y": 9.0},
    {"resize_x": 12.0, "resize_y": 7.0},
    {"size": [11.0, 13.0]},
    {"size": [7.0]},
    {"resize_shorter": 10.0},
    {"resize_longer": 16.0},
    {"resize_shorter": 12.0, "max_size": [20.0]},
    {"size": [12.0, 16.0], "mode": "not_larger"},
    {"size": [12.0, 16.0], "mode": "not_smaller"},
    {"size": [12.0, 16.0], "mode": "stretch"},
    {"size": [12.0, 16.0], "mode": "not_smaller", "max_size": [18.0, 18.0]},
    {"resize_x": 10.5, "subpixel_scale": False},
    {"resize_x": 10.3, "resize_y": 5.6},
    {"resize_x": 9.0, "antialias": False},
    {"resize_x": 30.0, "antialias": False},
    {"resize_x": -9.0},
    {"resize_x": 9.0, "resize_y": -6.0},
    {"size": [9.0, 9.0], **_RELATIVE},
    {"size": [9.0, 9.0], "roi_start": [0.8, 0.2], "roi_end": [0.1, 0.7], "roi_relative": True},
    {"size": [6.0, 6.0], "roi_start": [1.0, 1.0], "roi_end": [4.0, 3.0]},
    {"size": [6.0, 6.0], "roi_start": [-2.0, -2.0], "roi_end": [6.0, 6.0]},
    {"resize_shorter": 8.0, "roi_start": [0.0, 0.0], "roi_end": [0.5, 1.0], "roi_relative": True},
    {"size": [8.0, 8.0], "dtype": types.FLOAT},
    {"size": [8.0, 8.0], "dtype": types.UINT8},
    {"size": [6.0, 0.0]},
    {"resize_x": 10.0, "resize_shorter": 10.0},
    {"size": [8.0, 8.0], "mode": "nonsense"},
    {},
]
_PAIRS = ((NN, LINEAR), (CUBIC, NN), (LINEAR, LANCZOS), (GAUSSIAN, CUBIC), (TRIANGULAR, GAUSSIAN))
_INTERP_ARGS: list[dict[str, Any]] = [
    *({"size": s, "interp_type": t} for s in ([3.0, 3.0], [30.0, 31.0], [3.0, 40.0]) for t in FILTERS),
    *({"size": [6.0, 40.0], "mag_filter": a, "min_filter": b} for a, b in _PAIRS),
    *({"size": [6.0, 40.0], "interp_type": t, "antialias": False} for t in FILTERS),
]
_SAVE = [{"size": [6.0, 5.0], "save_attrs": True}, {"resize_shorter": 9.0, "save_attrs": True}]
_VOLUME: list[dict[str, Any]] = [
    {"size": [4.0, 6.0, 8.0]},
    {"resize_x": 8.0, "resize_y": 6.0, "resize_z": 5.0},
    {"resize_z": 5.0},
    {"size": [4.0, 6.0, 8.0], "interp_type": CUBIC},
    {"size": [4.0, 6.0, 8.0], "interp_type": NN},
    {"size": [2.0, 6.0, 8.0], "mode": "not_larger"},
    {"size": [2.0, 6.0, 8.0], "roi_start": [0.2] * 3, "roi_end": [0.9] * 3, "roi_relative": True},
]
_ELSEWHERE = (_RESIZE_ARGS[3], _RESIZE_ARGS[5], _RESIZE_ARGS[18], _INTERP_ARGS[2])
_RESIZE_MORE = [
    *((t, lay, a) for t in ("u1", "f4") for lay in ("CHW", "FHWC", "FCHW", "CFHW") for a in _ELSEWHERE),
    *((t, lay, a) for t in ("u1", "f4") for lay in ("DHWC", "CDHW", "FDHWC") for a in _VOLUME),
    *((t, "HWC", {"size": [9.0, 8.0]}) for t in EVERY),
]
_RESIZE_VARY = {"roi_start": within(0, 0.4), "roi_end": within(0.5, 1), "max_size": within(15, 25)}
_POSITIONS = {"crop_pos_x": within(0, 1), "crop_pos_y": within(0, 1)}

_SLICE_ARGS: list[dict[str, Any]] = [
    {"rel_start": [0.1, 0.2], "rel_shape": [0.5, 0.6], **_HW},
    {"rel_start": [0.1, 0.2], "rel_end": [0.5, 0.6], **_WH},
    {"start": [1, 1], "shape": [3, 2], **_HW, **_PAD},
    {"start": [1, 1], "end": [3, 3], **_WH, **_PAD, "fill_values": [9.0]},
    {"start": [-1, 1], "shape": [3, 9], **_HW, **_TRIM},
    {"start": [0, 0], "shape": [9, 9], **_HW},
    {"rel_start": [0.0], "rel_end": [0.5], "axes": [1]},
    {"rel_start": [0.25], "rel_end": [0.75], "axes": [0]},
    {"rel_end": [0.5, 0.5], "axes": [0, 1]},
    {"rel_start": [0.4, 0.3], "axes": [0, 1]},
    {"start": [0, 0], "rel_shape": [0.5, 0.5], **_HW},
    {"rel_start": [0.3, 0.3], "shape": [2, 2], **_HW, **_PAD},
    {"rel_start": [0.2, 0.2], "rel_shape": [0.5, 0.5], **_HW, "dtype": types.FLOAT},
    {"rel_start": [0.2, 0.2], "rel_shape": [0.5, 0.5], **_HW, "dtype": types.UINT8},
    {"start": [0, 0], "shape": [4, 4], **_HW, **_PAD, "fill_values": [1.0, 2.0, 3.0]},
    {"start": [0, 0], "rel_start": [0.0, 0.0]},
    {"rel_start": [0.1], "rel_end": [0.9], "axes": [-2]},
    {"rel_start": [0.1, 0.1], "rel_end": [0.9, 0.9], "axes": [0, 0]},
    {"rel_start": [0.1], "rel_end": [0.9], "axes": [9]},
    {"start": [3, 1], "end": [1, 3], **_HW, **_PAD},
]

_AFFINE = [1.2, 0.3, -2.0, -0.2, 0.9, 1.5]
_AFFINES = ([1.0, 0.0, 0.0, 0.0, 1.0, 0.0], _AFFINE, [0.0, -1.0, 8.0, 1.0, 0.0, 0.0])
_AFFINE_3D = [1.1, 0.1, 0.0, -1.0, 0.2, 0.9, 0.1, 2.0, 0.0, 0.1, 1.0, 0.2]
_WARP_OPTIONS: list[dict[str, Any]] = [
    {},
    {"fill_value": 42.0},
    {"interp_type": NN},
    {"inverse_map": False, "fill_value": 1.0},
    {"size": [12.0, 14.0], "fill_value": 2.0},
]
_ROTATE_OPTIONS: list[dict[str, Any]] = [{}, {"keep_size": True}, {"interp_type": NN}, {"fill_value": 42.0}]
_AXES = ([0.0, 0.0, 1.0], [1.0, 0.5, -0.3])

# Rotation matrices of volumes differ in the last bits.
_WARP_ULPS = 2048


def _whole(rng, value):
    """Sizes that are data are whole numbers here, as DALI truncates data but rounds constants."""
    return np.asarray(value) + rng.integers(-3, 4, np.shape(value))


def _matrix_shape(value):
    return {6: (2, 3), 12: (3, 4)}.get(len(value), (len(value),))


RECIPES: dict[str, Recipe] = {
    "flip": Recipe(
        ("u1", "u2", "i4", "f4", "f8"),
        ("HWC", "CHW", "FHWC", "FCHW", "DHWC", "CDHW", "FDHWC"),
        [
            {},
            {"horizontal": 0},
            {"vertical": 1},
            {"horizontal": 1, "vertical": 1, "depthwise": 1},
            {"depthwise": 1, "horizontal": 0},
        ],
        [(t, "HWC", {}) for t in EVERY],
    ),
    "crop": Recipe(
        ("u1", "i2", "f4"),
        ("HWC", "CHW", "FHWC", "FCHW", "DHWC", "CDHW", "CFHW"),
        CROP_ARGS,
        [(t, "HWC", CROP_ARGS[1]) for t in EVERY] + [(t, "DHWC", a) for t in ("u1", "f4") for a in _CROP_3D],
        vary=_POSITIONS,
    ),
    "slice": Recipe(
        ("u1", "i2", "f4"),
        ("HWC", "CHW", "FHWC", "DHWC"),
        _SLICE_ARGS,
        [(t, "HWC", _SLICE_ARGS[2]) for t in EVERY],
        vary={"rel_start": within(0, 0.4), "rel_shape": within(0.2, 0.6), "rel_end": within(0.5, 1)},
    ),
    "resize": Recipe(
        ("u1", "i2", "f4"),
        ("HWC",),
        [*_RESIZE_ARGS, *_INTERP_ARGS, *_SAVE],
        _RESIZE_MORE,
        steps=1,
        ulps=256,
        vary=_RESIZE_VARY,
    ),
    "resize_crop_mirror": Recipe(
        ("u1", "f4"),
        ("HWC", "CHW", "FHWC"),
        [
            {"size": [11.0, 13.0], "crop": [6.0, 7.0]},
            {"size": [11.0, 13.0], "crop": [6.0, 7.0], "mirror": 1},
            {"resize_shorter": 10.0, "crop": [8.0, 8.0], "crop_pos_x": 0.2, "crop_pos_y": 0.9},
            {"resize_shorter": 10.0, "crop_h": 8.0, "crop_w": 6.0, "mirror": 1, "interp_type": CUBIC},
            {"resize_shorter": 10.0, "crop": [8.0, 8.0], "dtype": types.FLOAT},
            {"resize_x": 20.0, "resize_y": 18.0, "crop": [9.5, 8.5], "rounding": "truncate"},
            {"size": [12.0, 16.0], "mode": "not_smaller", "crop": [12.0, 12.0], "max_size": [40.0]},
            {"size": [9.0, 9.0], **_RELATIVE, "crop": [5.0, 5.0]},
            {"resize_shorter": 5.0, "crop": [8.0, 8.0]},
            {"resize_shorter": 10.0},
            {"crop": [1.0, 1.0]},
            *({"size": [11.0, 13.0], "crop": [6.0, 7.0], "interp_type": t} for t in FILTERS),
        ],
        steps=1,
        ulps=256,
        vary={**_RESIZE_VARY, **_POSITIONS, "crop": lambda rng, v: v},
    ),
    "rotate": Recipe(
        ("u1", "i2", "f4"),
        ("HWC", "FHWC"),
        [
            *({"angle": a, **o} for a in (0.0, 30.0, -75.0, 90.0, 200.0) for o in _ROTATE_OPTIONS),
            {"angle": 25.0, "size": [20.0, 30.0]},
            {"angle": 25.0, "dtype": types.FLOAT, "fill_value": 0.0},
            {"angle": 25.0, "dtype": types.UINT8},
            {"angle": 10.0, "interp_type": CUBIC},
            {"angle": 10.0, "axis": [0.0, 0.0, 1.0]},
        ],
        [
            *(
                (t, "DHWC", {"angle": 35.0, "axis": a, **o})
                for t in ("u1", "f4")
                for a in _AXES
                for o in ({}, {"keep_size": True, "fill_value": 3.0})
            ),
            *((t, "HWC", {"angle": 20.0}) for t in EVERY),
        ],
        steps=1,
        ulps=_WARP_ULPS,
        vary={"angle": within(-180, 180), "size": _whole},
    ),
    "warp_affine": Recipe(
        ("u1", "i2", "f4"),
        ("HWC", "FHWC"),
        [
            *({"matrix": m, **o} for m in _AFFINES for o in _WARP_OPTIONS),
            {"matrix": _AFFINE, "dtype": types.FLOAT},
            {"matrix": _AFFINE, "dtype": types.UINT8},
            {"matrix": _AFFINE, "interp_type": CUBIC},
            {"matrix": [1.0, 0.0]},
            {},
        ],
        [
            *(
                (t, "DHWC", {"matrix": _AFFINE_3D, **o})
                for t in ("u1", "f4")
                for o in ({}, {"size": [4.0, 9.0, 8.0], "fill_value": 5.0})
            ),
            *((t, "HWC", {"matrix": _AFFINE}) for t in EVERY),
        ],
        steps=1,
        ulps=_WARP_ULPS,
        vary={"size": _whole},
        data_shape={"matrix": _matrix_shape},
    ),
}
