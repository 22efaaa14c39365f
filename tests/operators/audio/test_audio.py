# SPDX-License-Identifier: Apache-2.0
"""decoders.audio: WAV against formulas, other formats against python-soundfile."""

import io
import wave

import numpy as np
import pytest
from sound_files import chunk, decoded, encoded, noise, pcm, wav

from penstock import fn, pipeline_def, types

TYPES = {"float32": types.FLOAT, "int16": types.INT16, "int32": types.INT32}


def decode(*files, behind=lambda x: x, threads=2, on_error="raise", **kwargs):
    @pipeline_def(batch_size=len(files), num_threads=threads, on_error=on_error)
    def pipe():
        samples, rate = fn.decoders.audio(fn.external_source(source=lambda i: list(files)), **kwargs)
        return behind(samples), rate

    samples, rate = pipe().run()
    return [np.array(samples.at(i)) for i in range(len(samples))], [float(rate.at(i)) for i in range(len(rate))]


def shifted(whole, bits, dtype):
    """Converts integers of `bits` bits to the type."""
    if dtype == "float32":
        return (whole / 2 ** (bits - 1)).astype("f4")
    to = np.dtype(dtype).itemsize * 8
    return (whole << (to - bits) if to > bits else whole >> (bits - to)).astype(dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("bits", [8, 16, 24, 32])
@pytest.mark.parametrize("channels", [1, 2, 7])
def test_pcm(bits, channels, dtype):
    whole, data = pcm(noise(1001, channels), bits)
    for extensible in (False, True):
        (out,), (rate,) = decode(wav(data, channels, 44100, bits, extensible=extensible), dtype=TYPES[dtype])
        np.testing.assert_array_equal(out, shifted(whole, bits, dtype))
        assert out.dtype == dtype and rate == 44100


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("bits", [32, 64])
def test_real_numbers(bits, dtype):
    x = np.array([[0.5], [1.5], [-3], [np.nan], [0.25], [-1]]).astype(f"f{bits // 8}")
    (out,), _ = decode(wav(x.tobytes(), bits=bits, code=3), dtype=TYPES[dtype])
    if dtype == "float32":
        return np.testing.assert_array_equal(out, x.astype("f4"))
    most, least = np.iinfo(dtype).max, np.iinfo(dtype).min
    expected = [most / 2, most, least, 0, most / 4, -most]
    np.testing.assert_allclose(out[:, 0], expected, atol=1)


def test_companded():
    """ITU-T G.711: sign, three bits of exponent, four of mantissa."""
    codes = np.arange(256, dtype="u1")
    for code, flip in ((6, 0x55), (7, 0xFF)):
        bits = codes.astype(int) ^ flip
        exponent, mantissa = bits >> 4 & 7, bits & 15
        if code == 6:
            magnitude = np.where(exponent > 0, (2 * mantissa + 33) << np.maximum(exponent - 1, 0), 2 * mantissa + 1) * 8
            sign = np.where(bits & 0x80, 1, -1)
        else:
            magnitude = (((2 * mantissa + 33) << exponent) - 33) * 4
            sign = np.where(bits & 0x80, -1, 1)
        (out,), _ = decode(wav(codes.tobytes(), bits=8, code=code), dtype=types.INT16)
        np.testing.assert_array_equal(out[:, 0], sign * magnitude)
        (out,), _ = decode(wav(codes.tobytes(), bits=8, code=code))
        np.testing.assert_array_equal(out[:, 0], (sign * magnitude / 32768).astype("f4"))


def test_chunks_of_a_broadcast_and_of_long_files():
    whole, data = pcm(noise(100, 2), 16)
    before = chunk(b"bext", b"\1" * 603) + chunk(b"LIST", b"INFO")
    for file in (
        wav(data, 2, before=before),
        wav(data, 2, riff=b"RF64"),
        wav(data, 2, length=0xFFFFFFFF),  # written to a pipe
        wav(data, 2, length=len(data) + 50),
        np.concatenate([wav(data, 2), np.frombuffer(chunk(b"id3 ", b"x" * 33), "u1")]),
    ):
        (out,), _ = decode(file, dtype=types.INT16)
        np.testing.assert_array_equal(out[:100], whole)


def test_files_of_the_standard_library():
    whole, data = pcm(noise(50, 2), 16)
    file = io.BytesIO()
    with wave.open(file, "wb") as f:
        f.setparams((2, 2, 8000, 0, "NONE", ""))
        f.writeframes(data)
    (out,), (rate,) = decode(np.frombuffer(file.getvalue(), "u1"), dtype=types.INT16)
    np.testing.assert_array_equal(out, whole)
    assert rate == 8000


FORMATS = [
    ("FLAC", "PCM_16", ("float32", "int16", "int32")),
    ("FLAC", "PCM_24", ("float32", "int32")),
    ("FLAC", "PCM_S8", ("int16",)),
    ("AIFF", "PCM_16", ("float32", "int16")),
    ("W64", "PCM_16", ("int16",)),
    ("WAV", "IMA_ADPCM", ("float32", "int16")),
]
LOSSY = [("OGG", "VORBIS"), ("OGG", "OPUS"), ("MP3", "MPEG_LAYER_III")]


@pytest.mark.parametrize("fmt, subtype, dtypes", FORMATS)
@pytest.mark.parametrize("channels", [1, 2])
def test_lossless_formats_to_the_bit(fmt, subtype, dtypes, channels):
    pytest.importorskip("soundfile")
    file = encoded(noise(20001, channels), 16000, fmt, subtype)
    for dtype in dtypes:
        (out,), (rate,) = decode(file, dtype=TYPES[dtype])
        np.testing.assert_array_equal(out, decoded(file, dtype))
        assert out.dtype == dtype and rate == 16000


@pytest.mark.parametrize("fmt, subtype", LOSSY)
@pytest.mark.parametrize("channels", [1, 2])
def test_lossy_formats(fmt, subtype, channels):
    """Versions of the codecs differ in rounding."""
    pytest.importorskip("soundfile")
    rate = 48000 if subtype == "OPUS" else 44100
    file = encoded(noise(30001, channels), rate, fmt, subtype)
    (out,), (got,) = decode(file)
    expected = decoded(file, "float32")
    assert out.shape == expected.shape and got == rate
    np.testing.assert_allclose(out, expected, atol=1e-4)
    (whole,), _ = decode(file, dtype=types.INT16)
    np.testing.assert_allclose(
        whole, np.clip(expected * 32767, -32768, 32767), atol=0.51 if subtype != "MPEG_LAYER_III" else 3.5
    )


@pytest.mark.parametrize("channels", [1, 2, 5])
@pytest.mark.parametrize("fmt", ["WAV", "FLAC"])
def test_downmix(channels, fmt):
    pytest.importorskip("soundfile")
    file = encoded(noise(9001, channels), 16000, fmt, "PCM_16")
    x = decoded(file, "float32").astype("f8").mean(axis=1)
    (out,), _ = decode(file, downmix=True)
    np.testing.assert_allclose(out, x, atol=1e-6)
    (out,), _ = decode(file, downmix=True, dtype=types.INT16)
    assert out.dtype == np.int16
    np.testing.assert_allclose(out, x * (32768 if channels == 1 else 32767), atol=0.51)


@pytest.mark.parametrize("kwargs", [{}, {"downmix": True}, {"quality": 10.0}, {"dtype": types.INT16}])
def test_resampling_is_that_of_audio_resample(kwargs):
    _, data = pcm(noise(5003, 2), 16)
    file = wav(data, 2)
    dtype = kwargs.get("dtype", types.FLOAT)
    (out,), (rate,) = decode(file, sample_rate=22050.0, **kwargs)
    rest = {k: v for k, v in kwargs.items() if k in ("quality", "dtype")}

    def resample(x):
        return fn.audio_resample(x, in_rate=16000.0, out_rate=22050.0, **rest)

    (expected,), _ = decode(file, behind=resample, downmix=kwargs.get("downmix", False))
    assert rate == 22050 and out.dtype == np.dtype(types.to_numpy_type(dtype))
    np.testing.assert_allclose(out, expected, rtol=0, atol=dtype == types.INT16)


def test_rates_may_differ_from_sample_to_sample():
    _, data = pcm(noise(1000), 16)

    @pipeline_def(batch_size=3, num_threads=2)
    def pipe():
        rates = fn.external_source(source=lambda i: [np.float32(r) for r in (0, 8000, 16000)])
        return fn.decoders.audio(fn.external_source(source=lambda i: [wav(data)] * 3), sample_rate=rates)

    samples, rate = pipe().run()
    assert [samples.at(i).shape for i in range(3)] == [(1000, 1), (500, 1), (1000, 1)]
    assert [float(rate.at(i)) for i in range(3)] == [0, 8000, 16000]


def sounds():
    yield "wav", wav(pcm(noise(40000, 2), 16)[1], 2)
    yield "wav24", wav(pcm(noise(40000, 3), 24)[1], 3, bits=24)
    pytest.importorskip("soundfile")
    yield "flac", encoded(noise(40000, 2), 16000, "FLAC")
    yield "vorbis", encoded(noise(40000, 2), 16000, "OGG")
    yield "mp3", encoded(noise(40000, 2), 16000, "MP3")


@pytest.mark.parametrize("kwargs", [{}, {"sample_rate": 22050.0}, {"dtype": types.INT16}, {"downmix": True}])
@pytest.mark.parametrize("first, n", [(0, 7), (12345, 5000), (39990, 10), (300, 0), (255, 257)])
def test_a_slice_behind_decodes_the_same_samples(first, n, kwargs):
    for name, file in sounds():
        (whole,), _ = decode(file, **kwargs)
        (part,), _ = decode(file, behind=lambda x: fn.slice(x, start=[first], shape=[n], axes=[0]), **kwargs)
        np.testing.assert_array_equal(part, whole[first : first + n], err_msg=name)


def test_a_slice_of_channels():
    for name, file in sounds():
        (whole,), _ = decode(file)
        (part,), _ = decode(file, behind=lambda x: fn.slice(x, start=[1000, 1], shape=[50, 1], axes=[0, 1]))
        np.testing.assert_array_equal(part, whole[1000:1050, 1:2], err_msg=name)


def test_odd_sounds():
    for frames in (0, 1):
        (out,), (rate,) = decode(wav(pcm(noise(frames), 16)[1], rate=192000))
        assert out.shape == (frames, 1) and rate == 192000
        (out,), _ = decode(wav(pcm(noise(frames, 32), 16)[1], 32), sample_rate=8000.0)
        assert out.shape == (frames, 32)
        (out,), _ = decode(wav(pcm(noise(frames, 32), 16)[1], 32), downmix=True)
        assert out.shape == (frames,)


def test_threads_and_batches_give_the_same():
    files = [f for _, f in sounds()]
    together, _ = decode(*files, threads=3, sample_rate=11025.0)
    for file, expected in zip(files, together):
        np.testing.assert_array_equal(decode(file, threads=1, sample_rate=11025.0)[0][0], expected)


@pytest.mark.parametrize(
    "file, text",
    [
        (b"", "not a sound that can be read"),
        (
            bytes(100),
            r'not a sound that can be read \(WAV, FLAC.*\): 100 bytes that begin with 00 .*\("............"\)',
        ),
        (b"<html><body>404 Not Found</body></html>", r'39 bytes .*\("<html><body>"\), a web page'),
        (b"RIFF\x04\0\0\0WAVE", "the WAV file of 12 bytes has no chunk of samples"),
        (b"RIFF\x04\0\0\0WAVEdata\x04\0\0\0abcd", "before the chunk that says what they are"),
        (wav(b"abcd", channels=0).tobytes(), "0 channels"),
        (wav(b"abcd", rate=0).tobytes(), "sampling rate of 0 Hz"),
        (wav(b"abcd").tobytes()[:30], "the format chunk of the WAV file has 10 bytes"),
    ],
)
def test_what_is_no_sound(file, text):
    with pytest.raises(RuntimeError, match=text):
        decode(np.frombuffer(file, "u1"))


def test_a_truncated_file_is_an_error_of_its_sample():
    pytest.importorskip("soundfile")
    good = encoded(noise(20000), 16000, "FLAC")
    with pytest.raises(RuntimeError, match="damaged or truncated: its header promises 20000 frames"):
        decode(good[: len(good) // 2])
    (out,), _ = decode(good, good[: len(good) // 2], on_error="skip")
    assert out.shape == (20000, 1)


def test_arguments():
    file = wav(pcm(noise(10), 16)[1])
    with pytest.raises(ValueError, match="dtype=UINT8 is not supported; supported: INT16, INT32, FLOAT"):
        decode(file, dtype=types.UINT8)
    with pytest.raises(ValueError, match="quality takes a number from 0 to 100"):
        decode(file, quality=200.0)
    with pytest.raises(RuntimeError, match="would give"):
        decode(file, sample_rate=1e20)
    with pytest.raises(RuntimeError, match="array of bytes"):
        decode(file[None])
