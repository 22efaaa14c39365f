# SPDX-License-Identifier: Apache-2.0
"""Functions of other libraries on GPU batches: arguments and results share memory, in stream order, and results are
released only after the GPU has finished with them. The library is simulated; PyTorch and JAX are tested in
tests/gpu/test_frameworks.py, on a real GPU."""

import gc

import numpy as np
import pytest

from penstock import fn, pipeline_def
from penstock.core.batch import Batch
from penstock.gpu import borrowed, dlpack
from penstock.gpu.batch import upload
from penstock.gpu.driver import Device
from penstock.gpu.stream import ForeignStream, Stream
from penstock.pipeline import PipelineError
from penstock.registry.batch_function import BatchFunction, call
from penstock.tensors import TensorListGPU

PICTURES = np.arange(2 * 3 * 4 * 3, dtype="u1").reshape(2, 3, 4, 3)


class _OnBatches(BatchFunction, abstract=True):
    called = "on_batches"


class Array:
    """An array of the other library on the GPU."""

    def __init__(self, values):
        device = Device.get(0)
        with device:
            stream = Stream(device)
            self.batch = upload(Batch.from_array(values), stream)
            self.ready, self.waited = stream.record(), []
        self.shape, self.dtype = values.shape, values.dtype

    def __dlpack__(self, stream=None):
        self.waited.append(stream)
        device = Device.get(0)
        with device:
            ForeignStream(device, stream).wait(self.ready)
        address = int(self.batch.rows["data"][0])
        return dlpack.capsule(address, self.shape, self.dtype, 0, _Kept(self.batch))


class _Kept:
    """Exists as long as the memory is used."""

    alive = 0

    def __init__(self, batch):
        self.batch = batch
        _Kept.alive += 1

    def __del__(self):
        type(self).alive -= 1


def run(function, *, batches=1, num_outputs=1, then=lambda x: x, **kwargs):
    def define():
        x = fn.external_source(source=lambda i: PICTURES + i, layout="HWC", device="gpu")
        out = call(_OnBatches, (fn.flip(x),), function=function, num_outputs=num_outputs, **kwargs)
        return then(out) if num_outputs else x

    pipe = pipeline_def(define, batch_size=2, num_threads=1, device_id=0)()
    return [[o.as_cpu().as_array() for o in pipe.run()] for _ in range(batches)]


def test_given_and_taken_on_the_gpu():
    seen = []

    def double(x, device_id):
        assert device_id == 0 and x.__dlpack_device__() == (2, 0) and x.layout() == "NHWC"
        array = Array(np.asarray(x.as_cpu()) * 2)
        seen.append((x.data_ptr(), array))
        return (array,)

    outputs = run(double, batches=3, then=fn.flip)
    for i, (out,) in enumerate(outputs):
        assert (out == (PICTURES + i) * 2).all()
    assert all(len(a.waited) == 1 and a.waited[0] not in (None, 0, -1) for _, a in seen)  # the pipeline's own stream


def test_layouts_types_and_several_outputs():
    def parts(x, device_id):
        x = np.asarray(x.as_cpu())
        return Array(x.astype("f4").mean((1, 2))), Array(x)

    def define():
        x = fn.external_source(source=lambda i: PICTURES, layout="HWC", device="gpu")
        return tuple(call(_OnBatches, (x,), function=parts, num_outputs=2, output_layouts=["C", "HWC"]))

    mean, same = pipeline_def(define, batch_size=2, num_threads=1, device_id=0)().run()
    assert (mean.layout(), same.layout()) == ("C", "HWC") and isinstance(mean, TensorListGPU)
    np.testing.assert_allclose(mean.as_cpu().as_array(), PICTURES.mean((1, 2)), rtol=1e-6)
    assert (same.as_cpu().as_array() == PICTURES).all()


def test_no_outputs_and_no_inputs():
    seen = []
    run(lambda x, device_id: seen.append(np.asarray(x.as_cpu())) or (), num_outputs=0, preserve=True)
    assert any((s == PICTURES[:, :, ::-1]).all() for s in seen)  # batches come in any order

    def define():
        return call(_OnBatches, (), function=lambda device_id: (Array(np.ones((2, 3), "f4")),), device="gpu")

    (x,) = pipeline_def(define, batch_size=2, num_threads=1, device_id=0)().run()
    assert x.as_cpu().as_array().tolist() == [[1, 1, 1]] * 2


def test_memory_is_let_go_when_the_gpu_is_through():
    run(lambda x, device_id: (Array(np.asarray(x.as_cpu())),), batches=6)
    gc.collect()
    borrowed.collect()
    assert _Kept.alive == 0 and not borrowed._waiting


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda x, device_id: (Array(np.zeros((1, 3), "u1")),), "first axis has to be the batch of 2"),
        (lambda x, device_id: (Array(np.zeros((2, 3), "u1")),) * 2, "returned 2 arrays, num_outputs is 1"),
        (lambda x, device_id: (np.zeros((2, 3), "u1"),), "not on a GPU"),
        (lambda x, device_id: (3,), "an array on the GPU that speaks DLPack; got int"),
        (lambda x, device_id: 1 / 0, "the function raised ZeroDivisionError"),
    ],
)
def test_mistakes(function, text):
    with pytest.raises(PipelineError, match=text):
        run(function)


def test_ragged_batches_are_refused():
    def define():
        x = fn.external_source(source=lambda i: [PICTURES[0], PICTURES[1, :2]], layout="HWC", device="gpu")
        return call(_OnBatches, (x,), function=lambda x, device_id: (x,))

    with pytest.raises(PipelineError, match="differ in shape"):
        pipeline_def(define, batch_size=2, num_threads=1, device_id=0)().run()
