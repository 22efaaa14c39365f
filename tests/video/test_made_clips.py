# SPDX-License-Identifier: Apache-2.0
"""Unusual, invalid or damaged videos: correct frames or an error with the frame, and no hangs."""

import faulthandler
import struct
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import penstock.video
from penstock import PipelineError, fn, pipeline_def, types

pytest.importorskip("av", reason="PyAV is not installed")

from encoded_videos import clip, decoded  # noqa: E402

FUZZER = Path(__file__).parents[1] / "fuzz" / "fuzz_video_decoders.py"


@pytest.fixture(autouse=True)
def watchdog():
    """Ends the process, with all stacks, if a test hangs."""
    faulthandler.dump_traceback_later(60, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


def all_frames(data):
    @pipeline_def(batch_size=1, num_threads=1)
    def pipe():
        return fn.decoders.video(types.Constant(np.frombuffer(data, "u1")))

    return np.array(pipe().run()[0].at(0))


@pytest.mark.parametrize(
    "made",
    [
        {"codec": "mjpeg", "pixels": "yuvj444p", "container": "mov"},
        {"codec": "libvpx-vp9", "pixels": "yuv444p", "container": "webm"},
    ],
)
def test_one_pixel(made):
    data = clip(size=(1, 1), n=5, **made)
    got, want = all_frames(data), decoded(data)
    assert got.shape == (5, 1, 1, 3) and np.abs(got.astype("i4") - want).max() <= 1


def with_size(data, height, width):
    """An MP4 file with another size in its tables."""
    at = data.index(b"avc1", data.index(b"stsd")) + 28
    assert struct.unpack(">HH", data[at : at + 4]) == (64, 48)
    return data[:at] + struct.pack(">HH", width, height) + data[at + 4 :]


def test_a_large_header_on_a_small_file():
    begin = time.perf_counter()
    with pytest.raises(PipelineError, match=r"frame \d+ has 48 x 64 pixels \(height x width\), the video 4320 x 7680"):
        all_frames(with_size(clip(n=3), 4320, 7680))
    with pytest.raises(PipelineError, match="0 and width 64 are not a size"):
        all_frames(with_size(clip(n=3), 0, 64))
    assert time.perf_counter() - begin < 60


def test_a_size_that_changes():
    one, two = (clip(container="mpegts", size=s, codec_options=(("g", "5"),)) for s in ((48, 64), (32, 32)))
    with pytest.raises(PipelineError, match=r"frame 20 has 32 x 32 pixels .*, the video 48 x 64"):
        all_frames(one + two)


def test_no_frames():
    data = clip()
    at = data.index(b"stsz") + 12
    for name in (b"stts", b"stsc", b"ctts", b"stss"):  # none of any
        place = data.find(name)
        if place > 0:
            data = data[: place + 8] + bytes(4) + data[place + 12 :]
    with pytest.raises(PipelineError, match="MP4: there is no video in it"):
        all_frames(data[:at] + bytes(4) + data[at + 4 :])


@pytest.mark.parametrize("container", ["mp4", "matroska", "mpegts", "h264"])
def test_damage_in_the_middle(tmp_path, container):
    """Damage changes some frames, or gives an error that names one."""
    data = clip(container=container, n=40, codec_options=(("g", "10"), ("bf", "2")))
    want, rng = decoded(data), np.random.default_rng(0)
    for k in range(6):
        damaged = np.frombuffer(data, "u1").copy()
        at = int(len(data) * (0.3 + 0.08 * k))
        damaged[at : at + 40] = rng.integers(0, 256, 40)
        path = tmp_path / f"{k}"
        path.write_bytes(damaged.tobytes())
        try:
            video = penstock.video.open(path)
            assert video[0].shape == (48, 64, 3)
            assert np.abs(video[0].astype("i4") - want[0]).max() <= 1
            video[:]
        except ValueError as e:
            assert str(path) in str(e) and len(str(e)) > len(str(path)) + 10


def test_decoders_of_damaged_videos_in_a_process_of_their_own():
    command = [sys.executable, str(FUZZER), "--inputs", "120", "--seed", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=50, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "120 inputs" in done.stdout
