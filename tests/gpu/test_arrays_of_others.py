# SPDX-License-Identifier: Apache-2.0
"""GPU arrays of other libraries, as inputs and as tensors: the work of their streams is complete before anything is
read. The other library is simulated; streams are blocked to reveal the order."""

import os
import threading
import time
from contextlib import ExitStack

import numpy as np
import pytest
from test_reuse import happens, held

from penstock import fn, pipeline_def
from penstock.backend import TensorGPU, TensorListGPU
from penstock.gpu import dlpack
from penstock.gpu.driver import Device
from penstock.gpu.memory import pool
from penstock.gpu.stream import ForeignStream, Stream

if os.environ.get("PENSTOCK_TEST_GPU") == "1":
    pytest.skip("only streams of the emulated device can be held", allow_module_level=True)

SHAPE, SOON = (3, 4, 5), 0.2


class Array:
    """An array of a library that works in its own stream."""

    def __init__(self, stream):
        with stream.device:
            self.stream, self.block = stream, pool(stream.device).take(60, stream)

    def write(self, value):
        with self.stream.device:
            self.stream.fill(self.block.address, value, 60)


class WithInterface(Array):
    """As CuPy and Numba: states the stream that computes it."""

    @property
    def __cuda_array_interface__(self):
        stream = self.stream.handle
        return {"data": (self.block.address, False), "shape": SHAPE, "typestr": "|u1", "version": 3, "stream": stream}


class WithDlpack(Array):
    """As JAX: makes the consumer's stream wait."""

    def __dlpack_device__(self):
        return (2, 0)

    def __dlpack__(self, *, stream=None, **kwargs):
        with self.stream.device:
            ForeignStream(self.stream.device, stream).wait(self.stream.record())
        return dlpack.capsule(self.block.address, SHAPE, np.dtype("u1"), 0, self)


class WithBoth(WithDlpack):
    """As PyTorch: its interface does not state a stream."""

    @property
    def __cuda_array_interface__(self):
        return {"data": (self.block.address, False), "shape": SHAPE, "typestr": "|u1", "version": 2}


def fed(array, device):
    @pipeline_def(batch_size=3, num_threads=1, device_id=0)
    def pipe():
        return fn.external_source(name="x", device=device)

    made = pipe()
    made.build()
    made.feed_input("x", array)
    (out,) = made.run()
    return out.as_cpu() if device == "gpu" else out


READERS = {
    "TensorGPU": lambda a: TensorGPU(a).as_cpu(),
    "TensorListGPU": lambda a: TensorListGPU(a).as_cpu().as_array(),
    "a list": lambda a: TensorListGPU([a, a]).as_cpu().as_array(),
    "a copy": lambda a: TensorListGPU([a], contiguous=True).as_cpu().as_array(),
    "an input on the GPU": lambda a: fed(a, "gpu").as_array(),
    "an input on the CPU": lambda a: fed(a, "cpu").as_array(),
}


@pytest.fixture(scope="module")
def stream():
    """A foreign stream, which outlives all batches."""
    device = Device.get(0)
    with device:
        return Stream(device)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("kind", [WithInterface, WithDlpack, WithBoth])
def test_what_is_still_being_made_is_waited_for(kind, reader, stream):
    array, found = kind(stream), []
    thread = threading.Thread(target=lambda: found.append(np.array(READERS[reader](array))), daemon=True)
    with held(stream):
        array.write(7)
        thread.start()
        time.sleep(SOON)  # without waiting, other data would have been read by now
    thread.join(60)
    assert found and (found[0] == 7).all() and found[0].size % 60 == 0


class Silent(Array):
    """Its interface does not state its stream, and there is no other source for it."""

    @property
    def __cuda_array_interface__(self):
        return {"data": (self.block.address, False), "shape": SHAPE, "typestr": "|u1", "version": 2}


class HandleOf:
    """As PyTorch's streams."""

    def __init__(self, stream):
        self.cuda_stream = stream.handle


def given_by_a_source(made, stream, per_sample, debug=False):
    @pipeline_def(batch_size=3, num_threads=1, device_id=0, debug=debug, prefetch_queue_depth=1)
    def pipe():
        source = (lambda i: made()) if per_sample else made
        return fn.external_source(source, batch=not per_sample, cuda_stream=HandleOf(stream))

    (out,) = pipe().run()
    return out.as_array()


def given_by_hand(made, stream, named_in_call):
    @pipeline_def(batch_size=3, num_threads=1, device_id=0)
    def pipe():
        return fn.external_source(name="x", cuda_stream=None if named_in_call else stream.handle)

    running = pipe()
    running.build()
    running.feed_input("x", made(), cuda_stream=HandleOf(stream) if named_in_call else None)
    (out,) = running.run()
    return out.as_array()


