# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

from harness import op_test, per_sample
from penstock import fn, pipeline_def
from transform_cases import applied, fed, fed_frames, inputs, made


def reference(x, offset, reverse_order=False):
    matrix = np.eye(len(x) + 1)
    matrix[:-1, -1] = offset
    return applied(matrix, x, reverse_order)


TestPlane = op_test(
    "transforms.translation",
    reference,
    ("f4",),
    ("", "F**"),
    args=[
        *({"offset": [10, -20.5], "reverse_order": r} for r in (False, True)),
        *({"offset": per_sample(-50, 50, (2,)), "reverse_order": r} for r in (False, True)),
        {"offset": [0, 0]},
        {"offset": [1e-3, 1e6], "reverse_order": True},
    ],
    make_input=inputs(2),
    errors=[
        ({"offset": [1, 2, 3]}, RuntimeError, "a transform of 2 dimensions, the arguments describe one of 3"),
        ({"offset": [float("nan"), 0]}, RuntimeError, "no finite transform"),
        ({"offset": []}, RuntimeError, "one value per dimension"),
    ],
)
TestFrames = op_test(
    "transforms.translation",
    reference,
    ("f4",),
    ("F**",),
    args=[{"offset": per_sample(-50, 50, (2,), frames=True), "reverse_order": r} for r in (False, True)],
    make_input=inputs(2),
)
TestSpace = op_test(
    "transforms.translation",
    reference,
    ("f4",),
    ("", "F**"),
    args=[{"offset": [1, 2, 3]}, {"offset": per_sample(-5, 5, (3,)), "reverse_order": True}],
    make_input=inputs(3),
)
TestLine = op_test(
    "transforms.translation",
    reference,
    ("f4",),
    ("", "F**"),
    args=[{"offset": 3.5}, {"offset": -2, "reverse_order": True}],
    make_input=inputs(1),
)


def test_without_an_input():
    (out,), layout = made("translation", offset=[1, 2, 3, 4])
    np.testing.assert_array_equal(out, np.hstack([np.eye(4), [[1], [2], [3], [4]]]))
    assert (out.dtype, layout) == ("f4", "**")
    outs, _ = made("translation", 2, offset=fed([1, 2], [3, 4]))
    assert [o[:, 2].tolist() for o in outs] == [[1, 2], [3, 4]]


def test_arguments_per_frame_make_a_sequence():
    outs, layout = made("translation", 2, offset=fed_frames([[1, 2], [5, 6]], [[3, 4]]))
    assert layout == "F**" and [o.shape for o in outs] == [(2, 2, 3), (1, 2, 3)]
    assert outs[0][1].tolist() == [[1, 0, 5], [0, 1, 6]] and outs[1][0].tolist() == [[1, 0, 3], [0, 1, 4]]


def test_what_an_input_must_be():
    def of(x, layout=None, offset=(1, 2)):
        @pipeline_def(batch_size=2, num_threads=1)
        def pipe():
            given = fn.external_source(source=lambda: [np.array(x)] * 2, layout=layout)
            at = fn.per_frame(fn.external_source(source=lambda: [offset] * 2)) if np.ndim(offset) > 1 else offset
            return fn.transforms.translation(given, offset=at)

        return pipe().run()

    for x in (np.eye(3, dtype="f4"), np.zeros((5, 2, 3), "f4"), np.zeros(6, "f4")):
        with pytest.raises(RuntimeError, match=r"input 0 needs transforms of shape \(d, d \+ 1\)"):
            of(x)
    with pytest.raises(RuntimeError, match="float32, got int32"):
        of(np.eye(2, 3, dtype="i4"))
    with pytest.raises(RuntimeError, match="2 values for the 5 frames"):
        of(np.zeros((5, 2, 3), "f4"), "F**", np.zeros((2, 2), "f4"))
