# SPDX-License-Identifier: Apache-2.0
"""readers.nemo_asr: manifest entries, parts of recordings, and invalid lines."""

import json
import struct
import warnings
import wave
from pathlib import Path

import numpy as np
import pytest

from penstock import fn, pipeline_def, types

RATES = {"a.wav": 16000, "b.wav": 8000, "stereo.wav": 16000}


def sound(name):
    """(frames, channels) of int16."""
    rng = np.random.default_rng(sum(name.encode()))
    return rng.integers(-9000, 9000, (RATES[name], 2 if name == "stereo.wav" else 1), "i2")


@pytest.fixture
def folder(tmp_path):
    for name, rate in RATES.items():
        x = sound(name)
        with wave.open(str(tmp_path / name), "wb") as f:
            f.setparams((x.shape[1], 2, rate, 0, "NONE", ""))
            f.writeframes(x.tobytes())
    return tmp_path


def manifest(folder, lines, name="train.json"):
    """Writes a manifest of entries or raw lines. Paths are relative to the folder."""
    text = []
    for line in lines:
        if isinstance(line, dict):
            line = json.dumps({"audio_filepath": str(folder / line.get("file", "a.wav")), **line}, ensure_ascii=False)
        text.append(line)
    (folder / name).write_bytes("\n".join(text).encode("utf-8", "surrogatepass"))
    return str(folder / name)


def build(paths, batch_size=1, on_error="raise", **kwargs):
    @pipeline_def(batch_size=batch_size, num_threads=2, on_error=on_error)
    def pipe():
        outputs = fn.readers.nemo_asr(
            name="r", manifest_filepaths=[paths] if isinstance(paths, str) else paths, **kwargs
        )
        return tuple(outputs) if isinstance(outputs, list) else outputs

    return pipe()


def read(paths, **kwargs):
    pipe = build(paths, **kwargs)
    return [tuple(np.array(x.at(0)) for x in pipe.run()) for _ in range(pipe.epoch_size("r"))]


def texts(paths, **kwargs):
    return [bytes(text).decode() for _, _, text in read(paths, **kwargs)]


def mono(name):
    return (sound(name).astype("f4") / 32768).mean(axis=1, dtype="f4")


def test_outputs(folder):
    path = manifest(folder, [{"text": 'hällo "x"\n€', "duration": 1.0}, {"file": "b.wav"}, {"file": "stereo.wav"}])
    got = read(path, read_idxs=True)
    for i, (name, text) in enumerate((("a.wav", 'hällo "x"\n€'), ("b.wav", ""), ("stereo.wav", ""))):
        x, rate, said, number = got[i]
        np.testing.assert_allclose(x, mono(name), atol=1e-7)
        assert (rate.shape, rate.dtype, float(rate)) == ((), np.float32, RATES[name])
        assert (said.dtype, bytes(said).decode()) == (np.uint8, text)
        assert (number.dtype, number.tolist()) == (np.int64, [i])
    assert [len(o) for o in read(path, read_text=False, read_sample_rate=False)] == [1, 1, 1]
    pipe = build(path, read_text=False, read_sample_rate=False)
    assert isinstance(pipe.run(), tuple) and pipe.run()[0].layout() == ""


def test_channels_and_types(folder):
    path = manifest(folder, [{"file": "stereo.wav"}])
    assert (read(path, downmix=False, dtype=types.INT16)[0][0] == sound("stereo.wav")).all()
    assert (read(path, downmix=False, dtype=types.INT32)[0][0] == sound("stereo.wav").astype("i4") * 65536).all()
    assert read(manifest(folder, [{}]), downmix=False)[0][0].shape == (16000, 1)
    with pytest.raises(ValueError, match="dtype=UINT8 is not supported; supported: INT16, INT32, FLOAT"):
        build(path, dtype=types.UINT8)


