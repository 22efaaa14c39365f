# SPDX-License-Identifier: Apache-2.0
"""Data of sources is copied only if it could be changed afterwards."""

import numpy as np
import pytest
from sources import build, values

from penstock import fn, pipeline_def
from penstock.external import samples

N, BATCH, SIZE = 6, 4, 20_000  # samples large enough for the native threads to copy them


class Reuses:
    """Reuses the arrays of the previous batch."""

    def __init__(self, arrays):
        self.arrays = arrays

    def __call__(self, info):
        array = self.arrays[info.idx_in_batch]
        array[...] = info.idx_in_epoch % 251
        return array


@pytest.mark.parametrize("size", [1, SIZE])
@pytest.mark.parametrize("ragged", [0, 1])
def test_arrays_may_be_filled_again_for_the_next_batch(size, ragged):
    arrays = [np.zeros(size + ragged * (i % 2), "u1") for i in range(BATCH)]
    pipe = build(Reuses(arrays), parallel=False, pipe_args={"prefetch_queue_depth": 3})
    kept = [pipe.run()[0] for _ in range(N)]
    for b, out in enumerate(kept):
        for i, array in enumerate(arrays):
            np.testing.assert_array_equal(out.at(i), np.full(array.shape, BATCH * b + i))
            assert not np.shares_memory(out.at(i), array)


def test_batches_may_be_filled_again():
    whole = np.zeros((BATCH, SIZE), "u1")

    def source(i):
        whole[...] = i
        return whole

    pipe = build(source, batch=True, parallel=False)
    kept = [pipe.run()[0] for _ in range(N)]
    assert [np.unique(k.as_array()).tolist() for k in kept] == [[i] for i in range(N)]


CONSTANT = bytes(range(200)) * 100


def frozen(array):
    array.setflags(write=False)
    return array


FROZEN = {
    "of bytes": lambda: np.frombuffer(CONSTANT, "u1"),
    "part of bytes": lambda: np.frombuffer(CONSTANT, "u1")[100:300].reshape(2, 100),
    "array": lambda: frozen(np.arange(50.0)),
    "view of an array": lambda: frozen(np.arange(50.0))[7:],
}


@pytest.mark.parametrize("case", FROZEN)
def test_what_nobody_can_write_to_is_used_in_place(case):
    array = FROZEN[case]()
    kept = [array, array]
    assert not samples.is_sole(list(kept), 0)
    batch = samples.adopt(list(kept), True)
    assert (batch.rows["data"] == array.ctypes.data).all() and batch.is_borrowed
    np.testing.assert_array_equal(batch.sample(1), array)


THAWED = {
    "array": lambda: np.arange(50.0),
    "read-only view": lambda: frozen(np.arange(50.0)[3:]),
    "broadcast": lambda: np.broadcast_to(np.float32(1), (4,)),
    "of a bytearray": lambda: frozen(np.frombuffer(bytearray(50), "u1")),
    "view of a view": lambda: frozen(np.frombuffer(bytearray(50), "u1")[3:])[1:],
}


@pytest.mark.parametrize("case", THAWED)
def test_what_somebody_can_write_to_is_copied(case):
    array = THAWED[case]()
    batch = samples.adopt([array, array], True)
    assert not (batch.rows["data"] == array.ctypes.data).any()
    np.testing.assert_array_equal(batch.sample(1), array)


def test_a_small_part_of_bytes_does_not_keep_them():
    batch = samples.adopt([np.frombuffer(bytes(bytearray(10_000)), "u1")[:10] for _ in range(2)], True)
    assert not any(isinstance(o, np.ndarray) for o in batch.owners)


@pytest.mark.parametrize("batch", [False, True])
def test_outputs_are_the_users_to_write_to(batch):
    """Also if the source's data is returned unchanged."""
    kept = frozen(np.arange(SIZE, dtype="i4"))

    @pipeline_def(batch_size=2, num_threads=1)
    def pipe():
        x = fn.external_source(lambda i: [kept, kept] if batch else kept, batch=batch)
        return x, fn.reshape(x, shape=[2, -1]), x + 1

    p = pipe()
    for _ in range(3):
        x, y, z = (o.as_array() for o in p.run())
        assert (x == kept).all() and (y.reshape(2, -1) == kept).all() and (z == kept + 1).all()
        for out in (x, y, z):
            out[...] = -1


def test_in_place_only_where_asked_for():
    kept = np.arange(SIZE, dtype="i4")
    pipe = build(lambda info: kept, parallel=False, no_copy=True)
    (out,) = pipe.run()
    assert np.shares_memory(out.at(0), kept)
    assert values(build(lambda info: kept[:2], parallel=False).run()) == [[0, 1]] * BATCH
