# SPDX-License-Identifier: Apache-2.0
"""The iterators for PaddlePaddle: outputs without a copy, and errors. For epochs, see test_iterator_grid.py."""

import ctypes
import gc
import itertools
import os
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

paddle = pytest.importorskip("paddle", reason="PaddlePaddle is not installed: pip install penstock[paddle]")

from mistakes import MISTAKES  # noqa: E402

from penstock import fn, pipeline_def  # noqa: E402
from penstock.core.kernels import library  # noqa: E402
from penstock.gpu import dlpack  # noqa: E402
from penstock.pipeline import Pipeline  # noqa: E402
from penstock.plugin import paddle as plugin  # noqa: E402
from penstock.plugin.paddle import (  # noqa: E402
    DALIClassificationIterator,
    DALIGenericIterator,
    LastBatchPolicy,
    feed_ndarray,
    lod_tensor_clip,
    recursive_length,
    to_paddle_type,
)
from penstock.tensors import TensorCPU, TensorListCPU  # noqa: E402
from penstock.types import DALIDataType  # noqa: E402

DenseTensor = paddle.framework.core.DenseTensor


def labels(it):
    return [[np.array(part["label"]).ravel().tolist() for part in batch] for batch in it]


def test_a_list_of_dictionaries(make):
    it = DALIGenericIterator(make.reader(), ["data", "label"], reader_name="reader")
    batch = next(it)
    assert isinstance(batch, list) and len(batch) == 1 and list(batch[0]) == ["data", "label"]
    data, label = batch[0].values()
    assert type(data) is DenseTensor and data.shape() == [2, 8] and str(data._dtype()) == "paddle.uint8"
    assert label.shape() == [2, 1] and str(label._dtype()) == "paddle.int32" and data.lod() == []
    assert [len(it), it.size, it.batch_size] == [4, 8, 2]


def test_classification(make):
    it = DALIClassificationIterator(make.reader(), reader_name="reader", last_batch_policy="partial")
    assert labels(it) == [[[0, 1]], [[2, 3]], [[4, 5]], [[6]]]
    it.reset()
    assert list(it.next()[0]) == ["data", "label"]


def test_several_pipelines(make):
    pipes = [make.reader(shard=s, n_shards=2) for s in range(2)]
    it = DALIGenericIterator(pipes, ["data", "label"], reader_name="reader", last_batch_policy=LastBatchPolicy.PARTIAL)
    assert labels(it) == [[[0, 1], [3, 4]], [[2], [5, 6]]]


@pytest.mark.parametrize("dtype", ["u1", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "?"])
def test_types(make, dtype):
    x = np.array([[0, 1], [2, 3]]).astype(dtype)
    tensor = next(DALIGenericIterator(make.source(lambda i: x), ["x"]))[0]["x"]
    assert str(tensor._dtype()) == f"paddle.{x.dtype.name}"
    array = np.array(tensor)
    assert array.dtype == x.dtype and (array == x).all()


@pytest.mark.parametrize("dtype", ["u2", "u4", "u8"])
def test_types_that_paddle_has_not(make, dtype):
    """Paddle would interpret uint16 as bfloat16."""
    x = np.zeros((2, 3), dtype)
    with pytest.raises(TypeError, match=rf"output 'x': Paddle's tensors have no type for {x.dtype.name}; .*fn\.cast"):
        DALIGenericIterator(make.source(lambda i: x), ["x"])


def test_no_copy(make, monkeypatch):
    """The tensor and the tensor of a dynamic graph use the memory in which the pipeline wrote the batch."""
    pipe = make.source(lambda i: np.full((2, 64, 64, 3), i, "u1"), is_copied=True)
    seen, run = [], Pipeline.run
    monkeypatch.setattr(Pipeline, "run", lambda *a: seen.append(run(*a)) or seen[-1])
    it = DALIGenericIterator(pipe, ["x"], prepare_first_batch=False)
    for i in range(5):
        tensor = next(it)[0]["x"]
        assert tensor._ptr() == seen[-1][0].data_ptr() and tensor._ptr() % 64 == 0
        eager = paddle.to_tensor(tensor)
        assert eager.data_ptr() == tensor._ptr() and eager.place.is_cpu_place() and int(eager[1, 3, 3, 0]) == i


