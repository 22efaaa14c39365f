# SPDX-License-Identifier: Apache-2.0
"""The user's memory, which sources lend to a pipeline, is never changed by receivers of batches."""

import numpy as np
import pytest

from penstock import fn, pipeline_def
from penstock.experimental import dynamic as ndd
from penstock.tensors import TensorCPU, TensorListCPU

torch = pytest.importorskip("torch")
N = 4096


def memory_map(tmp_path):
    path = tmp_path / "data"
    path.write_bytes(bytes(N))
    return np.memmap(path, "u1", "r")


USERS = {
    "memory map": memory_map,
    "bytes": lambda tmp_path: np.frombuffer(bytes(N), "u1"),
    "array": lambda tmp_path: np.zeros(N, "u1"),
    "read-only view": lambda tmp_path: np.broadcast_to(np.zeros(N, "u1"), (N,)),
}


@pytest.fixture(params=USERS)
def lent(request, tmp_path):
    """A user's array of zeros."""
    array = USERS[request.param](tmp_path)
    yield array
    assert not array.any()


def lending(array):
    """Returns it as a whole batch, as samples, and through operators that share memory."""

    @pipeline_def(batch_size=2, num_threads=1)
    def pipe():
        whole = fn.external_source(lambda i: array.reshape(2, -1), no_copy=True)
        each = fn.external_source(lambda i: [array, array], no_copy=True)
        return whole, each, fn.reshape(whole, shape=[16, -1]), fn.reinterpret(each, layout="X")

    return pipe()


def test_pytorchs_iterator(lent):
    from penstock.plugin.pytorch import DALIGenericIterator, DALIRaggedIterator

    names = ["a", "b", "c", "d"]
    for made in (
        DALIGenericIterator(lending(lent), names),
        DALIRaggedIterator(lending(lent), names, output_types=["sparse_list"] * 4),
    ):
        (batch,) = next(made)
        for tensors in batch.values():
            for t in tensors if isinstance(tensors, list) else [tensors]:
                assert not t.any()
                t.add_(1)


def test_dlpack(lent):
    for out in lending(lent).run():
        for tensor in (out, out.as_tensor(), out[1]) if out.is_dense_tensor() else (out[1],):
            torch.from_dlpack(tensor).add_(1)


@pytest.mark.parametrize("by_threads", [False, True])
def test_arrays_are_given_out_in_place_and_can_not_be_written_to(lent, by_threads):
    for out in (lending_by_threads if by_threads else lending)(lent).run():
        for array in (out.at(0), np.asarray(out[1])):
            assert np.shares_memory(array, lent)
            with pytest.raises(ValueError, match="read-only"):
                array[...] = 1
        out.as_array().sum()


def lending_by_threads(array):
    @pipeline_def(batch_size=2, num_threads=1, py_num_workers=1, py_start_method="thread")
    def pipe():
        return (
            fn.external_source(lambda i: array.reshape(2, -1), no_copy=True, parallel=True),
            fn.external_source(lambda i: array, batch=False, no_copy=True, parallel=True),
        )

    return pipe()


def test_tensors_of_arrays_that_can_not_be_written_to():
    kept = np.frombuffer(bytes(N), "u1")
    for tensor in (TensorCPU(kept), TensorListCPU([kept, kept]), TensorListCPU([kept])[0], TensorListCPU(kept[None])):
        torch.from_dlpack(tensor).add_(1)
        assert not np.asarray(tensor).flags.writeable or not np.shares_memory(np.asarray(tensor), kept)
    assert not kept.any()


@pytest.mark.parametrize("make", [ndd.as_tensor, lambda a: ndd.as_batch([a, a]), lambda a: ndd.as_batch(a[None])])
def test_imperative_mode(make):
    kept = np.frombuffer(bytes(N), "u1")
    made = make(kept)
    for value in (made, made[0] if isinstance(made, ndd.Tensor) else made.tensors[0], ndd.as_batch(make(kept))):
        torch.from_dlpack(value).add_(1)
        value.torch().add_(1)
    assert not kept.any()


def test_copies_of_the_imperative_mode_are_copies():
    below = np.zeros(8, "u1")
    seen = below[:]
    seen.setflags(write=False)
    made = ndd.tensor(seen), ndd.batch(seen), ndd.tensor(below)
    below[:] = 1
    assert not any(np.asarray(m).any() for m in made)
    np.asarray(made[0])[...] = 2


def test_jax_takes_what_can_not_be_written_to(lent):
    pytest.importorskip("jax")
    from penstock.plugin.jax import DALIGenericIterator

    batch = next(DALIGenericIterator(lending(lent), ["a", "b", "c", "d"]))
    assert all(not value.any() for value in batch.values())


def test_jax_takes_bytes_that_a_source_has_read():
    pytest.importorskip("jax")
    from penstock.plugin.jax import DALIGenericIterator

    @pipeline_def(batch_size=2, num_threads=1)
    def pipe():
        return fn.external_source(lambda i: np.frombuffer(bytes(bytearray(range(64))), "u1").reshape(2, 32))

    batch = next(DALIGenericIterator(pipe(), ["x"]))
    assert np.asarray(batch["x"]).ravel().tolist() == list(range(64))


def test_fed_data():
    pipe_def = pipeline_def(lambda: fn.external_source(name="x", no_copy=True), batch_size=2, num_threads=1)
    pipe, data = pipe_def(), np.zeros((2, N), "u1")
    pipe.feed_input("x", data)
    (out,) = pipe.run()
    assert np.shares_memory(out.as_array(), data)
    torch.from_dlpack(out.as_tensor()).add_(1)
    assert not data.any()


def test_debug_mode(lent):
    pipe_def = pipeline_def(lambda: fn.external_source(lambda i: [lent], no_copy=True), batch_size=1, debug=True)
    torch.from_dlpack(pipe_def().run()[0][0]).add_(1)
