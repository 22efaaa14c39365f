# SPDX-License-Identifier: Apache-2.0
"""Tensors and batches: creation, shared memory, properties, errors."""

import gc
import pickle
import weakref

import numpy as np
import pytest

from penstock import types
from penstock.experimental import dynamic as ndd
from penstock.tensors import TensorCPU, TensorListCPU

A = np.arange(24, dtype=np.int16).reshape(2, 4, 3)
RAGGED = [np.float32([[1, 2, 3]]), np.float32([[4], [5]])]


def test_as_tensor_shares_memory_and_tensor_copies():
    data = A.copy()
    shared, copied = ndd.as_tensor(data, layout="HWC"), ndd.tensor(data)
    data[0, 0, 0] = 99
    assert shared[0, 0, 0].item() == 99 and copied[0, 0, 0].item() == 0
    assert np.asarray(shared).ctypes.data == data.ctypes.data
    assert (shared.shape, shared.ndim, shared.size, shared.itemsize, shared.nbytes) == ((2, 4, 3), 3, 24, 2, 48)
    assert shared.layout == "HWC" and copied.layout is None
    assert shared.dtype is ndd.int16 and shared.device == ndd.Device("cpu")


def test_as_batch_shares_memory():
    samples = [s.copy() for s in RAGGED]
    batch = ndd.as_batch(samples, layout="HW")
    assert batch.shape == [(1, 3), (2, 1)] and batch.batch_size == 2 and batch.layout == "HW"
    for sample, tensor in zip(samples, batch):
        assert np.asarray(tensor).ctypes.data == sample.ctypes.data
    copied = ndd.batch(samples)
    samples[0][0, 0] = 7
    assert batch.select(0)[0, 0].item() == 7 and copied.select(0)[0, 0].item() == 1


def test_results_keep_their_memory_and_let_go_of_their_inputs():
    data = A.copy()
    held = weakref.ref(data)
    tensor = ndd.as_tensor(data)
    row = (tensor + 1)[1]
    view = np.asarray(tensor)
    del tensor, data
    gc.collect()
    np.testing.assert_array_equal(view, A)
    np.testing.assert_array_equal(np.asarray(row), A[1] + 1)
    del view
    gc.collect()
    assert held() is None


def test_calls_on_memory_of_the_program_do_not_see_later_writes():
    data = A.copy()
    with ndd.EvalMode.deferred:
        out = ndd.as_tensor(data) * 2
    data[...] = 0
    np.testing.assert_array_equal(np.asarray(out), A * 2)


@pytest.mark.parametrize("make", [ndd.as_tensor, ndd.tensor, ndd.Tensor])
def test_what_tensors_are_made_of(make):
    torch = pytest.importorskip("torch")
    for data in (A, torch.from_numpy(A), ndd.as_tensor(A), TensorCPU(A), memoryview(A), A.tolist()):
        tensor = make(data)
        np.testing.assert_array_equal(np.asarray(tensor), A)
        assert tensor.dtype is (ndd.int32 if isinstance(data, list) else ndd.int16)
    strided = make(A[:, ::2])
    np.testing.assert_array_equal(np.asarray(strided), A[:, ::2])
    assert np.asarray(make(b"ab")).tolist() == [97, 98]
    assert make(2**40).dtype is ndd.int64
    assert make(A, dtype=ndd.float32).dtype == types.FLOAT
    np.testing.assert_array_equal(np.asarray(make([1.7, -3], dtype=ndd.int8)), [1, -3])