def test_tensors_outlive_the_pipeline_and_give_their_memory_back(make):
    gc.collect()
    before = library().memory_used()
    it = DALIGenericIterator(make.source(lambda i: np.full((2, 1000), i, "i4"), is_copied=True), ["x"])
    tensors = [batch[0]["x"] for batch in itertools.islice(it, 8)]
    it._pipes[0].close()
    del it
    gc.collect()
    assert [np.array(t)[1, 7] for t in tensors] == list(range(8))
    block = 8192  # 8000 bytes, rounded up by the pool
    assert library().memory_used() - before == len(tensors) * block
    eager = paddle.to_tensor(tensors[3])  # keeps it as well
    del tensors
    gc.collect()
    assert library().memory_used() - before == block and int(eager[1, 0]) == 3
    del eager
    gc.collect()
    assert library().memory_used() == before


def test_memory_that_may_only_be_read(make):
    x = np.arange(6, dtype="f4").reshape(2, 3)
    x.flags.writeable = False
    tensor = next(DALIGenericIterator(make.source(lambda i: x), ["x"]))[0]["x"]
    assert (np.array(tensor) == x).all()


def test_an_executor_takes_the_batch_as_it_is(make):
    paddle.enable_static()
    try:
        program = paddle.static.Program()
        with paddle.static.program_guard(program):
            x = paddle.static.data("x", [None, 3], "float32")
            total = paddle.sum(x)
        executor = paddle.static.Executor(paddle.CPUPlace())
        it = DALIGenericIterator(make.source([np.full((2, 3), i, "f4") for i in range(3)]), ["x"])
        assert [float(executor.run(program, feed=b[0], fetch_list=[total])[0]) for b in it] == [0, 6, 12]
    finally:
        paddle.disable_static()


def test_ragged_batches_are_refused_with_name_and_shapes(make):
    with pytest.raises(ValueError, match=r"output 'x'.*differ in shape.*\(1, 3\), \(2, 3\)"):
        DALIGenericIterator(make.ragged(), ["x"])


def test_sequences_of_different_lengths(make):
    tensor = next(DALIGenericIterator(make.ragged(), [("x", 1)]))[0]["x"]
    assert np.array(tensor).tolist() == [[1, 1, 1], [2, 2, 2], [2, 2, 2]]
    assert tensor.lod() == [[0, 1, 3]]


def test_two_levels_of_sequences(make):
    samples = [np.arange(8).reshape(2, 2, 2), np.arange(12).reshape(1, 6, 2)]
    tensor = next(DALIGenericIterator(make.source(lambda i: samples), [("x", 2)]))[0]["x"]
    assert np.array(tensor).tolist() == np.concatenate([s.reshape(-1, 2) for s in samples]).tolist()
    assert tensor.lod() == [[0, 2, 3], [0, 2, 4, 10]]


def test_the_last_batch_of_sequences(make):
    samples = [np.full((k + 1, 2), k, "i4") for k in range(3)]
    it = DALIGenericIterator(
        make.source(lambda i: samples, batch_size=3), [("x", 1)], size=5, last_batch_policy="PARTIAL"
    )
    assert [b[0]["x"].lod() for b in it] == [[[0, 1, 3, 6]], [[0, 1, 3]]]


@pytest.mark.parametrize(
    ("output_map", "text"),
    [
        ([("x", -1)], r"pairs \(name, levels of sequences\).*got \('x', -1\)"),
        ([("x", "y")], r"got \('x', 'y'\)"),
        ([("x", True)], "got .'x', True"),
        ([3], "got 3"),
        ([("x", 3)], "output 'x': samples of 2 dimensions have no 3 levels"),
        ({"x": 1}, "list of names"),
        ([], "list of names"),
    ],
)
def test_wrong_output_maps(make, output_map, text):
    with pytest.raises(ValueError, match=text):
        DALIGenericIterator(make.ragged(), output_map)


