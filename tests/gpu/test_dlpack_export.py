# SPDX-License-Identifier: Apache-2.0
"""Batches that other libraries take by DLPack and release in any thread, without Python, at any time. Their memory is
reused only after the work of the library's stream is complete."""

import ctypes
import gc
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from test_reuse import LONG, SOON, happens, held

from penstock import fn, pipeline_def
from penstock.core import kernels
from penstock.core.batch import Spec
from penstock.gpu import dlpack, dlpack_export, memory, uses
from penstock.gpu.batch import DeviceBatch
from penstock.gpu.driver import Device, OutOfDeviceMemory
from penstock.gpu.driver_calls import NATIVE
from penstock.gpu.interchange import LEGACY_STREAM
from penstock.gpu.memory import Budget, pool
from penstock.gpu.stream import Stream

if os.environ.get("PENSTOCK_TEST_GPU") == "1":
    pytest.skip("only streams of the emulated device can be held", allow_module_level=True)

N = 1 << 16
_get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
_rename = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_SetName", ctypes.pythonapi))
_USED = b"used_dltensor"


class Tensor:
    """A library's tensor created from a capsule."""

    def __init__(self, capsule):
        self._at = _get(capsule, b"dltensor")
        assert not _rename(capsule, _USED)
        self.address = dlpack._Managed.from_address(self._at).tensor.data

    def let_go(self, threaded=False):
        deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(dlpack._Managed.from_address(self._at).deleter)
        if threaded:
            thread = threading.Thread(target=deleter, args=(self._at,))
            thread.start()
            thread.join()
        else:
            deleter(self._at)


@pytest.fixture
def device():
    dlpack_export.collect()
    device = Device.get(0)
    yield device
    dlpack_export.collect()


def batch(device, stream, budget=None):
    """One sample of N bytes, made by the work of a stream."""
    with device:
        made = DeviceBatch.on(stream, Spec.uniform(1, (N,), "u1"), budget)
        made.ready = stream.record()
    return made


def streams(device, n):
    with device:
        return [Stream(device) for _ in range(n)]


@pytest.mark.parametrize("threaded", [False, True])
def test_memory_waits_for_the_library_that_let_go(device, threaded, monkeypatch):
    """Work enqueued before reads the memory late."""
    monkeypatch.setattr(memory, "_SPARE", 0)
    maker, library, next_one = streams(device, 3)
    seen = np.zeros(N, "u1")
    x = batch(device, maker)
    maker.fill(x.owners[0].address, 7, N)
    maker.synchronize()
    tensor = Tensor(dlpack_export.capsule(x, 1, library.handle))
    del x
    with held(library):
        library.download(seen.ctypes.data, tensor.address, N)
        tensor.let_go(threaded)
        with device:
            again = pool(device).take(N, next_one)
            assert again.address == tensor.address
            next_one.fill(again.address, 9, N)
            event = next_one.record()
        assert not happens(event, SOON)
    assert happens(event, LONG)
    library.synchronize()
    assert (seen == 7).all()


def test_what_is_asked_for_later_is_not_waited_for(device, monkeypatch):
    monkeypatch.setattr(memory, "_SPARE", 0)
    maker, library, next_one = streams(device, 3)
    x = batch(device, maker)
    maker.synchronize()
    tensor = Tensor(dlpack_export.capsule(x, 1, library.handle))
    del x
    tensor.let_go()
    library.synchronize()
    with held(library):
        with device:
            again = pool(device).take(N, next_one)
            next_one.fill(again.address, 9, N)
            assert again.address == tensor.address and happens(next_one.record())


def test_the_user_of_a_default_stream_is_waited_for_too(device, monkeypatch):
    """The default stream belongs to a context, which the releasing thread does not have."""
    monkeypatch.setattr(memory, "_SPARE", 0)
    maker, next_one = streams(device, 2)
    x = batch(device, maker)
    maker.synchronize()
    tensor = Tensor(dlpack_export.capsule(x, 1, LEGACY_STREAM))
    del x
    monkeypatch.delattr(uses.UsedMemory, "used_on")  # simulates that it could not be recorded immediately

    class Default:
        handle = LEGACY_STREAM

    with held(Default):
        tensor.let_go(threaded=True)
        with device:
            again = pool(device).take(N, next_one)
            next_one.fill(again.address, 9, N)
            event = next_one.record()
        assert again.address == tensor.address and not happens(event, SOON)
    assert happens(event)


