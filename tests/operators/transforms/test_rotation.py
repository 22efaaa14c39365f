# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from harness import op_test, per_sample
from transform_cases import applied, around, fed_frames, inputs, made


def reference(x, angle, axis=None, center=None, reverse_order=False):
    radians = np.deg2rad(float(angle))
    if axis is None:
        linear = np.array([[np.cos(radians), -np.sin(radians)], [np.sin(radians), np.cos(radians)]])
    else:
        axis = np.asarray(axis, "f8")
        linear = Rotation.from_rotvec(radians * axis / np.linalg.norm(axis)).as_matrix()
    return applied(around(center, linear), x, reverse_order)


TestPlane = op_test(
    "transforms.rotation",
    reference,
    ("f4",),
    ("", "F**"),
    args=[
        *({"angle": 30, "reverse_order": r} for r in (False, True)),
        *({"angle": per_sample(-400, 400), "center": [3, -4], "reverse_order": r} for r in (False, True)),
        {"angle": 90, "center": per_sample(-9, 9, (2,))},
    ],
    make_input=inputs(2),
    atol=1e-5,  # angles in radians are float32
    errors=[
        ({"center": [1, 2, 3]}, RuntimeError, "`center` needs 2 values"),
        ({"axis": [0, 0, 1]}, RuntimeError, "a transform of 2 dimensions"),
        ({"angle": float("nan")}, RuntimeError, "no finite transform"),
        ({"angle": float("inf")}, RuntimeError, "no finite transform"),
    ],
)
TestSpace = op_test(
    "transforms.rotation",
    reference,
    ("f4",),
    ("", "F**"),
    args=[
        {"angle": 30, "axis": [0, 0, 1]},
        {"angle": 30, "axis": [1, 2, 3], "center": [1, -2, 3]},
        {"angle": per_sample(-400, 400), "axis": per_sample(0.1, 1, (3,)), "reverse_order": True},
        {"angle": -77, "axis": [0.1, 0, -20], "center": per_sample(-9, 9, (3,))},
    ],
    make_input=inputs(3),
    atol=1e-5,
    errors=[
        ({"axis": [1, 2]}, RuntimeError, "three values"),
        ({"axis": [0, 0, 0]}, RuntimeError, "must have a length"),
    ],
)
TestFrames = op_test(
    "transforms.rotation",
    reference,
    ("f4",),
    ("F**",),
    args=[
        {"angle": per_sample(-90, 90, frames=True)},
        {"angle": 10, "center": per_sample(-9, 9, (2,), frames=True)},
        {"angle": per_sample(-90, 90, frames=True), "center": per_sample(-9, 9, (2,), frames=True)},
    ],
    make_input=inputs(2),
    atol=1e-5,
)


def test_without_an_input():
    with pytest.raises(TypeError, match="angle"):
        made("rotation")
    (out,), _ = made("rotation", angle=90)
    np.testing.assert_allclose(out, [[0, -1, 0], [1, 0, 0]], atol=1e-7)
    outs, layout = made("rotation", 2, angle=fed_frames([1, 2], [5]))
    assert layout == "F**" and [o.shape for o in outs] == [(2, 2, 3), (1, 2, 3)]
    np.testing.assert_allclose(outs[0][1, 1, 0], np.sin(np.deg2rad(2)), rtol=1e-6)