@pytest.mark.parametrize(
    "part, begin, end",
    [
        ({"duration": 0.3}, 0, 4800),
        ({"offset": 0.25, "duration": 0.5}, 4000, 12000),
        ({"offset": 0.25}, 4000, 16000),
        ({"offset": 0.75, "duration": 0.5}, 12000, 16000),
        ({"duration": 3}, 0, 16000),
        ({"duration": -1, "offset": -0.5}, 0, 16000),
        ({"offset": 0.10003, "duration": 0.20004}, 1600, 4800),
        ({"duration": 2.5e-1}, 0, 4000),
    ],
)
def test_parts(folder, part, begin, end):
    path = manifest(folder, [part])
    np.testing.assert_array_equal(read(path)[0][0], mono("a.wav")[begin:end])
    # A part is resampled without its surroundings.
    got, rate, _ = read(path, sample_rate=11025.0, quality=20.0)[0]

    @pipeline_def(batch_size=1)
    def resampled():
        x = types.Constant(mono("a.wav")[begin:end])
        return fn.audio_resample(x, in_rate=16000.0, out_rate=11025.0, quality=20.0)

    np.testing.assert_array_equal(got, resampled().run()[0].at(0))
    assert float(rate) == 16000  # that of the recording, as DALI has it


def test_durations(folder):
    path = manifest(folder, [{"text": str(d), "duration": d} for d in (0.25, 0.5, 1.0)] + [{"text": "none"}])
    assert texts(path, min_duration=0.5) == ["0.5", "1.0"]
    assert texts(path, max_duration=0.5) == ["0.25", "0.5", "none"]
    assert texts(path, min_duration=0.3, max_duration=0.7) == ["0.5"]
    assert [int(x[3][0]) for x in read(path, min_duration=0.5, read_idxs=True)] == [0, 1]
    with pytest.raises(ValueError, match="no entries in 1 manifests.*; 4 have another duration than min_duration=5"):
        build(path, min_duration=5.0).build()


def test_several_manifests_shards_and_shuffles(folder):
    paths = [manifest(folder, [{"text": f"{k}{i}"} for i in range(4)], f"{k}.json") for k in "xy"]
    everything = [f"{k}{i}" for k in "xy" for i in range(4)]
    assert texts(paths) == everything
    assert sum((texts(paths, num_shards=3, shard_id=i)[: 2 + (i > 0)] for i in range(3)), []) == everything
    shuffled = texts(paths, random_shuffle=True, seed=3)
    assert sorted(shuffled) == everything != shuffled
    assert sorted(texts(paths, shuffle_after_epoch=True)) == everything


def test_relative_paths(folder, monkeypatch):
    path = manifest(folder, ['{"audio_filepath": "b.wav"}'])
    assert len(read(path)[0][0]) == 8000  # beside the manifest
    monkeypatch.chdir(folder)
    (folder / "other").mkdir()
    assert len(read(manifest(folder, ['{"audio_filepath": "b.wav"}'], "other/m.json"))[0][0]) == 8000  # here


BAD = {
    '{"audio_filepath": ': "line 2: byte 19, in audio_filepath: a text in quotation marks is expected",
    "[1, 2]": "line 2: byte 0: an object, '{', is expected",
    '{"text": "x"}': "line 2: it has no 'audio_filepath'",
    '{"audio_filepath": 5}': "in audio_filepath: a text in quotation marks",
    '{"audio_filepath": "a", "text": 5}': "in text: a text in quotation marks",
    '{"audio_filepath": "a", "duration": "1.0"}': "in duration: a number is expected",
    '{"audio_filepath": "a\\u0000b"}': "has a zero in it",
    '{"audio_filepath": "a", "x": ' + "[" * 2000: "in x",
    '{"audio_filepath": "a", "text": "never ends': "the file ends within a text",
}


@pytest.mark.parametrize("line", BAD, ids=range(len(BAD)))
def test_lines_that_are_no_entries(folder, line):
    path = manifest(folder, [{"text": "1"}, line, "", "  \r", {"text": "2"}])
    with pytest.warns(UserWarning, match="lines that are not valid entries are left out") as warned:
        assert texts(path) == ["1", "2"]
    assert BAD[line] in str(warned[0].message)


def test_odd_lines(folder):
    entry = json.dumps({"audio_filepath": str(folder / "a.wav"), "text": "x"})
    odd = [
        entry + "\r",
        entry[:-1] + ', "lang": {"a": [1, {"b": null}]}, "ok": true, "text": "y"}',  # the last of two keys counts
        entry + " and what follows",
        "\ufeff" + entry,
    ]
    assert texts(manifest(folder, odd)) == ["x", "y", "x", "x"]


def test_no_entries(folder):
    with pytest.raises(ValueError, match="there are no entries in 1 manifests, the first of which is .*train.json"):
        build(manifest(folder, ["", " "])).build()
    with pytest.raises(ValueError, match="'manifest_filepaths' is an empty list"):
        build([])
    with pytest.raises(ValueError, match="nowhere.json"):
        build(str(folder / "nowhere.json")).build()


