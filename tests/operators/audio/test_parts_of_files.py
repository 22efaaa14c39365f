# SPDX-License-Identifier: Apache-2.0
"""Only the required part of long WAV and FLAC files is read; the decoder itself reads those in the system's cache; the
samples are the same as from whole files."""

import os
import resource
import wave

import numpy as np
import pytest
from sound_files import noise, pcm, wav

from penstock import fn, pipeline_def

RATE, SECONDS = 16000, 60


def bytes_read():
    """Bytes read from files by all threads of this process."""
    with open("/proc/self/io") as f:
        return int(f.readline().split()[1])


def write(path, frames, channels=1):
    sound = np.random.default_rng(len(str(path))).integers(-30000, 30000, (frames, channels)).astype("<i2")
    with wave.open(str(path), "wb") as f:
        f.setparams((channels, 2, RATE, 0, "NONE", ""))
        f.writeframes(sound)
    return sound


@pytest.fixture
def files(tmp_path):
    """Some long, one short, one with two channels."""
    lengths = [(SECONDS * RATE, 1), (RATE, 1), (SECONDS * RATE + 7, 2), (SECONDS * RATE - 1, 1)]
    paths = [tmp_path / f"{i}.wav" for i in range(len(lengths))]
    return paths, [write(p, *n) for p, n in zip(paths, lengths)]


def cut(sound, first, n):
    return fn.slice(sound, start=[first], shape=[n], axes=[0])


def run(paths, define, threads=2, **kwargs):
    @pipeline_def(batch_size=len(paths), num_threads=threads, device_id=None, **kwargs)
    def pipe():
        encoded, _ = fn.readers.file(files=[str(p) for p in paths], name="reader")
        return define(encoded)

    return pipe()


@pytest.mark.parametrize("first, n", [(0, 100), (8000, 8000), (15999, 1), (0, RATE)])
@pytest.mark.parametrize("threads", [1, 3])
def test_samples_are_those_of_whole_files(files, first, n, threads):
    paths, sounds = files

    def define(encoded):
        sound, rate = fn.decoders.audio(encoded)
        return cut(sound, first, n), rate

    got, rate = run(paths, define, threads).run()
    for i, sound in enumerate(sounds):
        np.testing.assert_array_equal(got.at(i), sound[first : first + n].astype("f4") / 32768)
        assert rate.at(i) == RATE
        assert got[i].source_info() == str(paths[i])


@pytest.mark.parametrize(
    "more", [{"downmix": True}, {"sample_rate": 8000.0}, {"sample_rate": 22050.0, "downmix": True}]
)
def test_the_same_mixed_and_resampled(files, more):
    paths, _ = files
    (got,) = run(paths, lambda x: cut(fn.decoders.audio(x, **more)[0], 3000, 900)).run()
    (want,) = run(paths, lambda x: fn.decoders.audio(x, **more)[0]).run()
    for i in range(len(paths)):
        np.testing.assert_array_equal(got.at(i), want.at(i)[3000:3900])


@pytest.mark.parametrize("kind", ["wav", "flac"])
def test_little_is_read(tmp_path, kind):
    paths = [tmp_path / f"{i}.{kind}" for i in range(8)]
    for p in paths:
        sound = write(p, SECONDS * RATE)
        if kind == "flac":
            pytest.importorskip("soundfile").write(p, sound, RATE, format="FLAC")
    parts = run(paths, lambda x: cut(fn.decoders.audio(x)[0], 40 * RATE, RATE), prefetch_queue_depth=1)
    whole = run(paths, lambda x: fn.decoders.audio(x)[0], prefetch_queue_depth=1)
    used = []
    for pipe in (parts, whole):
        pipe.build()
        before = bytes_read()
        pipe.run()
        used.append(bytes_read() - before)
    # More than a second of each in three batches, and where it is.
    assert used[0] < len(paths) * (6 if kind == "wav" else 18) * 2 * RATE
    assert used[1] > len(paths) * SECONDS * 2 * RATE * 0.9


@pytest.mark.parametrize(
    "define",
    [
        lambda x: (cut(fn.decoders.audio(x)[0], 0, 100), x),  # an output
        lambda x: (cut(fn.decoders.audio(x)[0], 0, 100), fn.reductions.sum(x)),
        lambda x: (cut(fn.decoders.audio(x)[0], 0, 100), x[-8:]),
    ],
)
def test_who_else_takes_the_bytes_gets_all(files, define):
    paths, sounds = files
    got, other = run(paths, define).run()
    contents = [np.fromfile(p, "u1") for p in paths]
    for i, (sound, content) in enumerate(zip(sounds, contents)):
        np.testing.assert_array_equal(got.at(i), sound[:100].astype("f4") / 32768)
        x = other.at(i)
        if x.size == 8:
            np.testing.assert_array_equal(x, content[-8:])
        elif x.size > 1:
            np.testing.assert_array_equal(x, content)
        else:
            assert int(x) == int(content.sum(dtype="u8"))


