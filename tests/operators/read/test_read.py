# SPDX-License-Identifier: Apache-2.0
"""Files whose paths are data: contents, names and errors."""

import os

import numpy as np
import pytest

from penstock import fn, pipeline_def

CONTENTS = [b"hello", b"", bytes(range(256)) * 17, os.urandom(3_000_001), b"\0"]


@pytest.fixture
def paths(tmp_path):
    names = [tmp_path / n for n in ("a.bin", "empty", "with space", "\u00e4\u2603", "deep/er")]
    names[-1].parent.mkdir()
    for path, content in zip(names, CONTENTS):
        path.write_bytes(content)
    return list(map(str, names))


def as_data(paths, dtype="u1"):
    return [np.frombuffer(os.fsencode(p), dtype) for p in paths]


def read(samples, on_error="raise", num_threads=3, **kwargs):
    @pipeline_def(batch_size=len(samples), num_threads=num_threads, on_error=on_error)
    def pipe():
        data = fn.io.file.read(fn.external_source(source=lambda i: samples), **kwargs)
        return data, data.source_info()

    return pipe().run()


def content(batch):
    return [bytes(np.asarray(batch.at(i))) for i in range(len(batch))]


@pytest.mark.parametrize("kwargs", [{}, {"dont_use_mmap": True}, {"use_o_direct": True, "dont_use_mmap": True}])
@pytest.mark.parametrize("dtype", ["u1", "i1"])
def test_contents_and_names(paths, kwargs, dtype):
    data, names = read(as_data(paths, dtype), **kwargs)
    assert content(data) == CONTENTS and data.at(0).dtype == np.uint8 and data.layout() == ""
    assert content(names) == [os.fsencode(p) for p in paths]


def test_direct_reading_where_the_file_system_can(paths, tmp_path):
    sizes = (1, 4095, 4096, 4097, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 2_345_678)
    wanted = [os.urandom(n) for n in sizes]
    for i, x in enumerate(wanted):
        (tmp_path / str(i)).write_bytes(x)
    data, _ = read(as_data([tmp_path / str(i) for i in range(len(sizes))]), use_o_direct=True)
    assert content(data) == wanted


def test_a_path_ends_at_a_zero_byte_and_may_be_relative(paths, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data, names = read(as_data(["a.bin", "./a.bin", "deep/../a.bin\0ignored"]))
    assert content(data) == [b"hello"] * 3 and content(names) == [b"a.bin", b"./a.bin", b"deep/../a.bin"]


def test_feeds_a_decoder(tmp_path):
    from PIL import Image

    image = np.random.default_rng(1).integers(0, 256, (7, 9, 3), "u1")
    Image.fromarray(image).save(tmp_path / "x.png")

    @pipeline_def(batch_size=2)
    def pipe():
        return fn.decoders.image(fn.io.file.read(as_data([tmp_path / "x.png"])[0]))

    (out,) = pipe().run()
    np.testing.assert_array_equal(out.as_array(), [image] * 2)


@pytest.mark.parametrize(
    "bad, text",
    [
        ("nothing/here", "can't be opened: No such file or directory"),
        ("", "the path is empty"),
        (".", "this is a directory, not a file"),
        ("/dev/null", "this is a device, pipe or socket, not a regular file"),
        ("x" * 300, "can't be opened: File name too long"),
    ],
)
@pytest.mark.parametrize("kwargs", [{}, {"use_o_direct": True}])
def test_a_bad_path_is_a_bad_sample(paths, bad, text, kwargs):
    with pytest.raises(RuntimeError, match=f"(?s){bad}.*{text}"):
        read(as_data([paths[0], bad]), **kwargs)
    data, names = read(as_data([paths[0], bad, paths[2]]), on_error="skip", **kwargs)
    assert content(data) == [CONTENTS[0], CONTENTS[2]] and len(names) == 2


@pytest.mark.parametrize(
    "sample", [np.zeros((1, 5), "u1"), np.zeros(5, "i4"), np.uint8(65)], ids=["matrix", "int32", "scalar"]
)
def test_paths_are_vectors_of_bytes(sample):
    with pytest.raises(RuntimeError, match="a path is a vector of bytes"):
        read([sample])


def test_one_thread_is_many(paths):
    assert content(read(as_data(paths), num_threads=1)[0]) == content(read(as_data(paths * 9))[0])[:5]


def test_memory_goes_back(paths):
    """The contents outlive the pipeline, and their memory is reused when it is no longer referenced."""

    @pipeline_def(batch_size=1, prefetch_queue_depth=1)
    def pipe():
        return fn.io.file.read(as_data(paths[3:4])[0])

    p = pipe()
    kept = p.run()[0]
    places = {p.run()[0].at(0).__array_interface__["data"][0] for _ in range(30)}
    assert len(places) < 10
    del p
    assert content(kept) == CONTENTS[3:4]
