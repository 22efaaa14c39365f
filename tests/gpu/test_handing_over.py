# SPDX-License-Identifier: Apache-2.0
"""GPU batches are returned without waiting for them, by `run(stream)` and by iterators. The framework is simulated;
PyTorch and JAX are tested in test_frameworks.py, on a real GPU."""

import ctypes
import subprocess
import sys

import numpy as np
import pytest

from penstock import fn, pipeline_def
from penstock.gpu import dlpack, dlpack_export
from penstock.gpu.batch import DeviceBatch
from penstock.gpu.driver import Device
from penstock.gpu.stream import Stream
from penstock.plugin.base_iterator import DaliIterator


@pytest.fixture
def no_waiting(monkeypatch):
    def wait(self):
        raise AssertionError("the host waits for the GPU")

    monkeypatch.setattr(DeviceBatch, "wait", wait)


@pytest.fixture(scope="module")
def stream():
    """A foreign stream, which outlives all batches."""
    device = Device.get(0)
    with device:
        return Stream(device)


def numbers(batch_size=2):
    def define():
        x = fn.external_source(source=lambda i: np.full((batch_size, 4, 5), i, "f4"), device="gpu")
        return fn.copy(x + 1), fn.copy(x)

    return pipeline_def(define, batch_size=batch_size, num_threads=1, device_id=0)()


@pytest.mark.parametrize("kind", ["none yet", "a stream"])
def test_run(no_waiting, stream, kind):
    pipe = numbers()
    for i in range(5):
        x, y = pipe.run(-1 if kind == "none yet" else stream.handle)
        assert (x.as_cpu().as_array() == i + 1).all() and (y.as_cpu().as_array() == i).all()


class Taker(DaliIterator):
    """Takes batches by DLPack for work of its own stream."""

    def _convert(self, batches):
        outputs = zip(self._names, batches[0].outputs)
        return {n: (o.data_ptr(), o.__dlpack__(stream=self.stream.handle)) for n, o in outputs}


def test_iterators(no_waiting, stream):
    it = Taker(numbers(), ["x", "y"], size=20, prepare_first_batch=False)
    it.stream, device = stream, stream.device
    host = np.zeros((2, 4, 5), "f4")
    dlpack_export.collect()
    before = len(dlpack_export._exported)
    for i, batch in enumerate(it):
        for name, want in (("x", i + 1), ("y", i)):
            given, capsule = batch[name]
            address, shape, dtype, number, owner = dlpack.take(capsule)
            assert (address, shape, dtype, number) == (given, (2, 4, 5), np.dtype("f4"), 0)
            with device:
                it.stream.download(host.ctypes.data, address, host.nbytes)
                it.stream.synchronize()
            assert (host == want).all()
            del owner
    assert i == 9
    del batch, capsule
    dlpack_export.collect()
    assert len(dlpack_export._exported) == before  # everything was released


def test_a_capsule_is_what_dlpack_says():
    """Reads the structs of DLPack's header."""
    x = numbers().run()[0]
    capsule = x.__dlpack__(stream=-1)
    get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
    at = get(("PyCapsule_GetPointer", ctypes.pythonapi))(capsule, b"dltensor")
    managed = dlpack._Managed.from_address(at)
    t = managed.tensor
    assert (t.data, t.device_type, t.device_id, t.ndim) == (x.data_ptr(), 2, 0, 3)
    assert (t.code, t.bits, t.lanes, [t.shape[d] for d in range(3)]) == (2, 32, 1, [2, 4, 5])
    assert not t.strides and not t.byte_offset and managed.deleter


def test_notebooks_show_thumbnails():
    @pipeline_def(batch_size=2, device_id=0)
    def pictures():
        return fn.external_source(source=lambda i: np.full((2, 8, 8, 3), 90, "u1"), layout="HWC").gpu()

    (images,) = pictures().run()
    assert all("<img" in x._repr_html_() for x in (images, images[0]))


_AT_THE_END = """
import atexit, ctypes

def let_go():
    print("let go")
    managed = dlpack._Managed.from_address(at)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(managed.deleter)(at)  # nothing asks whether there is one
    print("done")

atexit.register(let_go)  # behind those that are registered later
import numpy as np
from penstock import fn, pipeline_def
from penstock.gpu import dlpack

data = [np.ones(3, "f4")]
x, = pipeline_def(lambda: fn.external_source(lambda: data, device="gpu"), batch_size=1, device_id=0)().run()
capsule = x.__dlpack__(stream=-1)
at = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi))(capsule, b"dltensor")
rename = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_SetName", ctypes.pythonapi))
used = ctypes.create_string_buffer(b"used_dltensor")
rename(capsule, ctypes.cast(used, ctypes.c_char_p))
del x
"""


def test_tensors_that_are_let_go_of_when_python_has_ended():
    """As JAX does with arrays that exist at exit: it calls the deleter without checking that there is one."""
    done = subprocess.run([sys.executable, "-c", _AT_THE_END], text=True, capture_output=True, timeout=120)
    assert (done.returncode, done.stdout.split("\n")[:2]) == (0, ["let go", "done"]), done.stderr
