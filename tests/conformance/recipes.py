# SPDX-License-Identifier: Apache-2.0
"""The systematic cases of colour and generic operators. Some are invalid on purpose, to check that penstock raises an
error where DALI does."""

from __future__ import annotations

import numpy as np

from conformance.argument_recipes import RECIPES as ARGUMENTS
from conformance.geometry_recipes import CROP_ARGS
from conformance.geometry_recipes import RECIPES as GEOMETRY
from conformance.grid import Recipe, within
from conformance.tensor_recipes import RECIPES as TENSORS
from penstock import types

INTEGERS = ("u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8")
EVERY = (*INTEGERS, "f2", "f4", "f8")
COLOR_TYPES = ("u1", "i2", "i4", "f4")
IMAGES = ("HWC", "FHWC", "DHWC")
_OUT = [types.FLOAT, types.UINT8, types.INT16, types.INT32]
_HW, _WH = {"axis_names": "HW"}, {"axis_names": "WH"}
_MEAN, _STD = [10.0, 20.0, 30.0], [2.0, 3.0, 5.0]
_MEAN_STD = {"mean": _MEAN, "std": _STD}


_WRAPS = "a fill value beyond the type's range is clamped; DALI wraps it around"
_NO_LAYOUT = "DALI expects the layout of the input although the dimensions change, and refuses its own output"
_NO_DATA = "DALI ignores src_dims that are data"


def _same(rng, value):
    return value


def _out(**args):
    return [{"dtype": t, **args} for t in _OUT]


def _everywhere(**args):
    return [(t, "HWC", args) for t in EVERY]


def _slice_inputs(rng: np.random.Generator, n: int) -> list[list[np.ndarray]]:
    return [[rng.uniform(lo, hi, 2).astype("f4") for _ in range(n)] for lo, hi in ((0, 0.3), (0.3, 0.6))]


_COLOR = {
    "brightness": [
        {},
        {"brightness": 1.7},
        {"brightness": 0.4, "brightness_shift": 0.1},
        {"brightness_shift": -0.3},
        *_out(),
    ],
    "contrast": [
        {},
        {"contrast": 1.7},
        {"contrast": 0.4, "contrast_center": 0.3},
        {"contrast": 1.4, "contrast_center": 100.0},
        *_out(contrast=1.5),
    ],
    "brightness_contrast": [
        {},
        {"brightness": 1.3, "contrast": 0.7},
        {"brightness": 0.9, "brightness_shift": 0.1, "contrast": 1.2, "contrast_center": 0.4},
        *_out(contrast=1.5, brightness=0.8),
    ],
    "hue": [
        {},
        {"hue": 45.0},
        {"hue": -120.0},
        {"hue": 400.0},
        *_out(hue=30.0),
        {"hue": 30.0, "image_type": types.BGR},
    ],
    "saturation": [
        {},
        {"saturation": 0.0},
        {"saturation": 1.8},
        *_out(saturation=0.5),
        {"saturation": 0.5, "image_type": types.BGR},
    ],
    "hsv": [
        {},
        {"hue": 45.0},
        {"saturation": 1.8},
        {"value": 1.4},
        {"hue": -60.0, "saturation": 0.7, "value": 0.8},
        *_out(hue=30.0),
    ],
    "color_twist": [
        {},
        {"hue": 45.0},
        {"saturation": 1.8},
        {"brightness": 1.4},
        {"contrast": 1.4},
        {"hue": -60.0, "saturation": 0.7, "brightness": 0.8, "contrast": 1.2},
        *_out(hue=30.0, contrast=1.1),
        {"hue": 30.0, "image_type": types.BGR},
    ],
}

_24_BITS = {"int32-": "float32 has 24 bits, and DALI's matrices differ in the last ones: up to 2048 of 2^32 steps"}
_MATRICES = dict.fromkeys(("hue", "saturation", "hsv", "color_twist"), _24_BITS)

