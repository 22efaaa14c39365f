# SPDX-License-Identifier: Apache-2.0
"""MPEG-TS, MPEG-PS and streams without a container, compared with PyAV."""

import io

import numpy as np
import pytest

import penstock.video
from penstock import fn, pipeline_def

av = pytest.importorskip("av", reason="PyAV is not installed")

from encoded_videos import clip, rgb  # noqa: E402

GROUPS = (("g", "6"),)
B_FRAMES = (*GROUPS, ("bf", "2"))
OPEN = (("x264-params", "keyint=6:min-keyint=6:bframes=2:open-gop=1:scenecut=0"),)
X265 = (("x265-params", "log-level=none:keyint=6:min-keyint=6:bframes=2:open-gop=1:scenecut=0"),)
MPEG = {"codec": "mpeg2video", "codec_options": B_FRAMES, "rate": 25}
KINDS = {
    "TS, H.264": {"container": "mpegts", "codec_options": B_FRAMES},
    "TS, open groups": {"container": "mpegts", "codec_options": OPEN},
    "TS, HEVC": {"container": "mpegts", "codec": "libx265", "codec_options": X265},
    "TS, MPEG-2": {"container": "mpegts", **MPEG},
    "TS, uneven": {"container": "mpegts", "times": (0, 70, 100, 310, 330, 500), "n": 6},
    "TS, odd size": {"container": "mpegts", "size": (50, 66), "codec_options": B_FRAMES},
    "TS, packets of 192": {"container": "mpegts", "container_options": (("mpegts_m2ts_mode", "1"),)},
    "PS, MPEG-2": {"container": "vob", **MPEG},
    "PS, MPEG-1": {"container": "mpeg", **MPEG, "codec": "mpeg1video"},
    "PS, H.264": {"container": "vob", "codec_options": B_FRAMES, "rate": 25},
    "H.264": {"container": "h264", "codec_options": B_FRAMES},
    "H.264, open groups": {"container": "h264", "codec_options": OPEN},
    "H.264, 4:2:2, 10 bits": {"container": "h264", "pixels": "yuv422p10le", "codec_options": B_FRAMES},
    "H.264, fields": {"container": "h264", "codec_options": (*B_FRAMES, ("x264-params", "tff=1"))},
    "HEVC": {"container": "hevc", "codec": "libx265", "codec_options": X265},
    "MPEG-2": {"container": "mpeg2video", **MPEG},
}


def decoded(data):
    """The frames and their display times, None if the container does not have them."""
    with av.open(io.BytesIO(data)) as file:
        stream = file.streams.video[0]
        is_centred = stream.codec_context.name == "mpeg1video"
        frames = [(rgb(f, is_centred), f.time) for f in file.decode(stream)]
    return np.stack([f for f, _ in frames]), [t for _, t in frames]


def close(a, b):
    assert a.shape == b.shape and np.abs(a.astype("i4") - b).max(initial=0) <= 1


def opened(tmp_path, data):
    (tmp_path / "clip").write_bytes(data)
    return penstock.video.open(tmp_path / "clip")


@pytest.mark.parametrize("name", KINDS)
def test_frames(tmp_path, name):
    data = clip(**KINDS[name])
    video, (want, times) = opened(tmp_path, data), decoded(data)
    assert len(video) == len(want) == KINDS[name].get("n", 20)
    close(video[:], want)
    close(np.stack(list(video)), want)
    for i in (len(video) - 1, 3, 5):
        close(video[i], want[i])
    if name.startswith("TS") or name == "PS, MPEG-2":
        np.testing.assert_allclose(video.times, times, atol=1e-9)
    elif name.startswith("HEVC"):
        assert video.fps == 25  # which is meant where the stream says nothing
    else:
        assert video.fps == KINDS[name].get("rate", 10)
    if len(video) == 20:
        assert len(video.key_frames) >= (1 if "192" in name else 3)