def test_each_of_two_libraries_is_waited_for(device, monkeypatch):
    monkeypatch.setattr(memory, "_SPARE", 0)
    maker, one, other, next_one = streams(device, 4)
    x = batch(device, maker)
    maker.synchronize()
    tensors = [Tensor(dlpack_export.capsule(x, 1, s.handle)) for s in (one, other, one)]
    address = tensors[0].address
    del x
    with held(one):
        for tensor in tensors:
            tensor.let_go()
        with device:
            again = pool(device).take(N, next_one)
            next_one.fill(again.address, 9, N)
            event = next_one.record()
        assert again.address == address and not happens(event, SOON)
    assert happens(event)


def test_no_list_of_users_grows_for_ever(device):
    maker, library = streams(device, 2)
    x = batch(device, maker)
    with held(library):
        for _ in range(3 * memory._MOST_USES):
            Tensor(dlpack_export.capsule(x, 1, library.handle)).let_go()
            dlpack_export.collect()
        assert len(x.owners[0]._uses) == 3 * memory._MOST_USES  # none is complete
    library.synchronize()
    for _ in range(3):
        Tensor(dlpack_export.capsule(x, 1, library.handle)).let_go()
    library.synchronize()
    with held(library):
        Tensor(dlpack_export.capsule(x, 1, library.handle)).let_go()
        dlpack_export.collect()
    assert len(x.owners[0]._uses) == 1


def test_letting_go_runs_no_python(device):
    """So it waits for no lock: the owner exists until it is collected."""
    (maker,) = streams(device, 1)
    x = batch(device, maker)
    tensor = Tensor(dlpack_export.capsule(x, 1, LEGACY_STREAM))
    del x
    calls = []
    threading.setprofile(lambda *a: calls.append(a))
    try:
        tensor.let_go()
    finally:
        threading.setprofile(None)
    assert len(dlpack_export._exported) == 1
    dlpack_export.collect()
    assert not dlpack_export._exported and not calls


def test_a_capsule_that_nobody_took(device):
    (maker,) = streams(device, 1)
    x = batch(device, maker)
    budget_free = pool(device).idle()
    capsule = dlpack_export.capsule(x, 1, LEGACY_STREAM)
    del x
    assert pool(device).idle() == budget_free
    del capsule
    assert pool(device).idle() >= budget_free + N and not dlpack_export._exported


def test_a_capsule_that_was_taken_keeps_its_tensor(device):
    (maker,) = streams(device, 1)
    x = batch(device, maker)
    capsule = dlpack_export.capsule(x, 1, LEGACY_STREAM)
    tensor = Tensor(capsule)
    del capsule, x
    dlpack_export.collect()
    assert len(dlpack_export._exported) == 1
    tensor.let_go()


def test_a_limit_of_memory_counts_what_is_held_only(device):
    """Released memory is collected before an allocation fails or more memory is allocated."""
    (stream,) = streams(device, 1)
    budget = Budget(2 * N)
    for _ in range(5):
        tensors = [Tensor(dlpack_export.capsule(batch(device, stream, budget), 1, stream.handle)) for _ in range(2)]
        with device, pytest.raises(OutOfDeviceMemory, match="device_memory_limit"):
            pool(device).take(N, stream, budget)
        for tensor in tensors:
            tensor.let_go()
    assert pool(device).idle() and budget.used == 0 and budget.peak == 2 * N


@pytest.mark.parametrize("ways", ["take", "take_all", "idle", "trim", "trim_idle"])
def test_whoever_looks_for_memory_collects(device, ways):
    (stream,) = streams(device, 1)
    Tensor(dlpack_export.capsule(batch(device, stream), 1, stream.handle)).let_go()
    stream.synchronize()
    assert len(dlpack_export._exported) == 1
    with device:
        memories = pool(device)
        {
            "take": lambda: memories.take(8, stream),
            "take_all": lambda: memories.take_all([8, 8], stream),
            "idle": memories.idle,
            "trim": memories.trim,
            "trim_idle": memories.trim_idle,
        }[ways]()
    assert not dlpack_export._exported


def test_more_than_are_collected_at_a_time(device):
    """From several threads at once."""
    (stream,) = streams(device, 1)
    tensors = [
        Tensor(dlpack_export.capsule(batch(device, stream), 1, stream.handle))
        for _ in range(5 * dlpack_export._MOST + 3)
    ]
    mine = [tensors[i::4] for i in range(4)]
    threads = [threading.Thread(target=lambda part=part: [t.let_go() for t in part]) for part in mine]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        dlpack_export.collect()
    dlpack_export.collect()
    assert not dlpack_export._exported


def numbers():
    def define():
        return fn.external_source(source=lambda i: np.full((2, 100), i, "f4"), device="gpu") + 1

    return pipeline_def(define, batch_size=2, num_threads=1, device_id=0)()


