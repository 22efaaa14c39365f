# SPDX-License-Identifier: Apache-2.0
"""The memory pool, and rows that are refilled."""

import ctypes
import subprocess
import sys

import numpy as np
import pytest

from penstock import backend, fn, pipeline_def
from penstock.core.batch import Batch, Spec
from penstock.core.kernels import library
from penstock.core.rows import ArgumentRows, address, allocate


def test_blocks_are_aligned_apart_and_used_again():
    rng = np.random.default_rng(1)
    sizes = [1, 4096, 4097, 5120, 5121, 8192, 8193, (2 << 20) - 64, 2 << 20, *rng.integers(1, 9 << 20, 60).tolist()]
    for _ in range(3):
        blocks = [(library().memory_take(n), n) for n in sizes]
        for i, (at, n) in enumerate(blocks):
            assert at % 64 == 0
            ctypes.memset(at, i % 251, n)
        for i, (at, n) in enumerate(blocks):
            assert ctypes.string_at(at, n) == bytes([i % 251]) * n, n
        for at, _ in blocks:
            library().memory_give(at)
    used = library().memory_used()
    again = library().memory_take(5121)
    assert again in [at for at, _ in blocks] and library().memory_used() - used == 6144
    library().memory_give(again)
    library().memory_give(again)  # memory not from the pool is ignored
    assert library().memory_used() == used


def test_what_was_in_use_at_once_is_kept_and_no_more():
    """Batches larger than the minimum cache reuse their memory; for varying sizes, not everything is kept."""
    lib, mb = library(), 1 << 20
    lib.memory_trim(0)
    used = lib.memory_used()

    def blocks_of(size):
        blocks = [lib.memory_take(size) for _ in range(16)]
        for at in blocks:
            lib.memory_give(at)
        return sorted(blocks)

    first = blocks_of(64 * mb)
    assert lib.memory_idle() == 1024 * mb
    assert blocks_of(64 * mb) == first
    for size in (80, 40, 56, 48):
        blocks_of(size * mb)
        assert lib.memory_idle() <= 1920 * mb  # 16 x 80 and half of it
    lib.memory_trim(-1)
    assert lib.memory_idle() <= 512 * mb and lib.memory_used() == used
    blocks_of(16 * mb)
    assert lib.memory_idle() <= 512 * mb  # what was in use before the trim no longer counts


def test_what_is_kept_is_given_back_before_memory_runs_out():
    program = """
import resource
from penstock.core.kernels import library
blocks = [library().memory_take(64 << 20) for _ in range(16)]
for at in blocks:
    library().memory_give(at)
assert library().memory_idle() == 1 << 30
with open("/proc/self/statm") as f:
    size = int(f.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + (64 << 20), -1))
assert library().memory_take(512 << 20)
assert library().memory_idle() == 0
assert not library().memory_take(2 << 30)
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_release_unused_memory():
    @pipeline_def(batch_size=4, num_threads=1)
    def pipe():
        return fn.brightness(fn.external_source(source=lambda i: np.zeros((4, 300, 300, 3), "u1"), layout="HWC"))

    p = pipe()
    kept = p.run()[0].as_array()
    backend.ReleaseUnusedMemory()
    assert (p.run()[0].as_array() == 0).all() and (kept == 0).all()
    p.close()
    del p
    backend.ReleaseUnusedMemory()
    assert library().memory_idle() == 0


def test_a_batch_beyond_all_memory_is_an_error():
    with pytest.raises(MemoryError, match="no memory is large enough for samples of the shapes"):
        Batch.allocate(Spec(np.full((3, 4), 1 << 20), "u1"))


@pytest.mark.parametrize("guard", [0, 8])
def test_places_of_samples(guard, monkeypatch):
    """Packed if they have the same size, otherwise 64-byte aligned; never overlapping."""
    monkeypatch.setattr(Batch, "guard_bytes", guard)
    for shape, dense in (([[2, 3], [2, 3], [2, 3]], True), ([[2, 3], [0, 3], [7, 30]], False)):
        batch = Batch.allocate(Spec(np.array(shape), "f4"))
        places, volumes = batch.rows["data"].astype("i8"), np.prod(shape, axis=1) * 4
        assert batch.spec.is_dense == dense and batch.is_packed == (dense and not guard)
        assert (places[1:] >= places[:-1] + volumes[:-1] + guard).all()
        if not dense or guard:
            assert not (places % 64).any()
        else:
            assert (np.diff(places) == volumes[0]).all()
        assert batch.rows["shape"][:, :2].tolist() == shape and set(batch.rows["ndim"]) == {2}


RECORD = np.dtype([("scalar", "f4"), ("wide", "i8", 4), ("table", "u8")], align=True)


def test_argument_rows():
    """Random columns and constants of all kinds."""
    rng = np.random.default_rng(2)
    constant = np.arange(12.0).reshape(3, 4).astype("i8")
    constant.setflags(write=False)
    shared = np.arange(5.0)[None]
    shared.setflags(write=False)
    for _ in range(300):
        rows = ArgumentRows(3, RECORD, frozenset(["table"]))
        columns = {
            "scalar": [1, 2.5, rng.random(3)][rng.integers(3)],
            "wide": [7, constant, rng.integers(0, 99, (3, 4)), rng.integers(1, 99, (3, 2))][rng.integers(4)],
            "table": [shared, rng.random((3, 5)), rng.random((1, 5))][rng.integers(3)],
        }
        for name in rng.permutation(list(columns))[: rng.integers(0, 2)]:
            del columns[name]
        alive = rows.fill(columns)
        want = np.zeros(3, RECORD)
        for name in set(columns) - {"table"}:
            column = np.asarray(columns[name])
            if name == "wide" and column.ndim == 2:
                want[name][:, : column.shape[1]] = column
            else:
                want[name] = column
        np.testing.assert_array_equal(rows.array[["scalar", "wide"]], want[["scalar", "wide"]])
        if "table" in columns:
            for i, at in enumerate(rows.array["table"].tolist()):
                values = np.frombuffer(ctypes.string_at(at, 40), "f8")
                np.testing.assert_array_equal(values, columns["table"][i % len(columns["table"])])
        else:
            assert not rows.array["table"].any() and not alive


def test_tensor_rows():
    for shape, dtype in (([[1, 2, 3], [4, 5, 6]], "u1"), ([[7, 8], [9, 10]], "u1"), ([[7, 8], [9, 10]], "f4")):
        array = Spec(shape, np.dtype(dtype)).packed()
        ndim = len(shape[0])
        assert array["shape"][:, :ndim].tolist() == shape and not array["shape"][:, ndim:].any()
        assert set(array["ndim"]) == {ndim} and set(array["dtype"]) == {{"u1": 0, "f4": 9}[dtype]}


def test_addresses():
    array, at = allocate((3, 4), np.dtype("i4"))
    assert at == array.ctypes.data == address(array) and not array.any()
    array.setflags(write=False)
    assert address(array) == at
    assert allocate(0, RECORD)[0].shape == (0,)
