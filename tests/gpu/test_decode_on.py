# SPDX-License-Identifier: Apache-2.0
"""`decode_on`: mixed decoders may decode all batches or every other one on the CPU. The pixels are the same, and so
are errors."""

import itertools

import numpy as np
import pytest

import encoded_images
from penstock import fn, pipeline_def
from penstock.exec.scheduling import tuning
from penstock.pipeline import PipelineError, runner


def photo(seed, h, w, **options):
    return encoded_images.encode(encoded_images.photograph(seed, h, w), "JPEG", **options)


FILES = [photo(i, 40 + 3 * i, 60 - 2 * i, subsampling=i % 3, quality=80 + i) for i in range(6)]


def pipe(**arguments):
    @pipeline_def(batch_size=4, num_threads=2, device_id=0, seed=3, **arguments)
    def definition():
        files = fn.external_source(lambda info: FILES[info.idx_in_epoch % 6], batch=False)
        whole = fn.decoders.image(files, device="mixed")
        parts = fn.decoders.image_random_crop(files, device="mixed")
        return whole, fn.resize(parts, size=(24, 24))

    return definition()


def arrays(p):
    return [np.array(o.as_cpu().at(i)) for o in p.run() for i in range(4)]


def decoders(p):
    return {k for k, n in p.stats().as_dict()["gpu"]["decoders"].items() if n}


def test_the_same_pixels():
    on_gpu, on_cpu, on_both = pipe(decode_on="gpu"), pipe(decode_on="cpu"), pipe(decode_on="both")
    for _ in range(6):
        expected = arrays(on_gpu)
        for p in (on_cpu, on_both):
            for a, b in zip(expected, arrays(p)):
                assert np.array_equal(a, b)
    assert decoders(on_gpu) == {"GPU"} and decoders(on_cpu) == {"CPU"} and decoders(on_both) == {"GPU", "CPU"}
    assert [p.decode_on for p in (on_gpu, on_cpu, on_both)] == ["gpu", "cpu", "both"]


@pytest.mark.parametrize("autotune", [False, True])
def test_it_changes_between_batches(monkeypatch, autotune):
    """Pipelines move decoding back and forth; nothing of it is seen in the batches."""
    places = itertools.cycle(["cpu", "gpu", "both"])
    monkeypatch.setattr(tuning.Tuner, "took", lambda self, n: self.setting._replace(decode_on=next(places)))
    moving, still = pipe(autotune=autotune), pipe(decode_on="gpu")
    for _ in range(12):
        for a, b in zip(arrays(moving), arrays(still)):
            assert np.array_equal(a, b)
    assert decoders(moving) == {"GPU", "CPU"}
    assert autotune or (moving.num_threads, moving.prefetch_queue_depth) == (2, 2)


def test_what_chooses(monkeypatch):
    """By default a pipeline with mixed decoders chooses the place, and nothing else."""

    def tuner(**arguments):
        p = pipe(**arguments)
        p.build()
        return p._runner.tuner

    assert tuner()._most is None and tuner()._moves_decoding()
    assert tuner(decode_on="gpu") is None
    assert not tuner(decode_on="both", autotune=True)._moves_decoding()
    monkeypatch.setattr(runner, "_MOST_PINNED", 0)
    assert not tuner()._moves_decoding()


@pytest.mark.parametrize("decode_on", ["gpu", "cpu", "both"])
def test_damaged_files(decode_on):
    damaged = np.frombuffer(FILES[0].tobytes()[:200], "u1")

    @pipeline_def(batch_size=2, num_threads=1, device_id=0, decode_on=decode_on)
    def definition():
        return fn.decoders.image(fn.external_source(lambda: [FILES[1], damaged]), device="mixed")

    with pytest.raises(PipelineError, match="decoders.image"):
        definition().run()


@pytest.mark.parametrize("given", [{}, {"decode_on": "cpu"}])
def test_the_jpeg_engines_pixels_are_not_exchanged_for_others(given):
    """Where the user allows the JPEG engine, whose pixels differ, `decode_on` changes nothing."""

    @pipeline_def(batch_size=2, num_threads=1, device_id=0, autotune=True, **given)
    def definition():
        return fn.decoders.image(fn.external_source(lambda: FILES[:2]), device="mixed", hw_decoder_load=0.5)

    p = definition()
    p.run()
    assert "CPU" not in decoders(p)
    assert not p._runner.tuner._moves_decoding()


def test_mistakes():
    with pytest.raises(ValueError, match="decode_on takes 'auto', 'gpu', 'cpu' or 'both'; got 'mixed'"):
        pipe(decode_on="mixed")
