# SPDX-License-Identifier: Apache-2.0
"""User functions on GPU batches. If CuPy is missing, a replacement is used that supports arrays of the emulated device,
whose memory the host can read."""

import ctypes
import importlib.util
import os
import sys
import time
import types as kinds
from contextlib import contextmanager

import numpy as np
import pytest

from penstock import PipelineError, fn, pipeline_def, types
from penstock.gpu.driver import Device
from penstock.gpu.stream import ForeignStream

REAL = os.environ.get("PENSTOCK_TEST_GPU") == "1"


STREAMS: list[int] = []  # stack of current streams


class Array:
    """An array that appears to exist only on the GPU. Operations on it are executed in the current stream."""

    @property
    def values(self):
        device = Device.get(0)
        with device:
            ForeignStream(device, STREAMS[-1]).synchronize()
        return self.memory

    def __init__(self, values):
        device = Device.get(0)
        with device:  # never released, so that the host may write to it at any time
            address = device.allocate(max(values.nbytes, 1))
        memory = (ctypes.c_char * values.nbytes).from_address(address) if values.nbytes else bytearray()
        self.memory = np.frombuffer(memory, values.dtype).reshape(values.shape)
        self.memory[...] = values

    @property
    def __cuda_array_interface__(self):
        v = self.memory
        strides = None if v.flags.c_contiguous else v.strides
        return {
            "data": (v.ctypes.data, False),
            "shape": v.shape,
            "typestr": v.dtype.str,
            "version": 3,
            "strides": strides,
        }

    shape = property(lambda self: self.memory.shape)
    flags = property(lambda self: self.memory.flags)

    def __mul__(self, other):
        return Array(self.values * other)

    def __getitem__(self, key):
        part = Array.__new__(Array)
        part.memory, part.whole = self.memory[key], self
        return part

    def __setitem__(self, key, value):
        self.values[key] = value

    def sum(self):
        return Array(np.asarray(self.values.sum(dtype="i8")))


def _view(lent):
    i = lent.__cuda_array_interface__
    shape, dtype = i["shape"], np.dtype(i["typestr"])
    n = int(np.prod(shape)) * dtype.itemsize
    memory = (ctypes.c_char * n).from_address(i["data"][0]) if n else bytearray()
    array = Array.__new__(Array)
    array.memory, array.lent = np.frombuffer(memory, dtype).reshape(shape), lent
    return array


@pytest.fixture
def cupy(monkeypatch):
    """CuPy, and the streams that were its current one."""
    if REAL:
        return pytest.importorskip("cupy"), []
    STREAMS.clear()

    @contextmanager
    def external_stream(handle):
        STREAMS.append(handle)
        yield

    fake = kinds.ModuleType("cupy")
    fake.asarray = _view
    fake.ascontiguousarray = lambda a: Array(np.ascontiguousarray(a.values))  # adds an axis to scalars, as CuPy does
    fake.cuda = kinds.SimpleNamespace(ExternalStream=external_stream)
    monkeypatch.setitem(sys.modules, "cupy", fake)
    return fake, STREAMS


SHAPES = [(3, 4), (1, 1), (0, 5), (6, 2)]


def samples(i):
    return [np.arange(i, i + np.prod(s), dtype="i4").reshape(s) for s in SHAPES]


def run(function, n=2, inputs=1, **kwargs):
    @pipeline_def(batch_size=4, num_threads=1, device_id=0)
    def pipe():
        x = fn.external_source(source=samples, layout="AB").gpu()
        out = fn.python_function(*[x] * inputs, function=function, **kwargs)
        return tuple(out) if isinstance(out, (list, tuple)) else out

    p = pipe()
    out = []
    for _ in range(n):
        batches = [o.as_cpu() for o in p.run()]
        out.append([[np.array(b.at(i)) for i in range(len(b))] for b in batches])
    return out, [b.layout() for b in batches]


def test_arrays_go_in_and_come_out(cupy):
    got, layouts = run(lambda a: (a * 2, a[::-1], a.sum()), num_outputs=3, output_layouts=["AB", "AB"])
    assert layouts == ["AB", "AB", ""]
    for i, (doubled, turned, sums) in enumerate(got):
        for s, d, t, total in zip(samples(i), doubled, turned, sums):
            np.testing.assert_array_equal(d, s * 2)
            np.testing.assert_array_equal(t, s[::-1])
            assert total.shape == () and total == s.sum()
    if not REAL:
        assert len(set(cupy[1])) >= 1 and all(cupy[1])