GIVEN = {
    "a batch": lambda made, stream: given_by_a_source(made, stream, False),
    "samples": lambda made, stream: given_by_a_source(made, stream, True),
    "debug mode": lambda made, stream: given_by_a_source(made, stream, False, True),
    "fed": lambda made, stream: given_by_hand(made, stream, True),
    "fed, stream of the source": lambda made, stream: given_by_hand(made, stream, False),
}


@pytest.mark.parametrize("way", GIVEN)
@pytest.mark.parametrize("kind", [Silent, "capsule"])
def test_a_stream_that_is_named_is_waited_for(way, kind, stream):
    array, found = Silent(stream), []

    def made():
        if kind == "capsule":
            return dlpack.capsule(array.block.address, SHAPE, np.dtype("u1"), 0, array)
        return array

    thread = threading.Thread(target=lambda: found.append(np.array(GIVEN[way](made, stream))), daemon=True)
    with held(stream):
        array.write(9)
        thread.start()
        time.sleep(SOON)
    thread.join(60)
    assert found and (found[0] == 9).all() and found[0].size % 60 == 0


def test_a_capsule_of_a_stream(stream):
    array, found = WithDlpack(stream), []
    capsule = dlpack.capsule(array.block.address, SHAPE, np.dtype("u1"), 0, array)
    thread = threading.Thread(target=lambda: found.append(np.array(TensorGPU(capsule, stream=stream.handle).as_cpu())))
    with held(stream):
        array.write(8)
        thread.start()
        time.sleep(SOON)
    thread.join(60)
    assert (found[0] == 8).all()


def batch():
    images = [np.full((2, 3), k, "u1") for k in range(4)]
    made = pipeline_def(lambda: fn.external_source(lambda: images, device="gpu", layout="HW") + 1, batch_size=4)
    return made(num_threads=1, device_id=0).run()[0]


@pytest.mark.parametrize("device", ["gpu", "cpu"])
def test_outputs_of_a_pipeline_are_inputs_of_another(device):
    out = batch()
    for data in (out, [out[k] for k in range(4)], list(out)):
        got = fed_four(data, device)
        assert got.layout() == "HW" and [int(got.at(k)[1, 2]) for k in range(4)] == [1, 2, 3, 4]


def fed_four(data, device):
    made = pipeline_def(lambda: fn.external_source(name="x", device=device), batch_size=4, num_threads=1)(device_id=0)
    made.build()
    made.feed_input("x", data)
    (out,) = made.run()
    return out.as_cpu() if device == "gpu" else out


def test_dlpack_copies_and_other_devices():
    out = batch()
    for x in (out, out.as_tensor(), out[1]):
        copy = TensorGPU(x.__dlpack__(copy=True, dl_device=(2, 0), max_version=(1, 0)))
        assert copy.data_ptr() != x.data_ptr()
        assert TensorGPU(x.__dlpack__(copy=False)).data_ptr() == x.data_ptr()
        assert (np.asarray(copy.as_cpu()) == np.asarray(TensorGPU(x.__dlpack__()).as_cpu())).all()
        with pytest.raises(BufferError, match=r"the data is on GPU 0.*as_cpu\(\) copies it"):
            x.__dlpack__(dl_device=(1, 0))


GIVERS = {
    "DLPack": lambda out, s: dlpack.take(out.__dlpack__(stream=s.handle))[0],
    "DLPack, of a sample": lambda out, s: dlpack.take(out[0].__dlpack__(stream=s.handle))[0],
    "DLPack, of a dense batch": lambda out, s: dlpack.take(out.as_tensor().__dlpack__(stream=s.handle))[0],
    "DLPack, a copy": lambda out, s: dlpack.take(out.as_tensor().__dlpack__(stream=s.handle, copy=True))[0],
    "run(stream)": lambda out, s: out.data_ptr(),
}


@pytest.mark.parametrize("giver", GIVERS)
def test_who_takes_a_batch_waits_for_it_on_the_gpu(giver, stream):
    """Work of the consumer's stream starts when the batch is complete, which has not even started here."""

    def define():
        return fn.flip(fn.external_source(lambda: [np.full((4, 5, 1), 8, "u1")] * 2, layout="HWC", device="gpu"))

    made = pipeline_def(define, batch_size=2, num_threads=1, device_id=0)()
    made.build()
    device = Device.get(0)
    host = np.zeros(20, "u1")
    with device, ExitStack() as holding:
        for s in made._plan.session._streams:
            holding.enter_context(held(s))
        (out,) = made.run(stream.handle if giver == "run(stream)" else -1)
        address = GIVERS[giver](out, stream)
        stream.download(host.ctypes.data, address, 20)
        read = stream.record()
        assert not happens(read, SOON)
    with device:
        read.wait()
    assert (host == 8).all()
