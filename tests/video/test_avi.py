# SPDX-License-Identifier: Apache-2.0
"""Videos in AVI files, compared with PyAV."""

import struct

import numpy as np
import pytest

import penstock.video
from penstock import PipelineError, fn, pipeline_def

pytest.importorskip("av", reason="PyAV is not installed")

from encoded_videos import clip, decoded  # noqa: E402

GROUPS = (("g", "6"),)
KINDS = {
    "mjpeg": {"codec": "mjpeg", "pixels": "yuvj420p"},
    "mpeg4": {"codec": "mpeg4", "codec_options": GROUPS},
    "mpeg4 with B frames": {"codec": "mpeg4", "codec_options": (*GROUPS, ("bf", "2"))},
    "mpeg2video": {"codec": "mpeg2video", "codec_options": (*GROUPS, ("bf", "2")), "rate": 25},
    "h264": {"codec_options": (*GROUPS, ("bf", "0"))},
    "h264 with B frames": {"codec_options": (*GROUPS, ("bf", "2"))},
    "vp8": {"codec": "libvpx", "codec_options": GROUPS},
    "vp9": {"codec": "libvpx-vp9", "codec_options": GROUPS},
    "odd size": {"codec": "mpeg4", "size": (34, 50), "codec_options": GROUPS},
}


def close(a, b):
    assert a.shape == b.shape and np.abs(a.astype("i4") - b).max(initial=0) <= 1


def opened(tmp_path, data):
    (tmp_path / "clip.avi").write_bytes(data)
    return penstock.video.open(tmp_path / "clip.avi")


@pytest.mark.parametrize("name", KINDS)
def test_frames(tmp_path, name):
    data = clip(container="avi", **KINDS[name])
    video, want = opened(tmp_path, data), decoded(data)
    rate = KINDS[name].get("rate", 10)
    codec = {"odd size": "mpeg4"}.get(name, name.split()[0])
    assert (len(video), video.fps, video.codec) == (20, rate, codec)
    np.testing.assert_allclose(video.times, np.arange(20) / rate, atol=1e-9)
    assert video.key_frames.tolist() == (list(range(20)) if name == "mjpeg" else [0, 6, 12, 18])
    close(video[:], want)
    close(np.stack(list(video)), want)
    for i in (13, 5, 19):
        close(video[i], want[i])


def chunks(data):
    """The position and size of the list of frames, and its chunks."""
    at = data.index(b"movi") + 4
    end = at - 4 + struct.unpack("<I", data[at - 8 : at - 4])[0]
    found, place = [], at
    while place < end:
        size = struct.unpack("<I", data[place + 4 : place + 8])[0]
        found.append((data[place : place + 4], data[place + 8 : place + 8 + size]))
        place += 8 + size + size % 2
    return at, end, found


def with_chunks(data, made):
    """The file with other chunks, and without an index."""
    at, _, _ = chunks(data)
    body = b"".join(k + struct.pack("<I", len(c)) + c + b"\0" * (len(c) % 2) for k, c in made)
    return data[: at - 8] + struct.pack("<I", len(body) + 4) + b"movi" + body


def packed(data):
    """Moves each B frame of MPEG-4 to the previous chunk, and leaves an empty frame in its place, as DivX does."""
    made = []
    for kind, content in chunks(data)[2]:
        vop = content.find(b"\0\0\1\xb6")
        if vop >= 0 and content[vop + 4] >> 6 == 2:
            before = next(i for i in reversed(range(len(made))) if len(made[i][1]) > 16)
            if made[before][1].count(b"\0\0\1\xb6") == 1:
                made[before] = kind, made[before][1] + content
                made.append((kind, b"\0\0\1\xb6\x40\0\0"))
                continue
        made.append((kind, content))
    return with_chunks(data, made)


def test_packed_b_frames(tmp_path):
    data = clip(container="avi", codec="mpeg4", codec_options=(("g", "6"), ("bf", "1")))
    changed = packed(data)
    assert changed.count(b"\0\0\1\xb6\x40\0\0") > 5
    video = opened(tmp_path, changed)
    assert len(video) == 20
    close(video[:], decoded(data))
    close(video[[14, 3]], decoded(data)[[14, 3]])


def test_frames_that_are_left_out(tmp_path):
    """An empty chunk repeats the previous frame."""
    data = clip(container="avi", codec="mjpeg", pixels="yuvj420p")
    made = chunks(data)[2]
    made[4:4] = [(made[0][0], b"")] * 3
    video = opened(tmp_path, with_chunks(data, made))
    np.testing.assert_allclose(video.times, [i / 10 if i < 4 else (i + 3) / 10 for i in range(20)], atol=1e-9)
    close(video[:], decoded(data))


def test_readers_and_decoders(tmp_path):
    data = clip(container="avi", **KINDS["mpeg4 with B frames"])
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "clip.avi").write_bytes(data)

    @pipeline_def(batch_size=4, num_threads=2)
    def pipe():
        frames, labels = fn.readers.video(file_root=str(tmp_path), sequence_length=5)
        return frames, fn.decoders.video(np.frombuffer(data, "u1"), start_frame=7, sequence_length=3)

    sequences, part = pipe().run()
    close(sequences.as_array().reshape(20, 48, 64, 3), decoded(data))
    close(np.array(part.at(0)), decoded(data)[7:10])


def test_what_is_not_supported(tmp_path):
    data = clip(container="avi", **KINDS["h264"])
    with pytest.raises(ValueError, match="there is no video in it"):
        opened(tmp_path, data[: data.index(b"movi") + 4])


@pytest.mark.parametrize("end", [0.5, 0.9, 0.99])
def test_a_file_that_is_cut_off(tmp_path, end):
    """The existing part can be read."""
    data = clip(container="avi", **KINDS["mpeg4"])
    at, stop, _ = chunks(data)
    video = opened(tmp_path, data[: at + int((stop - at) * end)])
    assert 5 < len(video) < 20
    close(video[:], decoded(data)[: len(video)])


def test_a_picture_of_another_size(tmp_path):
    small, large = (clip(container="avi", codec="mjpeg", pixels="yuvj420p", size=s) for s in ((48, 64), (64, 96)))
    made = chunks(small)[2]
    made[5] = chunks(large)[2][5]
    (tmp_path / "clip.avi").write_bytes(with_chunks(small, made))

    @pipeline_def(batch_size=1, num_threads=1)
    def pipe():
        return fn.readers.video(filenames=[str(tmp_path / "clip.avi")], sequence_length=20)

    with pytest.raises(PipelineError, match=r"frame 5 has 64 x 96 pixels"):
        pipe().run()
