# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

from harness import op_test
from penstock import fn, pipeline_def, types


def reference(x, new_order):
    return x[np.asarray(new_order)]


def frames(rng, case):
    return [rng.integers(0, 99, (n, 3, 5, 2)).astype(case.dtype) for n in (3, 4, 3, 7)]


TestFixed = op_test(
    "sequence_rearrange",
    reference,
    ("u1", "i2", "f4", "f8", "?"),
    ("FHWC", ""),
    args=[{"new_order": [2, 1, 0]}, {"new_order": [1]}, {"new_order": [0, 0, 2, 2, 1]}],
    make_input=frames,
    errors=[
        ({"new_order": [3]}, RuntimeError, r"new_order\[.\] must be between 0 and input_sequence_length = 3, .* got 3"),
        ({"new_order": [0, -1]}, RuntimeError, "got -1"),
        ({"new_order": []}, RuntimeError, "needs at least one frame"),
    ],
)


@pytest.mark.parametrize("dtype", ["i4", "i8", "u1"])
def test_orders_of_different_lengths(dtype):
    rng = np.random.default_rng(1)
    videos = frames(rng, type("Case", (), {"dtype": "u1"}))
    orders = [np.array(o, dtype) for o in ([2, 0], [3], [0, 1, 2, 2, 1], [6, 5])]

    @pipeline_def(batch_size=4)
    def pipe():
        video = fn.external_source(source=lambda i: videos, layout="FHWC")
        return fn.sequence_rearrange(video, new_order=fn.external_source(source=lambda i: orders))

    (out,) = pipe().run()
    for got, video, order in zip(out, videos, orders):
        np.testing.assert_array_equal(got, video[order])
    assert out.layout() == "FHWC"


@pytest.mark.parametrize(
    "value, layout, text", [([1, 2], "", "got 1"), ([[1]], "HW", "must count frames"), (1, "", "got 0")]
)
def test_no_sequence(value, layout, text):
    with pytest.raises(RuntimeError, match=text):
        pipe = pipeline_def(
            lambda: fn.sequence_rearrange(types.Constant(value, layout=layout), new_order=[0]), batch_size=1
        )
        pipe().run()
