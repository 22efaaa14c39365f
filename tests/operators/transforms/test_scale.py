# SPDX-License-Identifier: Apache-2.0
import numpy as np

from harness import op_test, per_sample
from transform_cases import applied, around, fed, fed_frames, inputs, made


def reference(x, scale, center=None, ndim=None, reverse_order=False):
    d = len(x)
    center = None if center is None else np.broadcast_to(center, d)
    return applied(around(center, np.diag(np.broadcast_to(np.asarray(scale, "f8"), d))), x, reverse_order)


TestPlane = op_test(
    "transforms.scale",
    reference,
    ("f4",),
    ("", "F**"),
    args=[
        *({"scale": [2, 3.5], "reverse_order": r} for r in (False, True)),
        *({"scale": per_sample(-2, 2, (2,)), "center": [3, -4], "reverse_order": r} for r in (False, True)),
        {"scale": 0.5, "ndim": 2},
        {"scale": 0.5},
        {"scale": [2, 3], "center": per_sample(-9, 9, (2,))},
        {"scale": [2, 3], "center": 5.0},
    ],
    make_input=inputs(2),
    errors=[
        ({"scale": [1, 2, 3]}, RuntimeError, "a transform of 2 dimensions, the arguments describe one of 3"),
        ({"scale": 2, "ndim": 3}, RuntimeError, "a transform of 2 dimensions, the arguments describe one of 3"),
        ({"center": [1, 2, 3]}, RuntimeError, "`center` needs 2 values"),
        ({"scale": float("nan")}, RuntimeError, "no finite transform"),
        ({"ndim": 0}, ValueError, "must be positive"),
    ],
)
TestSpace = op_test(
    "transforms.scale",
    reference,
    ("f4",),
    ("", "F**"),
    args=[{"scale": [1, 2, 3]}, {"scale": 4, "ndim": 3, "center": [1, 2, 3]}],
    make_input=inputs(3),
)
TestFrames = op_test(
    "transforms.scale",
    reference,
    ("f4",),
    ("F**",),
    args=[
        {"scale": per_sample(-9, 9, (2,), frames=True)},
        {"scale": 2, "ndim": 2, "center": per_sample(-9, 9, (2,), frames=True)},
    ],
    make_input=inputs(2),
)


def test_without_an_input():
    (out,), layout = made("scale", scale=2)
    assert (out.tolist(), layout) == ([[2, 0]], "**")
    (out,), _ = made("scale", scale=2, ndim=3, center=[1, 2, 3])
    assert out[:, 3].tolist() == [-1, -2, -3]
    assert made("scale", 2, scale=fed([2], [3]))[0][1].tolist() == [[3, 0]]
    outs, layout = made("scale", 2, scale=fed_frames([[2, 3], [4, 5]], [[6, 7]]))
    assert layout == "F**" and outs[0][1].tolist() == [[4, 0, 0], [0, 5, 0]]
