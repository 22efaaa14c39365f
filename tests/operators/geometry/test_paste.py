# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

from harness import Case, op_test, per_sample, run


def reference(x, ratio, fill_value, paste_x=0.5, paste_y=0.5, min_canvas_size=0.0, n_channels=3):
    h, w = (max(int(np.float32(ratio) * np.float32(n)), int(min_canvas_size)) for n in x.shape[:2])
    out = np.empty((h, w, x.shape[2]), "u1")
    out[...] = np.clip(fill_value, 0, 255)
    top = int(np.float32(paste_y) * np.float32(h - x.shape[0]))
    left = int(np.float32(paste_x) * np.float32(w - x.shape[1]))
    out[top : top + x.shape[0], left : left + x.shape[1]] = x
    return out


GRAY = {"fill_value": [9]}
ARGS = [
    {**GRAY, "ratio": 2.0},
    {**GRAY, "ratio": 1.0},
    {"fill_value": [9, 8, 7], "ratio": 1.7},
    {**GRAY, "ratio": 1.6, "paste_x": 0.0, "paste_y": 1.0},
    {**GRAY, "ratio": 2.4, "paste_x": 0.3, "paste_y": 0.8},
    {**GRAY, "ratio": 1.0, "min_canvas_size": 40.0},
    {**GRAY, "ratio": 1.5, "min_canvas_size": 19.7, "paste_x": 1.0},
    {"fill_value": [1, 2, 3], "ratio": 1.0, "min_canvas_size": per_sample(0, 90)},
    {**GRAY, "ratio": per_sample(1, 4)},
    {**GRAY, "ratio": per_sample(1, 4), "paste_x": per_sample(0, 1), "paste_y": per_sample(0, 1)},
    {"fill_value": [0, 255, 128], "ratio": 1.3, "paste_x": per_sample(0, 1)},
    {"fill_value": 200, "ratio": 2.25},
]
ERRORS = [
    ({"ratio": 0.5}, RuntimeError, "`ratio` of less than 1 is not supported; got 0.5"),
    ({"ratio": float("nan")}, RuntimeError, "got nan"),
    ({"paste_x": 2.0}, RuntimeError, r"`paste_x` must be in range \[0, 1\]; got 2"),
    ({"paste_y": -0.5}, RuntimeError, r"`paste_y` must be in range \[0, 1\]; got -0.5"),
    ({"fill_value": [1, 2]}, RuntimeError, "2 values for 3 channels"),
    ({"fill_value": []}, ValueError, "needs one value"),
    ({"rati": 2.0}, TypeError, "Did you mean 'ratio'"),
]
TestPaste = op_test("paste", reference, args=ARGS, errors=ERRORS)
TestGray = op_test(
    "paste", reference, args=[{**a, "n_channels": 1} for a in ARGS if a["fill_value"] in ([9], 200)], channels=1
)
TestClamped = op_test(
    "paste", reference, args=[{"fill_value": [300, -5, 7], "ratio": 2.0}],
    dali_differs={"fill_value": "a value out of range is clamped; DALI wraps it around"},
)  # fmt: skip


@pytest.mark.parametrize("dtype, layout, text", [("f4", "HWC", "float32 is not supported"), ("u1", "CHW", "CHW")])
def test_other_inputs(dtype, layout, text):
    with pytest.raises(RuntimeError, match=text):
        run("paste", [np.zeros((3, 3, 3), dtype)], Case(dtype, layout, {"ratio": 2.0, "fill_value": 1}), {})
