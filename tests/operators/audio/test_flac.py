# SPDX-License-Identifier: Apache-2.0
"""FLAC, which is decoded natively, compared with libsndfile: all frame encodings, ranges, damage."""

import functools
import io

import numpy as np
import pytest
from sound_files import decoded, encoded, noise

from optional_packages import needs
from penstock import fn, pipeline_def, types

pytestmark = needs("soundfile")


def decode(*files, behind=lambda x: x, dtype=types.INT32, folder=None, **kwargs):
    """With a folder, of files in it, of which the decoder reads what it needs."""
    paths = [folder / f"{i}.flac" for i in range(len(files))] if folder else []
    for path, file in zip(paths, files):
        path.write_bytes(file)

    @pipeline_def(batch_size=len(files), num_threads=2, **kwargs)
    def pipe():
        encoded = fn.readers.file(files=paths)[0] if folder else fn.external_source(source=lambda i: list(files))
        return behind(fn.decoders.audio(encoded, dtype=dtype)[0])

    (out,) = pipe().run()
    return [np.array(x) for x in out]


def by_ffmpeg(x, bits=16, **options):
    """A file by FFmpeg's encoder, with options for the encoding."""
    av = pytest.importorskip("av")
    file, whole = io.BytesIO(), np.round(x * 2 ** (bits - 1)).astype("i8")
    with av.open(file, "w", format="flac") as container:
        stream = container.add_stream("flac", rate=44100, options={k: str(v) for k, v in options.items()})
        stream.layout, stream.format = "stereo", "s16" if bits == 16 else "s32"
        samples = (whole << (16 if bits == 16 else 32) - bits).astype("i2" if bits == 16 else "i4")
        frame = av.AudioFrame.from_ndarray(samples.reshape(1, -1), format=stream.format.name, layout="stereo")
        frame.sample_rate = 44100
        for packet in [*stream.encode(frame), *stream.encode(None)]:
            container.mux(packet)
    return np.frombuffer(file.getvalue(), "u1"), (whole << 32 - bits).astype("i4")


@pytest.fixture(params=["memory", "disk"])
def folder(request, tmp_path):
    return tmp_path if request.param == "disk" else None


WAYS = [
    *({"compression_level": level} for level in (0, 5, 8)),
    *({"ch_mode": mode} for mode in ("indep", "left_side", "right_side", "mid_side")),
    *({"compression_level": 12, "min_prediction_order": n, "max_prediction_order": n} for n in (1, 2, 11, 12, 13, 32)),
    *({"lpc_type": "fixed", "min_prediction_order": n, "max_prediction_order": n} for n in range(5)),
    {"lpc_type": "none"},
]


@pytest.mark.parametrize("bits", [16, 24])
@pytest.mark.parametrize("options", WAYS, ids=str)
def test_ways_to_code(options, bits):
    file, expected = by_ffmpeg(noise(20001, 2), bits, **options)
    (out,) = decode(file)
    np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(out, decoded(file, "int32"))


SIGNALS = {
    "silent": np.zeros((9000, 2)),
    "constant": np.full((9000, 1), 0.5),
    "white": np.random.default_rng(0).uniform(-1, 1, (9000, 2)),
    "few bits": np.round(noise(9000, 2) * 100) / 128,  # the lower ones are 0
    "an impulse": np.eye(9000, 2),
    "clipped": np.clip(noise(9000, 2) * 5, -1, 1),
    "one sample": noise(1, 2),
    "eight channels": noise(9000, 8),
}


@pytest.mark.parametrize("signal", SIGNALS)
@pytest.mark.parametrize("subtype", ["PCM_S8", "PCM_16", "PCM_24"])
def test_signals(signal, subtype):
    for rate in (8000, 12345, 44100, 192000, 655350):
        file = encoded(SIGNALS[signal], rate, "FLAC", subtype)
        for dtype, name in ((types.INT16, "int16"), (types.INT32, "int32"), (types.FLOAT, "float32")):
            np.testing.assert_array_equal(decode(file, dtype=dtype)[0], decoded(file, name))


