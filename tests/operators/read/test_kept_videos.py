# SPDX-License-Identifier: Apache-2.0
"""Video indices in the user's cache: a file is scanned once, and the stored index is the same as a new one."""

import os

import numpy as np
import pytest

from encoded_videos import clip
from optional_packages import needs
from penstock import fn, pipeline_def
from penstock.operators.read import _kept_tables, _videos

pytestmark = needs("av")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """Returns the files of the cache. Every scan is stored, however short."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(_kept_tables, "_WORTH_IT_S", 0)
    return lambda: [os.path.join(_kept_tables.folder(), f) for f in os.listdir(_kept_tables.folder())]


@pytest.fixture
def scans(monkeypatch):
    """Counts the scans of files."""
    counts, real = [], _videos.Videos._scan
    monkeypatch.setattr(_videos.Videos, "_scan", lambda self: (counts.append(1), real(self)))
    return counts


@pytest.fixture
def files(tmp_path):
    made = {
        "a.mp4": clip(codec_options=(("g", "6"), ("bf", "2"))),
        "b.mkv": clip(container="matroska", n=12),
        "bad.mp4": b"no video at all",
        "c.mp4": clip(times=(0, 70, 100, 310, 330, 500), n=6),
        "days.mkv": clip(container="matroska", times=(0, 100, 3_000_000_000, 3_000_000_100), n=4),  # not 32 bits
    }
    for name, data in made.items():
        (tmp_path / name).write_bytes(data)
    return [str(tmp_path / name) for name in made]


def epoch(files, **options):
    @pipeline_def(batch_size=20, num_threads=2, **options)
    def pipe():
        return tuple(
            fn.readers.video(
                filenames=files, labels=[], sequence_length=3, enable_timestamps=True, enable_frame_num="sequence"
            )
        )

    return [[np.array(o.at(i)) for i in range(len(o))] for o in pipe().run()]


def assert_same(a, b):
    for x, y in zip(a, b):
        assert len(x) == len(y) > 5
        for u, v in zip(x, y):
            np.testing.assert_array_equal(u, v)


def test_what_was_found_is_kept(cache, scans, files):
    first = epoch(files, on_error="skip")
    assert len(scans) == 1 and len(cache()) == 1
    assert_same(first, epoch(files, on_error="skip"))
    assert len(scans) == 1


def test_a_bad_file_says_the_same(cache, scans, files):
    texts = []
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"bad.mp4") as caught:
            epoch(files)
        texts.append(str(caught.value))
    assert texts[0] == texts[1] and "not a video" in texts[0] and len(scans) == 1


def test_a_changed_file_is_read_again(cache, scans, files):
    epoch(files, on_error="skip")
    with open(files[0], "wb") as file:
        file.write(clip(n=9))
    os.utime(files[0], ns=(1, 1))
    numbers = epoch(files, on_error="skip")[2]
    assert len(scans) == 2
    assert [n.tolist() for n in numbers[:3]] == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]


@pytest.mark.parametrize("damage", ["cut", "other contents", "longer", "numbers"])
def test_a_damaged_cache_is_not_believed(cache, scans, files, damage):
    first = epoch(files, on_error="skip")
    (path,) = cache()
    with np.load(path) as table:
        indices = table["indices"]
    if damage == "cut":
        with open(path, "r+b") as file:
            file.truncate(os.path.getsize(path) // 2)
    elif damage == "other contents":
        np.savez(path, indices=indices[:-1])
    elif damage == "longer":
        np.savez(path, indices=np.append(indices, np.uint8(0)))
    else:  # a picture's place before the beginning of the file
        np.savez(path, indices=np.where(np.arange(indices.size) % 8 == 7, np.uint8(255), indices))
    assert_same(first, epoch(files, on_error="skip"))
    assert len(scans) == 2


def test_files_that_are_not_there(cache, files):
    gone = [*files, "/nowhere.mp4"]
    assert len(epoch(gone, on_error="skip")[0]) > 5
    with pytest.raises(RuntimeError, match="bad.mp4|nowhere"):
        epoch(gone)


def test_progress_is_told(cache, files, monkeypatch, capfd):
    from penstock.operators.read import _scanning

    monkeypatch.setattr(_scanning, "_SILENT_S", -1)
    monkeypatch.setattr(_videos, "_AT_ONCE", 2)
    epoch(files, on_error="skip")
    told = capfd.readouterr().err
    assert "looking for videos: 2 of 5 files" in told and "5 of 5 files" in told
