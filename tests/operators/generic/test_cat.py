# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

from harness import op_test
from penstock import fn, pipeline_def, types


def reference(x, *more, axis=0, axis_name=None):
    return np.concatenate([x, *more], axis="HWC".index(axis_name) if axis_name else axis)


def inputs_like(axis, count):
    """`count` more inputs, whose extents along an axis differ."""

    def make(rng, case):
        sizes = [(5, 4), (1, 1), (33, 17), (8, 64)]
        first = [(*s, 3)[: len(case.layout) or 3] for s in sizes]
        out = []
        for k in range(count):
            shapes = [tuple(n if d != axis else (n + k) % 7 for d, n in enumerate(s)) for s in first]
            out.append([rng.integers(0, 99, s).astype(case.dtype) for s in shapes])
        return out

    return make


def first(rng, case):
    return [rng.integers(0, 99, (*s, 3)).astype(case.dtype) for s in ((5, 4), (1, 1), (33, 17), (8, 64))]


DTYPES = ("u1", "i2", "f4", "f8", "?", "f2")
TestRows = op_test(
    "cat", reference, DTYPES, args=[{}, {"axis_name": "H"}], make_input=first, extra_inputs=inputs_like(0, 1)
)
TestColumns = op_test(
    "cat", reference, DTYPES, args=[{"axis": 1}, {"axis": -2}], make_input=first, extra_inputs=inputs_like(1, 3)
)
TestChannels = op_test(
    "cat",
    reference,
    DTYPES,
    args=[{"axis": 2}, {"axis": -1}, {"axis_name": "C"}],
    make_input=first,
    extra_inputs=inputs_like(2, 2),
)
TestSingle = op_test("cat", reference, args=[{}, {"axis": 1}])
TestMany = op_test("cat", reference, ("u1", "f4"), make_input=first, extra_inputs=inputs_like(0, 19))
TestManyChannels = op_test(
    "cat", reference, ("u1", "i4"), args=[{"axis": 2}], make_input=first, extra_inputs=inputs_like(2, 9)
)
TestErrors = op_test(
    "cat",
    reference,
    make_input=first,
    extra_inputs=inputs_like(0, 1),
    errors=[
        ({"axis": 3}, RuntimeError, "axis 3 is out of range for 3 axes: accepted are -3 to 2"),
        ({"axis": 1, "axis_name": "W"}, ValueError, "not both"),
        ({"axis_name": "XY"}, ValueError, "one character"),
        ({"axis_name": "D"}, RuntimeError, "Axis 'D' is not present in the input layout 'HWC'"),
    ],
)


def run(define, batch_size=1):
    return pipeline_def(define, batch_size=batch_size)().run()[0]


def array(shape, dtype="u1", layout=None):
    return types.Constant(np.zeros(shape, dtype), layout=layout)


def test_the_layout_is_the_first_that_there_is():
    assert run(lambda: fn.cat(array((2, 3)), array((2, 3), layout="HW"), array((1, 3), layout="XY"))).layout() == "HW"


@pytest.mark.parametrize(
    "define, text",
    [
        (lambda: fn.cat(array((2, 3)), array((2, 3), "f4")), "input 0 is uint8, input 1 float32"),
        (lambda: fn.cat(array((2, 3)), array((2,))), "input 0 has 2, input 1 1"),
        (
            lambda: fn.cat(array((2, 3)), array((2, 4))),
            r"input 1 of shape \[2, 4\] does not fit input 0 of shape \[2, 3\]",
        ),
        (lambda: fn.cat(array(()), array(())), "use fn.stack"),
    ],
)
def test_inputs_that_do_not_fit(define, text):
    with pytest.raises(RuntimeError, match=text):
        run(define)
