# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness import OpTest, op_test, per_sample
from penstock import fn, pipeline_def

# The largest extents in a batch of the harness: HWC with SIZES.
LARGEST = (33, 67, 3)


def reference(x, axes=None, axis_names=None, shape=None, align=None, fill_value=0.0, largest=LARGEST):
    if axis_names:
        axes = ["HWC".index(c) for c in axis_names]
    axes = range(x.ndim) if axes is None or len(axes) == 0 else [int(d) % x.ndim for d in axes]
    grown = list(x.shape)
    for k, d in enumerate(axes):
        least = -1 if shape is None else int(np.broadcast_to(shape, (len(axes),))[k])
        step = 1 if align is None else int(np.broadcast_to(align, (len(axes),))[k])
        n = max(x.shape[d], least if least > 0 else largest[d])
        grown[d] = (n + step - 1) // step * step
    fill = np.float32(fill_value)
    if x.dtype.kind in "iu":
        fill = np.clip(np.trunc(fill), *(float(v) for v in (np.iinfo(x.dtype).min, np.iinfo(x.dtype).max)))
    return np.pad(x, [(0, g - n) for g, n in zip(grown, x.shape)], constant_values=np.asarray(fill).astype(x.dtype))


ALL = ("u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "?")
TestPad = op_test(
    "pad",
    reference,
    args=[
        {},
        {"axes": [0]},
        {"axes": [-2, 0], "fill_value": 7.9},
        {"axis_names": "WH", "shape": [70, -1], "fill_value": per_sample(0, 255)},
        {"axis_names": "W", "shape": 1, "align": 8},
        {"align": [16, 3, 4]},
        {"align": per_sample(1, 9, (3,), "i4"), "shape": per_sample(-1, 60, (3,), "i4")},
        {"axes": [], "shape": 40},
    ],
    errors=[
        ({"axes": [0], "axis_names": "H"}, ValueError, "not both"),
        ({"axes": [3]}, RuntimeError, r"out of range. Expected range is \[-3, 2\]"),
        ({"axes": [1, -2]}, RuntimeError, "more than once"),
        ({"axis_names": "X"}, RuntimeError, "Axis 'X' is not present in the input layout"),
        ({"align": 0}, RuntimeError, "must be positive"),
        ({"shape": [1, 2]}, RuntimeError, "2 values for 3 axes"),
    ],
)
TestTypes = op_test("pad", reference, dtypes=ALL, args=[{"fill_value": 2.7, "align": 5}, {"fill_value": 0.3}])
TestDouble = op_test(
    "pad", reference, dtypes=("f8",), args=[{"fill_value": -2.5}], dali_differs={"float64": "DALI has no float64 here"}
)


def _run(samples, **kwargs):
    @pipeline_def(batch_size=len(samples), num_threads=1)
    def pipe():
        return fn.pad(fn.external_source(source=lambda: samples), **kwargs)

    out = pipe().run()[0]
    return [np.array(out.at(i)) for i in range(len(samples))]


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=4),
    st.tuples(st.integers(-1, 12), st.integers(-1, 12)),
    st.tuples(st.integers(1, 5), st.integers(1, 5)),
)
def test_shapes(shapes, least, align):
    samples = [np.full(s, 1, "u1") for s in shapes]
    largest = tuple(np.max(shapes, axis=0))
    for x, got in zip(samples, _run(samples, shape=least, align=align, fill_value=9)):
        np.testing.assert_array_equal(got, reference(x, shape=least, align=align, fill_value=9, largest=largest))


@pytest.mark.parametrize("ndim", [1, 2, 5, 8])
def test_dimensions(ndim):
    samples = [np.full((1,) * ndim, 5, "i8"), np.full((2,) * ndim, 6, "i8")]
    got = _run(samples, fill_value=-3)
    np.testing.assert_array_equal(got[0], np.pad(samples[0], [(0, 1)] * ndim, constant_values=-3))
    np.testing.assert_array_equal(got[1], samples[1])


def test_harness_sizes():
    """The reference above relies on the sizes of the harness."""
    assert tuple(np.max(np.array(OpTest("pad", reference, []).sizes), axis=0)) == LARGEST[:2]
