# SPDX-License-Identifier: Apache-2.0
"""penstock.video compared with PyAV: frames, times and key frames."""

import io
import threading

import numpy as np
import pytest

import penstock.video
from penstock import types

av = pytest.importorskip("av", reason="PyAV is not installed")

from encoded_videos import clip, decoded, planes  # noqa: E402

CLIPS = {
    "h264.mp4": {"codec_options": (("g", "6"), ("bf", "2"))},
    "open.mp4": {
        "n": 40,
        "codec_options": (("x264-params", "open-gop=1:keyint=8:bframes=3:b-pyramid=normal:log-level=none"),),
    },
    "uneven.mp4": {"times": (0, 70, 100, 310, 330, 500, 710, 720), "n": 8, "codec_options": (("bf", "2"),)},
    "vp9.webm": {"codec": "libvpx-vp9", "container": "webm", "codec_options": (("g", "6"),)},
    "one.mkv": {"container": "matroska", "n": 1},
    "odd.mkv": {"container": "matroska", "size": (33, 47), "pixels": "yuv444p"},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("videos")
    for name, made in CLIPS.items():
        (root / name).write_bytes(clip(**made))
    return root


def close(a, b):
    assert a.dtype == np.uint8 and a.shape == b.shape
    assert np.abs(a.astype("i4") - b).max(initial=0) <= 1


def facts(data):
    """Times (s) of frames and whether they are key frames, by PyAV, in display order."""
    with av.open(io.BytesIO(data)) as container:
        packets = [p for p in container.demux(video=0) if p.pts is not None]
        packets.sort(key=lambda p: p.pts)
        times = np.array([float(p.pts * p.time_base) for p in packets])
        return times, [i for i, p in enumerate(packets) if p.is_keyframe], container.streams.video[0]


@pytest.mark.parametrize("name", CLIPS)
def test_frames(folder, name):
    data = (folder / name).read_bytes()
    want, (times, keys, _) = decoded(data), facts(data)
    with penstock.video.open(folder / name) as video:
        n = len(video)
        assert n == len(want) and (video.height, video.width) == want.shape[1:3]
        np.testing.assert_allclose(video.times, times, atol=1e-3)
        assert video.key_frames.tolist() == keys
        for i in (0, n - 1, -1, -n, n // 2):
            close(video[i], want[i])
        for part in (slice(None), slice(1, None, 3), slice(None, None, -2), slice(-3, None), slice(4, 2), slice(2, 99)):
            close(video[part], want[part])
        numbers = np.random.default_rng(1).integers(-n, n, 7)
        close(video[numbers], want[numbers])
        close(video[[]], want[[]].reshape(0, *want.shape[1:]))
        frames = list(video)
        close(np.stack(frames), want)
        assert len({f.ctypes.data for f in frames}) == n


def test_facts(folder):
    video = penstock.video.open(str(folder / "h264.mp4"))
    assert (video.codec, video.fps, video.duration, video.rotation) == ("h264", 10.0, 2.0, 0)
    assert video.colours.format == "yuv420p"
    assert "20 frames of 48 x 64, 10 fps, h264" in repr(video)
    one = penstock.video.open(folder / "one.mkv")
    assert (one.fps, one.duration, len(one)) == (0.0, 0.0, 1)
    assert penstock.video.open(folder / "vp9.webm").codec == "vp9"


def test_times(folder):
    want = decoded((folder / "uneven.mp4").read_bytes())
    video = penstock.video.open(folder / "uneven.mp4")
    shown = np.array(CLIPS["uneven.mp4"]["times"]) / 1000
    at = [0, 0.05, 0.07, 0.0999, 0.1, 0.3, 0.72]
    close(video.played_at(at), want[[np.flatnonzero(shown <= t)[-1] for t in at]])
    close(video.played_at(0.4), want[4])
    close(video.played_in(0.08, 0.33), want[1:4])
    close(video.played_in(0.5, 0.5), want[5:5].reshape(0, *want.shape[1:]))
    close(video.played_in(0.5, 99), want[5:])
    for wrong in (-0.1, 5.0, float("nan")):
        with pytest.raises(ValueError, match="outside of the video"):
            video.played_at([0.1, wrong])
    with pytest.raises(ValueError, match="from 2 to 1"):
        video.played_in(2, 1)


def test_ycbcr(folder):
    video = penstock.video.open(folder / "odd.mkv", image_type=types.YCbCr)
    with av.open(str(folder / "odd.mkv")) as container:
        frame = next(container.decode(video=0))
    np.testing.assert_array_equal(video[0], np.stack(planes(frame)[0], -1))


def test_errors(folder, tmp_path):
    video = penstock.video.open(folder / "h264.mp4")
    for wrong in (20, -21, [3, 20]):
        with pytest.raises(IndexError, match="of a video of 20 frames"):
            video[wrong]
    for wrong in (1.5, [1.5], [True], [[1]], "a"):
        with pytest.raises(TypeError):
            video[wrong]
    with pytest.raises(FileNotFoundError):
        penstock.video.open("/nowhere.mp4")
    (tmp_path / "bad.mp4").write_bytes(b"no video at all")
    with pytest.raises(ValueError, match=r"bad.mp4: not a video"):
        penstock.video.open(tmp_path / "bad.mp4")
    with pytest.raises(ValueError, match="image_type takes RGB or YCbCr"):
        penstock.video.open(folder / "h264.mp4", image_type=types.GRAY)
    video.close()
    with pytest.raises(ValueError, match=r"h264.mp4 is closed"):
        video[0]


def test_a_damaged_file_says_which_frame(folder, tmp_path):
    data = bytearray((folder / "vp9.webm").read_bytes())
    path = tmp_path / "cut.webm"
    path.write_bytes(data[: len(data) * 2 // 3])
    video = penstock.video.open(path)
    with pytest.raises(ValueError, match=r"cut.webm: frame \d+ "):
        list(video)
    with pytest.raises(ValueError, match=r"cut.webm: frame \d+ "):
        video[:]


def test_iteration_that_ends_early_leaves_nothing_behind(folder):
    before = threading.active_count()
    threads = lambda: len([*__import__("os").scandir("/proc/self/task")])
    start = threads()
    for _ in range(20):
        for frame in penstock.video.open(folder / "open.mp4"):
            assert frame.shape == (48, 64, 3)
            break
    assert threading.active_count() == before and threads() == start


def test_iterators_of_one_video_are_independent(folder):
    video = penstock.video.open(folder / "h264.mp4")
    for a, b in zip(video, video):
        np.testing.assert_array_equal(a, b)
    frames = iter(video)
    first = next(frames)
    video.close()
    np.testing.assert_array_equal(first, penstock.video.open(folder / "h264.mp4")[0])
    assert len(list(frames)) == 19


def test_samples(folder):
    video = penstock.video.open(folder / "h264.mp4")
    frames, n = video[:], len(video)
    assert n == 20
    np.testing.assert_array_equal(video.evenly(4), frames[[0, 6, 13, 19]])
    np.testing.assert_array_equal(video.evenly(1), frames[:1])
    clips = video.random_clips(40, length=3, stride=4, seed=5)
    starts = [next(i for i in range(n) if (frames[i] == c[0]).all()) for c in clips]
    for start, c in zip(starts, clips):
        np.testing.assert_array_equal(c, frames[start : start + 9 : 4])
    assert min(starts) == 0 and max(starts) == 11  # all places, and none beyond
    np.testing.assert_array_equal(video.random_clips(40, length=3, stride=4, seed=5), clips)
    with pytest.raises(ValueError, match="a clip of 21 frames from a video of 20"):
        video.random_clips(1, length=11, stride=2)
    with pytest.raises(ValueError, match="evenly takes at least 1 frame; got 0"):
        video.evenly(0)