def test_whole_batches(cupy):
    got, _ = run(lambda x, y: [a * 3 for a in x[::-1]], inputs=2, batch_processing=True)
    for i, (out,) in enumerate(got):
        for s, o in zip(samples(i)[::-1], out):
            np.testing.assert_array_equal(o, s * 3)


def test_an_array_that_is_used_again_is_copied(cupy):
    kept = []

    def again(a):
        if not kept:
            kept.append(cupy[0].zeros((1,), "i4") if REAL else Array(np.zeros((1,), "i4")))
        kept[0][0] = a.shape[0]
        return kept[0]

    got, _ = run(again)
    assert [o.tolist() for o in got[0][0]] == [[3], [1], [0], [6]]


@pytest.mark.skipif(REAL, reason="only streams of the emulated device can be held")
def test_what_a_call_asked_for_is_done_before_the_next_call_on_another_stream(cupy):
    lib = ctypes.CDLL(os.environ["PENSTOCK_CUDA_DRIVER"])
    lib.emulated_hold.restype = ctypes.c_void_p
    kept, gates, written = [], [], []

    def again(a):
        if not kept:
            kept.append(Array(np.zeros((1,), "i4")))
            gates.append(lib.emulated_hold(ctypes.c_void_p(STREAMS[-1])))
            return kept[0]
        kept[0][0] = 7  # executed later in the stream of this batch
        written.append(STREAMS[-1])
        return kept[0]

    @pipeline_def(batch_size=1, num_threads=1, device_id=0)
    def pipe():
        x = fn.external_source(source=lambda i: [np.full((1, 1), i, "i4")]).gpu()
        return fn.python_function(x, function=again)

    p = pipe()
    p.build()
    p.schedule_run()
    time.sleep(0.2)
    too_early = list(written)
    lib.emulated_let_go(ctypes.c_void_p(gates[0]))
    assert not too_early
    assert [int(np.array(p.share_outputs()[0].as_cpu().at(0))[0]), int(np.array(p.run()[0].as_cpu().at(0))[0])] == [
        0,
        7,
    ]
    assert written


def test_no_outputs_and_no_inputs(cupy):
    seen = []

    @pipeline_def(batch_size=2, num_threads=1, device_id=0)
    def pipe():
        x = fn.external_source(source=lambda i: np.full((2, 3), i, "f4")).gpu()
        fn.python_function(x, function=lambda a: seen.append(a.shape), num_outputs=0)
        made = fn.python_function(
            function=lambda: cupy[0].ones((2,), "f4") if REAL else Array(np.ones((2,), "f4")), device="gpu"
        )
        return made, x

    made, _ = pipe().run()
    assert seen[:2] == [(3,), (3,)] and made.as_cpu().as_array().tolist() == [[1, 1], [1, 1]]


def test_constants_may_be_written_to(cupy):
    def writes(a):
        a[...] = 7
        return a

    @pipeline_def(batch_size=2, num_threads=1, device_id=0)
    def pipe():
        x = fn.zeros(shape=[3]).gpu()
        c = types.Constant(np.float32([1, 2]), device="cpu").gpu()
        return fn.python_function(c, function=writes), c, x

    p = pipe()
    for _ in range(3):
        written, c, _ = (o.as_cpu().as_array().tolist() for o in p.run())
        assert written == [[7, 7]] * 2 and c == [[1, 2]] * 2


def test_in_a_branch(cupy):
    @pipeline_def(batch_size=4, num_threads=1, device_id=0, enable_conditionals=True)
    def pipe():
        x = fn.external_source(source=samples).gpu()
        k = fn.external_source(source=lambda i: [np.int32(k) for k in range(4)])
        if k > 1:
            x = fn.python_function(x, function=lambda a: a * 10)
        return x

    (out,) = pipe().run()
    for k, s in enumerate(samples(0)):
        np.testing.assert_array_equal(out.as_cpu().at(k), s * (10 if k > 1 else 1))


@pytest.mark.parametrize(
    "function, text",
    [
        (lambda a: 1 / 0, "raised ZeroDivisionError for sample 0"),
        (lambda a: np.zeros(3), "output 0 of .*arrays of CuPy; got ndarray"),
        (lambda a: a if a.shape[0] == 3 else a.sum(), "same number of dimensions and the same type"),
    ],
)
def test_errors(cupy, function, text):
    with pytest.raises(PipelineError, match=text) as caught:
        run(function)
    assert "test_python_functions_gpu.py" in str(caught.value)