@pytest.mark.parametrize("name", ["TS, H.264", "TS, open groups", "TS, HEVC", "TS, MPEG-2", "PS, MPEG-2", "H.264"])
@pytest.mark.parametrize("cut", [0.3, 0.6])
def test_a_file_that_begins_in_the_middle(tmp_path, name, cut):
    """The video starts with the first key frame."""
    whole = clip(**KINDS[name])
    first = int(len(whole) * cut)
    if name[:2] not in ("TS", "PS"):
        first = whole.index(b"\0\0\0\1\x67", first)
    if name[:2] == "PS":
        first = whole.index(b"\0\0\1\xba", first)
    video = opened(tmp_path, whole[first:])
    (frames, times), n = decoded(whole), len(video)
    assert 1 < n < 20
    close(video[:], frames[-n:])
    if name[:2] == "TS":
        np.testing.assert_allclose(video.times, times[-n:], atol=1e-9)


@pytest.mark.parametrize("name", ["TS, H.264", "PS, MPEG-2", "HEVC"])
def test_a_file_that_is_cut_off(tmp_path, name):
    whole = clip(**KINDS[name])
    video = opened(tmp_path, whole[: int(len(whole) * 0.6)])
    n = len(video) - 3  # the last picture is there in part, and others may refer to it
    assert 5 < n < 18
    close(video[:n], decoded(whole)[0][:n])


def packets(data):
    return [data[i : i + 188] for i in range(0, len(data), 188)]


def test_packets_of_204_bytes(tmp_path):
    data = clip(**KINDS["TS, H.264"])
    close(opened(tmp_path, b"".join(p + bytes(16) for p in packets(data)))[:], decoded(data)[0])


def test_bytes_between_packets(tmp_path):
    data = clip(**KINDS["TS, H.264"])
    made = packets(data)
    for i in range(len(made) - 1, 5, -7):
        made[i:i] = [b"\1" * (i % 50 + 1)]
    video = opened(tmp_path, b"".join(made))
    close(video[:], decoded(data)[0])
    close(video[11], decoded(data)[0][11])


def test_the_clock_begins_anew(tmp_path):
    """The clock wraps around after 2^33 / 90000 = 95,443.7 s."""
    times = tuple(95_443_000 + 100 * i for i in range(20))
    data = clip(container="mpegts", times=times)
    video = opened(tmp_path, data)
    assert len(video) == 20 and video.fps == 10
    close(video[:], decoded(data)[0])


def test_recordings_one_behind_the_other(tmp_path):
    one, two = clip(**KINDS["TS, H.264"]), clip(container="mpegts", codec_options=GROUPS)
    video = opened(tmp_path, one + two)
    close(video[:], np.concatenate([decoded(one)[0], decoded(two)[0]]))
    assert video.fps == 10


def test_readers_and_decoders(tmp_path):
    names = ("TS, open groups", "PS, MPEG-2", "H.264")
    files = [tmp_path / f"{k}" for k in range(len(names))]
    for path, name in zip(files, names):
        path.write_bytes(clip(**KINDS[name]))

    @pipeline_def(batch_size=3, num_threads=2)
    def pipe():
        frames, numbers = fn.experimental.readers.video(
            filenames=[str(f) for f in files], sequence_length=4, step=20, enable_frame_num=True
        )
        parts = [fn.decoders.video(np.fromfile(f, "u1"), start_frame=7, sequence_length=5) for f in files]
        return frames, numbers, *parts

    frames, numbers, *parts = pipe().run()
    for k, name in enumerate(names):
        want = decoded(clip(**KINDS[name]))[0]
        close(np.array(frames.at(k)), want[:4])
        close(np.array(parts[k].at(0)), want[7:12])


@pytest.mark.parametrize(
    "data, text",
    [
        (b"\x47" + bytes(187), "not a video that can be read"),
        (b"".join(b"\x47\x1f\xff\x10" + bytes(184) for _ in range(8)), "MPEG-TS: there is no video in it"),
        (b"\0\0\1\xba\x44" + bytes(200), "MPEG-PS: there is no video in it"),
        (b"\0\0\0\1\x67\x42\0\x0a" + bytes(60), "the video has no key frame"),
    ],
)
def test_nothing_to_be_seen(tmp_path, data, text):
    with pytest.raises(ValueError, match=text):
        opened(tmp_path, data)
