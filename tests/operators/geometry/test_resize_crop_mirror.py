# SPDX-License-Identifier: Apache-2.0
import numpy as np

from deviations import Either
from harness import Case, op_test, per_sample, run
from penstock import types
from resampling_reference import finish, resample, resamplings


def references(x, layout="HWC", crop=None, mirror=0, rounding="round", by=resamplings, **kw):
    """Allowed results: resizes, crops the window (outside: resized with the border repeated), then flips."""
    first = layout.find("D") if "D" in layout else layout.find("H")
    k = 3 if "D" in layout else 2
    extent = np.array(x.shape[first : first + k])
    if "size" in kw:
        real = np.array(kw["size"], "f4")
    else:
        real = (
            extent.astype("f4") * np.float32(np.float32(kw["resize_shorter"]) / min(extent))
            if min(extent)
            else extent * 0
        )
    if crop is None:
        crop = [kw.get(f"crop_{a}", 0) for a in "dhw"[-k:]]
    size = np.where(extent == 0, 0, np.maximum(np.floor(real + 0.5), 1)).astype(int)
    lo, hi, window = np.zeros(k), np.zeros(k), np.zeros(k, int)
    for d in range(k):
        window[d] = int(crop[d]) if int(crop[d]) and size[d] else size[d]
        place = float(np.float32(kw.get(f"crop_pos_{'zyx'[-k:][d]}", 0.5))) * (size[d] - window[d])
        place = np.trunc(place) if rounding == "truncate" else np.trunc(place + np.copysign(0.5, place))
        scale = extent[d] / real[d] if real[d] else 0
        start = extent[d] / 2 - size[d] / 2 * scale + place * scale
        lo[d], hi[d] = start, start + window[d] * scale
        if mirror & (4, 2, 1)[-k:][d]:
            lo[d], hi[d] = hi[d], lo[d]
    interp = int(kw.get("interp_type", 1))
    return [finish(out, x.dtype) for out in by(x, first, window, lo, hi, interp, interp, kw.get("antialias", True))]


def reference(x, layout="HWC", **kw):
    return references(x, layout, by=lambda *args: [resample(*args)], **kw)[0]


def mirrored_otherwise(x, layout, mirror=0, **kw):
    """As requested, or upside down instead of mirrored."""
    return [out for m in (mirror, 2 * (mirror & 1)) for out in references(x, layout, mirror=m, **kw)]


def dhwc(x, **kw):
    return reference(x, "DHWC", **kw)


def chw(x, **kw):
    return reference(x, "CHW", **kw)


CASES = [
    {"resize_shorter": 20, "crop": (16, 16)},
    {"resize_shorter": 20, "crop_w": 9, "crop_h": 7, "crop_pos_x": 0.2, "crop_pos_y": 1.0},
    {"resize_shorter": 20, "crop": (16, 16), "mirror": per_sample(0, 4, dtype="i4")},
    {"size": (20, 31), "crop": (9.6, 12), "mirror": 1, "crop_pos_x": 0.3},
    {
        "size": (20, 31),
        "crop": (9, 12),
        "rounding": "truncate",
        "crop_pos_x": per_sample(0, 1),
        "interp_type": types.INTERP_CUBIC,
    },
    {"size": (12, 9), "crop": (20, 9)},
]
TestImages = op_test(
    "resize_crop_mirror",
    reference,
    layouts=("HWC", "FHWC"),
    args=CASES,
    steps=1,
    errors=[
        ({"crop": None, "crop_w": 4}, ValueError, "together"),
        ({"crop_w": 4, "crop_h": 4}, ValueError, "mutually exclusive"),
        ({"crop_pos_x": 1.5}, RuntimeError, r"in \[0, 1\]"),
        ({"rounding": "up"}, ValueError, "rounding must be"),
    ],
    atol=3e-5,  # DALI's coordinates are float32
    dali_differs={
        "FHWC": Either("DALI mirrors the height of sequences when the width is meant", mirrored_otherwise),
        "INTERP_GAUSSIAN": Either(
            "which samples on the rim of the filter count is decided in double precision", references
        ),
    },
)
TestPlanar = op_test(
    "resize_crop_mirror",
    chw,
    layouts=("CHW",),
    args=[{"resize_shorter": 20, "crop": (16, 16), "mirror": 1}],
    steps=1,
    dali_differs={
        "mirror": Either("DALI mirrors the height of planar images when the width is meant", mirrored_otherwise)
    },
)
TestVolumes = op_test(
    "resize_crop_mirror",
    dhwc,
    layouts=("DHWC",),
    args=[{"size": (5, 20, 30), "crop": (3, 11, 12), "mirror": per_sample(0, 8, dtype="i4"), "crop_pos_z": 0.0}],
    steps=1,
)


def test_it_is_a_window_of_resize():
    x = np.random.default_rng(0).integers(0, 256, (50, 70, 3), "u1")
    for interp in (types.INTERP_LINEAR, types.INTERP_CUBIC, types.INTERP_LANCZOS3):  # for INTERP_NN see conformance
        kwargs = {"resize_shorter": 33, "interp_type": interp}
        whole = run("resize", [x], Case("u1", "HWC", kwargs), {})[0][0]
        part = run(
            "resize_crop_mirror",
            [x],
            Case("u1", "HWC", {**kwargs, "crop": (10, 13), "crop_pos_x": 0.0, "crop_pos_y": 1.0}),
            {},
        )[0][0]
        np.testing.assert_array_equal(part, whole[-10:, :13])
