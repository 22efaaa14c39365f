# SPDX-License-Identifier: Apache-2.0
"""Damaged files under on_error="raise", "skip" and "replace"."""

import io
import os

import numpy as np
import pytest
from PIL import Image

from penstock import PipelineError, fn, pipeline_def
from penstock.core.kernels import library

N = 12


def jpeg(seed: int) -> bytes:
    rng = np.random.default_rng(seed)
    pixels = np.kron(rng.integers(0, 256, (6, 8, 3), np.uint8), np.ones((10, 10, 1), np.uint8))
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG", quality=90)
    return file.getvalue()


GOOD = [jpeg(i) for i in range(N)]


def bomb() -> bytes:
    data = bytearray(GOOD[0])
    at = data.index(b"\xff\xc0")
    data[at + 5 : at + 9] = b"\xff\xff\xff\xff"
    return bytes(data)


def scrambled() -> bytes:
    data = bytearray(GOOD[0])
    scan = data.index(b"\xff\xda") + 20
    rng = np.random.default_rng(0)
    data[scan : scan + 400] = bytes(rng.integers(0, 255, 400, np.uint8))
    return bytes(data)


# Failures when headers are read, and failures while decoding pixels.
BAD_HEADERS = {"empty": b"", "text": b"no picture at all", "bomb": bomb(), "cut_header": GOOD[0][:30]}
BAD_PIXELS = {"cut": GOOD[0][: len(GOOD[0]) * 2 // 3], "scrambled": scrambled()}
READER, DECODER = "fn.readers.file", "fn.decoders.image"
BAD = {**BAD_HEADERS, **BAD_PIXELS}


def folder(tmp_path, bad: dict[int, str]) -> list[str]:
    """N files. `bad`: kind of damage by index."""
    paths = []
    for i in range(N):
        path = tmp_path / f"{i:02}.jpg"
        path.write_bytes(BAD[bad[i]] if i in bad else GOOD[i])
        paths.append(str(path))
    return paths


@pipeline_def(batch_size=4, num_threads=2, seed=5)
def job(paths, shards=1, shard=0, pad=False):
    jpegs, labels = fn.readers.file(
        files=paths, labels=list(range(len(paths))), name="reader", num_shards=shards, shard_id=shard
    )
    images = fn.resize(fn.decoders.image(jpegs), resize_x=32, resize_y=24)
    second = fn.pad(images, fill_value=0.0) if pad else fn.decoders.image(jpegs)
    return fn.crop_mirror_normalize(images, crop=(20, 28), mean=[100.0], std=[50.0]), labels, second


def pixels_of(i: int) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(GOOD[i])))


def check(batch, labels, pad=False) -> list[int]:
    """Checks that pixels and labels match. Returns the labels."""
    images, got, second = batch
    got = [int(x) for x in got.as_array().ravel()] if len(got) else []
    assert len(images) == len(second) == len(got)
    for i, label in enumerate(got):
        if not pad:
            np.testing.assert_array_equal(second.at(i), pixels_of(label))
    if labels is not None:
        assert got == labels
    return got


