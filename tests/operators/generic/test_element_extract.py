# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

from harness import op_test
from penstock import fn, pipeline_def, types


def reference(x, element_map):
    return tuple(x[e] for e in element_map)


def frames(rng, case):
    return [rng.integers(0, 99, (n, 3, 5, 2)).astype(case.dtype) for n in (3, 4, 3, 7)]


TestElementExtract = op_test(
    "element_extract",
    reference,
    ("u1", "i2", "f4", "f8", "?"),
    ("FHWC", ""),
    args=[{"element_map": [2, 1, 0]}, {"element_map": [1]}, {"element_map": [0, 0, 2, 2, 1, 1, 0, 1, 2]}],
    make_input=frames,
    errors=[
        ({"element_map": [0, 3]}, RuntimeError, "element_map has 3; the sequence has 3 frames"),
        ({"element_map": []}, ValueError, "needs the index of one frame"),
        ({"element_map": [-1]}, ValueError, "counts frames from 0; got -1"),
    ],
)


def test_the_axis_of_frames_is_gone():
    @pipeline_def(batch_size=1)
    def pipe():
        return tuple(fn.element_extract(types.Constant(np.zeros((2, 3, 4)), layout="FHW"), element_map=[1, 0]))

    assert [(out.at(0).shape, out.layout()) for out in pipe().run()] == [((3, 4), "HW")] * 2


@pytest.mark.parametrize("value, layout, text", [([1, 2], "", "got 1"), ([[1]], "HW", "must count frames")])
def test_no_sequence(value, layout, text):
    with pytest.raises(RuntimeError, match=text):
        pipe = pipeline_def(
            lambda: fn.element_extract(types.Constant(value, layout=layout), element_map=[0]), batch_size=1
        )
        pipe().run()