def test_without_cupy(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(PipelineError, match="can't be imported.*install cupy-cuda13x"):
        run(lambda a: a)


def test_capsules():
    """Capsules returned by one function are accepted by another."""
    name = '"dltensor"'

    def turned(capsules):
        assert all(name in str(c) for c in capsules)
        return capsules[::-1]

    @pipeline_def(batch_size=3, num_threads=1, device_id=0)
    def pipe():
        x = fn.external_source(source=lambda i: np.arange(6, dtype="f4").reshape(3, 2) + i).gpu()
        return fn.dl_tensor_python_function(x, function=turned)

    p = pipe()
    for i in range(3):
        got = p.run()[0].as_cpu().as_array()
        np.testing.assert_array_equal(got, (np.arange(6, dtype="f4").reshape(3, 2) + i)[::-1])


@pytest.mark.skipif(not REAL or importlib.util.find_spec("torch") is None, reason="needs PyTorch with CUDA")
def test_tensors_of_pytorch():
    import torch

    from penstock.plugin.pytorch import fn as torch_fn

    @pipeline_def(batch_size=4, num_threads=1, device_id=0)
    def pipe():
        x = fn.external_source(source=samples).gpu()
        return torch_fn.torch_python_function(x, function=lambda t: (t * 2).flip(0), device="gpu")

    p = pipe()
    assert torch.cuda.is_available()
    for i in range(5):
        out = p.run()[0].as_cpu()
        for k, s in enumerate(samples(i)):
            np.testing.assert_array_equal(out.at(k), (s * 2)[::-1])


@pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="needs Numba")
@pytest.mark.parametrize(
    "kwargs, text",
    [
        ({"blocks": [1, 1, 1]}, "`blocks` and `threads_per_block` are needed"),
        ({"batch_processing": True}, "batch_processing=True is for the CPU"),
    ],
)
def test_what_numba_kernels_need(kwargs, text):
    from penstock.plugin.numba.fn.experimental import numba_function

    sizes = {"in_types": types.FLOAT, "out_types": types.FLOAT, "ins_ndim": 1, "outs_ndim": 1}

    @pipeline_def(batch_size=1, num_threads=1, device_id=0)
    def pipe():
        x = fn.external_source(source=lambda i: np.zeros((1, 3), "f4")).gpu()
        return numba_function(x, run_fn=lambda out, x: None, **sizes, **kwargs)

    with pytest.raises(PipelineError, match=text):
        pipe().run()


def numba_for_cuda():
    """`numba.cuda`, if it is installed and can compile a kernel: some versions are incompatible with NumPy's."""
    cuda = pytest.importorskip("numba.cuda")
    try:
        cuda.jit(lambda x: None)[1, 1](np.zeros(1, "f4"))
    except Exception as e:
        pytest.skip(f"Numba for CUDA does not work here without penstock either: {e!r}")
    return cuda


@pytest.mark.skipif(not REAL or importlib.util.find_spec("numba_cuda") is None, reason="needs Numba for CUDA")
@pytest.mark.parametrize("other_shape", [False, True])
def test_kernels_of_numba(other_shape):
    """A kernel of `numba.cuda` for each sample, on the batch's stream."""
    cuda = numba_for_cuda()

    from penstock.plugin.numba.fn.experimental import numba_function

    def rows_doubled(out, x):
        i, j = cuda.grid(2)
        if i < out.shape[0] and j < out.shape[1]:
            out[i, j] = 2 * x[i, j]

    def one_row(outs, ins):
        for out, shape in zip(outs[0], ins[0]):
            out[:] = (1, shape[1])

    @pipeline_def(batch_size=3, num_threads=1, device_id=0)
    def pipe():
        x = fn.external_source(source=ragged).gpu()
        sizes = {"in_types": types.FLOAT, "out_types": types.FLOAT, "ins_ndim": 2, "outs_ndim": 2}
        launch = {"blocks": [4, 4], "threads_per_block": [8, 8], "setup_fn": one_row if other_shape else None}
        return numba_function(x + 1, run_fn=rows_doubled, device="gpu", **sizes, **launch) * 3

    def ragged(i):
        return [np.random.default_rng(10 * i + k).random((3 + k, 30 - k), "f4") for k in range(3)]

    p = pipe()
    for i in range(4):
        out = p.run()[0].as_cpu()
        for k, x in enumerate(ragged(i)):
            want = (x + 1) * 2 * 3
            np.testing.assert_allclose(out.at(k), want[:1] if other_shape else want, rtol=1e-6)
