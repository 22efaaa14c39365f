# SPDX-License-Identifier: Apache-2.0
"""What readers share besides the order: spans of files become samples, and an unreadable span is an error of its sample
only."""

import os
import resource
import threading

import numpy as np
import pytest

from penstock import fn, pipeline_def
from penstock.core import kernels
from penstock.core.errors import SampleErrors
from penstock.core.picks import Picks
from penstock.operators.read._file_names import FileNames
from penstock.operators.read._records import Parsed, RecordReader, Records


class Spans(RecordReader, abstract=True):
    """A reader with a table given by the test."""

    def find(self):
        return self.table

    def parsed(self):
        return (Parsed(),) * max(self.table.parts, 1)


@pytest.fixture
def io():
    return kernels.Pool(3)


def reader_of(table):
    reader = Spans({name: arg.default for name, arg in Spans.schema.items()})
    reader.table = table
    reader.open(1, 0)
    return reader


def begin(table, io, index=None):
    index = np.arange(len(table)) if index is None else np.array(index, "i8")
    return reader_of(table).begin(Picks(index=index), io)


def read(table, io, index=None):
    return [[bytes(b.sample(i)) for i in range(len(b))] for b in begin(table, io, index).wait()]


def files(folder, *contents):
    paths = []
    for i, content in enumerate(contents):
        paths.append(os.fsencode(folder / f"{i}.bin"))
        (folder / f"{i}.bin").write_bytes(content)
    return FileNames("", [paths])


def random_table(folder, rng, n, gap, parts=1):
    """Spans of three files in any order, some overlapping, empty or long, and their contents."""
    contents = [rng.bytes(int(rng.integers(1, 900_000))) for _ in range(3)]
    objects = rng.integers(0, 3, (n, parts))
    offset, length = np.zeros((n, parts), "i8"), np.zeros((n, parts), "i8")
    for at in np.ndindex(n, parts):
        size = len(contents[objects[at]])
        offset[at] = rng.integers(0, size + 1)
        most = rng.choice([0, 5, 300, 60_000, 900_000])
        length[at] = min(size - offset[at], rng.integers(0, most + 1))
    expected = [[contents[o][a : a + k] for o, a, k in zip(*cs)] for cs in zip(objects.T, offset.T, length.T)]
    table = Records(
        files(folder, *contents), *(c if parts > 1 else c[:, 0] for c in (objects, offset, length)), gap=gap
    )
    return table, expected


@pytest.mark.parametrize("gap", [0, 100, 1 << 40])
@pytest.mark.parametrize("parts", [1, 3])
def test_spans(tmp_path, io, gap, parts):
    for seed in range(12):
        rng = np.random.default_rng(seed)
        table, expected = random_table(tmp_path, rng, int(rng.integers(1, 60)), gap, parts)
        assert read(table, io) == expected
        index = rng.integers(0, len(table), 70)  # some of them twice
        assert read(table, io, index) == [[column[i] for i in index] for column in expected]


def test_missing_parts_and_rest_of_files(tmp_path, io):
    names = files(tmp_path, b"0123456789", b"abc")
    table = Records(
        names, np.array([[0, -1], [1, 0], [-1, -1]]), np.array([[2, 0], [1, 4], [7, 7]]), np.full((3, 2), -1)
    )
    assert read(table, io) == [[b"23456789", b"bc", b""], [b"", b"456789", b""]]


def test_alignment_of_the_file_is_that_of_the_memory(tmp_path, io):
    names = files(tmp_path, bytes(100_000))
    offset = np.array([64, 128, 4096 + 64, 50_048, 72, 90_001])
    batch = begin(Records(names, np.zeros(6), offset, np.full(6, 50)), io).wait()[0]
    assert (batch.rows["data"] % 64).tolist() == (offset % 64).tolist()


def bytes_read(table, io, index=None):
    loading = begin(table, io, index)
    loading.wait()
    return loading._fetch.bytes_read, loading._fetch.n_reads


def test_neighbours_are_read_in_one_call(tmp_path, io):
    names = files(tmp_path, bytes(1 << 20))
    table = Records(names, np.zeros(100), np.arange(100) * 2000, np.full(100, 1000))
    assert bytes_read(table, io)[1] == 1
    assert bytes_read(table, io, np.random.default_rng(0).permutation(100))[1] == 1
    apart = Records(names, np.zeros(100), np.arange(100) * 2048, np.full(100, 1024), gap=1023)
    assert bytes_read(apart, io) == (100 * 1024, 100)
    large = Records(names, np.zeros(10), np.arange(10) * 100_000, np.full(10, 100_000))
    assert bytes_read(large, io)[1] == 5  # no call takes more than 256 KB, so that several threads have something to do


BAD = [
    ("beyond", (0, 50, 51), "the record has 51 bytes from byte 50 on, the file ends at 100"),
    ("behind", (0, 101, 0), "the record has 0 bytes from byte 101 on"),
    ("huge", (0, 8, 2**63 - 1), "the record has 9223372036854775807 bytes from byte 8 on"),
    ("far", (0, 2**63 - 8, 2**63 - 1), "from byte 9223372036854775800 on"),
    ("negative", (0, -8, 20), "from byte -8 on"),
    ("least", (0, -(2**63), 20), "from byte -9223372036854775808 on"),
    ("short", (0, 0, -5), "-5 bytes"),
    ("missing", (1, 0, 4), "can't be opened: No such file or directory"),
    ("folder", (2, 0, 4), "a directory"),
]


