# SPDX-License-Identifier: Apache-2.0
"""Mixed decoders reuse plans, arguments and memory between batches. Regardless of previous batches, pixels are those of
Pillow's libjpeg-turbo, and errors those of the CPU's decoder."""

import ctypes
import gc
import io
import os
import time

import numpy as np
import pytest
from PIL import Image, ImageOps

import encoded_images
from penstock import fn, pipeline_def, types
from penstock.core import kernels, plan_memory
from penstock.core.batch import Batch, Spec
from penstock.gpu.batch import DeviceBatch
from penstock.gpu.driver import Device
from penstock.gpu.memory import pool
from penstock.gpu.nvjpeg import Refused
from penstock.gpu.session import Session
from penstock.gpu.stream import Event, Stream
from penstock.operators.decode.gpu import decoding as mixed
from penstock.operators.decode.gpu import pictures
from penstock.operators.decode.gpu.jpeg_scans import decode_scans as decode_scans_of
from penstock.pipeline import PipelineError

RNG = np.random.default_rng(11)
on_a_real_gpu = os.environ.get("PENSTOCK_TEST_GPU") == "1"


def photo(seed, h, w, **options):
    return encoded_images.encode(encoded_images.photograph(seed, h, w), "JPEG", **options)


def by_pillow(data):
    return np.asarray(Image.open(io.BytesIO(data.tobytes())).convert("RGB"))


def turned(data):
    return np.asarray(ImageOps.exif_transpose(Image.open(io.BytesIO(data.tobytes()))).convert("RGB"))


def damaged_inside(seed, h, w, least=1):
    """Bytes in the middle of the scan are missing; the header is valid."""
    data = photo(seed, h, w, quality=95).tobytes()
    middle = len(data) * 2 // 3
    return np.frombuffer(data[:middle] + data[middle + least :], "u1")


def decoder(batches, largest, output_type=types.RGB, load=0.0, on_error="raise", device_id=0):
    """A pipeline that decodes the files of `batches`, a list of lists, one after the other."""
    device = "cpu" if device_id is None else "mixed"

    @pipeline_def(batch_size=largest, num_threads=2, device_id=device_id, on_error=on_error)
    def pipe():
        return fn.decoders.image(
            fn.external_source(batches), device=device, output_type=output_type, hw_decoder_load=load
        )

    return pipe()


def pixels(pipe):
    out = pipe.run()[0].as_cpu()
    return [np.array(out.at(i)) for i in range(len(out))]


def assert_pixels(got, files, convert=by_pillow):
    assert len(got) == len(files)
    for a, f in zip(got, files):
        assert np.array_equal(a, convert(f))


@pytest.fixture
def counted(monkeypatch):
    """Counts plans made by rules and by programs."""
    counts = {"rules": 0, "programs": 0}
    plan = pictures.Planner.plan

    def planned(self, batch):
        made = plan(self, batch)
        counts["programs" if isinstance(made, plan_memory.TracedPlan) else "rules"] += 1
        return made

    monkeypatch.setattr(pictures.Planner, "plan", planned)
    return counts


def test_batches_of_all_sizes(counted):
    """Numbers of pictures and their sizes change from batch to batch; orientations too."""
    batches = []
    for k in range(24):
        n = (3, 3, 5, 3, 2, 3)[k % 6]
        sizes = RNG.integers(1, 60, (n, 2)) if k % 4 else np.full((n, 2), 24)
        batches.append([photo(100 * k + i, *map(int, s)) for i, s in enumerate(sizes)])
    p = decoder(batches, 5)
    for files in batches:
        assert_pixels(pixels(p), files)
    assert counted["programs"] >= 8


def test_turned_pictures_and_grey_ones_in_a_programs_plan(counted):
    batches = []
    for k in range(12):
        exif = encoded_images.oriented(1 + k % 8)
        grey = encoded_images.encode(encoded_images.photograph(k, 20 + k, 33, "L"), "JPEG")
        batches.append([photo(k, 30, 20 + k, exif=exif), grey, photo(k + 1, 9, 17 + k)])
    p = decoder(batches, 3)
    for files in batches:
        assert_pixels(pixels(p), files, turned)
    assert counted["programs"] >= 6


def test_pictures_that_kernels_do_not_take_come_and_go():
    """Progressive files, files with restart markers and other formats among plain ones."""
    kinds = [
        lambda k: photo(k, 20 + k, 30),
        lambda k: photo(k, 25, 30 + k, progressive=True),
        lambda k: encoded_images.encode(encoded_images.photograph(k, 21, 30), "PNG"),
        lambda k: photo(k, 20, 31 + k, restart_marker_blocks=2),
    ]
    batches = [[kinds[(k * i) % 4 if k % 3 else 0](k + 7 * i) for i in range(4)] for k in range(16)]
    p = decoder(batches, 4)
    for files in batches:
        assert_pixels(pixels(p), files)
    shares = p.stats()["gpu"]["decoders"]
    assert shares["GPU"] and shares["CPU and GPU"] and shares["CPU"]