def test_what_batches_are_made_of():
    torch = pytest.importorskip("torch")
    for data in (list(A), A, ndd.as_batch(A), TensorListCPU(list(A)), torch.from_numpy(A), iter(A), ndd.as_tensor(A)):
        batch = ndd.as_batch(data)
        assert batch.shape == [(4, 3), (4, 3)] and batch.dtype == "i16"
        np.testing.assert_array_equal(np.asarray(ndd.as_tensor(batch)), A)
    assert ndd.as_batch([1, 2.5]).dtype == ndd.float32
    assert ndd.as_batch([], dtype=ndd.uint8, layout="HWC").ndim == 3
    assert ndd.as_batch([ndd.as_tensor(A, layout="HWC")] * 2, dtype="f64").layout == "HWC"


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: ndd.as_tensor("abc"), TypeError, "got 'abc'"),
        (lambda: ndd.as_tensor(None), TypeError, "None"),
        (lambda: ndd.as_tensor(np.zeros(2, complex)), TypeError, "complex128 are not supported"),
        (lambda: ndd.as_tensor(A, layout="HW"), ValueError, "layout 'HW' has 2 axes and the tensor has 3 dimensions"),
        (lambda: ndd.as_tensor(A, dtype=ndd.bfloat16), TypeError, "bfloat16 is not supported"),
        (lambda: ndd.as_tensor(A, device="tpu"), ValueError, "no device type 'tpu'"),
        (lambda: ndd.as_tensor(ndd.as_batch(RAGGED)), ValueError, "differ in shape.*pad=True"),
        (lambda: ndd.as_batch(5), TypeError, "list of tensors, or of an array; got int"),
        (lambda: ndd.as_batch([]), ValueError, "dtype of an empty batch"),
        (lambda: ndd.as_batch([A, A[0]]), ValueError, "number of dimensions: tensor 1 has 2, tensor 0 3"),
        (lambda: ndd.as_batch([A, A.astype("f4")]), TypeError, "dtype: tensor 1 has 'float32', tensor 0 'int16'"),
        (lambda: ndd.as_batch([ndd.as_tensor(A, layout="HWC"), ndd.as_tensor(A, layout="CHW")]), ValueError, "layout"),
        (lambda: ndd.as_batch(np.float32(3)), TypeError, "scalar"),
        (lambda: ndd.Batch.broadcast(ndd.as_batch(A), 2), ValueError, "one sample"),
        (lambda: ndd.Batch.broadcast(1, -2), ValueError, "negative"),
        (lambda: ndd.as_batch(A)[0], TypeError, r"batch.tensors\[i\] is one sample"),
        (lambda: ndd.as_batch(A).select(2), IndexError, "2 samples has no sample 2"),
        (lambda: ndd.as_batch(A).select("a"), TypeError, "got str"),
        (lambda: ndd.as_batch(A).select(slice(1.5)), TypeError, "slice indices"),
        (lambda: np.asarray(ndd.as_batch(RAGGED)), ValueError, r"NumPy: the samples differ in shape.*pad=True"),
        (lambda: ndd.as_tensor(A).item(), ValueError, "this one has 24"),
        (lambda: bool(ndd.as_tensor(A)), ValueError, "truth of 24 elements"),
        (lambda: int(ndd.as_tensor(A)), TypeError, "one element"),
        (lambda: ndd.as_tensor(A)["a"], TypeError, "got str"),
        (lambda: ndd.as_tensor(A)[[0, 1]], TypeError, "got list"),
        (lambda: ndd.as_tensor(A)[1.5], TypeError, "integer"),
        (lambda: ndd.as_tensor(A)[0, 0, 0, 0], Exception, "4"),
        (lambda: ndd.as_tensor(A)[9], RuntimeError, "9"),
        (lambda: ndd.as_tensor(A) + ndd.as_tensor(np.zeros((5, 3))), RuntimeError, "shape"),
        (lambda: ndd.as_batch(A) + ndd.as_batch([1, 2, 3]), ValueError, "batches of 2 and of 3 samples"),
        (lambda: len(ndd.as_tensor(1)), TypeError, "scalar"),
        (lambda: ndd.as_tensor(A).to_device(None), TypeError, "None"),
        (lambda: hash(ndd.as_tensor(A)), TypeError, "unhashable"),
    ],
)  # fmt: skip
def test_what_is_refused(make, error, text):
    with pytest.raises(error, match=text):
        np.asarray(make())


def test_torch():
    torch = pytest.importorskip("torch")
    batch = ndd.as_batch(A.copy()) + 0
    dense = batch.torch()
    assert dense.data_ptr() == np.asarray(batch).ctypes.data  # shared
    assert batch.torch(copy=True).data_ptr() != dense.data_ptr()
    assert torch.equal(dense, torch.from_numpy(A).int())
    ragged = ndd.as_batch(RAGGED)
    with pytest.raises(ValueError, match="differ in shape"):
        ragged.torch()
    with pytest.raises(ValueError, match="copy is needed"):
        ragged.torch(copy=False, pad=True)
    assert ragged.torch(pad=True).tolist() == [[[1, 2, 3], [0, 0, 0]], [[4, 0, 0], [5, 0, 0]]]
    tensor = ndd.as_tensor(A)
    assert torch.equal(torch.from_dlpack(tensor + 1), torch.from_numpy(A).int() + 1)
    assert torch.equal(ndd.as_tensor(b"ab").torch(), torch.tensor([97, 98], dtype=torch.uint8))


def test_selecting_shares_memory():
    batch = ndd.as_batch(A.copy())
    assert [np.asarray(t).ctypes.data for t in batch.tensors[::-1]] == [
        np.asarray(t).ctypes.data for t in batch.select([-1, 0]).tensors
    ]
    assert batch.select(slice(1, None)).shape == [(4, 3)]
    assert [t.shape for t in batch] == [(4, 3)] * 2
    twice = ndd.Batch.broadcast(np.zeros((50, 50)), 5)  # small ones are copied
    assert len({np.asarray(t).ctypes.data for t in twice}) == 1