def test_bad_files_are_errors_of_their_samples(files, tmp_path):
    paths, sounds = files
    bad = [tmp_path / f"bad{i}.wav" for i in range(4)]
    content = paths[0].read_bytes()
    bad[0].write_bytes(b"")
    bad[1].write_bytes(b"RIFF" + b"\0" * 400000)
    bad[2].write_bytes(content[:22] + b"\xff\xff" + content[24:])  # channels
    bad[3].write_bytes(content[: len(content) // 2])  # truncated: has the existing samples
    mixed = [paths[0], *bad[:3], tmp_path / "missing.wav"]
    pipe = run(mixed, lambda x: cut(fn.decoders.audio(x)[0], 5, 50), on_error="skip")
    (got,) = pipe.run()
    assert len(got) == 1
    np.testing.assert_array_equal(got.at(0), sounds[0][5:55].astype("f4") / 32768)
    (got,) = run([bad[3]], lambda x: cut(fn.decoders.audio(x)[0], 5, 50)).run()
    np.testing.assert_array_equal(got.at(0), sounds[0][5:55].astype("f4") / 32768)
    for path, text in zip(bad[:3], ("the file is empty", "bad1.wav", "has 65535 channels")):
        with pytest.raises(RuntimeError, match=text):
            run([path], lambda x: cut(fn.decoders.audio(x)[0], 5, 50)).run()


@pytest.mark.parametrize("kind", ["wav", "flac"])
def test_a_file_that_is_cut_short_before_it_is_decoded(tmp_path, kind):
    paths = [tmp_path / f"a.{kind}"]
    sound = write(paths[0], SECONDS * RATE)
    if kind == "flac":
        pytest.importorskip("soundfile").write(paths[0], sound, RATE, format="FLAC")

    @pipeline_def(batch_size=1, num_threads=1, device_id=None, prefetch_queue_depth=1)
    def pipe():
        encoded, label = fn.readers.file(files=[str(paths[0])])
        sound, _ = fn.decoders.audio(encoded)
        return cut(sound, fn.python_function(label, function=shorten) * 0 + 50 * RATE, 100)

    def shorten(label):  # once the header was read
        os.truncate(paths[0], 1000000)
        return label

    with pytest.raises(RuntimeError, match="cut short while it was read"):
        pipe().run()


def is_cached(path):
    """Whether its last byte is in the system's cache; skips the test if this is unknown."""
    with open(path, "rb") as f:
        try:
            return os.preadv(f.fileno(), [bytearray(1)], os.path.getsize(path) - 1, os.RWF_NOWAIT) == 1
        except BlockingIOError:
            return False
        except (AttributeError, OSError):
            pytest.skip("neither the system nor its file system tells what is in the cache")


@pytest.mark.parametrize("is_there", [True, False])
def test_short_files_are_read_ahead_unless_they_are_in_the_cache(tmp_path, is_there):
    path = tmp_path / "a.wav"
    sound = write(path, RATE)
    with open(path, "rb+") as f:
        os.fsync(f.fileno())
        if not is_there:
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    if is_cached(path) != is_there:
        pytest.skip("the system keeps other files in its cache than it was asked to")

    @pipeline_def(batch_size=1, num_threads=1, device_id=None, prefetch_queue_depth=1)
    def pipe():
        encoded, label = fn.readers.file(files=[str(path)])
        rate = fn.python_function(label, function=shorten) * 0.0 + float(RATE)
        return fn.decoders.audio(encoded, sample_rate=rate)[0]

    def shorten(label):  # once the reader has read what it reads
        os.truncate(path, 10000)
        return label.astype("f4").reshape(())

    if is_there:
        with pytest.raises(RuntimeError, match="cut short while it was read"):
            pipe().run()
    else:
        np.testing.assert_array_equal(pipe().run()[0].at(0), sound.astype("f4") / 32768)


@pytest.mark.parametrize("frames", [0, 1, 2000, 5000])
def test_whole_files_of_each_kind(tmp_path, frames):
    """Files that the decoder reads, and those that it does not: short ones, and other formats than WAV."""
    x = noise(frames, 2)
    contents = [wav(pcm(x, b)[1], 2, bits=b) for b in (8, 16, 24, 32)]
    contents += [wav(x.astype("<f4").tobytes(), 2, bits=32, code=3), wav(bytes(range(100)) * frames, bits=8, code=7)]
    contents += [wav(pcm(x, 16)[1], 2, riff=b"RF64"), wav(pcm(x, 16)[1], 2, length=10**6)]
    paths = [tmp_path / f"{i}.wav" for i in range(len(contents))]
    for p, content in zip(paths, contents):
        content.tofile(p)

    @pipeline_def(batch_size=len(paths), num_threads=2, device_id=None)
    def pipe():
        read = fn.decoders.audio(fn.readers.file(files=[str(p) for p in paths])[0])
        return *read, *fn.decoders.audio(fn.external_source(lambda: contents))

    got, rate, want, wanted_rate = pipe().run()
    for i in range(len(paths)):
        np.testing.assert_array_equal(got.at(i), want.at(i))
        assert rate.at(i) == wanted_rate.at(i)


@pytest.mark.parametrize("others", [0, 500])
def test_batches_keep_no_files_open(tmp_path, others):
    """Also in a process that has many files open already."""
    original, links = tmp_path / "original.wav", [tmp_path / f"{i}.wav" for i in range(300)]
    write(original, SECONDS * RATE)
    for link in links:
        os.link(original, link)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    opened = [os.open(original, os.O_RDONLY) for _ in range(others)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 120, before[1]))
    try:
        pipe = run(links, lambda x: cut(fn.decoders.audio(x)[0], 5, 50))
        for _ in range(4):
            (got,) = pipe.run()
        assert got.shape() == [(50, 1)] * 300
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        for fd in opened:
            os.close(fd)