@pytest.mark.parametrize("on_error", ["skip", "raise"])
def test_bad_pictures_in_between(on_error):
    """Damaged headers, which stop the program, and damaged scans, which the GPU reports at the end: the CPU accepts
    some, others are errors. Later images in the same memory are not considered damaged."""
    batches = []
    for k in range(24):
        batches.append([photo(50 * k + i, 24 + k % 5, 32 + i) for i in range(4)])
        if k in (8, 9):
            batches[-1][k % 4] = photo(1, 40, 40)[:120]
        elif k > 10 and k % 2:
            batches[-1][k % 4] = damaged_inside(k, 60, 60, 40 * (k % 4))
    p, q = decoder(batches, 4, on_error=on_error), decoder(batches, 4, on_error=on_error, device_id=None)
    for _ in batches:
        results = []
        for pipe in (p, q):
            try:
                results.append(pixels(pipe))
            except PipelineError as e:
                results.append(str(e).partition("encountered:")[2])
        got, want = results
        assert type(got) is type(want) and len(got) == len(want)
        assert got == want if isinstance(got, str) else all(map(np.array_equal, got, want))
    if on_error == "skip":
        errors = [[(e.iteration, e.sample, e.reason) for e in pipe.errors()] for pipe in (p, q)]
        assert errors[0] == errors[1] and len(errors[0]) >= 3
        shares = p.stats()["gpu"]["decoders"]
        assert shares["GPU"] > 4 * (24 - 8 - 2)


def test_outputs_of_a_batch_that_was_made_again_can_be_waited_for():
    p = decoder([[damaged_inside(5, 60, 60, 40)]] * 3, 1)
    for _ in range(3):
        assert p.run(-1)[0]._batch.ready is not None
    assert p.stats()["gpu"]["decoders"]["CPU"] >= 3


def test_ever_larger_pictures_and_small_ones_again():
    """Scratch is allocated before its required size is known."""
    batches = [[photo(k, s, s + 8, quality=90)] for k, s in enumerate((8, 8, 90, 16, 130, 8, 8, 150))]
    p = decoder(batches, 1)
    for files in batches:
        assert_pixels(pixels(p), files)


def test_two_pipelines_at_once():
    """Their records and blocks are independent."""
    batches = [[photo(10 * k + i, 16 + i, 20 + k % 3) for i in range(3)] for k in range(12)]
    a, b = decoder(batches, 3), decoder(batches, 3, types.BGR)
    for files in batches:
        assert_pixels(pixels(a), files)
        assert_pixels(pixels(b), files, lambda f: by_pillow(f)[..., ::-1])


def test_two_decoders_of_one_pipeline():
    batches = [[photo(10 * k + i, 16 + 2 * i, 20 + 2 * (k % 3)) for i in range(3)] for k in range(9)]

    @pipeline_def(batch_size=3, num_threads=2, device_id=0)
    def pipe():
        files = fn.external_source(batches)
        kwargs = {"device": "mixed", "hw_decoder_load": 0.0}
        return fn.decoders.image(files, **kwargs), fn.decoders.image_crop(files, crop=(8, 10), **kwargs)

    p = pipe()
    for files in batches:
        whole, cropped = (out.as_cpu() for out in p.run())
        for i, f in enumerate(files):
            want = by_pillow(f)
            y, x = (want.shape[0] - 8) // 2, (want.shape[1] - 10) // 2
            assert np.array_equal(np.asarray(whole.at(i)), want)
            assert np.array_equal(np.asarray(cropped.at(i)), want[y : y + 8, x : x + 10])


def test_rules_that_can_not_be_traced(counted):
    """`dct_scaling` computes with columns: never on record, and right for every batch."""
    batches = [[photo(10 * k + i, 60 + 3 * k, 50 + i) for i in range(2)] for k in range(8)]

    @pipeline_def(batch_size=2, num_threads=2, device_id=0)
    def pipe(device):
        return fn.decoders.image(fn.external_source(batches), device=device, dct_scaling=16, hw_decoder_load=0.0)

    p, q = pipe("mixed"), pipe("cpu", device_id=None)
    for _ in batches:
        want = q.run()[0]
        for i, got in enumerate(pixels(p)):
            assert np.array_equal(got, np.asarray(want.at(i)))
    assert counted["programs"] == 0


class _Engine:
    """A JPEG engine that writes Pillow's pixels, or refuses."""

    refuses = False
    decoded = 0

    def __init__(self, device):
        self.device = device

    def decode(self, data, sizes, to, pitches, format, stream):
        if _Engine.refuses:
            raise Refused("it has no time")
        stream.synchronize()
        for at, size, place in zip(data.tolist(), sizes.tolist(), to.tolist()):
            image = by_pillow(np.frombuffer(ctypes.string_at(at, size), "u1"))
            _Engine.decoded += 1
            ctypes.memmove(place, np.ascontiguousarray(image).ctypes.data, image.nbytes)

    def close(self):
        pass