def test_indexing_is_numpys():
    rng = np.random.default_rng(3)
    tensor = ndd.as_tensor(A, layout="HWC")
    for key in (
        0,
        -1,
        np.s_[1:],
        np.s_[:, 1],
        np.s_[..., -1],
        np.s_[0, 1, 2],
        np.s_[:, ::2],
        np.s_[1, ..., 0],
        np.s_[:],
    ):
        np.testing.assert_array_equal(np.asarray(tensor[key]), A[key])
        for i, got in enumerate(ndd.as_batch([A, A + 1], layout="HWC").slice[key].tensors):
            np.testing.assert_array_equal(np.asarray(got), (A + i)[key])
    assert tensor[0].layout == "WC" and tensor[:, 1].layout == "HC"
    at = rng.integers(0, 4, 2)
    each = ndd.as_batch([A, A]).slice[1, ndd.as_batch(at.astype("i4")) :]
    for i, got in enumerate(each.tensors):
        np.testing.assert_array_equal(np.asarray(got), A[1, at[i] :])
    assert tensor[ndd.tensor(1), 2, ndd.tensor(0)].item() == A[1, 2, 0]
    assert [t.shape for t in tensor] == [(4, 3)] * 2


def test_arithmetic_is_numpys():
    x, y = A.astype("f4") + 0.5, np.float32([1, 2, 4])
    ours, other = ndd.as_tensor(x), ndd.as_tensor(y)
    for got, want in (
        (ours + other, x + y), (ours - 1, x - 1), (2 * ours, 2 * x), (ours / other, x / y), (3 - other, 3 - y),
        (ndd.as_tensor(A) // 2, A // 2), (abs(-ours), x), (ours > other, x > y), (1 <= ours, x >= 1),
        (ours != y, x != y),
        (y * ours, x * y), (ndd.as_tensor(A) & 3, A.astype("i4") & 3), (~ndd.as_tensor(A), ~A), (+ours, x),
    ):  # fmt: skip
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-6)
    batch = ndd.as_batch(list(x)) + ndd.as_batch([1.0, 2.0])
    np.testing.assert_array_equal(np.asarray(batch), x + np.float32([1, 2])[:, None, None])


def test_pickling():
    tensor, batch = ndd.as_tensor(A, layout="HWC"), ndd.as_batch(RAGGED)
    again = pickle.loads(pickle.dumps(tensor))
    assert again.layout == "HWC" and again.dtype is ndd.int16
    np.testing.assert_array_equal(np.asarray(again), A)
    assert pickle.loads(pickle.dumps(batch)).shape == batch.shape
    assert pickle.loads(pickle.dumps(ndd.uint8)) is ndd.uint8


def test_texts():
    assert repr(ndd.as_batch(RAGGED, layout="HW")) == (
        'Batch(\n    [[[1. 2. 3.]],\n\n    [[4.]\n     [5.]]],\n    dtype=f32,\n    layout="HW",\n'
        '    device="cpu",\n    num_samples=2,\n    shape=[(1, 3), (2, 1)])'
    )
    assert "... and 12 more" in repr(ndd.zeros(shape=[2], batch_size=20))
    picture = ndd.as_tensor(np.zeros((4, 4, 3), "u1"), layout="HWC")
    assert "Tensor (4, 4, 3) u8" in picture._repr_html_()
    assert "<img" in ndd.as_batch([picture] * 2)._repr_html_()


def test_types():
    assert ndd.dtype("float32") is ndd.float32 and ndd.float32 == np.float32 and ndd.float32 == types.FLOAT
    assert ndd.float32 != "f64" and ndd.float32 != 3 and ndd.float32 != None and ndd.int8 != ndd.uint8  # noqa: E711
    assert hash(ndd.dtype("u8")) == hash(ndd.uint8) and len({ndd.InterpType, ndd.ImageType, ndd.DataType}) == 3
    assert ndd.dtype(ndd.DType.Kind.float, 8, 4, 3).bytes == 1
    with pytest.raises(ValueError, match="Did you mean 'float32'"):
        ndd.dtype("flaot32")
    with pytest.raises(ValueError, match="exponent_bits"):
        ndd.DType(ndd.DType.Kind.float, 8)
    assert ndd.int16([1, 2], layout="X").layout == "X"


def test_devices():
    cpu = ndd.Device("cpu")
    with cpu:
        assert ndd.Device.current() is cpu
    assert ndd.Device.from_dlpack(A) == cpu and ndd.Device.from_dlpack((1, 0)) == cpu and cpu != "cpu"
    for wrong, text in (("gpu:99", "no GPU 99"), ("cpu:0", "no number"), ("gpu:x", "names no device")):
        with pytest.raises(ValueError, match=text):
            ndd.Device(wrong)
    with pytest.raises(ValueError, match="given twice"):
        ndd.Device("gpu:0", 0)
    with pytest.raises(TypeError):
        ndd.device(3)
