# SPDX-License-Identifier: Apache-2.0
"""MP3 files that do not tell their length: samples are PyAV's."""

import io

import numpy as np
import pytest
from sound_tracks import LAYOUTS

from optional_packages import Package, needs
from penstock import PipelineError, fn, pipeline_def

av = Package("av")
pytestmark = needs("av")


def mp3(x, rate, options=(), table="0"):
    """A file with the channels `x`; without a table that tells the number of frames unless `table` is "1"."""
    file = io.BytesIO()
    told = {"write_xing": table, "id3v2_version": "0", "write_id3v1": "0"}
    with av.open(file, "w", format="mp3", options=told) as out:
        stream = out.add_stream("libmp3lame", rate=rate, layout=LAYOUTS[len(x)], options=dict(options))
        frame = av.AudioFrame.from_ndarray(x, format="fltp", layout=LAYOUTS[len(x)])
        frame.sample_rate = rate
        parts = av.AudioFifo()
        parts.write(frame)
        size = stream.codec_context.frame_size or 1152
        while frame := parts.read(size) or parts.read():
            out.mux(stream.encode(frame))
        out.mux(stream.encode())
    return file.getvalue()


def signal(frames, channels=2, loud=(0.0, 1.0)):
    """Noise in the part `loud`, which takes many bits at a variable rate, and silence."""
    x = np.zeros((channels, frames), "f4")
    begin, end = (int(frames * part) for part in loud)
    x[:, begin:end] = np.random.default_rng(1).uniform(-0.5, 0.5, (channels, end - begin))
    return x


def by_av(data):
    with av.open(io.BytesIO(data), format="mp3") as file:
        return np.concatenate([frame.to_ndarray().T for frame in file.decode(audio=0)])


def decoded(data):
    @pipeline_def(batch_size=1, num_threads=1)
    def pipe():
        file = fn.external_source(lambda: [np.frombuffer(data, "u1")], batch=True)
        return fn.decoders.audio(file)[0], fn.peek_audio(file)[2]

    samples, frames = pipe().run()
    assert int(np.array(frames.at(0))) == len(samples.at(0))
    return np.array(samples.at(0))


ID3V1 = b"TAG" + bytes(125)
APE = b"APETAGEX" + (2000).to_bytes(4, "little") + (32).to_bytes(4, "little") + bytes(16) + bytes(32)
ID3V2 = b"ID3\3\0\0" + bytes([0, 0, 2, 0]) + bytes(256)

FILES = {
    "constant bit rate": ((signal(40000), 44100, {"b": "128k"}), b"", b""),
    "tags": ((signal(40000), 44100, {"b": "64k"}), ID3V2, APE + ID3V1),
    "zeros after the tag": ((signal(40000), 44100, {"b": "64k"}), ID3V2 + bytes(700), ID3V1),
    "mono": ((signal(40000, 1), 32000, {"b": "48k"}), b"", ID3V1),
    "variable, loud at first": ((signal(400000, loud=(0, 0.05)), 44100, {"q": "0"}), b"", b""),
    "variable, loud at last": ((signal(400000, loud=(0.9, 1)), 44100, {"q": "0"}), b"", ID3V1),
    "MPEG 2": ((signal(40000), 22050, {"q": "4"}), ID3V2, ID3V1),
    "MPEG 2.5": ((signal(40000, 1), 8000, {"q": "4"}), b"", ID3V1),
}


@pytest.mark.parametrize("name", FILES)
def test_all_frames_are_decoded(name):
    arguments, before, after = FILES[name]
    data = mp3(*arguments)
    expected, samples = by_av(data), decoded(before + data + after)
    assert samples.shape == expected.shape
    np.testing.assert_allclose(samples, expected, atol=2e-5)


@pytest.mark.parametrize("table, at", [(b"VBRI" + bytes(22), 36), (b"Xing" + bytes(4), 36)])
def test_a_first_frame_with_a_table_without_the_length_is_no_sound(table, at):
    data = mp3(signal(40000), 44100, {"b": "128k"})
    frame = data[:4] + bytes(at - 4) + table
    frame += bytes(144 * 128000 // 44100 + (data[2] >> 1 & 1) - len(frame))
    np.testing.assert_array_equal(decoded(frame + data), decoded(data))


def test_a_last_frame_that_is_cut_off_is_left_out():
    data = mp3(signal(40000), 44100, {"b": "128k"})
    whole = by_av(data)
    samples = decoded(data[:-100])
    assert len(samples) == len(whole) - 1152
    np.testing.assert_allclose(samples, whole[: len(samples)], atol=2e-5)


def test_other_bytes_between_frames_are_skipped():
    data = mp3(signal(40000), 44100, {"b": "128k"})
    half = len(data) // 2
    frame = data.index(data[:2], half)
    samples = decoded(data[:frame] + b"\1" * 500 + data[frame:])
    whole = by_av(data)
    assert len(whole) - 3 * 1152 <= len(samples) <= len(whole)
    np.testing.assert_allclose(samples[:15000], whole[:15000], atol=2e-5)


def test_a_file_that_tells_its_length_is_damaged_if_it_is_shorter():
    data = mp3(signal(40000), 44100, {"b": "128k"}, table="1")
    assert len(decoded(data)) == 40000
    with pytest.raises(PipelineError, match="damaged or truncated"):
        decoded(data[: len(data) // 2])
