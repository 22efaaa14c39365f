# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest
from scipy.ndimage import correlate

from harness import op_test, per_sample, saturate
from penstock import fn, pipeline_def, types

_PADDING = {"reflect_101": "reflect", "reflect_1001": "symmetric", "wrap": "wrap", "clamp": "edge"}


def correlated(first, n):
    """The reference for inputs with n axes of space, the first being axis `first`."""

    def reference(x, weights, fill=0, anchor=-1, border="reflect_101", mode="same", dtype=None):
        out = x.dtype if dtype is None else types.to_numpy_type(dtype)
        if x.size == 0:
            return x.astype(out)
        x = np.moveaxis(x, range(first, first + n), range(n)).astype("f8")
        if mode == "same":
            before = [s // 2 if p == -1 else p for s, p in zip(weights.shape, np.broadcast_to(anchor, n))]
            pad = [(b, s - 1 - b) for b, s in zip(before, weights.shape)] + [(0, 0)] * (x.ndim - n)
            more = {"constant_values": fill} if border == "constant" else {}
            x = np.pad(x, pad, mode=_PADDING.get(border, border), **more)
        windows = np.lib.stride_tricks.sliding_window_view(x, weights.shape, tuple(range(n)))
        y = np.tensordot(windows, weights.astype("f8"), n)
        return saturate(np.moveaxis(y, range(n), range(first, first + n)), out)

    return reference


def filters(*sizes, value=None):
    """As further inputs: a filter per sample, of the given sizes in turn, and perhaps a fill value."""

    def make(rng, case):
        n = 5 if "sizes" not in SAME else len(SAME["sizes"])
        weights = [rng.uniform(-0.3, 0.5, sizes[i % len(sizes)]).astype("f4") for i in range(n)]
        return [weights] if value is None else [weights, [np.asarray(value + i, case.dtype) for i in range(n)]]

    return make


SAME = {"steps": 1, "share": 0.02, "ulps": 16, "sizes": ((5, 4), (1, 1), (33, 17), (8, 67))}
TestImages = op_test(
    "filter",
    correlated(0, 2),
    dtypes=("u1", "f4"),
    args=[
        {},
        {"anchor": 0},
        {"anchor": [2, -1]},
        {"anchor": per_sample(-1, 3, (2,), "i4")},
        {"border": "reflect_1001", "dtype": types.FLOAT},
        {"border": "wrap"},
        {"border": "clamp"},
        {"border": "constant"},
    ],
    extra_inputs=filters((3, 3), (3, 4), (5, 3), (4, 5)),
    errors=[
        ({"border": "mirror"}, ValueError, "border='mirror' is not known; known are reflect_101"),
        ({"mode": "full"}, ValueError, "mode='full' is not known"),
        ({"anchor": 3}, RuntimeError, r"`anchor` \[3, 3\] is not inside of the filter of shape \[3, 3\]"),
        ({"anchor": -2}, RuntimeError, "is not inside of the filter"),
        ({"anchor": [1, 1, 1]}, RuntimeError, "`anchor` has 3 values"),
        ({"dtype": types.INT32}, RuntimeError, "output type int32 is not supported"),
    ],
    **SAME,
)
TestTypes = op_test(
    "filter",
    correlated(0, 2),
    dtypes=("u2", "i2"),
    args=[{}, {"dtype": types.FLOAT}],
    extra_inputs=filters((3, 3)),
    **SAME,
)
TestTypesBeyondDali = op_test(
    "filter",
    correlated(0, 2),
    dtypes=("i1", "f2"),
    args=[{}, {"dtype": types.FLOAT}],
    extra_inputs=filters((3, 3)),
    dali_differs={"int8": "DALI has it on the GPU only", "float16": "DALI has it on the GPU only"},
    **SAME,
)
TestPlanes = op_test(
    "filter",
    correlated(1, 2),
    layouts=("CHW", "FCHW"),
    args=[{}, {"border": "clamp"}],
    extra_inputs=filters((3, 5)),
    **SAME,
)
TestGray = op_test(
    "filter",
    correlated(0, 2),
    layouts=("HW", "FHW"),
    args=[{}, {"border": "constant"}],
    extra_inputs=filters((2, 2), (1, 1), (1, 6)),
    **SAME,
)
TestLarge = op_test(
    "filter", correlated(0, 2), args=[{}, {"anchor": [0, 10]}], extra_inputs=filters((13, 11), (1, 17)), **SAME
)
TestFill = op_test(
    "filter",
    correlated(0, 2),
    dtypes=("u1", "f4"),
    args=[{"border": "constant"}],
    extra_inputs=filters((3, 3), value=50),
    **SAME,
)
TestValid = op_test(
    "filter",
    correlated(0, 2),
    dtypes=("u1", "f4"),
    args=[{"mode": "valid"}, {"mode": "valid", "anchor": 0}],
    extra_inputs=filters((3, 3), (1, 1), (2, 5), (8, 4)),
    **SAME,
)
TestVolumes = op_test(
    "filter",
    correlated(0, 3),
    dtypes=("u1",),
    layouts=("DHWC", "FDHWC"),
    args=[{}, {"anchor": [0, 1, -1]}, {"border": "constant"}, {"border": "wrap", "dtype": types.FLOAT}],
    extra_inputs=filters((3, 3, 3), (1, 2, 4)),
    dali_differs={"HWC": "DALI filters volumes on the GPU only"},
    **SAME,
)
TestVolumesOfPlanes = op_test(
    "filter",
    correlated(1, 3),
    layouts=("CDHW",),
    extra_inputs=filters((2, 3, 1)),
    dali_differs={"CDHW": "DALI filters volumes on the GPU only"},
    **SAME,
)


def run(*inputs, layouts=("HW", "", ""), **kwargs):
    @pipeline_def(batch_size=1)
    def pipe():
        given = [fn.external_source(source=lambda i, x=x: [x], layout=lay or None) for x, lay in zip(inputs, layouts)]
        return fn.filter(*given, **kwargs)

    return pipe().run()[0].at(0)


def test_scipy_agrees():
    rng = np.random.default_rng(2)
    x, weights = rng.random((20, 30), "f4"), rng.random((5, 3), "f4")
    np.testing.assert_allclose(run(x, weights), correlate(x, weights, mode="mirror"), rtol=1e-5)


def test_a_filter_per_frame():
    x = np.random.default_rng(3).random((3, 6, 7), "f4")
    weights = np.zeros((3, 3, 3), "f4")
    weights[0, 1, 1], weights[1, 1, 0], weights[2, 0, 1] = 1, 1, 1
    got = run(x, weights, np.float32([1, 2, 3]), layouts=("FHW", "FHW", "F"), border="constant")
    np.testing.assert_array_equal(got[0], x[0])
    np.testing.assert_array_equal(got[1, :, 1:], x[1, :, :-1])
    assert (got[1, :, 0] == 2).all() and (got[2, 0] == 3).all()


@pytest.mark.parametrize(
    "inputs, kwargs, text",
    [
        ((np.zeros((4, 4), "i4"), np.ones((3, 3), "f4")), {}, "input type int32 is not supported"),
        ((np.zeros((4, 4), "u1"), np.ones((3, 3), "f8")), {}, "the filter is of type float64; it must be float32"),
        ((np.zeros((4, 4), "u1"), np.ones((3, 3, 3), "f4")), {}, "the filter has 3 axes, the layout 'HW' has 2"),
        ((np.zeros((4, 4), "u1"), np.ones((0, 3), "f4")), {}, "the filter is empty"),
        ((np.zeros((4, 4), "u1"), np.ones((3, 3), "f4"), np.int32(3)), {}, "fill value, is of type int32"),
        ((np.zeros((4, 4), "u1"), np.ones((3, 3), "f4"), np.uint8([3, 4])), {}, "must be one number"),
        ((np.zeros((4, 4), "u1"), np.ones((3, 5), "f4")), {"mode": "valid"}, "is larger than the input"),
    ],
)
def test_inputs_that_are_refused(inputs, kwargs, text):
    with pytest.raises(RuntimeError, match=text):
        run(*inputs, **kwargs)


def test_empty_samples():
    assert run(np.zeros((0, 5), "u1"), np.ones((3, 3), "f4")).shape == (0, 5)