RECIPES: dict[str, Recipe] = {
    **GEOMETRY,
    **TENSORS,
    **ARGUMENTS,
    **{
        name: Recipe(COLOR_TYPES, IMAGES, args, _everywhere(), steps=1, ulps=64, differs=_MATRICES.get(name, {}))
        for name, args in _COLOR.items()
    },
    "cast": Recipe((*EVERY, "?"), ("HWC", ""), [{"dtype": types.DALIDataType(i)} for i in range(12)]),
    "copy": Recipe((*EVERY, "?"), ("HWC", "FHWC", ""), [{}]),
    "slice with inputs": Recipe(
        ("u1", "f4"),
        ("HWC", "CHW"),
        [
            {},
            _HW,
            {"axes": [0, 1]},
            {"normalized_shape": False, "out_of_bounds_policy": "pad", **_HW},
            {"normalized_anchor": False, **_HW},
            {"dtype": types.FLOAT, **_HW},
        ],
        extra_inputs=_slice_inputs,
    ),
    "crop_mirror_normalize": Recipe(
        ("u1", "f4"),
        ("HWC", "CHW", "FHWC", "DHWC"),
        [
            *CROP_ARGS,
            {"mean": [100.0], "std": [50.0]},
            _MEAN_STD,
            {**_MEAN_STD, "mirror": 1},
            {**_MEAN_STD, "output_layout": "HWC", "mirror": 1},
            {**_MEAN_STD, "scale": 2.0, "shift": -1.0},
            {**_MEAN_STD, "pad_output": True},
            {**_MEAN_STD, "pad_output": True, "output_layout": "HWC", "fill_values": [1.0, 2.0, 3.0, 4.0]},
            {**_MEAN_STD, "dtype": types.FLOAT16},
            {**_MEAN_STD, "dtype": types.UINT8},
            {**_MEAN_STD, "dtype": types.INT8},
            {"dtype": types.INT16},
            {"crop": [4.0, 6.0], "out_of_bounds_policy": "pad", **_MEAN_STD, "fill_values": [5.0], "mirror": 1},
            {"output_layout": "WHC"},
            {"output_layout": "HWX"},
            {"mean": [1.0, 2.0]},
        ],
        _everywhere(**_MEAN_STD, mirror=1),
        steps=1,
        vary={"crop_pos_x": within(0, 1), "crop_pos_y": within(0, 1)},
    ),
    "normalize": Recipe(
        ("u1", "i2", "f4"),
        ("HWC", "FHWC"),
        [
            {},
            {"batch": True},
            {"axes": [0, 1]},
            {"axes": [2]},
            _HW,
            {**_HW, "batch": True},
            {"axis_names": "C"},
            {"mean": 100.0, "stddev": 50.0},
            {"mean": 100.0},
            {"stddev": 50.0},
            {"mean": 100.0, **_HW},
            {"stddev": 30.0, **_HW},
            {"shift": 3.0, "scale": 2.0},
            {"ddof": 1, "axes": [0, 1, 2]},
            {"epsilon": 0.1},
            {"epsilon": 1.0, **_HW, "scale": 64.0, "shift": 128.0, "dtype": types.UINT8},
            {"dtype": types.UINT8, "scale": 64.0, "shift": 128.0},
            {"dtype": types.INT16, "scale": 640.0},
            {"dtype": types.FLOAT16},
            {"batch": True, "ddof": 1},
            {"batch": True, "mean": 100.0},
            {"axes": [0], "axis_names": "H"},
            {"axes": [7]},
        ],
        _everywhere(),
        steps=1,
        ulps=512,
        differs={"/sample": "DALI refuses tensors without dimensions as mean and stddev"},
    ),
    "pad": Recipe(
        ("u1", "i4", "f4"),
        ("HWC", "FHWC", ""),
        [
            {},
            {"fill_value": 9.0},
            {"fill_value": -1.0},
            {"axes": [0], "shape": [50]},
            {"axes": [0, 1], "shape": [40, -1]},
            {"axes": [0, 1], "align": [16, 8]},
            {"align": [4], "axes": [1]},
            {"axes": [0, 1], "shape": [41, 9], "align": [4, 4]},
            {**_HW, "fill_value": 3.0},
            {**_HW, "align": [32]},
            {"axis_names": "W", "shape": [70]},
            {"axes": [0], "shape": [5]},
            {"axes": [0], "axis_names": "H"},
            {"axes": [9]},
            {"axes": [0, 1], "align": [0, 1]},
            {"axes": [-1], "align": [4]},
        ],
        _everywhere(axes=[0, 1]),
        vary={
            "align": lambda rng, v: rng.integers(1, 9, np.shape(v)),
            "axes": _same,
            "shape": lambda rng, v: np.asarray(v) + 30,
        },
        differs={
            "align=[32]/sample": "one number per sample may stand for all axes, as a constant may",
            "uint8-HWC-fill_value=-1.0": _WRAPS,
            "uint8-FHWC-fill_value=-1.0": _WRAPS,
            "uint8-none-fill_value=-1.0": _WRAPS,
        },
    ),
    "transpose": Recipe(
        EVERY,
        ("HWC", ""),
        [
            {"perm": [2, 0, 1]},
            {"perm": [1, 0, 2]},
            {"perm": [0, 1, 2]},
            {"perm": [2, 0, 1], "output_layout": "CHW"},
            {"perm": [2, 0, 1], "transpose_layout": False},
            {"perm": [0, 1]},
            {"perm": [0, 0, 1]},
            {"perm": [0, 1, 3]},
            {},
        ],
        [("u1", "FHWC", {"perm": p}) for p in ([0, 3, 1, 2], [3, 2, 1, 0], [1, 0, 2, 3])],
    ),
    "reshape": Recipe(
        ("u1", "f4", "i8"),
        ("HWC", ""),
        [
            {"shape": [-1]},
            {"shape": [-1, 3]},
            {"shape": [3, -1], "layout": "CX"},
            {"layout": "XYZ"},
            {"rel_shape": [1.0, 1.0, 1.0]},
            {"rel_shape": [0.5, 2.0, 1.0]},
            {"rel_shape": [-1.0, 3.0], "src_dims": [0, 1]},
            {"src_dims": [1, 0, 2]},
            {"src_dims": [0, 2, 1], "layout": "HCW"},
            {"src_dims": [0, 1, -1, 2]},
            {"shape": [4, 4]},
            {"shape": [-1, -1]},
            {"layout": "XY"},
            {"shape": [-1], "rel_shape": [1.0]},
            {},
        ],
        vary={"shape": _same, "rel_shape": _same, "src_dims": _same},
        differs={
            "HWC-shape=[-1]/sample": _NO_LAYOUT,
            "HWC-shape=[-1,3]/sample": _NO_LAYOUT,
            "rel_shape=[-1.0,3.0]/sample": _NO_LAYOUT,
            "HWC-src_dims=[0,1,-1,2]": _NO_LAYOUT,
            "src_dims=[1,0,2]/sample": _NO_DATA,
            "src_dims=[0,1,-1,2]/sample": _NO_DATA,
            "form:src_dims=[0,2,1]/sample": _NO_DATA,
        },
    ),
}

_SPACES = (types.RGB, types.BGR, types.GRAY, types.YCbCr)
for _from in _SPACES:
    RECIPES[f"color_space_conversion from {_from.name}"] = Recipe(
        ("u1", "i2", "f4"),
        IMAGES,
        [{"image_type": _from, "output_type": to} for to in (*_SPACES, types.ANY_DATA)],
        channels=1 if _from is types.GRAY else 3,
        steps=1,
        ulps=64,
    )
