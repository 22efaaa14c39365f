# SPDX-License-Identifier: Apache-2.0
"""Copies to the GPU: small batches are uploaded together."""

import ctypes
from types import SimpleNamespace

import numpy as np
import pytest

from penstock import fn, pipeline_def, types
from penstock.exec.gpu import stages as gpu_stages
from penstock.gpu import batch

N = 5
RNG = np.random.default_rng(1)


def sources(i):
    """Kinds of batches: small arrays of some types, empty ones, large ones, and samples of several shapes."""
    return (
        np.arange(N, dtype="i4") + i,
        RNG.random((N, 7, 4)).astype("f4"),
        RNG.integers(0, 99, (N, 3)),
        np.zeros((N, 0, 2), "f4"),
        RNG.integers(0, 255, (N, 100, 200, 3)).astype("u1"),
        [np.full((k + 1, 2), k, "i2") for k in range(N)],
        np.array([[True]] * N),
    )


@pytest.fixture
def together(monkeypatch):
    """The numbers of batches that were copied together."""
    made = []
    upload = gpu_stages.upload_small

    def counting(batches, *more):
        copies = upload(batches, *more)
        made.append(sum(c is not None for c in copies))
        return copies

    monkeypatch.setattr(gpu_stages, "upload_small", counting)
    return made


def test_all_arrive_and_small_ones_in_one_copy(together):
    given = []

    def source():
        given.append(sources(len(given)))
        return given[-1]

    @pipeline_def(batch_size=N, num_threads=1, device_id=0, prefetch_queue_depth=1)
    def pipe():
        data = fn.external_source(source, num_outputs=7)
        constant = fn.constant(idata=[1, 2, 3], shape=[3])
        return tuple(d.gpu() for d in (*data, data[0], constant, fn.shapes(data[5])))

    p = pipe()
    for k in range(4):
        outputs = [out.as_cpu() for out in p.run()]
        for got, want in zip(outputs, given[k]):
            for i in range(N):
                sample = np.array(got.at(i))
                assert sample.dtype == want[i].dtype
                np.testing.assert_array_equal(sample, want[i])
        np.testing.assert_array_equal(outputs[7].as_array(), given[k][0])
        np.testing.assert_array_equal(outputs[8].as_array(), [[1, 2, 3]] * N)
        np.testing.assert_array_equal(outputs[9].as_array(), [[i + 1, 2] for i in range(N)])
    assert len(together) >= 4 and set(together) == {6}  # not the large one, nor the constant, nor the one of no bytes


@pytest.mark.parametrize("also_on_the_cpu", [False, True])
def test_what_is_made_only_for_the_gpu_is_made_in_pinned_memory(monkeypatch, also_on_the_cpu):
    """And is not copied on the host, unless the CPU's batch is an output as well."""
    moved = []
    counting = SimpleNamespace(memmove=lambda to, at, n: moved.append(n) or ctypes.memmove(to, at, n))
    monkeypatch.setattr(batch, "ctypes", counting)
    pictures = RNG.integers(0, 255, (N, 60, 80, 3)).astype("u1")

    @pipeline_def(batch_size=N, num_threads=1, device_id=0, prefetch_queue_depth=1)
    def pipe():
        given = fn.external_source(lambda i: pictures + np.uint8(i.iteration % 7), batch=True, batch_info=True)
        x = fn.flip(given)
        y = fn.slice(
            fn.flip(given),
            0,
            fn.random.uniform(range=[9, 60]),
            axes=[0],
            normalized_anchor=False,
            normalized_shape=False,
        )
        return (x.gpu(), y.gpu(), x) if also_on_the_cpu else (x.gpu(), y.gpu())

    p = pipe()
    kept = []
    for k in range(8):
        outputs = p.run()
        kept.append([np.array(outputs[0].as_cpu().at(i)) for i in range(N)])
        for i, (sample, part) in enumerate(zip(kept[k], map(np.array, (outputs[1].as_cpu().at(i) for i in range(N))))):
            np.testing.assert_array_equal(sample, (pictures[i] + np.uint8(k % 7))[:, ::-1])
            np.testing.assert_array_equal(part, sample[: len(part)])
    large = [n for n in moved if n > batch.COPIED_TOGETHER]
    assert len(large) >= 8 and set(large) == {pictures.nbytes} if also_on_the_cpu else not large


