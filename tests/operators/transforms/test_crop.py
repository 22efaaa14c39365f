# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

from harness import op_test, per_sample
from transform_cases import applied, fed_frames, inputs, made


def reference(x, from_start=0.0, from_end=1.0, to_start=0.0, to_end=1.0, absolute=False, reverse_order=False):
    d = len(x)
    a, b, c, e = (np.broadcast_to(np.asarray(v, "f8"), d) for v in (from_start, from_end, to_start, to_end))
    if absolute:
        a, b, c, e = np.minimum(a, b), np.maximum(a, b), np.minimum(c, e), np.maximum(c, e)
    matrix = np.eye(d + 1)
    for i in range(d):  # the line through both corners
        matrix[i, i], matrix[i, d] = np.polyfit([a[i], b[i]], [c[i], e[i]], 1)
    return applied(matrix, x, reverse_order)


BOX = {"from_start": [3, 2], "from_end": [1, 10.5], "to_start": [5, 5], "to_end": [1, 7]}
ATOL = 3e-6
TestPlane = op_test(
    "transforms.crop",
    reference,
    ("f4",),
    ("", "F**"),
    args=[
        *({**BOX, "absolute": absolute, "reverse_order": r} for absolute in (False, True) for r in (False, True)),
        {"from_start": [0.1, 0.2]},
        {"from_end": [0.1, 0.2], "to_end": 4},
        {"from_start": per_sample(-3, 0.5, (2,)), "to_end": per_sample(-3, 9, (2,))},
        {"from_start": per_sample(-3, 0.5, (1,)), "to_end": per_sample(-3, 9, (2,)), "reverse_order": True},
    ],
    make_input=inputs(2),
    atol=ATOL,
    errors=[
        ({"from_end": [3, 3]}, RuntimeError, "has no extent"),
        ({"to_end": [1, 2, 3]}, RuntimeError, "need equally many values"),
        ({"to_end": [float("nan"), 2]}, RuntimeError, "no finite transform"),
    ],
)
TestOneForAll = op_test(
    "transforms.crop",
    reference,
    ("f4",),
    ("",),
    args=[{"from_start": 0.5, "to_end": 3}, {}],
    make_input=inputs(2),
    dali_differs={"": "DALI takes single values for a transform of one dimension although there is an input"},
)
TestSpace = op_test(
    "transforms.crop",
    reference,
    ("f4",),
    ("", "F**"),
    args=[{"from_start": [0.1, -2, 7], "from_end": 100}],
    make_input=inputs(3),
    atol=ATOL,
)
TestFrames = op_test(
    "transforms.crop",
    reference,
    ("f4",),
    ("F**",),
    args=[
        {"from_start": per_sample(-9, 0.5, (2,), frames=True)},
        {"from_end": per_sample(2, 9, (2,), frames=True), "to_start": per_sample(2, 9, (2,), frames=True)},
        {"from_end": [3, 4], "to_end": per_sample(2, 9, (2,), frames=True)},
    ],
    make_input=inputs(2),
    atol=ATOL,
)


def test_without_an_input():
    assert made("crop")[0][0].tolist() == [[1, 0]]
    box = {"from_start": [1, 2], "from_end": [3, 5], "to_start": [0, 0], "to_end": [1, 10]}
    (out,), layout = made("crop", **box)
    assert layout == "**"
    np.testing.assert_allclose(out, [[0.5, 0, -0.5], [0, 10 / 3, -20 / 3]], rtol=1e-6)
    outs, layout = made("crop", 2, from_end=fed_frames([[2, 4], [4, 5]], [[8, 7]]))
    assert layout == "F**" and outs[1][0, 0, 0] == 0.125
    with pytest.raises(RuntimeError, match="has no extent"):
        made("crop", from_start=1.0)
