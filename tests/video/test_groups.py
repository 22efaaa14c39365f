# SPDX-License-Identifier: Apache-2.0
"""Iterating over a video decodes two of its groups of pictures at once. PyAV is the reference."""

import itertools
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import penstock.video

av = pytest.importorskip("av", reason="PyAV is not installed")

from encoded_videos import clip, decoded  # noqa: E402

N = 90
VIDEOS = {
    "groups of 20": {"codec_options": (("g", "20"), ("bf", "2"))},
    "groups of 3": {"codec_options": (("g", "3"), ("bf", "2"))},
    "one group": {"codec_options": (("g", "1000"),)},
    "open groups": {"codec_options": (("x264-params", "open-gop=1:keyint=20:bframes=3:scenecut=0:log-level=none"),)},
    "intra refresh": {"codec_options": (("x264-params", "intra-refresh=1:keyint=20:log-level=none"),)},
    "key frames only": {"codec": "mjpeg", "pixels": "yuvj420p"},
    "VP9": {"codec": "libvpx-vp9", "container": "webm", "codec_options": (("g", "25"),)},
    "MPEG-2": {"codec": "mpeg2video", "container": "mpegts", "codec_options": (("g", "18"), ("bf", "2"))},
}


def written(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "video"
    path.write_bytes(data)
    return path


def system_threads() -> int:
    return len([*Path("/proc/self/task").iterdir()])


@pytest.mark.parametrize("name", VIDEOS)
def test_frames(tmp_path, name):
    data = clip(n=N, **VIDEOS[name])
    video = penstock.video.open(written(tmp_path, data))
    want, frames = decoded(data), np.stack(list(video))
    assert frames.shape == want.shape and np.abs(frames.astype("i4") - want).max() <= 1
    np.testing.assert_array_equal(frames, video[:])


def test_large_pictures(tmp_path):
    """Fewer of the next group wait than of this one."""
    path = tmp_path / "large.mp4"
    with av.open(str(path), "w") as out:
        stream = out.add_stream("libx264", rate=30, options={"g": "16", "preset": "ultrafast"})
        stream.height, stream.width, stream.pix_fmt = 4096, 4096, "yuv420p"
        frame = av.VideoFrame(4096, 4096, "yuv420p")
        for plane in frame.planes:
            plane.update(bytes([128]) * plane.buffer_size)
        for _ in range(34):
            frame.pts = None
            out.mux(stream.encode(frame))
        out.mux(stream.encode())
    n = 0
    for frame in penstock.video.open(path):
        assert frame[7, 9].tolist() == [130] * 3
        n += 1
        time.sleep(0.05)  # until both threads wait
    assert n == 34


def test_slow_and_fast_readers(tmp_path):
    """Whoever reads slowly finds both threads waiting, with as many pictures as they may hold."""
    video = penstock.video.open(written(tmp_path, clip(n=N, **VIDEOS["groups of 20"])))
    want = video[:]
    for pause in (0.002, 0.0005, 0):
        for frame, w in zip(video, want, strict=True):
            np.testing.assert_array_equal(frame, w)
            time.sleep(pause)


def test_the_second_thread_begins_when_it_is_needed(tmp_path):
    path, before = written(tmp_path, clip(n=N, size=(240, 320), **VIDEOS["groups of 20"])), threading.active_count()
    start, frames = system_threads(), iter(penstock.video.open(path))
    next(frames)
    assert system_threads() == start + 1
    [*itertools.islice(frames, 12)]
    assert system_threads() == start + 2
    del frames
    assert (system_threads(), threading.active_count()) == (start, before)


@pytest.mark.parametrize("name", ["groups of 20", "VP9"])
def test_damage_does_not_depend_on_what_else_is_decoded(tmp_path, name):
    """What FFmpeg makes of a damaged picture depends on those that it has decoded before."""
    data, differing = clip(n=N, **VIDEOS[name]), 0
    want = penstock.video.open(written(tmp_path, data))[:]
    for seed in range(30):
        rng, damaged = np.random.default_rng(seed), np.frombuffer(data, "u1").copy()
        for at in rng.integers(len(data) // 10, len(data) * 9 // 10, 2):
            damaged[at : at + 20] = rng.integers(0, 256, 20)
        try:
            video = penstock.video.open(written(tmp_path, damaged.tobytes()))
            frames = video[:]
        except ValueError:
            continue
        differing += len(frames) == N and (frames != want).any()
        np.testing.assert_array_equal(np.stack(list(video)), frames)
        for first, end in itertools.pairwise([*video.key_frames, len(video)]):
            np.testing.assert_array_equal(video[first:end], frames[first:end])
    assert differing >= 5


def test_an_error_comes_after_the_frames_before_it(tmp_path):
    data = clip(n=N, **VIDEOS["VP9"])
    path = written(tmp_path, data[: len(data) * 3 // 4])
    want, frames = decoded(data), []
    with pytest.raises(ValueError, match=rf"{path.name}: frame \d+ lies beyond the end") as raised:
        for frame in penstock.video.open(path):
            frames.append(frame)  # noqa: PERF402
    assert f"frame {len(frames)} " in str(raised.value) and len(frames) > 50
    assert np.abs(np.stack(frames).astype("i4") - want[: len(frames)]).max() <= 1


# In a process of its own, as in this one memory that tests before have freed would be used first.
NEXT_GROUP = """
import sys, time
from pathlib import Path
import penstock.video

def resident_mb():
    return int(next(x for x in Path("/proc/self/status").open() if x.startswith("VmRSS")).split()[1]) / 1e3

frames = iter(penstock.video.open(sys.argv[1]))
for _ in range(6):
    next(frames)
before = resident_mb()
for _ in range(6):
    next(frames)
grown = [0.0, resident_mb() - before]
while grown[-1] < 40 or grown[-1] > grown[-2] + 3:
    time.sleep(0.3)
    grown.append(resident_mb() - before)
    assert len(grown) < 100, f"the second thread decodes too little: {grown}"
print(grown[-1])
"""


def test_the_next_group_does_not_fill_the_memory(tmp_path):
    """Groups of 150 pictures of 1.4 MB: the next one would take 207 MB."""
    path, base = tmp_path / "large.mp4", np.zeros((720, 1280, 3), "u1")
    with av.open(str(path), "w") as out:
        stream = out.add_stream("libx264", rate=30, options={"g": "150", "preset": "ultrafast", "sc_threshold": "0"})
        stream.height, stream.width, stream.pix_fmt = 720, 1280, "yuv420p"
        for i in range(300):
            base[2 * i : 2 * i + 20] = i % 256
            out.mux(stream.encode(av.VideoFrame.from_ndarray(base, "rgb24")))
        out.mux(stream.encode())
    assert penstock.video.open(path).key_frames.tolist() == [0, 150]
    ran = subprocess.run([sys.executable, "-c", NEXT_GROUP, str(path)], capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    assert float(ran.stdout) < 130