def test_sequences_that_differ_beyond_their_lengths(make):
    samples = [np.zeros((1, 2), "f4"), np.zeros((1, 3), "f4")]
    with pytest.raises(ValueError, match=r"first 1 extents only; got \(1, 2\), \(1, 3\)"):
        DALIGenericIterator(make.source(lambda i: samples), [("x", 1)])


@pytest.mark.parametrize(("kwargs", "error", "text"), MISTAKES)
def test_mistakes_are_told_before_the_first_batch(make, kwargs, error, text):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(error, match=text):
            DALIGenericIterator(make.reader(), **{"output_map": ["data", "label"], **kwargs})


@pytest.mark.parametrize("policy", LastBatchPolicy)
def test_reset_in_the_middle_of_an_epoch(make, policy):
    it = DALIGenericIterator(make.reader(n=8), ["data", "label"], reader_name="reader", last_batch_policy=policy)
    next(it)
    it.reset()
    assert labels(it) == [[[0, 1]], [[2, 3]], [[4, 5]], [[6, 7]]]


def test_checkpoints_go_on_in_the_middle_of_an_epoch(make):
    def iterator(checkpoint=None):
        pipe = make.reader(random_shuffle=True, seed=3, enable_checkpointing=True, checkpoint=checkpoint)
        return DALIClassificationIterator(pipe, reader_name="reader", auto_reset=True)

    it = iterator()
    next(it)
    next(it)
    saved = it.checkpoints()[0]
    assert labels(iterator(saved)) == labels(it)


def test_feed_ndarray():
    x = np.arange(6, dtype="f4").reshape(2, 3)
    for source in (TensorCPU(x), TensorListCPU(x)):
        eager, dense, array = paddle.zeros([2, 3]), DenseTensor(), np.zeros((2, 3), "f4")
        dense.set(array, paddle.CPUPlace())
        for target, seen in (
            (eager, eager.numpy),
            (dense, lambda dense=dense: np.array(dense)),
            (array.ctypes.data, lambda array=array: array),
            (ctypes.c_void_p(array.ctypes.data), lambda array=array: array),
        ):
            assert feed_ndarray(source, target) is target
            assert (seen() == x).all()
            array[:] = 0


@pytest.mark.parametrize(
    ("target", "error", "text"),
    [
        (lambda: paddle.zeros([3, 2]), ValueError, r"shapes differ: \[2, 3\].*\[3, 2\]"),
        (lambda: paddle.zeros([2, 3], "int32"), TypeError, "types differ: paddle.float32 .*int32"),
        (lambda: np.zeros((2, 3), "f4"), TypeError, "an address or a Paddle tensor; got ndarray"),
        (lambda: True, TypeError, "got bool"),
    ],
)
def test_feed_ndarray_refuses(target, error, text):
    with pytest.raises(error, match=text):
        feed_ndarray(TensorListCPU(np.zeros((2, 3), "f4")), target())


def test_functions_of_dalis():
    batch = TensorListCPU([np.zeros((2, 3), "u1"), np.zeros((1, 3), "u1")])
    assert str(to_paddle_type(batch)) == "paddle.uint8"
    assert [recursive_length(batch, n) for n in (1, 2, 3)] == [[[2]], [[2], [2, 1]], [[2], [2, 1], [3, 3, 3]]]
    for dtype in (DALIDataType.UINT8, DALIDataType.FLOAT16, DALIDataType.BOOL, DALIDataType.INT64):
        assert to_paddle_type(SimpleNamespace(dtype=dtype)) is not None
    tensor = DenseTensor()
    tensor.set(np.arange(12, dtype="f4").reshape(6, 2), paddle.CPUPlace())
    tensor.set_recursive_sequence_lengths([[1, 2, 3]])
    clipped = lod_tensor_clip(tensor, 2)
    assert np.array(clipped).tolist() == [[0, 1], [2, 3], [4, 5]] and clipped.lod() == [[0, 1, 3]]


