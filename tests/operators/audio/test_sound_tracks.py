# SPDX-License-Identifier: Apache-2.0
"""Sound in MP4, M4A, QuickTime, Matroska, WebM and ADTS files: samples are PyAV's, lengths those of the original."""

import io
import json
import os
import struct
import subprocess
import sys

import numpy as np
import pytest
from sound_files import noise, wav
from sound_tracks import encoded

from optional_packages import Package, needs
from penstock import fn, pipeline_def, types

av = Package("av")
pytestmark = needs("av")


def by_av(data):
    """Samples (frames, channels), float32, without those removed at the end by an edit list."""
    with av.open(io.BytesIO(data)) as file:
        frames = []
        for frame in file.decode(audio=0):
            x = frame.to_ndarray()
            frames.append(x.T if frame.format.is_planar else x.reshape(-1, frame.layout.nb_channels))
    x = np.concatenate(frames)
    return x if x.dtype == np.float32 else (x / 2.0 ** (8 * x.itemsize - 1)).astype("f4")


def run(*files, operator=fn.decoders.audio, then=lambda x: x, **arguments):
    @pipeline_def(batch_size=len(files), num_threads=2)
    def pipe():
        data = fn.external_source(lambda: [np.frombuffer(f, "u1") for f in files], batch=True)
        first, *others = operator(data, **arguments)
        return then(first), *others

    return [[np.array(out.at(i)) for i in range(len(files))] for out in pipe().run()]


