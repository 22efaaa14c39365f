# SPDX-License-Identifier: Apache-2.0
"""External data: `feed_input`, `run(name=data)`, `iter_setup`, and sources that reuse their arrays."""

import threading
import time

import numpy as np
import pytest

from penstock import fn, ops, pipeline_def, types
from penstock.pipeline import Pipeline
from penstock.tensors import TensorCPU, TensorListCPU

DEPTHS = [1, 2, 3, 4]


def rows(i, n=2):
    return np.full((n, 1), i, "i4")


def fed(batch_size=2, depth=2, **kwargs):
    pipe_args = {k: kwargs.pop(k) for k in ("exec_pipelined", "exec_async") if k in kwargs}
    pipe = Pipeline(batch_size, prefetch_queue_depth=depth, **pipe_args)
    with pipe:
        pipe.set_outputs(fn.external_source(name="x", **kwargs))
    return pipe


def take(pipe):
    return pipe.run()[0].as_array().ravel().tolist()


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("pipelined", [True, False])
def test_feeding_and_running_by_turns(depth, pipelined):
    pipe = fed(depth=depth, exec_pipelined=pipelined)
    for i in range(6):
        pipe.feed_input("x", rows(i))
        assert take(pipe) == [i, i]


@pytest.mark.parametrize("depth", DEPTHS)
def test_feeding_ahead(depth):
    pipe = fed(depth=depth)
    for i in range(6):
        pipe.feed_input("x", rows(i))
    assert [take(pipe) for _ in range(6)] == [[i, i] for i in range(6)]


@pytest.mark.parametrize("depth", DEPTHS)
def test_run_with_data(depth):
    pipe = fed(depth=depth)
    assert [pipe.run(x=rows(i))[0].as_array()[0, 0] for i in range(6)] == list(range(6))


@pytest.mark.parametrize("depth", DEPTHS)
def test_feeding_and_scheduling(depth):
    pipe = fed(depth=depth)
    assert pipe.input_feed_count("x") == depth
    for i in range(depth):
        pipe.feed_input("x", rows(i))
    pipe.schedule_run()
    got = []
    for i in range(depth, 8):
        got.append(pipe.share_outputs()[0].as_array()[0, 0])
        pipe.release_outputs()
        pipe.feed_input("x", rows(i))
        pipe.schedule_run()
    assert got == list(range(8 - depth))


def test_two_inputs_and_an_operator():
    @pipeline_def(batch_size=2)
    def define():
        image = fn.external_source(name="image", layout="HWC")
        return fn.brightness(image, brightness=fn.external_source(name="factor"))

    pipe = define()
    for i in range(4):
        (out,) = pipe.run(image=np.full((2, 2, 2, 3), 10, "u1"), factor=np.array([i, 2], "f4"))
        assert out.as_array()[:, 0, 0, 0].tolist() == [10 * i, 20]
    pipe.feed_input("image", np.zeros((2, 2, 2, 3), "u1"))
    with pytest.raises(RuntimeError, match="feed_input"):
        pipe.run()


@pytest.mark.parametrize(
    "data",
    [
        rows(7),
        [np.int32([7]), np.int32([7])],
        TensorListCPU(rows(7)),
        [TensorCPU(np.int32([7])), TensorCPU(np.int32([7]))],
        [[7], [7]],
    ],
    ids=["array", "list", "TensorListCPU", "list of TensorCPU", "list of lists"],
)
def test_what_can_be_fed(data):
    pipe = fed()
    pipe.feed_input("x", data)
    out = pipe.run()[0]
    assert out.as_array().tolist() == [[7], [7]] and out.dtype == types.INT32


def test_frameworks_can_be_fed():
    torch = pytest.importorskip("torch")
    pipe = fed()
    assert pipe.run(x=torch.tensor([[1.5], [2.5]]))[0].as_array().tolist() == [[1.5], [2.5]]
    pipe = fed()  # one input keeps its type
    assert pipe.run(x=[torch.tensor([1]), torch.tensor([2])])[0].dtype == types.INT64


def test_ragged_and_smaller_batches_and_layouts():
    pipe = fed(batch_size=3)
    pipe.feed_input("x", [np.zeros((1, 2), "f4"), np.ones((3, 2), "f4")], layout="HW")
    out = pipe.run()[0]
    assert out.shape() == [(1, 2), (3, 2)] and out.layout() == "HW"


def test_data_is_copied_when_it_is_fed():
    pipe, x = fed(), rows(1)
    pipe.feed_input("x", x)
    x[:] = 9
    assert take(pipe) == [1, 1]
    pipe, x = fed(no_copy=True), rows(1)
    pipe.feed_input("x", x)
    assert pipe.run()[0].data_ptr() == x.ctypes.data


@pytest.mark.parametrize("depth", DEPTHS)
def test_sources_may_use_their_arrays_again(depth):
    buffer = rows(0)

    def source(i):
        buffer[:] = i
        return buffer

    pipe = pipeline_def(lambda: fn.external_source(source=source), batch_size=2, prefetch_queue_depth=depth)()
    assert [take(pipe) for _ in range(6)] == [[i, i] for i in range(6)]


def test_by_data_node():
    pipe = Pipeline(2)
    with pipe:
        x = fn.external_source()
        a, b = fn.external_source(num_outputs=2)
        pipe.set_outputs(x, a, b)
    pipe.feed_input(x, rows(1))
    pipe.feed_input([a, b], (rows(2), rows(3)))
    assert [out.as_array()[0, 0] for out in pipe.run()] == [1, 2, 3]


