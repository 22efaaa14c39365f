# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

from penstock import fn, pipeline_def, types


def build(batch_size=2, **kwargs):
    @pipeline_def(batch_size=batch_size, num_threads=1)
    def pipe():
        out = fn.external_source(**kwargs)
        return tuple(out) if isinstance(out, list) else out

    return pipe()


def values(outputs):
    return [np.array(outputs[0].at(i)).tolist() for i in range(len(outputs[0]))]


def test_a_callable_is_given_the_iteration():
    pipe = build(source=lambda i: np.int32([[i], [i + 10]]))
    assert [values(pipe.run()) for _ in range(3)] == [[[0], [10]], [[1], [11]], [[2], [12]]]


def test_a_callable_without_arguments():
    assert values(build(source=lambda: [np.float32(1), np.float32(2)]).run()) == [1.0, 2.0]


def test_samples_by_their_info():
    pipe = build(batch=False, source=lambda info: np.int32([info.idx_in_epoch, info.idx_in_batch, info.iteration]))
    pipe.run()
    assert values(pipe.run()) == [[2, 0, 1], [3, 1, 1]]


def test_batch_info():
    pipe = build(source=lambda info: np.full((2, 1), info.iteration, "i4"), batch_info=True)
    pipe.run()
    assert values(pipe.run()) == [[1], [1]]


def test_smaller_batches_and_ragged_samples():
    pipe = build(batch_size=4, source=lambda i: [np.zeros((i + 1, 2), "u1"), np.zeros((1, 5), "u1")])
    assert pipe.run()[0].shape() == [(1, 2), (1, 5)]


@pytest.mark.parametrize("cycle, want", [(True, [0, 1, 0, 1]), ("quiet", [0, 1, 0, 1])])
def test_iterables_start_again(cycle, want):
    pipe = build(batch_size=1, source=[np.int32([[0]]), np.int32([[1]])], cycle=cycle)
    assert [values(pipe.run())[0][0] for _ in range(4)] == want


def test_iterables_end():
    pipe = build(batch_size=1, source=[np.int32([[0]])])
    pipe.run()
    with pytest.raises(StopIteration):
        pipe.run()


@pytest.mark.parametrize("cycle", ["quiet", True, "raise", None])
@pytest.mark.parametrize("batch", [True, False])
def test_nothing_to_begin_again_with(cycle, batch):
    pipe = build(batch_size=1, source=[], cycle=cycle, batch=batch)
    for _ in range(2):
        with pytest.raises(StopIteration):
            pipe.run()
        pipe.reset()


@pytest.mark.parametrize("cycle", [False, "no", "quiet", "raise", True])
def test_callables_say_themselves_when_they_end(cycle):
    with pytest.raises(ValueError, match=f"cycle={cycle!r} needs an iterable or a generator function"):
        build(source=lambda i: [np.zeros(1)], cycle=cycle).build()


def test_raise_ends_each_epoch():
    pipe = build(batch_size=1, source=[np.int32([[0]]), np.int32([[1]])], cycle="raise")
    for _ in range(2):
        assert [values(pipe.run())[0][0] for _ in range(2)] == [0, 1]
        with pytest.raises(StopIteration):
            pipe.run()
        pipe.reset()


def test_several_outputs():
    pipe = build(source=lambda i: (np.zeros((2, 3), "u1"), np.ones((2, 1), "f4")), num_outputs=2, layout=["A", "B"])
    out = pipe.run()
    assert [o.layout() for o in out] == ["A", "B"] and [o.dtype for o in out] == [types.UINT8, types.FLOAT]


def test_fed_from_outside():
    pipe = build(name="in", batch_size=2)
    data = np.int32([[1], [2]])
    pipe.feed_input("in", data)
    data[:] = 9  # a copy was taken
    assert values(pipe.run()) == [[1], [2]]


@pytest.mark.parametrize(
    "kwargs, data, text",
    [
        ({"dtype": types.FLOAT}, np.int32([[1], [2]]), "type int32.*FLOAT|type int32, but dtype asks for float32"),
        ({"ndim": 2}, np.int32([[1], [2]]), "1 dimensions, but ndim asks for 2"),
        ({"layout": "HWC"}, np.int32([[1], [2]]), "layout 'HWC'"),
        ({}, np.zeros((3, 1)), "3 samples|at most 2"),
        ({}, [np.zeros(1), np.zeros((1, 1))], "same number of dimensions"),
        ({}, [np.zeros(1, "u1"), np.zeros(1, "f4")], "the same type"),
    ],
    ids=["dtype", "ndim", "layout", "too many", "dimensions", "types"],
)
def test_data_that_does_not_fit(kwargs, data, text):
    with pytest.raises(Exception, match=text):
        build(source=lambda i: data, **kwargs).run()


def test_arguments_that_do_not_fit():
    with pytest.raises(ValueError, match="cycle takes"):
        build(source=[np.zeros((1, 1))], cycle="always").build()
    with pytest.raises(TypeError, match="a callable or an iterable"):
        build(source=3).build()


@pytest.mark.parametrize("no_copy", [True, False])
def test_odd_arrays(no_copy):
    """A step of -1 along an axis of one element, and numbers at odd addresses."""
    one = np.arange(6, dtype="u1").reshape(1, 2, 3)[::-1]
    assert one.strides[0] < 0 and one.flags.c_contiguous
    odd = np.zeros(25, "u1")[1:].view("f4").reshape(1, 2, 3)
    odd[...] = one
    assert not odd.flags.aligned

    @pipeline_def(batch_size=1, num_threads=1)
    def pipe():
        a, b = (fn.external_source(source=lambda i, x=x: x, no_copy=no_copy) for x in (one, odd))
        return a, fn.cast(a, dtype=np.int32), b, fn.cast(b, dtype=np.int32)

    for out in pipe().run():
        np.testing.assert_array_equal(out.at(0), one[0])


def test_a_layout_that_is_no_text():
    with pytest.raises(TypeError, match="layout takes a string"):

        @pipeline_def(batch_size=1)
        def pipe():
            return fn.external_source(source=lambda: [np.zeros(3)], layout=3)

        pipe()
