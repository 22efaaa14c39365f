# SPDX-License-Identifier: Apache-2.0
import numpy as np

from harness import op_test, per_sample
from transform_cases import applied, around, fed, fed_frames, inputs, made


def reference(x, shear=None, angles=None, center=None, reverse_order=False):
    d = len(x)
    share = np.tan(np.deg2rad(np.asarray(angles, "f8"))) if shear is None else np.asarray(shear, "f8")
    linear = np.eye(d)
    for i in range(d):
        others = [j for j in range(d) if j != i]
        linear[i, others] = share.reshape(d, d - 1)[i]
    center = None if center is None else np.broadcast_to(center, d)
    return applied(around(center, linear), x, reverse_order)


TestPlane = op_test(
    "transforms.shear",
    reference,
    ("f4",),
    ("", "F**"),
    args=[
        *({"shear": [2, 3.5], "reverse_order": r} for r in (False, True)),
        *({"shear": per_sample(-2, 2, (2,)), "center": [3, -4], "reverse_order": r} for r in (False, True)),
        {"shear": [1, 2], "center": 1.5},
        {"shear": per_sample(-2, 2, (2, 1))},
    ],
    make_input=inputs(2),
    atol=2e-6,
    errors=[
        ({"angles": [1, 2]}, ValueError, "either `shear` or `angles`"),
        ({"shear": [1, 2, 3]}, RuntimeError, "takes 2 values in the plane, 6 in space; got 3"),
        ({"shear": [1, 2, 3, 4, 5, 6]}, RuntimeError, "a transform of 2 dimensions"),
        ({"shear": [float("nan"), 2]}, RuntimeError, "no finite transform"),
        ({"center": [1, 2, 3]}, RuntimeError, "`center` needs 2 values"),
    ],
)
TestAngles = op_test(
    "transforms.shear",
    reference,
    ("f4",),
    ("", "F**"),
    args=[
        {"angles": [30, -40]},
        {"angles": per_sample(-80, 80, (2,)), "center": per_sample(-9, 9, (2,)), "reverse_order": True},
    ],
    make_input=inputs(2),
    atol=2e-5,  # angles in radians are float32
)
TestSpace = op_test(
    "transforms.shear",
    reference,
    ("f4",),
    ("", "F**"),
    args=[
        {"shear": [1, 2, 3, 4, 5, 6]},
        {"angles": [10, 20, 30, 40, 50, 60], "center": [1, 2, 3]},
        {"shear": per_sample(-1, 1, (3, 2))},
    ],
    make_input=inputs(3),
    atol=2e-5,
)
TestFrames = op_test(
    "transforms.shear",
    reference,
    ("f4",),
    ("F**",),
    args=[
        {"shear": per_sample(-9, 9, (2,), frames=True)},
        {"angles": [1, 2], "center": per_sample(-9, 9, (2,), frames=True)},
        {"angles": per_sample(-60, 60, (2,), frames=True)},
    ],
    make_input=inputs(2),
    atol=2e-5,
)


def test_without_an_input():
    (out,), layout = made("shear", shear=[2, 3])
    assert (out.tolist(), layout) == ([[1, 2, 0], [3, 1, 0]], "**")
    (out,), _ = made("shear", shear=[1, 2, 3, 4, 5, 6])
    assert out.tolist() == [[1, 1, 2, 0], [3, 1, 4, 0], [5, 6, 1, 0]]
    assert made("shear", 2, shear=fed([[2], [3]], [[4], [5]]))[0][1].tolist() == [[1, 4, 0], [5, 1, 0]]
    outs, layout = made("shear", 2, shear=fed_frames([[2, 3], [4, 5]], [[6, 7]]))
    assert layout == "F**" and outs[0][1].tolist() == [[1, 4, 0], [5, 1, 0]]
