# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

from harness import op_test, per_sample
from penstock import fn, pipeline_def


def reference(x, ratio, paste_x=0.5, paste_y=0.5, ltrb=False):
    """In float64, in units of the canvas."""
    corners = x.reshape(-1, 2, 2).astype("f8")
    at = np.array([paste_x, paste_y], "f8") * (np.float64(ratio) - 1)  # in units of the image
    moved = corners + (at if ltrb else np.stack([at, np.zeros(2)]))
    return (moved / ratio).reshape(x.shape).astype("f4")


def boxes(rng, case):
    return [(rng.random((n, 4)) * (3 if i == 3 else 1) - (i == 3)).astype("f4") for i, n in enumerate((3, 0, 1, 70, 9))]


def one_box(rng, case):
    return [rng.random(4).astype("f4") for _ in range(3)]


ARGS = [
    {**kwargs, **({"ltrb": True} if ltrb else {})}
    for kwargs in (
        {"ratio": 2.0},
        {"ratio": 1.0},
        {"ratio": 1.7, "paste_x": 0.0, "paste_y": 1.0},
        {"ratio": 3.3, "paste_x": 0.3},
        {"ratio": 2.5, "paste_y": 0.8},
        {"ratio": 12.5, "paste_x": 1.0, "paste_y": 0.0},
        {"ratio": per_sample(1, 4)},
        {"ratio": per_sample(1, 4), "paste_x": per_sample(0, 1), "paste_y": per_sample(0, 1)},
        {"ratio": 2.0, "paste_x": per_sample(0, 1)},
    )
    for ltrb in (False, True)
]
ERRORS = [
    ({"ratio": 0.5}, RuntimeError, "`ratio` of less than 1 is not supported; got 0.5"),
    ({"paste_x": 2.0}, RuntimeError, r"`paste_x` must be in range \[0, 1\]; got 2"),
    ({"paste_y": -1.0}, RuntimeError, r"`paste_y` must be in range \[0, 1\]; got -1"),
    ({"ratoi": 2.0}, TypeError, "Did you mean 'ratio'"),
]
TestBboxPaste = op_test("bbox_paste", reference, ("f4",), ("",), ARGS, make_input=boxes, errors=ERRORS)
TestOneBox = op_test("bbox_paste", reference, ("f4",), ("",), ARGS[2:8], make_input=one_box)


@pytest.mark.parametrize(
    "sample, text",
    [
        (np.zeros((1, 4), "f8"), "boxes must be float32, got float64"),
        (np.zeros((2, 3), "f4"), r"four numbers each; got the shape \[2, 3\]"),
    ],
)
def test_what_is_no_boxes(sample, text):
    @pipeline_def(batch_size=1, num_threads=1)
    def pipe():
        return fn.bbox_paste(fn.external_source(source=lambda: [sample]), ratio=2.0)

    with pytest.raises(RuntimeError, match=text):
        pipe().run()
