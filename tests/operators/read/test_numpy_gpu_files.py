# SPDX-License-Identifier: Apache-2.0
"""readers.numpy with device="gpu" and GPUDirect Storage, with the cuFile of tests/emulator."""

import ctypes
import os

import numpy as np
import pytest
from build import build_cufile
from numpy_arrays import assert_same

from penstock import fn, pipeline_def
from penstock.cli.doctor import examine
from penstock.gpu import cufile

pytestmark = pytest.mark.skipif(
    os.environ.get("PENSTOCK_TEST_GPU") == "1", reason="its cuFile works with the emulated device only"
)


@pytest.fixture
def stub(monkeypatch):
    path = build_cufile()
    monkeypatch.setenv("PENSTOCK_CUFILE", path)
    cufile._start.cache_clear()
    lib = ctypes.CDLL(path)
    lib.stub_bytes_read.restype = ctypes.c_int64
    lib.stub_bytes_read()
    yield lib
    assert lib.stub_open_handles() == 0
    cufile._start.cache_clear()


def arrays(folder, n=6, even=True):
    """Files of several shapes, with even sizes or with odd sizes, which some versions of cuFile reject."""
    found = [np.random.default_rng(i).integers(0, 250, (5 + i, 40, 7 + i), "u1") for i in range(n)]
    for i, x in enumerate(found):
        path = folder / f"{i}.npy"
        np.save(path, x)
        with open(path, "ab") as f:
            f.write(bytes((path.stat().st_size + (not even)) % 2))
    return found


def build(folder, batch_size=6, on_error="raise", **kwargs):
    @pipeline_def(batch_size=batch_size, num_threads=2, device_id=0, on_error=on_error)
    def pipe():
        x = fn.readers.numpy(device="gpu", file_root=str(folder), name="r", **kwargs)
        return x, x + np.uint8(1)

    return pipe()


def run(pipe):
    return [[np.array(x) for x in out.as_cpu()] for out in pipe.run()]


def test_arrays_are_read_past_the_host(tmp_path, stub):
    x = arrays(tmp_path)
    pipe = build(tmp_path)
    for _ in range(3):
        got, more = run(pipe)
        for a, b, wanted in zip(got, more, x, strict=True):
            assert_same(a, wanted)
            assert_same(b, wanted + np.uint8(1))
    assert stub.stub_bytes_read() >= 3 * sum(a.nbytes for a in x)
    assert pipe.run()[0].as_cpu()[1].source_info().endswith("1.npy")


def test_small_files_and_empty_ones(tmp_path, stub):
    x = [np.zeros((0, 3), "f4"), np.float32([[1, 2, 3]]), np.float32([[1, 2, 3], [4, 5, 6]])]
    for i, a in enumerate(x):
        np.save(tmp_path / f"{i}.npy", a)

    @pipeline_def(batch_size=3, num_threads=1, device_id=0)
    def pipe():
        return tuple(fn.readers.numpy(device="gpu", file_root=str(tmp_path)) for _ in range(2))

    for out in pipe().run():
        for a, wanted in zip(out.as_cpu(), x, strict=True):
            assert_same(np.array(a), wanted)


def test_only_the_rows_of_a_region_are_read(tmp_path, stub):
    x = arrays(tmp_path)
    got = run(build(tmp_path, roi_start=[2], roi_shape=[2], roi_axes=[0]))[0]
    for a, wanted in zip(got, x, strict=True):
        assert_same(a, wanted[2:4])
    n = stub.stub_bytes_read()
    assert n and n % sum(a[2:4].nbytes for a in x) == 0


def test_regions_that_are_data(tmp_path, stub):
    x = arrays(tmp_path)
    start = iter(range(100))

    @pipeline_def(batch_size=6, num_threads=2, device_id=0)
    def pipe():
        first = fn.external_source(lambda info: np.int32([next(start) % 4]), batch=False)
        return fn.readers.numpy(device="gpu", file_root=str(tmp_path), roi_start=first, roi_axes=[0])

    for i, a in enumerate(pipe().run()[0].as_cpu()):
        assert_same(np.array(a), x[i][i % 4 :])
    assert stub.stub_bytes_read()


