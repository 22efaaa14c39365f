# SPDX-License-Identifier: Apache-2.0
"""Copies of samples on the GPU: in one launch, and only if a receiver could write to memory that is still in use."""

import numpy as np
import pytest

from penstock import fn, pipeline_def, types
from penstock.core.batch import Batch, Kept
from penstock.gpu import copies
from penstock.gpu.batch import upload
from penstock.gpu.driver import Device
from penstock.gpu.stream import Stream

RNG = np.random.default_rng(3)
SHAPES = ((5, 7, 3), (1, 1, 3), (0, 4, 3), (33, 31, 3), (64, 64, 3), (2, 8, 3), (3, 3, 3))
IMAGES = [RNG.integers(0, 256, s, "u1") for s in SHAPES]


def launches(monkeypatch):
    """Records the numbers of pieces copied."""
    counts = []
    real = copies.copy_on_device
    for module in ("batch", "interchange"):
        monkeypatch.setattr(f"penstock.gpu.{module}.copy_on_device", lambda p, s: (counts.append(len(p)), real(p, s)))
    return counts


def test_pieces():
    device = Device.get(0)
    lengths = [*range(0, 40), 63, 64, 65, 6143, 6144, 6160, 100, 20000]
    size = 1 << 16
    with device:
        stream = Stream(device)
        source, target = device.allocate(size), device.allocate(size)
        data, want = RNG.integers(0, 256, size, "u1"), np.full(size, 0xA5, "u1")
        stream.upload(source, data.ctypes.data, size), stream.upload(target, want.ctypes.data, size)
        pieces = np.zeros(len(lengths), copies.PIECE)
        at = 3
        for i, n in enumerate(lengths):
            begin = int(RNG.integers(0, size - n))
            pieces[i] = target + at, source + begin, n
            want[at : at + n] = data[begin : begin + n]
            at += n + i % 5
        copies.copy_on_device(pieces, stream)
        got = np.empty(size, "u1")
        stream.download(got.ctypes.data, target, size)
        stream.synchronize()
        device.free(source), device.free(target)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("order", [[6, 5, 4, 3, 2, 1, 0], [0, 0, 3, 3, 4, 4, 4], [0, 1, 2, 3, 4, 5, 6]], ids=str)
def test_samples_in_another_order(order):
    device = Device.get(0)
    with device:
        stream = Stream(device)
        batch = upload(Batch.from_samples(IMAGES, "HWC"), stream).take(np.array(order))
        packed = batch.packed_copy()
    for got, i in zip(range(len(order)), order):
        np.testing.assert_array_equal(packed.download().sample(got), IMAGES[i])


def fed_once(define):
    """Data fed once is uploaded once and used in every batch."""

    @pipeline_def(batch_size=len(IMAGES), device_id=0, num_threads=1)
    def pipe():
        return define(fn.external_source(name="x", device="gpu", layout="HWC", repeat_last=True))

    p = pipe()
    p.build()
    p.feed_input("x", IMAGES)
    return p


ALIASES = [
    (lambda x: x, lambda i: IMAGES[i]),
    (lambda x: fn.reshape(x, shape=[-1]), lambda i: IMAGES[i].ravel()),
    (lambda x: fn.expand_dims(x, axes=[0]), lambda i: IMAGES[i][None]),
    (lambda x: fn.permute_batch(x, indices=[6, 5, 4, 3, 2, 1, 0]), lambda i: IMAGES[6 - i]),
]


@pytest.mark.parametrize("define, want", ALIASES)
def test_what_nobody_can_write_to_is_not_copied(define, want, monkeypatch):
    counts, p = launches(monkeypatch), fed_once(define)
    for _ in range(3):
        (out,) = p.run()
        for i, got in enumerate(out.as_cpu()):
            np.testing.assert_array_equal(got, want(i))
    assert out.shape() == [want(i).shape for i in range(len(IMAGES))] and not counts


@pytest.mark.parametrize("define, want", ALIASES)
def test_who_gets_an_address_may_write_there(define, want):
    p = fed_once(define)
    (out,) = p.run()
    with out._batch.device:
        stream = Stream(out._batch.device)
        stream.fill(out.data_ptr(), 77, want(0).size)
        stream.synchronize()
    assert (np.array(out.as_cpu().at(0)) == 77).all()
    np.testing.assert_array_equal(out.as_cpu().at(1), want(1))
    for _ in range(4):
        (out,) = p.run()
        for i, got in enumerate(out.as_cpu()):
            np.testing.assert_array_equal(got, want(i))


def test_samples_share_the_memory_of_their_batch():
    (out,) = fed_once(lambda x: x).run()
    assert out[0].data_ptr() == out.data_ptr() == out[0].data_ptr()


def test_frames_are_not_copied():
    videos = [RNG.integers(0, 256, (4, h, 5, 3), "u1") for h in (3, 1, 8)]

    @pipeline_def(batch_size=3, device_id=0, num_threads=1)
    def pipe():
        x = fn.external_source(source=lambda i: videos, batch=True, device="gpu", layout="FHWC")
        return (x, *fn.element_extract(x, element_map=[3, 0, 3]))

    x, *frames = pipe().run()
    for out, e in zip(frames, (3, 0, 3)):
        assert out.layout() == "HWC"
        for i, video in enumerate(videos):
            np.testing.assert_array_equal(out.as_cpu().at(i), video[e])
            assert out[i].data_ptr() == x[i].data_ptr() + e * video[0].size


def test_replaced_samples_leave_alone_what_is_given_out_again():
    x, other = (Batch.from_samples([np.full((2, 3), v + i, "u1") for i in range(3)]) for v in (10, 20))
    device = Device.get(0)
    with device:
        stream = Stream(device)
        kept = upload(x, stream)
        replaced = upload(other, stream)
        kept.owners = (*kept.owners, Kept(None))
        merged = kept.put(np.array([2, 0]), replaced.take(np.array([1, 2])))
    for batch, want in ((merged, (22, 11, 21)), (kept, (10, 11, 12))):
        host = batch.download()
        assert [int(host.sample(i).max()) for i in range(3)] == list(want)


def test_frames_that_no_block_begins_at():
    """Kernels read frames at any byte address."""
    videos = [RNG.integers(0, 256, (3, h, 7, 3), "u1") for h in (5, 1, 9)]

    def run(device):
        @pipeline_def(batch_size=3, device_id=0, num_threads=1)
        def pipe():
            x = fn.external_source(source=lambda i: [v + i for v in videos], batch=True, device=device, layout="FHWC")
            a, b = fn.element_extract(x, element_map=[2, 1])
            b = fn.cast(fn.flip(b), dtype=types.FLOAT)
            return fn.brightness(a, brightness=1.5), fn.crop(a, crop=(1, 5)), fn.cat(a, a, axis=2), b

        p = pipe()
        return [[np.array(o.as_cpu().at(i) if device == "gpu" else o.at(i)) for o in p.run()] for i in (0, 1, 2)]

    for got, want in zip(run("gpu"), run("cpu")):
        for g, w in zip(got, want):
            np.testing.assert_array_equal(g, w)