@pytest.mark.skipif(on_a_real_gpu, reason="writes to the GPU's memory as if it were the host's")
@pytest.mark.parametrize("share", [1.0, 0.5])
@pytest.mark.parametrize("refuses", [False, True])
def test_shared_with_the_jpeg_engine(monkeypatch, share, refuses):
    monkeypatch.setattr(mixed, "HardwareDecoder", _Engine)
    monkeypatch.setattr(mixed.Sharing, "share", lambda self, nbytes: share)
    monkeypatch.setattr(_Engine, "refuses", refuses)
    monkeypatch.setattr(_Engine, "decoded", 0)
    batches = [[photo(10 * k + i, 24 + i, 30 + k % 3, quality=80) for i in range(4)] for k in range(8)]
    batches[5][1] = photo(3, 30, 30, progressive=True)  # not passed to the engine
    p = decoder(batches, 4, load=0.65)
    for files in batches:
        assert_pixels(pixels(p), files)
    p.close()
    # Of three supported images, it gets every second one, starting with the second.
    assert _Engine.decoded == (0 if refuses else 31 if share == 1 else 7 * 2 + 1)


@pytest.mark.parametrize("given", [{}, {"hw_decoder_load": 0.0}], ids=["not given", "0"])
def test_the_jpeg_engine_is_left_out_unless_it_is_allowed(monkeypatch, given):
    """Its pixels differ, and its share depends on speed: by default, every run gives the CPU's pixels."""
    monkeypatch.setattr(mixed, "HardwareDecoder", lambda device: pytest.fail("the JPEG engine was opened"))
    files = [photo(k, 24 + k, 30, quality=80) for k in range(4)]

    @pipeline_def(batch_size=4, num_threads=2, device_id=0)
    def pipe():
        return fn.decoders.image(fn.external_source([files] * 8), device="mixed", **given)

    p = pipe()
    for _ in range(8):
        assert_pixels(pixels(p), files)
    assert "JPEG engine" not in p.explain()
    assert "JPEG engine" in decoder([files], 4, load=0.65).explain()


def test_memory_of_a_batch_is_given_back_at_once():
    """Not only at the next garbage collection: no part of a batch is in a reference cycle."""
    batches = [[photo(k, 20 + k, 20)] for k in range(10)]

    @pipeline_def(batch_size=1, num_threads=1, device_id=0, exec_async=False, exec_pipelined=False)
    def pipe():
        images = fn.decoders.image(fn.external_source(batches), device="mixed", hw_decoder_load=0.0)
        return fn.crop_mirror_normalize(fn.resize(images, size=(16, 16)), crop=(8, 8))

    p = pipe()
    p.run()
    gc.collect()
    gc.disable()
    try:
        for _ in range(8):
            p.run()
        time.sleep(0.05)
        assert sum(type(o) is DeviceBatch for o in gc.get_objects()) <= 3
    finally:
        gc.enable()


def test_work_that_others_ask_for_meanwhile_is_not_taken_for_done(monkeypatch):
    """Consumers copy batches in the stream that has computed them."""
    library, number = kernels.library(), []
    decode_scans = library.decode_scans

    def and_a_copy(*args):
        code = decode_scans(*args)
        streams[0].fill(block.address, 1, 512)
        number.append(streams[0].work)
        return code

    monkeypatch.setattr(library, "decode_scans", and_a_copy)
    session = Session(0, None)
    with session.begin() as gpu:
        streams, block = [gpu.stream], gpu.take(512)
        file = Batch.from_samples([photo(1, 20, 20)])
        kernel = kernels.kernel("decode/decode")
        args, _ = kernel.rows(1, {"format": 1, "height": 20, "width": 20, "orientation": 1, "scale_denom": 1})
        out = gpu.allocate(Spec(np.array([[20, 20, 3]]), np.dtype("u1"), "HWC"))
        undone, verdict = decode_scans_of(gpu, kernels.Pool(1), args, file, out)
        assert undone is None and verdict.wait() is None
        assert gpu.stream.through < number[0]
    session.close()


def test_several_blocks_at_once():
    """Idle blocks are reused; if one can't be allocated, the others are released."""
    device = Device.get(0)
    with device:
        memory, stream = pool(device), Stream(device)
        blocks = memory.take_all([5000, 70000, 5000], stream)
        assert len({b.address for b in blocks}) == 3
        assert [b.nbytes for b in blocks] == [5000, 70000, 5000]
        first = {b.address for b in blocks}
        del blocks
        assert {b.address for b in memory.take_all([5000, 5000, 70000], stream)} == first
        used = memory.held - memory.idle()
        with pytest.raises(MemoryError):
            memory.take_all([5000, 1 << 50, 70000], stream)
        assert memory.held - memory.idle() == used


def test_events_are_used_again():
    """An unreferenced event can be recorded again like a new one."""
    device = Device.get(0)
    with device:
        stream = Stream(device)
        events = [stream.record() for _ in range(3)]
        handles = {e.handle for e in events}
        stream.synchronize()
        del events
        again = [Event(device) for _ in range(3)]
        assert {e.handle for e in again} <= handles | {e.handle for e in again}
        assert len({e.handle for e in again}) == 3
        block = pool(device).take(1 << 16, stream)
        stream.fill(block.address, 1, 1 << 16)
        event = stream.record(again[0])
        event.wait()
        assert event.done()
        timed = Event(device, timed=True)
        assert timed.handle not in {e.handle for e in again}
