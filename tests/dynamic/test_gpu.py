# SPDX-License-Identifier: Apache-2.0
"""The imperative mode on a GPU (an emulated device, unless PENSTOCK_TEST_GPU=1)."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from penstock.experimental import dynamic as ndd
from penstock.tensors import TensorListGPU

pytest.importorskip("torch")

X = np.random.default_rng(1).integers(0, 255, (2, 12, 10, 3), "u1")
PHOTOS = sorted((Path(__file__).parents[2] / "examples" / "data").glob("*/*.jpg"))[:2]


def images():
    return ndd.as_batch(X, layout="HWC")


def test_there_and_back():
    batch = images()
    there = batch.gpu()
    assert there.device == ndd.Device("gpu", 0) and str(there.device) == "gpu:0" and there.gpu() is there
    assert batch.to_device("gpu:0").to_device(ndd.Device.CPU).device == ndd.Device.CPU
    np.testing.assert_array_equal(np.asarray(ndd.as_tensor(there.cpu())), X)
    tensor = ndd.as_tensor(X, device="gpu")
    assert tensor.shape == X.shape and tensor.__dlpack_device__() == (2, 0)
    np.testing.assert_array_equal(np.asarray(tensor.cpu()), X)
    np.testing.assert_array_equal(np.asarray(tensor[0, 1].cpu()), X[0, 1])
    copied = there.to_device("gpu", force_copy=True)
    assert copied is not there
    np.testing.assert_array_equal(np.asarray(ndd.as_tensor(copied).cpu()), X)
    assert 'device="gpu:0"' in repr(there) and ndd.as_batch(X, device="gpu", dtype="f32").dtype is ndd.float32


@pytest.mark.parametrize("mode", list(ndd.EvalMode), ids=lambda m: m.name)
def test_operators(mode):
    want = ndd.crop_mirror_normalize(ndd.flip(images()), mean=[100.0] * 3, std=[50.0] * 3)
    with mode:
        there = ndd.crop_mirror_normalize(ndd.flip(images().gpu()), mean=[100.0] * 3, std=[50.0] * 3)
        also = ndd.flip(images(), device="gpu")
        sums = there * 2 + 1
    assert there.device.device_type == also.device.device_type == sums.device.device_type == "gpu"
    np.testing.assert_allclose(np.asarray(ndd.as_tensor(there).cpu()), np.asarray(ndd.as_tensor(want)), rtol=1e-6)
    np.testing.assert_allclose(
        np.asarray(ndd.as_tensor(sums.cpu())), np.asarray(ndd.as_tensor(want)) * 2 + 1, rtol=1e-5
    )


def test_decoding():
    encoded = ndd.as_batch([p.read_bytes() for p in PHOTOS])
    want, got = ndd.decoders.image(encoded), ndd.decoders.image(encoded, device="gpu")
    assert got.device.device_type == "gpu" and got.shape == want.shape
    small = ndd.crop(got, crop=(40, 40)).cpu()
    for a, b in zip(small.tensors, ndd.crop(want, crop=(40, 40)).tensors):
        assert (
            np.abs(np.asarray(a).astype(int) - np.asarray(b)).mean() < 1
        )  # a real GPU's engine interpolates colours differently


def test_samples_and_sharing():
    there = (images().gpu() + 0).evaluate()
    one = there.select(1)
    np.testing.assert_array_equal(np.asarray(one.cpu()), X[1])
    assert one.__cuda_array_interface__["shape"] == (12, 10, 3)
    whole = ndd.as_tensor(there)
    assert whole.shape == X.shape and whole.layout == "NHWC"
    assert whole.__cuda_array_interface__["data"] == there.select(0).__cuda_array_interface__["data"]
    again = ndd.as_tensor(whole)
    np.testing.assert_array_equal(np.asarray(again.cpu()), X)
    for pieces in (ndd.as_batch([one, there.select(0)]), there.select([1, 0])):
        np.testing.assert_array_equal(np.asarray(ndd.as_tensor(pieces.cpu())), X[::-1])
    listed = ndd.as_batch(TensorListGPU(there._samples()))
    np.testing.assert_array_equal(np.asarray(ndd.as_tensor(listed.cpu())), X)
    split = ndd.as_batch(whole)
    assert split.batch_size == 2 and split.layout == "HWC"
    np.testing.assert_array_equal(np.asarray(split.select(1).cpu()), X[1])
    ragged = ndd.as_batch([X[0], X[1, :5]], layout="HWC").gpu()
    assert ndd.as_tensor(ragged, pad=True).shape == (2, 12, 10, 3)


def test_arguments_are_read_by_the_cpu():
    angle = ndd.as_batch([0, 1]).gpu()
    got = ndd.flip(images().gpu(), horizontal=angle).cpu()
    np.testing.assert_array_equal(np.asarray(got.select(1)), X[1, :, ::-1])
    assert got.select(0).torch().equal(images().select(0).torch())


@pytest.mark.parametrize(
    ("use", "error", "text"),
    [
        (lambda: np.asarray(images().gpu()), TypeError, r"on the GPU; copy it with \.cpu"),
        (lambda: np.asarray(images().gpu().select(0)), TypeError, r"\.cpu"),
        (lambda: ndd.flip(images().gpu(), device="cpu"), ValueError, "device='cpu' reads from the CPU"),
        (lambda: ndd.decoders.image(ndd.as_tensor(b"ab").gpu()), ValueError, "encoded data is read by the CPU"),
        (lambda: ndd.as_batch([ndd.as_tensor(X), ndd.as_tensor(X).gpu()]), ValueError, "are on cpu and gpu:0"),
        (lambda: ndd.as_tensor(X).__cuda_array_interface__, AttributeError, "on the CPU"),
        (lambda: ndd.as_tensor(X).gpu().__array_interface__, AttributeError, "on the GPU"),
        (lambda: ndd.io.file.read(np.frombuffer(b"/x", "u1"), device="gpu"), ValueError, "can't be used"),
    ],
)  # fmt: skip
def test_what_is_refused(use, error, text):
    with pytest.raises(error, match=text):
        use()


def test_errors_later():
    with ndd.EvalMode.deferred:
        bad = ndd.crop(images().gpu(), crop=(99, 99))
    with pytest.raises(RuntimeError, match=r"(?s)dynamic.crop`.*test_errors_later.*reaches out"):
        bad.cpu().evaluate()
    assert ndd.flip(images().gpu()).shape == [(12, 10, 3)] * 2


def test_streams_and_contexts():
    with ndd.Device("gpu:0"):
        assert ndd.Device.current().device_id == 0 and ndd.Device.default_device_id("gpu") == 0
        stream = ndd.Stream()
    assert stream.__cuda_stream__() == (0, stream.handle) and stream.device_id == 0
    assert ndd.stream(stream=stream) is stream and ndd.Stream(stream=stream.handle, device_id=0) == stream
    with pytest.raises(ValueError, match="one of GPU 0, not 1"):
        ndd.stream(stream=stream, device_id=1)
    with ndd.EvalContext(device_id=0, cuda_stream=stream) as context:
        assert context.cuda_stream is stream and context.device_id == 0
        there = ndd.flip(images(), device="gpu")
    stream.synchronize()
    np.testing.assert_array_equal(np.asarray(there.cpu().select(0)), X[0, :, ::-1])
    ndd.set_current_stream(stream)
    assert ndd.get_current_stream() is stream and ndd.EvalContext.current().cuda_stream is stream
    ndd.set_current_stream(None)
    ndd.set_default_stream(stream)
    assert ndd.get_default_stream() is ndd.get_current_stream() is stream
    ndd.set_default_stream(None)
    assert ndd.get_current_stream() is None


def test_readers_give_to_the_gpu():
    reader = ndd.readers.File(files=[str(p) for p in PHOTOS], device="gpu")
    data, label = next(iter(reader.next_epoch(2)))
    assert data.device.device_type == label.device.device_type == "gpu"
    assert label.cpu().torch().tolist() == [[0], [1]]


FORK = """
import gc, os, sys
import numpy as np
from penstock.experimental import dynamic as ndd
gc.disable()  # what goes in the child goes by the hook, not by chance
x = ndd.as_batch(np.zeros((2, 9, 9, 3), np.uint8), layout="HWC", device="gpu")
y = ndd.flip(x).evaluate()
pid = os.fork()
if pid == 0:
    small = ndd.flip(ndd.as_batch(np.ones((2, 5, 5, 3), np.uint8), layout="HWC"))
    os._exit(0 if np.asarray(ndd.as_tensor(small)).all() else 1)
assert os.waitpid(pid, 0)[1] == 0
np.testing.assert_array_equal(np.asarray(ndd.as_tensor(ndd.flip(y).cpu())), 0)
print("done")
"""


def test_a_fork_after_the_gpu_was_used():
    """The child must not destroy the parent's streams, as CUDA does not work in it: a DataLoader's workers would
    hang."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", FORK], stdout=-1, stderr=-1, text=True, env=env, start_new_session=True
    ) as run:
        try:
            out, error = run.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            os.killpg(run.pid, signal.SIGKILL)
            raise
    assert (run.returncode, out, error) == (0, "done\n", "")
