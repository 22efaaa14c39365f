# SPDX-License-Identifier: Apache-2.0
"""GPU tests run on an emulated device, or on GPU 0 with PENSTOCK_TEST_GPU=1 (`make gpu-test`)."""

import ctypes
import gc
import os
import signal
import sys
from pathlib import Path

import pytest

# Several processes of pytest share the processor, which OpenMP's threads (PyTorch's) keep busy while they wait.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# The small models of tests, also of those in processes of their own, take JAX longer to optimise than to run.
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent / "emulator")]


def pytest_addoption(parser):
    parser.addoption("--every", type=int, default=1, help="run one test of so many, and all about the whole")


def pytest_collection_modifyitems(config, items):
    every = config.getoption("--every")
    if every > 1:
        about_all = [x for x in items if x.path.parent == Path(__file__).parent]
        chosen = {*items[::every], *(x for x in about_all if not hasattr(x, "callspec"))}
        config.hook.pytest_deselected(items=[x for x in items if x not in chosen])
        items[:] = [x for x in items if x in chosen]


@pytest.hookimpl(wrapper=True)
def pytest_collection(session):
    """The tests consist of millions of objects, which each full garbage collection would traverse."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()
        gc.set_threshold(10_000, 10, 10)  # a collection for each 700 objects takes a fifteenth of the tests' time


def pytest_configure(config):
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # as in a shell's background; programs would inherit it
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if os.environ.get("PENSTOCK_TEST_GPU") == "1":
        return
    from build import build

    os.environ.update(build())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Skips what an emulated processor (tools/arm_test.sh) does not have: a GPU, and other programs."""
    try:
        return (yield)
    except (Exception, pytest.fail.Exception) as e:
        lacking = [text for text in ("no NVIDIA driver was found", "Exec format error") if text in str(e)]
        if os.environ.get("PENSTOCK_TEST_EMULATED") == "1" and lacking:
            pytest.skip(lacking[0])
        raise


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item, nextitem):
    """What the tests of a file have imported stays, and tests that collect garbage need not traverse it each time: JAX
    and PyTorch take a fifth of a second."""
    if nextitem is not None and nextitem.path != item.path:
        gc.collect()
        gc.freeze()


@pytest.fixture(autouse=True)
def emulated_device():
    """Fails a test if the device failed, for example by an out-of-bounds write."""
    yield
    path = os.environ.get("PENSTOCK_CUDA_DRIVER")
    if path:
        driver = ctypes.CDLL(path)
        driver.emulated_failure.restype = ctypes.c_char_p
        assert not driver.emulated_failure(), driver.emulated_failure().decode()


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder PENSTOCK_DATA with real files (photos500/, photos1280/, formats/)."""
    path = os.environ.get("PENSTOCK_DATA")
    if not path or not Path(path).is_dir():
        pytest.skip("PENSTOCK_DATA does not name a folder of real files")
    return Path(path)
