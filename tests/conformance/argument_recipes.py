# SPDX-License-Identifier: Apache-2.0
"""Cases of arguments, layouts and volumes that other recipes omit. Arguments whose shape per sample differs from that
of a constant are separate columns."""

from __future__ import annotations

import numpy as np

from conformance.grid import Recipe, within
from harness import per_sample
from penstock import types

NN, LINEAR, CUBIC, LANCZOS = (getattr(types, f"INTERP_{n}") for n in ("NN", "LINEAR", "CUBIC", "LANCZOS3"))
_FITTING = ((5, 6), (9, 7), (8, 8))
_VOLUMES = ("DHWC", "FDHWC")


_NO_DATA = "DALI ignores src_dims that are data"


def _odd(least, most):
    return lambda rng, value: 2 * rng.integers(least // 2, most // 2 + 1, np.shape(value)) + 1


def _same(rng, value):
    return value


RECIPES: dict[str, Recipe] = {
    "crop volumes": Recipe(
        ("u1", "f4"),
        ("FDHWC", "FCDHW", "CFDHW"),
        [{"crop": [2.0, 4.0, 3.0], "crop_pos_z": 0.3}, {"crop_d": 1.0, "crop_h": 3.0, "crop_w": 5.0}],
        sizes=_FITTING,
        vary={"crop_pos_z": within(0, 1), "crop": _same, "crop_d": _same, "crop_h": _same, "crop_w": _same},
        differs={"-": "DALI lists the layout, but can't crop what has five dimensions"},
    ),
    "crop_mirror_normalize volumes": Recipe(
        ("u1", "f4"),
        ("DHWC", "FDHWC", "FCDHW", "CFDHW"),
        [
            {"crop_d": 2.0, "crop_h": 4.0, "crop_w": 3.0, "mean": [3.0, 4.0, 5.0], "std": [2.0]},
            {"crop": [2.0, 4.0, 3.0], "crop_pos_z": 0.8, "mirror": 1},
        ],
        sizes=_FITTING,
        vary={k: _same for k in ("crop_d", "crop_h", "crop_w", "crop", "std")} | {"crop_pos_z": within(0, 1)},
    ),
    "resize_crop_mirror arguments": Recipe(
        ("u1", "f4"),
        ("HWC", "CHW"),
        [
            {"size": [12.0, 14.0], "crop": [8.0, 9.0], "min_filter": CUBIC, "mag_filter": LANCZOS},
            {"size": [12.0, 14.0], "crop": [8.0, 9.0], "antialias": False},
            {"resize_longer": 21.0, "crop": [4.0, 5.0]},
            {"resize_longer": 21.0, "crop": [4.0, 5.0], "subpixel_scale": False},
            {"resize_shorter": 9.7, "crop": [4.0, 5.0], "subpixel_scale": False},
        ],
        sizes=((33, 17), (8, 67), (40, 50)),
        steps=1,
        ulps=128,
        vary={"resize_longer": within(15, 40), "resize_shorter": within(6, 12), "crop": _same, "size": _same},
    ),
    "resize_crop_mirror volumes": Recipe(
        ("u1", "f4"),
        ("DHWC", "FDHWC", "CDHW", "FCDHW", "CFDHW"),
        [
            {"size": [4.0, 9.0, 8.0], "crop": [2.0, 5.0, 6.0], "crop_pos_z": 0.25},
            {"resize_z": 5.0, "resize_y": 7.0, "resize_x": 9.0, "crop_d": 3.0, "crop_h": 6.0, "crop_w": 4.0},
        ],
        sizes=_FITTING,
        steps=1,
        vary={k: _same for k in ("size", "crop", "crop_d", "crop_h", "crop_w", "resize_x", "resize_y", "resize_z")}
        | {"crop_pos_z": within(0, 1)},
    ),
    "resize_crop_mirror planes": Recipe(
        ("u1", "f4"),
        ("FCHW", "CFHW"),
        [{"size": [7.0, 9.0], "crop": [5.0, 6.0], "crop_pos_x": 0.25}],
        sizes=_FITTING,
        steps=1,
        vary={"size": _same, "crop": _same, "crop_pos_x": within(0, 1)},
    ),
    "tensor_resize arguments": Recipe(
        ("u1", "i2", "f4"),
        ("HWC", "DHWC"),
        [
            {"sizes": [12.0, 9.0], "axis_names": "HW", "min_filter": CUBIC, "mag_filter": LANCZOS},
            {"sizes": [12.0, 9.0], "axis_names": "HW", "min_filter": LANCZOS, "mag_filter": LINEAR, "antialias": False},
            {"scales": [0.7, 1.6], "axis_names": "HW", "alignment": [0.0]},
            {"scales": [0.7, 1.6], "axis_names": "HW", "alignment": [1.0, 0.25]},
            {
                "sizes": [10.0, 11.0],
                "axis_names": "HW",
                "roi_start": [0.1, 0.2],
                "roi_end": [0.8, 0.9],
                "roi_relative": True,
            },
            {"sizes": [10.0, 11.0], "axis_names": "WH", "roi_start": [1.0, 2.0], "roi_end": [4.0, 5.0]},
        ],
        sizes=((9, 8), (33, 17), (12, 20)),
        steps=1,
        ulps=128,
        differs={"alignment=[0.0]/sample": "one number per sample may stand for all axes, as a constant may"},
        vary={"alignment": within(0, 1), "roi_start": within(0, 0.3), "roi_end": within(0.5, 1), "sizes": _same},
    ),
    "gaussian_blur windows": Recipe(
        ("u1", "i2", "f4"),
        ("HWC", "FHWC", "DHWC"),
        [{"window_size": [5]}, {"window_size": [7], "sigma": [1.5]}],
        sizes=_FITTING,
        steps=1,
        vary={"window_size": _odd(3, 9)},
    ),
    "laplacian windows": Recipe(
        ("u1", "f4"),
        ("HWC", "FHWC", "DHWC"),
        [{"window_size": [5], "smoothing_size": [3], "dtype": types.FLOAT}, {"smoothing_size": [1]}],
        sizes=_FITTING,
        steps=1,
        ulps=64,
        vary={"window_size": _odd(3, 7), "smoothing_size": _odd(1, 7)},
    ),
    "cast volumes": Recipe(("u1", "f4"), _VOLUMES, [{"dtype": types.INT16}, {"dtype": types.FLOAT16}]),
    "lookup_table volumes": Recipe(("u1", "i2"), _VOLUMES, [{"keys": [1, 2, 7], "values": [0.5, 3.0, 9.0]}]),
    "normalize volumes": Recipe(
        ("u1", "f4"), _VOLUMES, [{"axis_names": "DHW"}, {"axis_names": "C"}], sizes=_FITTING, steps=1, ulps=256
    ),
    "shapes volumes": Recipe(("u1",), _VOLUMES, [{}, {"dtype": types.INT32}]),
    "expand_dims volumes": Recipe(("u1", "f4"), _VOLUMES, [{"axes": [0]}, {"axes": [1, 3], "new_axis_names": "XY"}]),
    "squeeze volumes": Recipe(
        ("u1", "f4"), ("DHWC",), [{"axis_names": "C"}, {"axes": [3]}, {"axes": [-1]}], channels=1, sizes=_FITTING
    ),
    "reshape volumes": Recipe(
        ("u1", "f4"),
        _VOLUMES,
        [{"shape": [-1, 3], "layout": "XC"}, {"shape": [3, -1]}],
        sizes=_FITTING,
        vary={"shape": _same},
        differs={"/sample": "DALI expects the layout of the input although the dimensions change"},
    ),
    "reinterpret volumes": Recipe(
        ("u1", "f4"),
        _VOLUMES,
        [{"shape": [-1, 3], "layout": "XC"}, {"dtype": types.UINT8}, {"dtype": types.INT8, "rel_shape": [1.0, -1.0]}],
        sizes=_FITTING,
        vary={"shape": _same, "rel_shape": _same},
        differs={"/sample": "DALI expects the layout of the input although the dimensions change"},
    ),
    "reinterpret axes": Recipe(
        ("u1", "f4"),
        ("HWC",),
        [{"src_dims": [1, 0, 2]}, {"src_dims": [-1, 0, 1, 2], "layout": "XHWC"}, {"src_dims": [0, 7]}],
        sizes=_FITTING,
        vary={"src_dims": _same},
        differs={"src_dims=[1,0,2]/sample": _NO_DATA, "src_dims=[-1,0,1,2]/sample": _NO_DATA},
    ),
    "rotate volumes": Recipe(
        ("u1", "f4"),
        ("DHWC", "FDHWC"),
        [{"angle": 25.0, "axis": [0.0, 0.0, 1.0], "keep_size": True, "fill_value": 3.0}],
        sizes=_FITTING,
        steps=1,
        ulps=2**12,
        vary={"axis": lambda rng, value: rng.uniform(0.1, 1, 3)},
    ),
    "warp_affine volumes": Recipe(
        ("u1", "f4"),
        ("DHWC", "FDHWC"),
        [{"matrix": [1.0, 0.1, 0.0, 0.5, 0.0, 0.9, 0.1, 0.25, 0.1, 0.0, 1.1, 0.0], "fill_value": 3.0}],
        sizes=_FITTING,
        steps=1,
        ulps=2**12,
        vary={"matrix": _same},
        data_shape={"matrix": lambda value: (3, 4)},
    ),
    "sequence_rearrange orders": Recipe(
        ("u1", "f4"),
        ("FHWC",),
        [{"new_order": per_sample(0, 1, (4,), "i4")}, {"new_order": per_sample(0, 1, (1,), "i4")}],
    ),
    "filter anchors": Recipe(
        ("u1", "f4"),
        ("FHWC",),
        [{"anchor": [1, 0]}, {"anchor": per_sample(0, 3, (2,), "i4", frames=True)}],
        sizes=_FITTING,
        steps=1,
        vary={"anchor": lambda rng, value: rng.integers(0, 3, np.shape(value))},
        extra_inputs=lambda rng, n: [[rng.uniform(-1, 1, (3, 3)).astype("f4") for _ in range(n)]],
    ),
}