def uneven(n):
    """Silence, in frames of a few bytes, and noise; so that a place in time tells little of that in the file."""
    return np.where((np.arange(n)[:, None] // (n // 5)) % 2, np.random.default_rng(1).uniform(-1, 1, (n, 1)), 0.0)


def test_parts_begin_anywhere(folder):
    """Also in the first, the last and the shortest frame."""
    long, _ = by_ffmpeg(noise(100001, 2))
    files = [long, *(encoded(x, 44100, "FLAC") for x in (noise(100001, 2), noise(3000), uneven(300000)))]
    for file in files:
        (whole,) = decode(file, folder=folder)
        np.testing.assert_array_equal(whole, decoded(file, "int32").reshape(whole.shape))
        n = len(whole)
        starts = np.random.default_rng(0).integers(0, n - 100, 30).tolist() + [0, 1, 1151, 1152, 4095, n - 100]
        for s in (s for s in starts if s <= n - 100):
            behind = functools.partial(fn.slice, start=[s], shape=[100], axes=[0])
            (part,) = decode(file, behind=behind, folder=folder)
            np.testing.assert_array_equal(part, whole[s : s + 100])


def test_parts_of_files_whose_frames_misstate_their_place(folder):
    """As in excerpts of a broadcast: the first frame's number is not 0."""
    file = encoded(noise(50000), 16000, "FLAC").tobytes()
    frames = _frames(file)
    cut = np.frombuffer(file[: frames[0]] + file[frames[2] :], "u1")
    (whole,) = decode(np.frombuffer(file, "u1"))
    (part,) = decode(cut, behind=lambda x: fn.slice(x, start=[20000], shape=[50], axes=[0]), folder=folder)
    np.testing.assert_array_equal(part, whole[20000 + 8192 : 20050 + 8192])


def with_long_frames(x):
    """A file of one frame of 16 bits per sample, whose numbers are coded with 0 binary bits."""
    samples = np.round(x[:, 0] * 64).astype("i8")  # unary codes of 2 * 64 bits at most
    bits = "0" + "001000" + "0" + "00" + "0000" + "0000"  # a predictor of order 0, one partition, Rice parameter 0
    for value in samples:
        bits += "0" * int(2 * value if value >= 0 else -2 * value - 1) + "1"
    bits += "0" * (-len(bits) % 8)
    body = int(bits, 2).to_bytes(len(bits) // 8, "big")
    head = bytes([0xFF, 0xF8, 0xC5, 0x08, 0x00])  # 4096 samples, 16 kHz, one channel of 16 bits, frame 0
    frame = head + bytes([crc(head, 8, 0x07)]) + body
    frame += crc(frame, 16, 0x8005).to_bytes(2, "big")
    about = (16000 << 44 | 15 << 36 | len(samples)).to_bytes(8, "big")
    stream = (4096).to_bytes(2, "big") * 2 + bytes(6) + about + bytes(16)
    return np.frombuffer(b"fLaC" + bytes([0x80, 0, 0, 34]) + stream + frame, "u1")


def crc(data, width, polynomial):
    value = 0
    for byte in data:
        value ^= byte << (width - 8)
        for _ in range(8):
            value = (value << 1 ^ (polynomial if value >> (width - 1) & 1 else 0)) & ((1 << width) - 1)
    return value


def _frames(file):
    """Offsets of the frames of a mono file at 16 kHz and 16 bits, except the shorter last one."""
    at, found = file.find(b"fLaC") + 4, []
    while not file[at] & 0x80:
        at += 4 + int.from_bytes(file[at + 1 : at + 4], "big")
    at += 4 + int.from_bytes(file[at + 1 : at + 4], "big")
    while at >= 0 and at < len(file):
        found.append(at)
        at = file.find(file[found[0] : found[0] + 4] + bytes([len(found)]), at + 1)
    return found


def test_frames_that_are_longer_than_their_samples(folder):
    """No encoder writes them, but they are no damage: the bits of each sample in unary."""
    file = with_long_frames(noise(4096))
    (whole,) = decode(file, folder=folder)
    np.testing.assert_array_equal(whole, decoded(file, "int32").reshape(whole.shape))


def test_much_before_the_sound(folder):
    """As pictures, or padding here: the sound then begins behind what is read of a file first."""
    file = encoded(noise(100000), 16000, "FLAC").tobytes()
    padding = bytes([1]) + (9000).to_bytes(3, "big") + bytes(9000)
    file = np.frombuffer(file[:42] + padding + file[42:], "u1")
    (part,) = decode(file, behind=lambda x: fn.slice(x, start=[70000], shape=[50], axes=[0]), folder=folder)
    np.testing.assert_array_equal(part.ravel(), decoded(file, "int32")[70000:70050].ravel())


def test_damage_is_an_error_of_its_sample(folder):
    good = encoded(noise(20000), 16000, "FLAC")
    frames = _frames(good.tobytes())
    assert len(frames) == 4
    for name, damage, text in (
        ("a byte of a frame", lambda b: b.__setitem__(frames[2] + 500, b[frames[2] + 500] ^ 1), "8192 were decoded"),
        ("a frame's header", lambda b: b.__setitem__(frames[3] + 2, 0), "12288 were decoded"),
        ("half of the file", lambda b: b.__delitem__(slice(len(b) // 2, None)), "promises 20000 frames"),
        ("all frames", lambda b: b.__delitem__(slice(frames[0], None)), "0 were decoded"),
        ("within the metadata", lambda b: b.__delitem__(slice(50, None)), "ends before its first frame"),
    ):
        bad = bytearray(good.tobytes())
        damage(bad)
        bad = np.frombuffer(bytes(bad), "u1")
        with pytest.raises(RuntimeError, match=text):
            decode(bad, folder=folder)
        (out,) = decode(good, bad, on_error="skip", folder=folder)
        np.testing.assert_array_equal(out, decoded(good, "int32"), err_msg=name)


def test_a_header_that_promises_too_much(folder):
    bad = bytearray(encoded(noise(20), 16000, "FLAC").tobytes())
    bad[8 + 13] |= 15
    with pytest.raises(RuntimeError, match="the header promises 64424509460 frames, the file has"):
        decode(np.frombuffer(bytes(bad), "u1"), folder=folder)