@pytest.mark.parametrize("name, span, reason", BAD, ids=[b[0] for b in BAD])
def test_bad_spans_are_errors_of_their_samples(tmp_path, io, name, span, reason):
    content = np.random.default_rng(0).bytes(100)
    names = files(tmp_path, content)
    names = FileNames("", [[os.fsencode(tmp_path / n) for n in ("0.bin", "none.bin", "")]])
    spans = [(0, 0, 10), (0, 40, 20), span, (0, 90, 10)]
    with pytest.raises(SampleErrors) as e:
        begin(Records(names, *np.array(spans).T), io).wait()
    assert list(e.value.reasons) == [2] and reason in e.value.reasons[2]
    assert "0.bin" in e.value.sources[1] and "record 1, offset 40" in e.value.sources[1]
    good = e.value.batches[0]
    assert [bytes(good.sample(i)) for i in (0, 1, 3)] == [content[:10], content[40:60], content[90:]]
    assert good.sample(2).shape == (0,)


def test_a_file_that_shrinks_is_an_error_of_its_samples(tmp_path, io):
    names = files(tmp_path, bytes(range(100)))
    reader = reader_of(Records(names, np.zeros(4), np.arange(4) * 25, np.full(4, 25)))
    picks = Picks(index=np.arange(4))
    assert bytes(reader.load(picks, io)[0].sample(3)) == bytes(range(75, 100))
    os.truncate(tmp_path / "0.bin", 60)
    with pytest.raises(SampleErrors) as e:
        reader.load(picks, io)
    assert sorted(e.value.reasons) == [2, 3] and "the file ends at 60" in e.value.reasons[3]


def test_more_files_than_may_be_open(tmp_path, io):
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    names = files(tmp_path, *(b"%d" % i for i in range(200)))
    table = Records(names, np.arange(200), np.zeros(200), np.full(200, 1))
    expected = [[b"%d" % (i // 10 ** (len(str(i)) - 1)) for i in range(200)]]
    is_open = [int(fd) for fd in os.listdir("/proc/self/fd")]
    most = len(is_open) + 30
    beyond = sum(fd >= most for fd in is_open)  # what other tests left, which the limit does not know of
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, limit[1]))
    try:
        for _ in range(3):
            assert read(table, io, np.arange(200)) == expected
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limit)
    assert len(os.listdir("/proc/self/fd")) - 1 <= most + beyond  # to list them takes one more


def test_many_batches_at_once(tmp_path, io):
    table, expected = random_table(tmp_path, np.random.default_rng(5), 50, 100)
    reader = reader_of(table)
    loadings = [reader.begin(Picks(index=np.arange(50)), io) for _ in range(40)]
    for loading in reversed(loadings[1::2]):  # in any order; the others are dropped, begun or not
        batch = loading.wait()[0]
        assert [bytes(batch.sample(i)) for i in range(50)] == expected[0]
    del loadings, loading, batch
    assert read(table, io) == expected


def test_several_threads_ask(tmp_path, io):
    table, expected = random_table(tmp_path, np.random.default_rng(6), 40, 100)
    reader, wrong = reader_of(table), []

    def ask(seed):
        rng = np.random.default_rng(seed)
        for _ in range(30):
            index = rng.integers(0, 40, 20)
            batch = reader.load(Picks(index=index), io)[0]
            wrong.extend(i for k, i in enumerate(index) if bytes(batch.sample(k)) != expected[0][i])

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not wrong


def test_memory_goes_back(tmp_path, io):
    table, _ = random_table(tmp_path, np.random.default_rng(7), 50, 100)
    before = kernels.library().memory_used()
    batch = begin(table, io).wait()[0]
    one = batch.take(np.array([3]))
    del batch
    assert kernels.library().memory_used() > before and one.sample(0) is not None
    del one
    assert kernels.library().memory_used() == before


@pytest.mark.parametrize("on_error", ["skip", "replace"])
def test_good_samples_are_read_once(tmp_path, monkeypatch, on_error):
    """The other files of a batch with missing files are not read twice."""
    paths = []
    for i in range(40):
        path = tmp_path / f"{i}.bin"
        path.write_bytes(b"%d" % i) if i not in (3, 4, 20) else None
        paths.append(str(path))

    @pipeline_def(batch_size=40, num_threads=2, on_error=on_error, prefetch_queue_depth=1)
    def pipe():
        return fn.readers.file(files=paths, name="r")

    opened = []
    begin = RecordReader.begin
    monkeypatch.setattr(
        RecordReader, "begin", lambda self, picks, io: (opened.append(len(picks)), begin(self, picks, io))[1]
    )
    p = pipe()
    contents, labels = p.run()
    good = [i for i in range(40) if i not in (3, 4, 20)]
    stand_ins = [] if on_error == "skip" else [3, 1]  # 4 for 3, which is missing, too
    if on_error == "skip":
        assert labels.as_array().ravel().tolist() == good
    else:
        assert labels.as_array().ravel().tolist() == [{3: 5, 4: 5, 20: 21}.get(i, i) for i in range(40)]
    assert [bytes(contents.at(k)) for k in range(len(contents))] == [b"%d" % i for i in labels.as_array().ravel()]
    assert len(p.errors()) == 3 and [n for n in opened if n < 40][:2] == stand_ins