def test_recordings_that_cannot_be_read(folder):
    (folder / "broken.wav").write_bytes(b"RIFF\x08\x00\x00\x00WAVEjunk")
    for bad, text in (
        ({"file": "missing.wav"}, "missing.wav"),
        ({"file": "broken.wav"}, "broken.wav, entry 1"),
        ({"offset": 1.5, "duration": 1}, "the entry begins at 1.5 s, but the recording has 1 s"),
    ):
        path = manifest(folder, [{"text": "1"}, bad, {"text": "3"}])
        with pytest.raises(RuntimeError, match=text):
            build(path, batch_size=3).run()
        assert bytes(build(path, batch_size=3, on_error="skip").run()[2].at(1)) == b"3"


def bytes_read():
    """Bytes read by this process so far."""
    return int(Path("/proc/self/io").read_text().split("rchar: ")[1].split()[0])


@pytest.mark.parametrize("more", [{}, {"sample_rate": 4000.0}], ids=["as it is", "resampled"])
def test_of_a_long_recording_only_the_parts_are_read(folder, more):
    """A sparse file of more than 2^31 samples."""
    rate, size, x = 8000, 2**31 + 90000, np.random.default_rng(0).integers(0, 256, 4000, "u1")
    header = b"RIFF\xff\xff\xff\xffWAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, rate, rate, 1, 8)
    header += b"data" + struct.pack("<I", size)
    with open(folder / "long.wav", "wb") as f:
        f.write(header)
        f.seek(len(header) + 2**31 + 8000)
        f.write(x.tobytes())
        f.truncate(len(header) + size)
    begin = (2**31 + 8000) / rate
    parts = [{"offset": begin + k / 8, "duration": 0.125} for k in range(4)] + [{"duration": 0.5}]
    path = manifest(folder, [{"file": "long.wav", **part} for part in parts])
    before = bytes_read()
    *found, silence = [sound for sound, _, _ in read(path, **more)]
    assert bytes_read() - before < 8 << 20
    expected = (x.astype("f4") - 128) / 128
    if more:
        assert [len(sound) for sound in (*found, silence)] == [500] * 4 + [2000]
    else:
        np.testing.assert_array_equal(np.concatenate(found), expected)
        np.testing.assert_array_equal(silence, np.full(4000, -1, "f4"))


def test_parts_of_files_whose_beginning_does_not_say_where_the_samples_are(folder):
    """A text chunk before the samples that is longer than the first read of a file, and other formats."""
    wav = (folder / "a.wav").read_bytes()
    for extra in (4, 4000, 4048, 4052, 4060, 9000):
        note = b"LIST" + struct.pack("<I", extra) + bytes(extra)
        (folder / "noted.wav").write_bytes(wav[:36] + note + wav[36:])
        parts = [{"file": "noted.wav", "offset": 0.25, "duration": 0.5}, {"file": "noted.wav", "duration": 0.25}]
        first, second = (sound for sound, _, _ in read(manifest(folder, parts)))
        np.testing.assert_array_equal(first, mono("a.wav")[4000:12000])
        np.testing.assert_array_equal(second, mono("a.wav")[:4000])
    (folder / "empty.wav").write_bytes(b"")
    (folder / "cut.wav").write_bytes(wav[:40])
    for name, text in (("empty.wav", "the file is empty"), ("cut.wav", "has no chunk of samples")):
        with pytest.raises(RuntimeError, match=text):
            build(manifest(folder, [{"file": name, "offset": 0.25}])).run()


def test_damaged_manifests_never_crash(folder):
    whole = Path(manifest(folder, [{"text": 'ä\\u00e4"', "duration": 0.5, "offset": 1e-3, "x": [1, {}]}] * 3))
    good, rng = whole.read_bytes(), np.random.default_rng(0)
    for _ in range(300):
        bad = bytearray(good)
        for at in rng.integers(0, len(bad), rng.integers(1, 6)):
            bad[at] = rng.choice([rng.integers(0, 256), *b'"{}[]\\,:\n0e'])
        whole.write_bytes(bytes(bad[: rng.integers(1, len(bad))] if rng.random() < 0.3 else bad))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                build(str(whole)).run()
            except (RuntimeError, ValueError) as e:
                assert any(t in str(e) for t in ("no entries", "can't be read", "No such file", "begins at", ".wav"))
