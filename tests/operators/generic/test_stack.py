# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

from harness import op_test
from penstock import fn, pipeline_def, types


def reference(x, *more, axis=0, axis_name=None):
    return np.stack([x, *more], axis if axis >= 0 else axis + x.ndim + 1)


def like(count):
    def make(rng, case):
        from harness import SIZES, full_shape, random_array

        return [
            [random_array(rng, full_shape(case.layout, hw, 3, i), case.dtype) for i, hw in enumerate(SIZES)]
            for _ in range(count)
        ]

    return make


DTYPES = ("u1", "i2", "f4", "i8", "?")
ARGS = [{}, {"axis": 1}, {"axis": 2}, {"axis": 3}, {"axis": -1}, {"axis": -3}, {"axis": 3, "axis_name": "X"}]
TestPair = op_test("stack", reference, DTYPES, args=ARGS, extra_inputs=like(1))
TestThree = op_test("stack", reference, ("u1", "f4"), args=ARGS, extra_inputs=like(2))
TestMany = op_test("stack", reference, ("u1",), args=[{}, {"axis": 3}, {"axis_name": "N"}], extra_inputs=like(15))
TestSingle = op_test("stack", reference, args=[{}, {"axis": 3}])
TestErrors = op_test(
    "stack",
    reference,
    extra_inputs=like(1),
    errors=[
        ({"axis": 4}, RuntimeError, "axis 4 is out of range for inputs of 3 axes: -3 to 3"),
        ({"axis": -4}, RuntimeError, "out of range"),
        ({"axis_name": "XY"}, ValueError, "one character"),
    ],
)


def run(define):
    return pipeline_def(define, batch_size=1)().run()[0]


def array(shape, dtype="u1", layout=None):
    return types.Constant(np.zeros(shape, dtype), layout=layout)


@pytest.mark.parametrize(
    "layouts, kwargs, expected",
    [
        (("HW", ""), {"axis": 2, "axis_name": "C"}, "HWC"),
        (("HW", "HW"), {"axis": 2}, ""),
        (("", "HW"), {"axis": -1, "axis_name": "C"}, "HWC"),
        (("", "HW"), {"axis": -2, "axis_name": "C"}, "HCW"),
        (("HW", "XY"), {"axis_name": "N"}, "NHW"),
    ],
)
def test_layout(layouts, kwargs, expected):
    out = run(lambda: fn.stack(*(array((2, 3), layout=n) for n in layouts), **kwargs))
    assert out.layout() == expected


def test_scalars():
    out = run(lambda: fn.stack(types.Constant(1), types.Constant(2), axis_name="N"))
    assert out.at(0).tolist() == [1, 2] and out.layout() == "N"


@pytest.mark.parametrize(
    "define, text",
    [
        (lambda: fn.stack(array((2, 3)), array((2, 3), "f4")), "input 0 is uint8, input 1 float32"),
        (lambda: fn.stack(array((2, 3)), array((3, 3))), r"input 1 of shape \[3, 3\] does not fit"),
        (lambda: fn.stack(array((2, 3)), array((2, 3)), axis_name="C"), "needs inputs with a layout"),
    ],
)
def test_inputs_that_do_not_fit(define, text):
    with pytest.raises(RuntimeError, match=text):
        run(define)