@pytest.mark.parametrize("kwargs", [{"roi_start": [1], "roi_axes": [1]}, {"roi_shape": [30], "roi_axes": [0]}])
def test_other_regions_come_by_the_host(tmp_path, stub, kwargs):
    x = arrays(tmp_path)
    pad = {"out_of_bounds_policy": "pad"} if "roi_shape" in kwargs else {}
    got = run(build(tmp_path, **kwargs, **pad))[0]
    for a, whole in zip(got, x, strict=True):
        wanted = np.pad(whole, ((0, 30 - len(whole)), (0, 0), (0, 0))) if pad else whole[:, 1:]
        assert_same(a, wanted)
    assert not stub.stub_bytes_read()


def test_both_in_one_batch(tmp_path, stub):
    """Arrays in Fortran order have to be transposed, which is done by the CPU."""
    x = arrays(tmp_path)
    np.save(tmp_path / "3.npy", np.asfortranarray(x[3]))
    got = run(build(tmp_path))[0]
    for a, wanted in zip(got, x, strict=True):
        assert_same(a, wanted)
    assert stub.stub_bytes_read()


def test_files_that_cufile_does_not_take(tmp_path, stub):
    x = arrays(tmp_path, even=False)
    for a, wanted in zip(run(build(tmp_path))[0], x, strict=True):
        assert_same(a, wanted)
    assert not stub.stub_bytes_read()


@pytest.mark.parametrize("on_error", ["raise", "skip", "replace"])
def test_bad_files(tmp_path, stub, on_error):
    x = arrays(tmp_path)
    (tmp_path / "1.npy").write_bytes(b"no array")
    with open(tmp_path / "4.npy", "r+b") as f:
        f.truncate(600)
    pipe = build(tmp_path, on_error=on_error)
    if on_error == "raise":
        with pytest.raises(RuntimeError, match=r"1\.npy"):
            pipe.run()
        return
    got = run(pipe)[0]
    good = [x[i] for i in (0, 2, 3, 5)]
    if on_error == "skip":
        for a, wanted in zip(got, good, strict=True):
            assert_same(a, wanted)
    else:
        assert len(got) == 6 and all(any(np.array_equal(a, g) for g in good) for a in got)
    assert {e.source.rpartition("/")[2] for e in pipe.errors()} == {"1.npy", "4.npy"}


def test_files_that_shrink_when_their_headers_were_read(tmp_path, stub, monkeypatch):
    x = arrays(tmp_path)
    real = cufile.GpuFiles.read

    def late(self, *args):
        os.truncate(tmp_path / "2.npy", 130)
        return real(self, *args)

    monkeypatch.setattr(cufile.GpuFiles, "read", late)
    pipe = build(tmp_path, on_error="skip")
    for a, wanted in zip(run(pipe)[0], x[:2] + x[3:], strict=True):
        assert_same(a, wanted)
    assert "cut short" in pipe.errors()[0].reason


def test_what_the_cpu_needs_is_read_by_it(tmp_path, stub):
    x = arrays(tmp_path)

    @pipeline_def(batch_size=6, num_threads=2, device_id=0)
    def pipe():
        a = fn.readers.numpy(file_root=str(tmp_path))
        return a, a.gpu()

    on_cpu, on_gpu = pipe().run()
    for i, wanted in enumerate(x):
        assert_same(np.array(on_cpu.at(i)), wanted)
        assert_same(np.array(on_gpu.as_cpu().at(i)), wanted)
    assert not stub.stub_bytes_read()


@pytest.mark.parametrize(
    "variable, why",
    [("STUB_CUFILE_FAILS", "could not be started"), ("STUB_CUFILE_BY_HOST", "would read by way of the host")],
)
def test_machines_without_it(tmp_path, stub, monkeypatch, variable, why):
    monkeypatch.setenv(variable, "1")
    x = arrays(tmp_path)
    for a, wanted in zip(run(build(tmp_path))[0], x, strict=True):
        assert_same(a, wanted)
    assert not stub.stub_bytes_read()
    assert f"no GPUDirect Storage: cuFile {why}" in examine()


def test_doctor(stub, monkeypatch):
    assert "fn.readers.numpy reads by GPUDirect Storage" in examine() and "NVMe, SCSI" in examine()
    monkeypatch.delenv("PENSTOCK_CUFILE")
    assert "no GPUDirect Storage: the GPU is an emulated one" in examine()
