# SPDX-License-Identifier: Apache-2.0
"""The containers: methods, memory sharing in both directions, lifetime, and text representation."""

import base64
import copy
import ctypes
import gc
import io
import pickle
import re

import numpy as np
import pytest

from penstock import fn, pipeline_def, types
from penstock.core.kernels import library
from penstock.tensors import TensorCPU, TensorGPU, TensorListCPU, TensorListGPU

X = np.arange(24, dtype="u1").reshape(2, 3, 4)


def ragged():
    return TensorListCPU([np.zeros((1, 2), "f4"), np.ones((3, 2), "f4")], "HW")


def test_tensor_tells_about_itself():
    t = TensorCPU(X, "HWC")
    assert t.shape() == [2, 3, 4] and t.ndim() == 3 and t.dtype == types.UINT8 and t.layout() == "HWC"
    assert t.data_ptr() == X.ctypes.data and t.as_cpu() is t
    assert t.get_property("layout") == "HWC" and t.get_property("source_info") is None and t.get_property("x") is None
    assert t.source_info() == ""
    with pytest.raises(TypeError):
        len(t)


def test_tensor_layout():
    t = TensorCPU(X)
    assert t.layout() == ""
    t.set_layout("HWC")
    assert t.layout() == "HWC"
    t.set_layout(None)
    assert t.layout() == ""
    for call in (lambda: t.set_layout("HW"), lambda: TensorCPU(X, "HW")):
        with pytest.raises(ValueError, match="layout 'HW' has 2 axes, the tensor 3 dimensions"):
            call()


@pytest.mark.parametrize(
    ("shape", "layout", "dim", "result", "new_shape", "new_layout"),
    [
        ((1, 3, 1), "HWC", None, True, [3], "W"),
        ((1, 3, 1), "HWC", 1, False, [1, 3, 1], "HWC"),
        ((1, 3, 1), "HWC", 0, True, [3, 1], "WC"),
        ((1, 3, 1), "", -1, True, [1, 3], ""),
        ((2, 3), "", None, False, [2, 3], ""),
    ],
)
def test_squeeze(shape, layout, dim, result, new_shape, new_layout):
    t = TensorCPU(np.zeros(shape), layout)
    assert t.squeeze(dim) is result
    assert t.shape() == new_shape and t.layout() == new_layout


def test_squeeze_of_a_dimension_there_is_not():
    with pytest.raises(IndexError, match="3 dimensions has no dimension 5"):
        TensorCPU(X).squeeze(5)


def test_reinterpret():
    x = np.array([[1.0, 2.0], [3.0, 4.0]], "f4")
    t, batch = TensorCPU(x), TensorListCPU(x)
    t.reinterpret(types.UINT32)
    batch.reinterpret(types.UINT32)
    assert t.dtype == batch.dtype == types.UINT32
    assert (np.asarray(t) == x.view("u4")).all() and (batch.as_array() == x.view("u4")).all()
    for c in (t, batch):
        with pytest.raises(ValueError, match="uint32 can't be seen as int16: its elements have 4 bytes, not 2"):
            c.reinterpret(types.INT16)


def test_batch_tells_about_itself():
    batch = TensorListCPU(X, "HW")
    assert len(batch) == 2 and batch.shape() == [(3, 4), (3, 4)] and batch.ndim() == 2 and batch.layout() == "HW"
    assert batch.dtype == types.UINT8 and batch.is_dense_tensor() and batch.data_ptr() == X.ctypes.data
    assert batch.as_cpu() is batch and not ragged().is_dense_tensor()
    assert batch.as_array().ctypes.data == X.ctypes.data
    assert (batch.at(1) == X[1]).all() and (batch.at(-1) == X[1]).all()
    assert [t.shape() for t in batch] == [[3, 4]] * 2 and batch[1].layout() == "HW"
    assert batch.as_tensor().shape() == [2, 3, 4] and batch.as_tensor().layout() == "NHW"
    assert TensorListCPU(X).as_tensor().layout() == ""


@pytest.mark.parametrize("i", [2, -3])
def test_batch_has_no_such_sample(i):
    for call in (TensorListCPU(X).at, TensorListCPU(X).__getitem__):
        with pytest.raises(IndexError, match=f"2 samples has no sample {i}"):
            call(i)
    with pytest.raises(TypeError, match="indexed by the number"):
        TensorListCPU(X)[0:1]