def test_a_data_set_that_is_only_indexed():
    """Objects with __getitem__ but no __iter__, such as data sets for PyTorch."""

    class Numbers:
        def __getitem__(self, i):
            if i == 5:
                raise IndexError
            return np.int32([i]), np.float32(i / 2)

    pipe = pipeline_def(
        lambda: fn.external_source(Numbers(), num_outputs=2, batch=False, cycle="raise"), batch_size=2, num_threads=1
    )()
    for _ in range(2):
        assert [pipe.run()[1].as_array().tolist() for _ in range(2)] == [[0, 0.5], [1, 1.5]]
        with pytest.raises(StopIteration):
            for _ in range(2):
                pipe.run()
        pipe.reset()


def test_repeat_last():
    pipe = fed(repeat_last=True)
    with pytest.raises(RuntimeError, match=r"no data was fed to the input 'x' .* or run\(x=data\)"):
        pipe.run()
    pipe.feed_input("x", rows(1))
    assert take(pipe) == take(pipe) == [1, 1]
    pipe.feed_input("x", rows(2))
    assert take(pipe) == take(pipe) == [2, 2]


def test_blocking_waits_for_data_of_another_thread():
    pipe = fed(blocking=True)

    def feed():
        for i in range(3):
            time.sleep(0.02)
            pipe.feed_input("x", rows(i))

    pipe.build()
    thread = threading.Thread(target=feed)
    thread.start()
    assert [take(pipe) for _ in range(3)] == [[i, i] for i in range(3)]
    thread.join()


def test_reset_keeps_what_was_fed():
    pipe = fed()
    for i in range(3):
        pipe.feed_input("x", rows(i))
    assert take(pipe) == [0, 0]
    pipe.reset()
    assert take(pipe) == [1, 1] and take(pipe) == [2, 2]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda p: p.run(), RuntimeError, "call Pipeline.feed_input"),
        (lambda p: p.feed_input("y", rows(0)), KeyError, r"no input 'y'; it has \['x'\]"),
        (lambda p: p.run(y=rows(0)), KeyError, "no input 'y'"),
        (lambda p: p.run(x=rows(0, 3)), ValueError, r"3 samples.*at most 2"),
        (lambda p: p.run(x=np.float32(1)), ValueError, "got a scalar"),
        (lambda p: p.run(x=[np.zeros(2), np.zeros((2, 2))]), ValueError, "same number of dimensions"),
    ],
)
def test_wrong_data(call, error, text):
    with pytest.raises(error, match=text):
        call(fed())


def test_what_the_input_asks_for():
    for kwargs, text in (
        ({"dtype": types.FLOAT}, "type int32, but dtype asks for float32"),
        ({"ndim": 2}, "1 dimensions, but ndim asks for 2"),
        ({"layout": "HW"}, "1 dimensions, which the layout 'HW' does not fit"),
    ):
        with pytest.raises(ValueError, match=text):
            fed(**kwargs).run(x=rows(0))


def test_an_input_with_a_source_can_not_be_fed():
    pipe = pipeline_def(lambda: fn.external_source(source=lambda i: rows(i), name="x"), batch_size=2)()
    with pytest.raises(RuntimeError, match="has its own source"):
        pipe.feed_input("x", rows(0))


class OldStyle(Pipeline):
    """A pipeline in the style of DALI's first versions."""

    def __init__(self, depth, stop=None, **kwargs):
        super().__init__(batch_size=2, num_threads=1, device_id=0, prefetch_queue_depth=depth, **kwargs)
        self.input, self.scale = ops.ExternalSource(), ops.Brightness(brightness=2.0)
        self.stop, self.i = stop, 0

    def define_graph(self):
        self.data = self.input()
        return self.scale(self.data)

    def iter_setup(self):
        if self.i == self.stop:
            raise StopIteration
        self.feed_input(self.data, np.full((2, 1, 1, 3), self.i, "u1"), layout="HWC")
        self.i += 1


@pytest.mark.parametrize("depth", DEPTHS)
def test_iter_setup_is_called_once_for_each_batch(depth):
    pipe = OldStyle(depth)
    pipe.build()
    assert [take(pipe)[0] for _ in range(5)] == [0, 2, 4, 6, 8]
    assert pipe.i == 5 + depth - 1  # as many ahead as DALI


def test_iter_setup_without_prefetching():
    pipe = OldStyle(2, exec_pipelined=False, exec_async=False)
    assert [take(pipe)[0] for _ in range(3)] == [0, 2, 4] and pipe.i == 3


@pytest.mark.parametrize("depth", DEPTHS)
def test_iter_setup_may_end_the_epoch(depth):
    pipe = OldStyle(depth, stop=3)
    for _ in range(3):
        got = []
        with pytest.raises(StopIteration):
            while True:
                got.append(take(pipe)[0])
        assert got == [0, 2, 4]
        pipe.i = 0
        pipe.reset()


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("sizes", [(2, 1), (1, 2), (3, 0), (0, 3)])
def test_sources_of_different_batch_sizes(sizes, debug):
    """An operator with both as inputs would read missing samples."""

    @pipeline_def(batch_size=3, num_threads=1, debug=debug)
    def pipe():
        a, b = (fn.external_source(source=lambda i, n=n: [np.uint8([n])] * n) for n in sizes)
        return a, b, a + b

    with pytest.raises(
        RuntimeError, match="all sources of a pipeline give batches of one size|all give batches of one size"
    ):
        pipe().run()