@pytest.mark.parametrize("kind", BAD)
def test_raise_names_everything_and_the_pipeline_runs_on(tmp_path, kind):
    paths = folder(tmp_path, {5: kind})
    pipe = job(paths)
    check(pipe.run(), [0, 1, 2, 3])
    with pytest.raises(PipelineError) as e:
        pipe.run()
    text = str(e.value)
    operator = READER if kind == "empty" else DECODER
    assert "05.jpg" in text and operator in text
    assert "test_bad_samples.py" in text and f"{operator}(" in text
    check(pipe.run(), [8, 9, 10, 11])
    check(pipe.run(), [0, 1, 2, 3])
    assert [os.path.basename(x.source) for x in pipe.errors()][0] == "05.jpg"


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("places", [(0,), (3,), (4, 5), (4, 5, 6, 7), (0, 7, 11)])
def test_skip_leaves_the_others_as_they_are(tmp_path, kind, places):
    paths = folder(tmp_path, dict.fromkeys(places, kind))
    pipe = job(paths, on_error="skip")
    for first in (0, 4, 8):
        check(pipe.run(), [i for i in range(first, first + 4) if i not in places])
    errors = pipe.errors()[: len(places)]
    assert sorted(os.path.basename(e.source) for e in errors) == [f"{i:02}.jpg" for i in places]
    for e in errors:
        i = int(os.path.basename(e.source)[:2])
        assert (e.iteration, e.sample) == (i // 4, i % 4)
        assert e.operator == (READER if kind == "empty" else DECODER) and e.reason and e.action == "skip"


def test_skip_gives_the_pixels_of_a_run_without_bad_files(tmp_path):
    paths = folder(tmp_path, {1: "cut", 6: "empty"})
    pipe = job(paths, on_error="skip")
    got = np.concatenate([pipe.run()[0].as_array() for _ in range(3)])
    good = job([p for i, p in enumerate(paths) if i not in (1, 6)], batch_size=10).run()[0].as_array()
    np.testing.assert_array_equal(got, good)


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("threads, depth", [(1, 1), (4, 3)])
def test_replace_takes_the_next_good_sample(tmp_path, kind, threads, depth):
    paths = folder(tmp_path, dict.fromkeys((1, 4, 5, 11), kind))
    pipe = job(paths, on_error="replace", num_threads=threads, prefetch_queue_depth=depth)
    check(pipe.run(), [0, 2, 2, 3])
    check(pipe.run(), [6, 6, 6, 7])
    check(pipe.run(), [8, 9, 10, 0])
    assert {os.path.basename(e.source) for e in pipe.errors()} == {"01.jpg", "04.jpg", "05.jpg", "11.jpg"}


def test_replace_stays_in_the_shard(tmp_path):
    paths = folder(tmp_path, {5: "cut"})
    pipe = job(paths, shards=2, shard=0, batch_size=6, on_error="replace")
    check(pipe.run(), [0, 1, 2, 3, 4, 0])


@pytest.mark.parametrize("kind", ["empty", "cut"])
def test_only_bad_files(tmp_path, kind):
    paths = folder(tmp_path, dict.fromkeys(range(N), kind))
    with pytest.raises(PipelineError, match="12 samples of the shard are bad"):
        job(paths, on_error="replace").run()
    images, labels, second = job(paths, on_error="skip").run()
    assert len(images) == len(labels) == len(second) == 0


@pytest.mark.parametrize("kind", ["empty", "cut"])
@pytest.mark.parametrize("on_error, expected", [("skip", [0, 2, 3]), ("replace", [0, 2, 2, 3])])
def test_operators_that_look_at_the_whole_batch(tmp_path, kind, on_error, expected):
    pipe = job(folder(tmp_path, {1: kind}), pad=True, on_error=on_error)
    check(pipe.run(), expected, pad=True)


def test_a_file_that_is_gone(tmp_path):
    paths = folder(tmp_path, {})
    pipe = job(paths, on_error="skip", prefetch_queue_depth=1)
    os.remove(paths[6])
    check(pipe.run(), [0, 1, 2, 3])
    check(pipe.run(), [4, 5, 7])
    assert "06.jpg" in pipe.errors()[0].source and pipe.errors()[0].operator == "fn.readers.file"


def test_too_many(tmp_path):
    paths = folder(tmp_path, {1: "cut", 6: "empty", 9: "text"})
    pipe = job(paths, on_error="skip", max_errors=2, prefetch_queue_depth=1, exec_async=False)
    pipe.run()
    pipe.run()
    with pytest.raises(PipelineError, match=r"max_errors=2.*(?s:.*)09\.jpg"):
        pipe.run()
    assert [len(job(paths, on_error="skip", max_errors=0.5).run()[0])] == [3]
    few = job(paths, on_error="skip", max_errors=0.01)
    with pytest.raises(PipelineError, match=r"max_errors=0\.01"):
        for _ in range(60):
            few.run()


def test_wrong_settings():
    with pytest.raises(ValueError, match="on_error takes"):
        job([], on_error="ignore")
    with pytest.raises(ValueError, match="max_errors takes"):
        job([], max_errors=-1)


def test_nothing_leaks(tmp_path):
    paths = folder(tmp_path, {i: list(BAD)[i % len(BAD)] for i in range(0, N, 2)})
    pipe = job(paths, on_error="skip")
    for _ in range(6):
        pipe.run()
    before = library().memory_used()
    for _ in range(300):
        pipe.run()
    assert library().memory_used() <= before * 1.5 + (1 << 20)
    assert len(pipe.errors()) >= 600