def test_ragged_is_no_array():
    """The error is a ValueError and, as in DALI, a RuntimeError."""
    for call in (ragged().as_array, ragged().as_tensor, lambda: np.asarray(ragged()), ragged().__dlpack__):
        for error in (ValueError, RuntimeError):
            with pytest.raises(error, match=r"differ in shape.*\[1, 2\], \[3, 2\]"):
                call()


def test_as_reshaped_tensor():
    assert TensorListCPU(X).as_reshaped_tensor([4, 6]).shape() == [4, 6]
    assert np.asarray(ragged().as_reshaped_tensor((8,))).tolist() == [0, 0, 1, 1, 1, 1, 1, 1]
    with pytest.raises(ValueError, match=r"24 elements can't become a tensor of shape \[4, 5\], which has 20"):
        TensorListCPU(X).as_reshaped_tensor([4, 5])


def test_broadcast_and_from_dlpack_list():
    batch = TensorListCPU.broadcast(TensorCPU(X, "HWC"), 3)
    assert batch.shape() == [(2, 3, 4)] * 3 and batch.layout() == "HWC" and (batch.at(2) == X).all()
    batch = TensorListCPU.from_dlpack_list([np.zeros((2, 3), "f4"), np.zeros((1, 3), "f4")], layout="HW")
    assert batch.shape() == [(2, 3), (1, 3)] and batch.layout() == "HW"


@pytest.mark.parametrize("target", ["array", "pointer", "address", "void"])
@pytest.mark.parametrize("dense", [True, False])
def test_copy_to_external(dense, target):
    batch = TensorListCPU(X.astype("f4")) if dense else ragged()
    want = X.ravel() if dense else np.array([0, 0, 1, 1, 1, 1, 1, 1])
    out = np.full(len(want), 9, "f4")
    pointers = {
        "array": out,
        "pointer": out.ctypes.data_as(ctypes.POINTER(ctypes.c_float)),
        "address": out.ctypes.data,
        "void": ctypes.c_void_p(out.ctypes.data),
    }
    batch.copy_to_external(pointers[target])
    assert (out == want).all()


def test_reset():
    batch = TensorListCPU(X, "HW")
    batch.reset()
    assert len(batch) == 0 and batch.shape() == []


@pytest.mark.parametrize(
    ("samples", "text"),
    [
        ([np.zeros(2), np.zeros(2, "f4")], "same type: sample 1 has 'FLOAT', sample 0 'FLOAT64'"),
        ([np.zeros(2), np.zeros((2, 2))], "same number of dimensions: sample 1 has 2, sample 0 1"),
        ([TensorCPU(X, "HWC"), TensorCPU(X, "CHW")], "same layout: sample 1 has 'CHW', sample 0 'HWC'"),
    ],
)
def test_samples_have_to_go_together(samples, text):
    with pytest.raises(TypeError, match=text):
        TensorListCPU(samples)


def test_what_is_no_array():
    for wrong in ([1, 2], None, "text", 3):
        with pytest.raises(TypeError, match="expected an array .* got"):
            TensorCPU(wrong)
    with pytest.raises(TypeError, match="complex64"):
        TensorCPU(np.zeros(2, "c8"))
    with pytest.raises(ValueError, match="first axis"):
        TensorListCPU(np.float32(3))
    with pytest.raises(ValueError, match="'HWC' has 3 axes, the samples 2 dimensions"):
        TensorListCPU(X, "HWC")


def test_what_is_an_array():
    assert TensorCPU(np.float32(3)).shape() == [] and TensorCPU(b"abc").shape() == [3]
    assert (np.asarray(TensorCPU(X.transpose(2, 0, 1))) == X.transpose(2, 0, 1)).all()
    assert TensorListCPU([]).shape() == [] and TensorListCPU(TensorListCPU(X, "HW")).layout() == "HW"
    assert TensorListCPU(TensorListCPU(X, "HW"), "AB").layout() == "AB"
    assert TensorListCPU([TensorCPU(X), TensorCPU(X)], contiguous=True).shape() == [(2, 3, 4)] * 2
    assert TensorCPU(memoryview(X)).data_ptr() == X.ctypes.data


