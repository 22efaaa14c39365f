# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

from harness import op_test
from penstock import fn, pipeline_def, types


def reference(x, axes=None, axis_names=None):
    return np.squeeze(
        x, tuple(int(a) for a in axes) if axes is not None else tuple("FHWC".index(n) for n in axis_names)
    )


def ones_at(*axes):
    def make(rng, case):
        shapes = [(2, 5, 4, 3), (1, 1, 1, 1), (3, 7, 2, 2)]
        return [
            rng.integers(0, 99, [1 if d in axes else n for d, n in enumerate(s)]).astype(case.dtype) for s in shapes
        ]

    return make


DTYPES = ("u1", "f4", "i8")
TestLast = op_test(
    "squeeze", reference, DTYPES, ("FHWC",), args=[{"axes": [3]}, {"axis_names": "C"}], make_input=ones_at(3)
)
TestTwo = op_test(
    "squeeze",
    reference,
    DTYPES,
    ("FHWC",),
    args=[{"axes": [0, 2]}, {"axes": [2, 0]}, {"axes": [2]}, {"axis_names": "WF"}, {"axis_names": "F"}, {"axes": []}],
    make_input=ones_at(0, 2),
    errors=[
        ({"axis_names": "F"}, ValueError, "one of 'axes' and 'axis_names'"),
        ({"axes": [1]}, RuntimeError, r"only axes of extent 1 can be left out; got axes \[1\]"),
        ({"axes": [0, 0]}, RuntimeError, "an axis twice"),
        ({"axes": [4]}, RuntimeError, "accepted are -4 to 3"),
    ],
)
TestFromTheBack = op_test(
    "squeeze",
    reference,
    args=[{"axes": [-1]}],
    layouts=("FHWC",),
    make_input=ones_at(3),
    dali_differs={"form:axes": "DALI takes negative indices for none"},
)


@pytest.mark.parametrize(
    "layout, kwargs, shape, left",
    [
        ("HWC", {"axes": [0]}, (3, 1), "WC"),
        ("HWC", {"axis_names": "CH"}, (3,), "W"),
        ("HWC", {"axis_names": ""}, (1, 3, 1), "HWC"),
        ("", {"axes": [0, 2]}, (3,), ""),
    ],
)
def test_layout(layout, kwargs, shape, left):
    @pipeline_def(batch_size=2)
    def pipe():
        return fn.squeeze(types.Constant(np.zeros((1, 3, 1), "u1"), layout=layout), **kwargs)

    (out,) = pipe().run()
    assert out.at(1).shape == shape and out.layout() == left


def test_empty_samples_lose_any_axis():
    @pipeline_def(batch_size=1)
    def pipe():
        return fn.squeeze(types.Constant(np.zeros((0, 3, 1), "u1")), axes=[1])

    assert pipe().run()[0].at(0).shape == (0, 1)


def test_a_name_that_is_not_there_and_no_axes():
    with pytest.raises(RuntimeError, match="Axis 'X' is not present in the input layout 'HW'"):
        pipeline_def(lambda: fn.squeeze(types.Constant([[1]], layout="HW"), axis_names="X"), batch_size=1)().run()
    with pytest.raises(ValueError, match="one of 'axes' and 'axis_names'; got none"):
        pipeline_def(lambda: fn.squeeze(types.Constant([[1]])), batch_size=1)().run()
