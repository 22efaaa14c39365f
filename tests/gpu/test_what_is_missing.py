# SPDX-License-Identifier: Apache-2.0
"""No driver, an old driver, no GPU, a full GPU, a lost GPU, several GPUs: clear errors, after which the process
continues. In separate processes, on the emulated device."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(os.environ.get("PENSTOCK_TEST_GPU") == "1", reason="a real GPU lacks nothing")

_SCRIPT = """
import gc
import numpy as np
from penstock import fn, pipeline_def

def build(device_id, batch_size=2, side=64):
    data = [np.full((side, side, 3), i, "u1") for i in range(batch_size)]

    def define():
        return fn.brightness(fn.external_source(lambda: data, layout="HWC").gpu(), brightness=2.0)

    p = pipeline_def(define, batch_size=batch_size, num_threads=1, prefetch_queue_depth=1)(device_id=device_id)
    p.build()
    return p

def attempt(device_id=0, **kwargs):
    try:
        out, = build(device_id, **kwargs).run()
        print(np.asarray(out.as_cpu().at(1))[0, 0].tolist())
    except Exception as e:
        print(type(e).__name__, " ".join(str(e).split()))
    gc.collect()

def on_the_cpu():
    p = pipeline_def(lambda: fn.constant(fdata=[1.0]), batch_size=1, num_threads=1, device_id=None)()
    print("cpu", np.asarray(p.run()[0].at(0)).item())
"""


def lines(program, **environment):
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT + program],
        env=os.environ | environment,
        text=True,
        capture_output=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_no_driver():
    found = lines("attempt(); on_the_cpu()", PENSTOCK_CUDA_DRIVER="/nowhere/libcuda.so.1")
    assert "no NVIDIA driver was found" in found[0] and "device_id=None" in found[0]
    assert found[1] == "cpu 1.0"


def test_a_driver_that_is_too_old():
    found = lines("attempt(); on_the_cpu()", PENSTOCK_EMULATED_CUDA="11080")
    assert "supports CUDA 11.8, penstock needs 12.0 or newer; update the driver" in found[0]
    assert found[1] == "cpu 1.0"


def test_no_gpu_and_a_number_that_is_not_there():
    assert "device_id=0 can't be used: this machine has no GPU" in lines("attempt()", PENSTOCK_EMULATED_DEVICES="0")[0]
    found = lines("attempt(3); attempt(1)", PENSTOCK_EMULATED_DEVICES="2")
    assert "device_id=3 can't be used: this machine has 2 GPUs, numbered from 0" in found[0]
    assert found[1] == "[2, 2, 2]"


def test_no_compiler():
    found = lines("attempt(); on_the_cpu()", PENSTOCK_NVRTC="/nowhere/libnvrtc.so")
    assert "NVRTC" in found[0] and "pip install penstock[cuda13]" in found[0]
    assert found[1] == "cpu 1.0"


def test_a_full_gpu():
    """The next pipeline, which needs less memory, runs."""
    found = lines("attempt(batch_size=8, side=1024); attempt()", PENSTOCK_EMULATED_MEMORY=str(4 << 20))
    assert "has" in found[0] and "MiB left and a batch needs" in found[0] and "Lower batch_size" in found[0]
    assert found[1] == "[2, 2, 2]"


def test_a_lost_gpu():
    """An illegal address, in any library, disables CUDA in the process: every use reports it, nothing hangs, CPU work
    continues, and the process exits normally."""
    found = lines(
        """
from penstock.gpu.driver import Device
from penstock.gpu.stream import Stream

p, q = build(0), build(0, side=32)
(out,) = p.run()
q.run()
try:
    with Device.get(0) as device:
        Stream(device).copy(1 << 40, out.data_ptr(), 8)
except Exception:
    pass

def say(what):
    try:
        what()
        print("done")
    except Exception as e:
        print(type(e).__name__, " ".join(str(e).split()))

for _ in range(4):  # those that were made before are good
    say(lambda: p.run()[0].as_cpu())
attempt()
say(lambda: str(p.stats()) + p.explain())
say(p.close)
on_the_cpu()
del p, q, out
gc.collect()
print("end")
"""
    )
    assert all("illegal memory access" in x and "can't use the GPU any more: start it anew" in x for x in found[:5])
    assert found[5:] == ["done", "done", "cpu 1.0", "end"]


def test_what_a_deleted_pipeline_held_goes_back_to_the_driver():
    """Without close(), while another pipeline runs; its remaining batches stay valid."""
    found = lines(
        """
from penstock.backend import ReleaseUnusedMemory
from penstock.gpu.driver import Device

device = Device.get(0)
def taken():
    with device:
        return device.total_memory - device.free_memory()

print(taken())
p, q = build(0, batch_size=8, side=256), build(0)
for _ in range(4):
    (out,), (other,) = p.run(), q.run()
running = taken()
del p
print(running > taken() > 0, running - taken() > 3 << 20)
print(np.asarray(out.as_cpu().at(3))[0, 0].tolist(), np.asarray(q.run()[0].as_cpu().at(1))[0, 0].tolist())
del q, out, other
ReleaseUnusedMemory()
print(taken())
"""
    )
    assert found == ["0", "True True", "[6, 6, 6] [2, 2, 2]", "0"]


def test_pipelines_on_two_gpus_at_once():
    found = lines(
        """
pipes = [build(i, batch_size=3) for i in (0, 1, 0)]
for _ in range(3):
    outs = [p.run()[0] for p in pipes]
    print([np.asarray(o.as_cpu().at(2))[0, 0, 0].item() for o in outs])
""",
        PENSTOCK_EMULATED_DEVICES="2",
    )
    assert found == ["[4, 4, 4]"] * 3