def test_shares_its_memory():
    t = TensorCPU(X)
    for view in (np.asarray(t), np.from_dlpack(t), np.array(t, copy=False), np.asarray(TensorListCPU(X))):
        assert view.ctypes.data == X.ctypes.data and (view == X).all()
    assert np.from_dlpack(TensorListCPU(X)).ctypes.data == X.ctypes.data
    assert np.array(t).ctypes.data != X.ctypes.data and np.array(t, dtype="f4").dtype == np.float32
    assert t.__array_interface__["shape"] == (2, 3, 4) and t.__dlpack_device__() == (1, 0)
    assert t.__dlpack_device__() == TensorListCPU(X).__dlpack_device__()
    assert bytes(t) == X.tobytes()


@pytest.mark.parametrize(
    "kwargs", [{}, {"stream": None}, {"max_version": (1, 0)}, {"max_version": (1, 0), "dl_device": (1, 0)}]
)
def test_dlpack_capsules_of_old_and_new_versions(kwargs):
    if kwargs.get("max_version") and np.lib.NumpyVersion(np.__version__) < "2.1.0":
        pytest.skip("NumPy makes old capsules only")
    capsule = TensorCPU(X).__dlpack__(**kwargs)
    versioned = "versioned" in repr(capsule)
    assert versioned == ("max_version" in kwargs)
    assert TensorCPU(capsule).data_ptr() == X.ctypes.data


def test_capsules_are_taken():
    assert TensorListCPU(X.__dlpack__(), "HW").data_ptr() == X.ctypes.data


def test_dlpack_copy():
    if np.lib.NumpyVersion(np.__version__) < "2.1.0":
        pytest.skip("NumPy has no copy argument")
    assert TensorCPU(TensorCPU(X).__dlpack__(copy=True)).data_ptr() != X.ctypes.data


def test_torch():
    torch = pytest.importorskip("torch")
    t = torch.from_dlpack(TensorCPU(X))
    assert t.data_ptr() == X.ctypes.data and torch.from_dlpack(TensorListCPU(X)).data_ptr() == X.ctypes.data
    assert torch.utils.dlpack.from_dlpack(TensorCPU(X).__dlpack__()).data_ptr() == X.ctypes.data
    x = torch.arange(6).reshape(2, 3)
    assert TensorCPU(x).data_ptr() == x.data_ptr() and TensorListCPU(x).shape() == [(3,), (3,)]
    assert torch.as_tensor(np.asarray(TensorListCPU(X))).data_ptr() == X.ctypes.data


def test_jax():
    jax = pytest.importorskip("jax")
    aligned = np.zeros(24 + 64, "u1")
    aligned = aligned[-aligned.ctypes.data % 64 :][:24].reshape(2, 3, 4)
    assert jax.dlpack.from_dlpack(TensorCPU(aligned)).unsafe_buffer_pointer() == aligned.ctypes.data
    assert TensorCPU(jax.numpy.zeros((2, 3))).shape() == [2, 3]


def test_memory_goes_back_to_the_pool_when_nothing_refers_to_it():
    gc.collect()
    before = library().memory_used()
    kept = [np.full((2, 2000), i, "i4") for i in range(8)]  # which the pipeline has to copy
    pipe = pipeline_def(batch_size=2)(lambda: fn.external_source(source=lambda i: kept[i]))()
    out = pipe.run()[0]
    views = {
        "tensor": out[1],
        "sample": out.at(0),
        "array": out.as_array(),
        "dlpack": np.from_dlpack(out),
        "relabelled": TensorListCPU(out, "X"),
    }
    pipe.close()
    del pipe, out
    gc.collect()
    held = library().memory_used() - before
    assert held == 16384  # 16000 bytes, rounded up by the pool; what was prepared ahead has gone
    assert np.asarray(views["tensor"])[5] == views["sample"][5] == views["relabelled"].at(1)[7] == 0
    while views:
        assert library().memory_used() - before == held
        views.popitem()
        gc.collect()
    assert library().memory_used() == before