# Formats, and their numbers of samples for 9,000: files without an edit list end with a whole packet.
KINDS = {
    "aac": ({}, 9000),
    "aac, mono": ({"channels": 1, "rate": 44100}, 9000),
    "aac, 5.1": ({"channels": 6, "rate": 48000}, 9000),
    "aac in m4a": ({"container": "ipod"}, 9000),
    "aac in QuickTime": ({"container": "mov"}, 9000),
    "aac in fragments": ({"options": {"movflags": "frag_keyframe+empty_moov", "frag_duration": "100000"}}, None),
    "aac alone": ({"container": "adts"}, -(-(9000 + 1024) // 1024) * 1024),
    "alac": ({"codec": "alac", "container": "ipod"}, 9000),
    "flac": ({"codec": "flac"}, 9000),
    "mp3": ({"codec": "libmp3lame"}, 9000),
    "opus": ({"codec": "libopus", "rate": 48000}, 9000),
    "ac3": ({"codec": "ac3", "container": "mov", "rate": 48000}, None),
    "opus in WebM": ({"codec": "libopus", "container": "webm", "rate": 48000}, 9000),
    "flac in Matroska": ({"codec": "flac", "container": "matroska"}, 9000),
    "aac in Matroska": ({"container": "matroska", "channels": 1}, 9 * 1024),
    "mp3 in Matroska": ({"codec": "libmp3lame", "container": "matroska"}, 9000),
    "ac3 in Matroska": ({"codec": "ac3", "container": "matroska", "rate": 48000}, None),
}


@pytest.mark.parametrize("name", KINDS)
def test_samples_and_lengths(name):
    arguments, length = KINDS[name]
    data = encoded(**arguments)
    (samples,), (rate,) = run(data)
    expected = by_av(data)
    (told_rate,), (channels,), (frames,) = run(data, operator=fn.peek_audio)
    assert rate == told_rate == arguments.get("rate", 16000)
    assert samples.shape == (frames, channels) and channels == arguments.get("channels", 2)
    assert frames == length if length else abs(frames - 9000) <= 1536
    np.testing.assert_array_equal(
        samples, expected[: len(samples)] if "opus" not in name else aligned(expected, samples)
    )
    if name in ("alac", "flac"):
        np.testing.assert_allclose(samples, noise(9000, 2), atol=2**-15)


def aligned(expected, samples):
    """Depending on the version, FFmpeg removes the beginning of Opus or not."""
    begin = int(np.argmax([np.array_equal(expected[i : i + 500], samples[:500]) for i in range(2000)]))
    return expected[begin : begin + len(samples)]


def elements(data, at=0, end=None):
    """(id, begin of the content, end) of Matroska's elements; segments and clusters are entered."""
    end = len(data) if end is None else end
    while at < end:
        n = 9 - data[at].bit_length()
        kind = data[at : at + n]
        m = 9 - data[at + n].bit_length()
        size = int.from_bytes(data[at + n : at + n + m], "big") & (1 << 7 * m) - 1
        at += n + m
        if kind in (b"\x18\x53\x80\x67", b"\x1f\x43\xb6\x75"):
            yield kind, at, at
            continue
        yield kind, at, at + size
        at += size


def element(kind, content):
    return kind + (len(content) | 1 << 56).to_bytes(8, "big") + content


def difference(x):
    """A signed two-byte number in EBML lacing."""
    return (x + (1 << 13) - 1 | 1 << 14).to_bytes(2, "big")


def laced(data, lacing, n):
    """A Matroska file with n packets per block."""
    head, tracks, packets = b"", b"", []
    for kind, begin, end in elements(data):
        if kind == b"\x1a\x45\xdf\xa3":
            head = element(kind, data[begin:end])
        elif kind == b"\x16\x54\xae\x6b":
            tracks = element(kind, data[begin:end])
        elif kind == b"\xa3":
            packets.append(data[begin + 4 : end])
        elif kind == b"\xa0":
            packets += [data[b + 4 : e] for k, b, e in elements(data, begin, end) if k == b"\xa1"]
    blocks = b""
    for i in range(0, len(packets), n):
        some = packets[i : i + n]
        sizes = [len(p) for p in some]
        said = bytes([len(some) - 1])
        if lacing == "as Ogg":
            said += b"".join(b"\xff" * (s // 255) + bytes([s % 255]) for s in sizes[:-1])
        elif lacing == "EBML" and len(some) > 1:
            said += (sizes[0] | 1 << 14).to_bytes(2, "big")
            said += b"".join(difference(b - a) for a, b in zip(sizes, sizes[1:-1]))
        flags = {"as Ogg": 2, "all alike": 4, "EBML": 6}[lacing]
        blocks += element(b"\xa3", b"\x81" + (10 * i).to_bytes(2, "big") + bytes([flags]) + said + b"".join(some))
    cluster = element(b"\x1f\x43\xb6\x75", element(b"\xe7", b"\0") + blocks)
    return head + element(b"\x18\x53\x80\x67", tracks + cluster)


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize(
    ("lacing", "codec"), [("as Ogg", "flac"), ("EBML", "flac"), ("EBML", "aac"), ("all alike", "ac3")]
)
def test_several_packets_in_a_block(lacing, codec, n):
    data = encoded(codec, "matroska", 48000, 1)
    (expected,), _ = run(data)
    (found,), _ = run(laced(data, lacing, n))
    # For AAC, FFmpeg's file stores next to the blocks how much of the last one is discarded.
    np.testing.assert_array_equal(found[: len(expected)], expected)
    assert 0 <= len(found) - len(expected) < 1024


def test_integers_are_scaled_to_their_range():
    data = encoded()
    (x,), _ = run(data)
    for dtype, largest in ((types.INT16, 32767), (types.INT32, 2147483647)):
        (found,), _ = run(data, dtype=dtype)
        np.testing.assert_array_equal(found, np.clip(np.rint(x.astype("f8") * largest), -largest - 1, largest))
    exact = encoded("alac", "ipod")
    (x,), _ = run(exact)
    (found,), _ = run(exact, dtype=types.INT32)
    np.testing.assert_array_equal(found, x.astype("f8") * 2**31)


def test_parts_mixing_and_rates():
    data = encoded(frames=30000)
    (x,), _ = run(data)
    (part,), _ = run(data, then=lambda s: fn.slice(s, 11111, 7000, axes=[0]))
    np.testing.assert_array_equal(part, x[11111:18111])
    (mixed,), _ = run(data, downmix=True)
    np.testing.assert_allclose(mixed, x.mean(1), atol=1e-6)
    (slower,), (rate,) = run(data, sample_rate=8000.0)
    assert slower.shape == (15000, 2) and rate == 8000
    (expected,), _ = run(wav(x.tobytes(), 2, bits=32, code=3).tobytes(), sample_rate=8000.0)
    np.testing.assert_array_equal(slower, expected)


def test_the_sound_of_a_video_has_the_times_of_its_frames():
    """It begins after the pictures here: silence fills the time before."""
    late, video = encoded(begin=0.5, frames=8000, pictures=12), encoded(frames=8000, pictures=12)
    (a, b), _ = run(late, video)
    assert len(a) == 16000 and len(b) == 8000
    # FFmpeg keeps the encoder's first 1,024 samples if sound begins late.
    assert not a[: 8000 - 1024].any() and np.abs(a[8000:8400]).max() > 0.1
    np.testing.assert_array_equal(a[8000:], b)

    @pipeline_def(batch_size=1, num_threads=1)
    def clip():
        """Frames 4 to 8 and the sound during them."""
        file = fn.external_source(lambda: [np.frombuffer(video, "u1")], batch=True)
        sound, rate = fn.decoders.audio(file, downmix=True)
        begin = fn.cast(rate * 0.4, dtype=types.INT32)
        length = fn.cast(rate * 0.1, dtype=types.INT32)
        return fn.decoders.video(file, start_frame=4, sequence_length=1), fn.slice(sound, begin, length, axes=[0])

    frames, sound = clip().run()
    assert abs(int(np.array(frames.at(0)).mean()) - 40) <= 2
    np.testing.assert_allclose(sound.at(0), b[6400:8000].mean(1), atol=1e-6)


def test_manifests_may_list_them(tmp_path):
    (tmp_path / "a.m4a").write_bytes(encoded(container="ipod", channels=1))
    (tmp_path / "list.json").write_text(json.dumps({"audio_filepath": "a.m4a", "text": "x", "duration": 9000 / 16000}))

    @pipeline_def(batch_size=1, num_threads=1)
    def pipe():
        return fn.readers.nemo_asr(manifest_filepaths=[str(tmp_path / "list.json")])

    sound, *_ = pipe().run()
    (expected,), _ = run((tmp_path / "a.m4a").read_bytes(), downmix=True)
    np.testing.assert_array_equal(sound.at(0), expected)


def cut(data):
    return data[: len(data) // 2]


def without_sound(data):
    return data.replace(b"soun", b"none")


def of_unknown_codec(data):
    return data.replace(b"mp4a", b"abcd").replace(b"esds", b"none")


def with_packets_elsewhere(data):
    at = data.rindex(b"stco")
    return data[: at + 12] + struct.pack(">I", len(data) - 5) + data[at + 16 :]


def with_noise_as_packets(data):
    begin = data.index(b"mdat") + 100
    return data[:begin] + np.random.default_rng(0).bytes(2000) + data[begin + 2000 :]


def with_lacing(data):
    """Blocks that claim to have several packets, but do not."""
    out = bytearray(data)
    for kind, begin, _ in elements(data):
        if kind == b"\xa3":
            out[begin + 3] |= 6
    return bytes(out)


DAMAGED = {
    "cut": (cut, "moov|beyond the end"),
    "no sound": (without_sound, "there is no sound in it"),
    "unknown": (of_unknown_codec, "its sound .'abcd'. is not supported; AAC, MP3, ALAC, FLAC, Opus and AC-3 are"),
    "elsewhere": (with_packets_elsewhere, "beyond the end of the file"),
    "lacing": (with_lacing, "a laced block that makes no sense|can't be decoded|truncated"),
    "noise": (with_noise_as_packets, "packet .* .aac. can't be decoded|could be decoded"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_files_are_errors_of_their_samples(name):
    damage, text = DAMAGED[name]
    good = encoded(container="matroska" if damage is with_lacing else "mp4")
    bad = damage(good)
    with pytest.raises(RuntimeError, match=text):
        run(good, bad)

    @pipeline_def(batch_size=2, num_threads=2, on_error="skip")
    def pipe():
        data = fn.external_source(lambda: [np.frombuffer(f, "u1") for f in (bad, good)], batch=True)
        return fn.decoders.audio(data)[0]

    (out,) = pipe().run()
    np.testing.assert_array_equal(out.at(0), run(good)[0][0])


def test_without_ffmpeg_it_says_what_to_install(tmp_path):
    (tmp_path / "a.m4a").write_bytes(encoded(container="ipod"))
    program = (
        "from penstock import fn, pipeline_def\n"
        "@pipeline_def(batch_size=1, num_threads=1)\n"
        "def pipe():\n"
        f"    return fn.decoders.audio(fn.readers.file(files=[{str(tmp_path / 'a.m4a')!r}])[0])[0]\n"
        "pipe().run()\n"
    )
    env = {**os.environ, "PENSTOCK_FFMPEG": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True)
    assert done.returncode and "PENSTOCK_FFMPEG" in done.stderr and "a.m4a" in done.stderr


def test_packets_of_aac_without_sound_last_as_long_as_others():
    """The first packet of FAAC's files has only the encoder's name."""
    data = encoded(container="adts")
    head = bytearray(data[:7])
    head[3] = head[3] & 0xFC
    head[4], head[5] = 10 >> 3, (10 & 7) << 5 | head[5] & 31  # 10 bytes
    fill = int("110" + "0001" + "00000000" + "111" + "000000", 2).to_bytes(3, "big")  # one byte of filling, the end
    whole, more = by_av(data), by_av(bytes(head) + fill + data)
    assert len(more) in (len(whole), len(whole) + 1024)  # PyAV leaves it out
    (samples, again), _ = run(bytes(head) + fill + data, 2 * (bytes(head) + fill) + data)
    (_, _), (_, _), (frames, twice) = run(
        bytes(head) + fill + data, 2 * (bytes(head) + fill) + data, operator=fn.peek_audio
    )
    assert len(samples) == frames == len(whole) + 1024 and len(again) == twice == len(whole) + 2048
    assert not samples[:1024].any() and not again[:2048].any()
    np.testing.assert_array_equal(samples[1024:], whole)
    np.testing.assert_array_equal(again[2048:], whole)
