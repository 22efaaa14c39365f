# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

from harness import Column, op_test, per_sample
from penstock import fn, pipeline_def


def reference(x, horizontal=1, vertical=0, ltrb=False):
    """By corners, in float64."""
    corners = x.reshape(-1, 2, 2).astype("f8")  # (boxes, start and end, x and y)
    if not ltrb:
        corners[:, 1] += corners[:, 0]
    for d, flip in enumerate((horizontal, vertical)):
        if flip:
            corners[:, :, d] = 1 - corners[:, ::-1, d]
    if not ltrb:
        corners[:, 1] -= corners[:, 0]
    return corners.reshape(x.shape).astype("f4")


def boxes(rng, case):
    """Ragged counts, no boxes, and boxes that exceed the image or are inverted."""
    return [(rng.random((n, 4)) * (3 if i == 3 else 1) - (i == 3)).astype("f4") for i, n in enumerate((3, 0, 1, 70, 9))]


def one_box(rng, case):
    return [rng.random(4).astype("f4") for _ in range(3)]


def in_three_dimensions(rng, case):
    return [rng.random((2, n, 4)).astype("f4") for n in (3, 1, 0)]


ARGS = [
    {**flips, **({"ltrb": True} if ltrb else {})}
    for flips in (
        {},
        {"horizontal": 0},
        {"vertical": 1},
        {"horizontal": 0, "vertical": 1},
        {"horizontal": -3, "vertical": 2},
        {"horizontal": per_sample(0, 2, dtype="i4")},
        {"horizontal": per_sample(0, 2, dtype="i4"), "vertical": per_sample(0, 2, dtype="i4")},
        {"vertical": Column(lambda rng, shape: rng.integers(0, 2, (1,)).astype("i4"), text="arrays_of_one")},
    )
    for ltrb in (False, True)
]

TestBbFlip = op_test(
    "bb_flip",
    reference,
    dtypes=("f4",),
    layouts=("",),
    args=ARGS,
    make_input=boxes,
    dali_differs={"arrays_of_one": "an argument may be an array of one element; DALI takes scalars only"},
    errors=[({"vertikal": 1}, TypeError, "Did you mean 'vertical'")],
)
TestOneBox = op_test("bb_flip", reference, ("f4",), ("",), ARGS[2:6], make_input=one_box)
TestThreeDimensions = op_test("bb_flip", reference, ("f4",), ("",), ARGS[:2], make_input=in_three_dimensions)


@pytest.mark.parametrize(
    "sample, text",
    [
        (np.zeros((1, 4), "f8"), "boxes must be float32, got float64"),
        (np.zeros((2, 3), "f4"), r"four numbers each; got the shape \[2, 3\]"),
        (np.zeros((), "f4"), r"four numbers each; got the shape \[\]"),
    ],
)
def test_what_is_no_boxes(sample, text):
    @pipeline_def(batch_size=1, num_threads=1)
    def pipe():
        return fn.bb_flip(fn.external_source(source=lambda: [sample]))

    with pytest.raises(RuntimeError, match=text):
        pipe().run()