def test_when_the_pipeline_has_gone(device):
    pipe = numbers()
    tensor = Tensor(pipe.run()[0].__dlpack__(stream=LEGACY_STREAM))
    pipe.close()
    del pipe
    gc.collect()
    values = np.ctypeslib.as_array((ctypes.c_float * 200).from_address(tensor.address))  # emulated memory
    assert (values == 1).all()
    tensor.let_go(threaded=True)
    assert len(dlpack_export._exported) == 1
    dlpack_export.collect()
    assert not dlpack_export._exported


def test_an_event_that_could_not_be_recorded(device, monkeypatch):
    """The block's pool retries, and the allocation continues."""
    (stream,) = streams(device, 1)
    tensor = Tensor(dlpack_export.capsule(batch(device, stream), 1, LEGACY_STREAM))
    record = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(lambda event, stream: 1)
    lib = ctypes.CDLL(os.environ["PENSTOCK_CUDA_DRIVER"])
    real = [ctypes.cast(getattr(lib, name), ctypes.c_void_p).value for name in NATIVE]
    bad = list(real)
    bad[NATIVE.index("cuEventRecord")] = ctypes.cast(record, ctypes.c_void_p).value
    kernels.library().driver_functions((ctypes.c_void_p * len(bad))(*bad))
    try:
        tensor.let_go()
    finally:
        kernels.library().driver_functions((ctypes.c_void_p * len(real))(*real))
    x = dlpack_export._exported[next(iter(dlpack_export._exported))][0]
    dlpack_export.collect()
    assert not dlpack_export._exported and LEGACY_STREAM in [s.handle for s in x.owners[0]._streams]


_IN_A_CHILD = """
import ctypes, os, sys
sys.path.insert(0, {folder!r})
from test_dlpack_export import Tensor, kernels, numbers, dlpack_export
pipe = numbers()
tensor, other = (Tensor(pipe.run()[0].__dlpack__(stream=1)) for _ in range(2))
out = pipe.run()[0]
Tensor(pipe.run()[0].__dlpack__(stream=1)).let_go()
dlpack_export.collect()  # there are events to spare
child = os.fork()
if not child:
    tensor.let_go()
    found = (ctypes.c_int64 * 4)()
    if kernels.library().take_released(found, 2) != 1 or found[1] != -1:
        os._exit(2)  # it was recorded
    try:
        out.__dlpack__(stream=1)
    except RuntimeError as e:
        os._exit(0 if "forked" in str(e) else 3)
    os._exit(4)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
tensor.let_go()
other.let_go()
dlpack_export.collect()
print(status, len(dlpack_export._exported))
"""

_AT_THE_END = """
import atexit, ctypes, sys

def end():
    print("let go")
    tensor.let_go()
    tensor.let_go()  # nothing is known of it any more
    print("done", dlpack_export.released_list().value)

atexit.register(end)  # behind those that are registered later
sys.path.insert(0, {folder!r})
from test_dlpack_export import Tensor, numbers, dlpack_export
tensor = Tensor(numbers().run()[0].__dlpack__(stream=1))
"""


@pytest.mark.parametrize(
    ("program", "said"), [(_IN_A_CHILD, ["0 0"]), (_AT_THE_END, ["let go", "done 0"])], ids=["a fork", "the end"]
)
def test_processes(program, said):
    here = os.path.dirname(__file__)
    paths = [here, os.path.dirname(here), *sys.path]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in paths if p)}
    done = subprocess.run(
        [sys.executable, "-c", program.format(folder=here)], text=True, capture_output=True, timeout=120, env=env
    )
    assert (done.returncode, done.stdout.split("\n")[:-1]) == (0, said), done.stderr


def test_a_batch_that_is_not_there_yet_is_waited_for(device):
    """The consumer's stream waits, once for all outputs."""
    from penstock.tensors import TensorListGPU

    maker, library = streams(device, 2)
    waits = []
    with held(maker):
        one, other = batch(device, maker), batch(device, maker)
        other.ready = one.ready
        order, dlpack_export.wait_until_ready = dlpack_export.wait_until_ready, lambda *a: waits.append(a) or order(*a)
        try:
            made = TensorListGPU._capsules([one, other], lambda number: library.handle)
        finally:
            dlpack_export.wait_until_ready = order
        with device:
            event = library.record()
        assert not happens(event, SOON)
    assert happens(event) and len(waits) == 1 and all(made)
    begin = time.monotonic()
    del made, one, other
    dlpack_export.collect()
    assert time.monotonic() - begin < LONG