def test_what_depends_on_a_copy_or_on_the_gpu_works_as_well():
    @pipeline_def(batch_size=N, num_threads=1, device_id=0)
    def pipe():
        x = fn.external_source(lambda: [np.full((4, 6, 3), 7, "u1")] * N, layout="HWC")
        a, shape = x.gpu(), fn.shapes(x).gpu()
        bright = fn.brightness(a, brightness=2.0)
        back = bright.cpu()
        return bright, shape, fn.cast(back, dtype=types.FLOAT).gpu(), fn.shapes(bright), fn.shapes(back).gpu()

    p = pipe()
    for _ in range(3):
        bright, shape, cast, of_gpu, of_back = (out.as_cpu().as_array() for out in p.run())
        assert (bright == 14).all() and (cast == 14).all()
        for shapes in (shape, of_gpu, of_back):
            assert shapes.tolist() == [[4, 6, 3]] * N


def test_copies_in_branches_stay_there():
    @pipeline_def(batch_size=N, num_threads=1, device_id=0, enable_conditionals=True)
    def pipe():
        number = fn.external_source(lambda: np.arange(N, dtype="i4"))
        other = fn.external_source(lambda: np.arange(N, dtype="i4") * 10)
        if number > 2:
            a, b = number.gpu(), other.gpu()
            out = a + b
        else:
            out = other.gpu()
        return out, number.gpu()

    p = pipe()
    for _ in range(2):
        out, number = p.run()
        assert out.as_cpu().as_array().tolist() == [0, 10, 20, 33, 44]
        assert number.as_cpu().as_array().tolist() == list(range(N))


def test_memory_of_some_lasts_as_long_as_any():
    @pipeline_def(batch_size=N, num_threads=1, device_id=0)
    def pipe():
        i, j = fn.external_source(lambda i: (np.full((N, 3), i, "i4"), np.full((N, 3), -i, "i4")), num_outputs=2)
        return i.gpu(), j.gpu()

    p = pipe()
    held = [p.run()[k % 2] for k in range(12)]
    for k, out in enumerate(held):
        assert (out.as_cpu().as_array() == (-k if k % 2 else k)).all()


def test_what_only_the_gpu_reads_is_copied_to_pinned_memory_at_once(monkeypatch):
    """Batches of one shape and of several, as arrays and as lists; not those that the CPU also reads."""
    x = RNG.integers(0, 255, (N, 100, 200, 3)).astype("u1")
    y = [RNG.random((k + 2, 3000)).astype("f4") for k in range(N)]
    z = np.arange(N, dtype="i4")

    @pipeline_def(batch_size=N, num_threads=1, device_id=0)
    def pipe():
        a, b, c = fn.external_source(lambda: (x, y, z), num_outputs=3)
        return a.gpu(), b.gpu(), c.gpu(), c + 1, fn.shapes(b.gpu())

    p = pipe()
    p.build()
    (source,) = (p._plan.source_op(n) for n in p._plan.sources)
    assert set(source.memories) == {0, 1}
    moved = []
    memmove = batch.ctypes.memmove
    monkeypatch.setattr(batch.ctypes, "memmove", lambda to, at, n: moved.append(n) or memmove(to, at, n))
    for _ in range(6):
        a, b, c, more, shapes = p.run()
        np.testing.assert_array_equal(a.as_cpu().as_array(), x)
        for i in range(N):
            np.testing.assert_array_equal(np.array(b.as_cpu().at(i)), y[i])
        np.testing.assert_array_equal(c.as_cpu().as_array(), z)
        np.testing.assert_array_equal(more.as_array(), z + 1)
        assert shapes.as_cpu().as_array().tolist() == [[k + 2, 3000] for k in range(N)]
    assert moved and x.nbytes not in moved and sum(s.nbytes for s in y) not in moved
