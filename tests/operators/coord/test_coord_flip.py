# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

from harness import Case, op_test, per_sample, run


def reference(x, layout="", **kwargs):
    out = x.copy()
    for d, name in enumerate((layout or "xyz")[: x.shape[1]]):
        if kwargs.get(f"flip_{name}", int(name == "x")):
            out[:, d] = 2 * np.float32(kwargs.get(f"center_{name}", 0.5)) - x[:, d]
    return out


def points(dims):
    def make(rng, case):
        return [rng.uniform(-1, 2, (n, dims)).astype(case.dtype) for n in (5, 1, 0, 68, 33)]

    return make


def declared(dims, args, **options):
    return op_test("coord_flip", reference, ("f4",), ("",), args=args, make_input=points(dims), **options)


TestLine = declared(1, [{}, {"flip_x": 0}, {"center_x": per_sample(-2, 2), "layout": "x"}])
TestPlane = declared(
    2,
    [
        {},
        {"flip_x": 0},
        {"flip_y": 1},
        {"flip_x": 0, "flip_y": 1, "center_y": 100.5},
        {"flip_x": 2, "flip_y": -1},
        {"flip_x": per_sample(0, 2, dtype="i4"), "flip_y": per_sample(0, 2, dtype="i4")},
        {"flip_y": 1, "center_x": per_sample(-2, 2), "center_y": per_sample(-2, 2)},
        {"layout": "yx", "center_x": 3},
        {"layout": "xyz", "flip_z": 1},
        {"flip_z": 1, "center_z": 7},
    ],
    errors=[
        ({"layout": "xz"}, RuntimeError, "which of the 2 coordinates is 'y'"),
        ({"layout": "xx"}, RuntimeError, "which of the 2 coordinates is 'y'"),
        ({"center_x": float("nan")}, RuntimeError, "center_x must be finite, got nan"),
    ],
)
TestSpace = declared(
    3,
    [
        {},
        {"flip_z": 1},
        {"flip_y": 1, "flip_z": 1, "center_z": per_sample(-2, 2)},
        {"layout": "zxy", "center_x": 2, "flip_z": per_sample(0, 2, dtype="i4")},
        {"layout": "zyx", "flip_x": 0},
        {"flip_x": 0},
        {"center_x": per_sample(-2, 2), "center_y": 3, "flip_y": 1},
    ],
)


def test_hidden_points_and_zeros_stay():
    x = np.float32([[np.nan, 0.25], [0.5, -0.0], [np.inf, np.nan]])
    (out,) = run("coord_flip", [x], Case("f4", "", {}), {})[0]
    np.testing.assert_array_equal(out, [[np.nan, 0.25], [0.5, 0], [-np.inf, np.nan]])
    assert np.signbit(out[1, 1])


@pytest.mark.parametrize(
    "x, text",
    [
        (np.zeros((2, 2), "i4"), "must be float32, got int32"),
        (np.zeros(4, "f4"), "need the shape .points, d., got 1 dimensions"),
        (np.zeros((1, 2, 2), "f4"), "got 3 dimensions"),
        (np.zeros((2, 4), "f4"), "1 to 3 coordinates"),
    ],
)
def test_what_points_must_be(x, text):
    with pytest.raises(RuntimeError, match=text):
        run("coord_flip", [x], Case(x.dtype, "", {}), {})