def test_pickle_and_deepcopy_take_the_values():
    for new in (pickle.loads(pickle.dumps(ragged())), copy.deepcopy(ragged())):
        assert new.shape() == [(1, 2), (3, 2)] and new.layout() == "HW" and new.at(1).tolist() == [[1, 1]] * 3
    assert (np.asarray(pickle.loads(pickle.dumps(TensorCPU(X, "HWC")))) == X).all()


def test_text():
    assert str(TensorCPU(np.array([[1, 2]], "i4"), "HW")) == (
        'TensorCPU(\n    [[1 2]],\n    dtype=DALIDataType.INT32,\n    layout="HW",\n    device="cpu",\n    shape=(1, '
        "2))"
    )
    assert repr(ragged()) == (
        'TensorListCPU(\n    dtype=DALIDataType.FLOAT,\n    layout="HW",\n    device="cpu",\n    num_samples=2,\n'
        "    shape=[(1, 2), (3, 2)])"
    )
    assert "[[0. 0.]]" in str(ragged()) and "..." in str(TensorCPU(np.zeros((100, 100))))
    assert len(str(TensorListCPU(np.zeros((1000, 3))))) < 15_000


@pytest.mark.parametrize(
    ("samples", "layout"),
    [
        ([np.full((300, 200, 3), 7, "u1"), np.full((5, 6, 3), 9, "u1")], "HWC"),
        ([np.full((4, 6, 1), 7, "u1")], "HWC"),
        ([np.random.default_rng(0).normal(size=(3, 4, 6)).astype("f4")], "CHW"),
        ([np.full((2, 4, 6, 3), 7, "u1")], "FHWC"),
        ([np.full((4, 6), 7, "u1")], "HW"),
    ],
)
def test_thumbnails(samples, layout):
    html = TensorListCPU(samples, layout)._repr_html_()
    images = re.findall(r"data:image/png;base64,([^\"]+)", html)
    assert len(images) == len(samples)
    image_module = pytest.importorskip("PIL.Image")
    for data, sample in zip(images, samples):
        image = np.asarray(image_module.open(io.BytesIO(base64.b64decode(data))))
        assert max(image.shape[:2]) <= 128
        if sample.dtype == np.uint8:
            assert (image == sample.flat[0]).all()
        else:
            assert image.min() == 0 and image.max() == 255


def test_no_thumbnails_of_what_is_no_image():
    assert TensorListCPU(np.zeros((2, 3)))._repr_html_() is None
    assert TensorCPU(np.zeros((2, 3, 7)), "HWC")._repr_html_() is None
    assert TensorListCPU(np.zeros((0, 4, 4, 3), "u1"), "HWC")._repr_html_() is None


def test_gpu_containers_take_arrays_of_the_gpu():
    for cls in (TensorGPU, TensorListGPU):
        with pytest.raises((TypeError, ValueError), match="on the GPU|not on a GPU"):
            cls(X)
        assert not isinstance(TensorListCPU(X), cls)


@pytest.mark.parametrize("n", [1, 2])
def test_outputs_may_be_written_to(n):
    """Writing to outputs changes neither constants nor repeated data."""

    @pipeline_def(batch_size=n)
    def pipe():
        constant = types.Constant(np.zeros((2, 2), "f4"))
        return constant, fn.external_source(name="x", repeat_last=True), fn.external_source(source=lambda i: rows)

    rows = np.zeros((n, 1), "f4")
    p = pipe()
    p.feed_input("x", np.zeros((n, 1), "f4"))
    for _ in range(5):
        for out in p.run():
            assert (out.as_array() == 0).all()
            out.at(0)[...] = 1
            out.as_array()[...] = 2
    assert (rows == 0).all()


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("numpy", r"'numpy'; np.asarray\(x\) makes an array of NumPy$"),
        ("mean", r"'mean'; np.asarray\(x\) makes an array of NumPy, which has it$"),
        ("to", r"'to'; torch.from_dlpack\(x\) makes a tensor of PyTorch, which has it$"),
        ("nonsense", "'nonsense'$"),
        ("__torch_function__", "'__torch_function__'$"),
    ],
)
def test_attributes_of_other_libraries(name, told):
    for x in (TensorListCPU(np.zeros((2, 3))), TensorCPU(np.zeros(3))):
        with pytest.raises(AttributeError, match=f"'{type(x).__name__}' object has no attribute {told}"):
            getattr(x, name)