def on_gpu(samples):
    @pipeline_def(batch_size=len(samples), num_threads=1, device_id=0)
    def pipe():
        return fn.external_source(source=lambda i: samples).gpu()

    return pipe()


class OnDevice:
    """The parts of a Paddle GPU tensor that the plugin needs."""

    def _set_dims(self, shape):
        self.shape = shape

    def _mutable_data(self, place, dtype):
        assert place == ("gpu", 0)
        zeros = np.zeros((1, *self.shape), str(dtype).removeprefix("paddle."))
        (self.memory,) = on_gpu(zeros).run()
        return self.memory.data_ptr()

    def set_recursive_sequence_lengths(self, lengths):
        self.lengths = lengths

    def __array__(self, *args, **kwargs):
        ctypes.CDLL(os.environ["PENSTOCK_CUDA_DRIVER"]).cuCtxSynchronize()  # Paddle reads in the stream of the copy
        return self.memory.as_cpu().as_array()[0]


@pytest.mark.skipif("PENSTOCK_CUDA_DRIVER" not in os.environ, reason="needs the emulated device, whose memory is ours")
class TestGpu:
    """On an emulated device. Host memory replaces Paddle's GPU memory."""

    @pytest.fixture(autouse=True)
    def paddle_on_gpu(self, monkeypatch):
        streams = []

        def from_dlpack(capsule):
            address, shape, dtype, device, owner = dlpack.take(capsule)
            n = int(np.prod(shape)) * dtype.itemsize
            ctypes.CDLL(os.environ["PENSTOCK_CUDA_DRIVER"]).cuCtxSynchronize()  # as Paddle's stream waits
            tensor = DenseTensor()
            tensor.set(np.frombuffer(ctypes.string_at(address, n), dtype).reshape(shape), paddle.CPUPlace())
            return tensor

        def current_stream(device):
            streams.append(device)
            return SimpleNamespace(cuda_stream=0)

        monkeypatch.setattr(paddle, "CUDAPlace", lambda device: ("gpu", device))
        monkeypatch.setattr(plugin, "_core", SimpleNamespace(from_dlpack=from_dlpack, DenseTensor=OnDevice))
        monkeypatch.setattr(paddle, "is_compiled_with_cuda", lambda: True)
        monkeypatch.setattr(paddle.device.cuda, "current_stream", current_stream)
        self.streams = streams

    def test_dense(self):
        x = np.arange(12, dtype="f4").reshape(3, 4)
        it = DALIGenericIterator(on_gpu(x), ["x"], size=5, last_batch_policy="PARTIAL")
        assert [np.array(b[0]["x"]).tolist() for b in it] == [x.tolist(), x[:2].tolist()]
        assert self.streams == [0, 0]

    def test_sequences(self):
        samples = [np.full((k + 1, 2), k, "i4") for k in range(3)]
        it = DALIGenericIterator(on_gpu(samples), [("x", 1)], size=5, last_batch_policy="PARTIAL")
        got = [b[0]["x"] for b in it]
        assert [np.array(t).tolist() for t in got] == [np.concatenate(samples[:n]).tolist() for n in (3, 2)]
        assert [t.lengths for t in got] == [[[1, 2, 3]], [[1, 2]]] and self.streams == [0, 0]

    def test_ragged(self):
        with pytest.raises(ValueError, match="output 'x'.*differ in shape"):
            DALIGenericIterator(on_gpu([np.zeros((1, 2)), np.zeros((2, 2))]), ["x"])

    def test_a_paddle_without_cuda_says_so(self, monkeypatch):
        monkeypatch.setattr(paddle, "is_compiled_with_cuda", lambda: False)
        with pytest.raises(RuntimeError, match=r"paddlepaddle-gpu, or end the pipeline with \.cpu"):
            DALIGenericIterator(on_gpu(np.zeros((2, 3), "f4")), ["x"])
