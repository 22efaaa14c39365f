# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness import op_test
from penstock import fn, pipeline_def


def reference(x, shape_input=None, shape=None, rel_shape=None, src_dims=None, layout=None):
    if shape_input is not None:
        shape = shape_input
    if shape is None:
        shape = list(x.shape) if src_dims is None else [1 if d < 0 else x.shape[d] for d in src_dims]
        if rel_shape is not None:
            shape = [*shape, 1][: len(rel_shape)]
            shape = [
                -1 if r < 0 else int(np.floor(np.float32(r) * np.float32(n) + 0.5)) for r, n in zip(rel_shape, shape)
            ]
    known = int(np.prod([n for n in np.atleast_1d(shape) if n >= 0]))
    return x.reshape([int(n) if n >= 0 else x.size // max(known, 1) for n in np.atleast_1d(shape)])


SAME = {"sizes": ((4, 6),) * 3, "channels": 2}
TestReshape = op_test(
    "reshape",
    reference,
    dtypes=("u1", "f4"),
    args=[
        {"shape": [12, 4]},
        {"shape": [-1]},
        {"shape": [2, -3, 8]},
        {"shape": [4, 6, 2], "layout": "CHW"},
        {"rel_shape": [0.5, 2, 1]},
        {"rel_shape": [0.6, -1]},
        {"rel_shape": [1, 1, 1, -1]},
        {"src_dims": [2, 1, 0]},
        {"src_dims": [2, 0, 1], "rel_shape": [-1, 2, 1]},
        {"layout": "XYZ"},
    ],
    errors=[
        ({"shape": [5, 5]}, RuntimeError, r"\(48 elements\) can't become \[5, 5\]"),
        ({"shape": [-1, -1]}, RuntimeError, "only one extent"),
        ({"shape": [0, -1]}, RuntimeError, "can't become"),
        ({"rel_shape": [1]}, ValueError, "not both"),
        ({"layout": "HWC"}, RuntimeError, "does not fit an output of 2"),
    ],
    **SAME,
)
TestNewAxes = op_test(
    "reshape",
    reference,
    args=[{"src_dims": [0, -1, 1, 2]}, {"src_dims": [-1, 0, 1, 2], "rel_shape": [2, 0.5, 1, 1]}],
    layouts=("",),
    make_input=lambda rng, case: [rng.integers(0, 255, (4, 3, 2), "u1") for _ in range(3)],
)
TestRagged = op_test("reshape", reference, args=[{"shape": [-1]}, {"rel_shape": [1, -1]}, {"src_dims": [1, 0, 2]}])
TestShapeInput = op_test(
    "reshape",
    reference,
    layouts=("",),
    args=[{}, {"layout": "AB"}],
    make_input=lambda rng, case: [rng.integers(0, 255, (4, 6), "u1") for _ in range(3)],
    extra_inputs=lambda rng, case: [[np.array(s, "i4") for s in ([3, 8], [-1, 2], [24, 1])]],
)


def _run(x, of="", extra=(), **kwargs):
    @pipeline_def(batch_size=1, num_threads=1)
    def pipe():
        more = [fn.external_source(source=lambda e=e: [e]) for e in extra]
        return fn.reshape(fn.external_source(source=lambda: [x], layout=of), *more, **kwargs)

    out = pipe().run()[0]
    return np.array(out.at(0)), out.layout()


@pytest.mark.parametrize(
    "kwargs, layout",
    [
        ({"shape": [2, 6]}, ""),
        ({"shape": [3, 2, 2]}, "HWC"),
        ({"shape": [12], "layout": "X"}, "X"),
        ({"layout": ""}, ""),
        ({"src_dims": [1, 0, 2]}, "HWC"),
    ],
)
def test_layout(kwargs, layout):
    assert _run(np.zeros((2, 3, 2), "u1"), "HWC", **kwargs)[1] == layout


@pytest.mark.parametrize("x", [np.zeros((0, 4), "u1"), np.zeros((2, 0, 2), "u1")])
def test_empty(x):
    assert _run(x, shape=[-1, 4])[0].shape == (0, 4)
    assert _run(x, shape=[0, -1])[0].shape == (0, 0)


def test_scalar():
    assert _run(np.array([5], "u1"), shape=[])[0].shape == ()


def test_nothing_is_copied():
    @pipeline_def(batch_size=2, num_threads=1)
    def pipe():
        x = fn.external_source(source=lambda: [np.ones((2, 6), "u1")] * 2)
        return x, fn.reshape(x, shape=[3, -1])

    x, y = pipe().run()
    assert [np.asarray(x.at(i)).ctypes.data for i in range(2)] == [np.asarray(y.at(i)).ctypes.data for i in range(2)]


def test_in_the_middle_of_a_chain():
    @pipeline_def(batch_size=1, num_threads=1)
    def pipe(image):
        flipped = fn.flip(fn.external_source(source=lambda: [image], layout="HWC"))
        return fn.crop(fn.reshape(flipped, shape=[2, 6, 1], layout="HWC"), crop=(1, 3), crop_pos_x=0, crop_pos_y=1)

    x = np.arange(12, dtype="u1").reshape(3, 4, 1)
    np.testing.assert_array_equal(pipe(x).run()[0].at(0), x[:, ::-1].reshape(2, 6, 1)[1:, :3])


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.data())
def test_one_extent_is_what_is_left(shape, data):
    x = np.arange(int(np.prod(shape))).reshape(shape)
    wanted = data.draw(st.permutations(shape))
    left = data.draw(st.integers(0, len(shape) - 1))
    np.testing.assert_array_equal(
        _run(x, shape=[-1 if d == left else n for d, n in enumerate(wanted)])[0], x.reshape(wanted)
    )


def test_errors_of_inputs():
    x = np.zeros((4, 6), "u1")
    with pytest.raises(RuntimeError, match="vectors of integers"):
        _run(x, extra=[np.array([4.0, 6.0], "f4")])
    with pytest.raises(RuntimeError, match="not both"):
        _run(x, extra=[np.array([4, 6], "i4")], shape=[4, 6])
    with pytest.raises(RuntimeError, match="nothing to do"):
        _run(x)
    with pytest.raises(RuntimeError, match="neither axes"):
        _run(x, src_dims=[0, 5])
    with pytest.raises(RuntimeError, match="`rel_shape` has 4 values"):
        _run(x, rel_shape=[1, 1, 1, 1])
    with pytest.raises(ValueError, match="is empty"):
        _run(x, rel_shape=[])
