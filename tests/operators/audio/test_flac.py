# SPDX-License-Identifier: Apache-2.0
"""FLAC, which is decoded natively, compared with libsndfile: all frame encodings, ranges, damage."""

import io

import numpy as np
import pytest
from sound_files import decoded, encoded, noise

from optional_packages import needs
from penstock import fn, pipeline_def, types

pytestmark = needs("soundfile")


def decode(*files, behind=lambda x: x, dtype=types.INT32, **kwargs):
    @pipeline_def(batch_size=len(files), num_threads=2, **kwargs)
    def pipe():
        return behind(fn.decoders.audio(fn.external_source(source=lambda i: list(files)), dtype=dtype)[0])

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
    "an impulse": np.eye(9000)[:, :2],
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


def test_parts_begin_anywhere():
    """Also in the first, the last and the shortest frame."""
    long, _ = by_ffmpeg(noise(100001, 2))
    for file in (long, encoded(noise(100001, 2), 44100, "FLAC"), encoded(noise(3000), 44100, "FLAC")):
        (whole,) = decode(file)
        n = len(whole)
        starts = np.random.default_rng(0).integers(0, n - 100, 30).tolist() + [0, 1, 1151, 1152, 4095, n - 100]
        for start in (s for s in starts if s <= n - 100):
            (part,) = decode(file, behind=lambda x, s=start: fn.slice(x, start=[s], shape=[100], axes=[0]))
            np.testing.assert_array_equal(part, whole[start : start + 100])


def test_parts_of_files_whose_frames_misstate_their_place():
    """As in excerpts of a broadcast: the first frame's number is not 0."""
    file = encoded(noise(50000), 16000, "FLAC").tobytes()
    frames = _frames(file)
    cut = np.frombuffer(file[: frames[0]] + file[frames[2] :], "u1")
    (whole,) = decode(np.frombuffer(file, "u1"))
    (part,) = decode(cut, behind=lambda x: fn.slice(x, start=[20000], shape=[50], axes=[0]))
    np.testing.assert_array_equal(part, whole[20000 + 8192 : 20050 + 8192])


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


def test_damage_is_an_error_of_its_sample():
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
            decode(bad)
        (out,) = decode(good, bad, on_error="skip")
        np.testing.assert_array_equal(out, decoded(good, "int32"), err_msg=name)


def test_a_header_that_promises_too_much():
    bad = bytearray(encoded(noise(20), 16000, "FLAC").tobytes())
    bad[8 + 13] |= 15
    with pytest.raises(RuntimeError, match="the header promises 64424509460 frames, the file has"):
        decode(np.frombuffer(bytes(bad), "u1"))
