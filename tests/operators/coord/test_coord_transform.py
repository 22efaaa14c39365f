# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

from harness import Case, op_test, per_sample, run, saturate
from penstock import types

INTEGERS = (types.UINT8, types.UINT16, types.INT16, types.INT32)


def reference(x, M=None, T=None, MT=None, dtype=types.FLOAT):
    d = x.shape[-1]
    matrix, shift = np.eye(d), 0.0
    for given, width in ((M, d), (MT, d + 1)):
        if given is not None and np.size(given) == 1:
            matrix = np.eye(d) * np.float32(given)
        elif given is not None:
            rows = np.asarray(given, "f4").astype("f8").reshape(-1, width)
            matrix, shift = rows[:, :d], rows[:, d] if width > d else 0.0
    if T is not None:
        shift = np.asarray(T, "f4").astype("f8")
    return saturate(x.astype("f8") @ matrix.T + shift, types.to_numpy_type(dtype))


def points(*shapes):
    def make(rng, case):
        given = [(2, *s) for s in shapes] if case.layout else shapes
        if np.dtype(case.dtype).kind == "f":
            return [rng.uniform(-9, 9, s).astype(case.dtype) for s in given]
        return [rng.integers(0, 120, s).astype(case.dtype) for s in given]

    return make


def plane(n=2):
    return points((5, n), (1, n), (0, n), (68, n), (33, n))


TURN = [0.5, -2, 1.25, 3]
TestPlane = op_test(
    "coord_transform",
    reference,
    ("f4", "u1"),
    ("", "F**"),
    args=[
        {"M": TURN, "T": [10, -20]},
        {"M": 2.5},
        {"T": 2.5},
        {},
        {"MT": [1, 2, 3, 4, 5, 6]},
        {"MT": 3},
        {"M": per_sample(-3, 3, (2, 2)), "T": per_sample(-3, 3, (2,))},
        {"M": per_sample(-3, 3, ()), "T": 1},
        {"MT": per_sample(-3, 3, (2, 3))},
        {"M": [1, 2]},
        {"M": [1, 2, 3, 4, 5, 6], "T": [1, 2, 3]},
        {"MT": per_sample(-3, 3, (6, 3))},
    ],
    make_input=plane(),
    errors=[
        ({"M": [1, 2, 3]}, RuntimeError, "`M` needs rows of 2 numbers"),
        ({"M": [1] * 14}, RuntimeError, "at most 6 rows; got 14"),
        ({"T": [1, 2, 3]}, RuntimeError, "`T` takes one number, or 2"),
        ({"T": float("nan")}, RuntimeError, "must be finite"),
        ({"MT": 2}, ValueError, "either `MT`, or"),
        ({"dtype": types.INT16}, RuntimeError, r"the type of the input \(float32\) or FLOAT"),
    ],
)
TestFrames = op_test(
    "coord_transform",
    reference,
    ("f4",),
    ("F**",),
    args=[
        {"M": per_sample(-3, 3, (2, 2), frames=True)},
        {"M": per_sample(-3, 3, (3, 2), frames=True), "T": per_sample(-3, 3, (3,), frames=True)},
        {"MT": per_sample(-3, 3, (2, 3), frames=True)},
    ],
    make_input=plane(),
)
TestTypes = op_test(
    "coord_transform",
    reference,
    cases=[
        Case(types.to_numpy_type(t), "", {"M": m, "T": [0, 300.5], "dtype": o})
        for t in INTEGERS
        for o in (t, types.FLOAT)
        for m in (TURN, -1.5)
    ],
    make_input=plane(),
)
TestSpace = op_test(
    "coord_transform",
    reference,
    ("f4",),
    ("",),
    args=[
        {"M": [1, 2, 3, 4, 5, 6, 7, 8, 9], "T": 0.5},
        {"MT": per_sample(-3, 3, (3, 4))},
        {"M": per_sample(-3, 3, (2, 3))},
    ],
    make_input=plane(3),
)
TestLine = op_test(
    "coord_transform", reference, ("f4",), ("",), args=[{"M": 3, "T": 1}, {"MT": [2, 1]}], make_input=plane(1)
)
TestSix = op_test(
    "coord_transform",
    reference,
    ("f4",),
    ("",),
    args=[{"M": per_sample(-1, 1, (6, 6)), "T": per_sample(-1, 1, (6,))}, {"M": [1] * 6}],
    make_input=plane(6),
)
TestMoreAxes = op_test(
    "coord_transform",
    reference,
    ("f4",),
    ("",),
    args=[{"M": TURN}],
    make_input=points((2, 3, 2), (1, 1, 2), (0, 2, 2), (4, 1, 2)),
)


@pytest.mark.parametrize(
    "x, text",
    [
        (np.zeros((2, 2), "f8"), "type float64 is not supported"),
        (np.zeros(4, "f4"), "at least two axes"),
        (np.zeros((2, 7), "f4"), "1 to 6 coordinates, got 7"),
    ],
)
def test_what_points_must_be(x, text):
    with pytest.raises(RuntimeError, match=text):
        run("coord_transform", [x], Case(x.dtype, "", {}), {})


def test_points_of_a_batch_are_alike():
    with pytest.raises(RuntimeError, match="equally many coordinates; got 2 and 3"):
        run("coord_transform", [np.zeros((1, 3), "f4"), np.zeros((1, 2), "f4")], Case("f4", "", {}), {})


def test_hidden_points_stay():
    (out,) = run("coord_transform", [np.float32([[np.nan, 1], [1, 2]])], Case("f4", "", {"M": 2}), {})[0]
    assert np.isnan(out[0, 0]) and out[1].tolist() == [2, 4]
