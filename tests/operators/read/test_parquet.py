# SPDX-License-Identifier: Apache-2.0
"""readers.parquet, compared with pyarrow and Hugging Face's datasets on the same files."""

import os

import numpy as np
import pytest
from parquet_files import build, labels, read, resumed

from optional_packages import Package, needs

pa = Package("pyarrow")
pq = Package("pyarrow.parquet")
pytestmark = needs("pyarrow")

N, GROUP = 100, 8
NUMBERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64")


def columns(n=N, first=0):
    i = range(first, first + n)
    content = [b"%d" % k * (k % 5) for k in i]
    return {
        "image": pa.array([{"bytes": c, "path": f"{k}.jpg"} for k, c in zip(i, content)]),
        "content": pa.array(content),
        "large": pa.array(content, pa.large_binary()),
        "text": pa.array([f"ü{k}" for k in i]),
        "view": pa.array([f"ü{k}" for k in i], pa.string_view()),
        "four": pa.array([b"%04d" % k for k in i], pa.binary(4)),
        "kind": pa.array(["cat", "dog", "cow"][k % 3] for k in i).dictionary_encode(),
        "label": pa.array(i, pa.int64()),
        "flag": pa.array([k % 3 == 1 for k in i]),
        "vector": pa.array([np.arange(k % 4, dtype="f4") + k for k in i], pa.list_(pa.float32())),
        "wide": pa.array([np.arange(k % 3) + k for k in i], pa.large_list(pa.int16())),
        "box": pa.array([[k, k + 1, k + 2, k + 3] for k in i], pa.list_(pa.float32(), 4)),
        **{t: pa.array(np.arange(first, first + n).astype(t)) for t in NUMBERS},
    }


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("parquet")
    for k, (first, n) in enumerate(((0, 70), (70, 30))):
        pq.write_table(pa.table(columns(n, first)), folder / f"train-{k}.parquet", row_group_size=GROUP)
    return folder


def expected(name, value):
    """The expected sample for a Python value of pyarrow."""
    if name == "image":
        value = value["bytes"]
    if isinstance(value, str):
        value = value.encode()
    if isinstance(value, bytes):
        return np.frombuffer(value, "u1")
    return np.atleast_1d(value)


def check(got, name, value):
    wanted = expected(name, value)
    assert got.shape == wanted.shape
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("compression", ["snappy", "zstd", "none"])
@pytest.mark.parametrize("use_dictionary", [True, False])
def test_columns(tmp_path, compression, use_dictionary):
    table = pa.table(columns())
    options = {"row_group_size": GROUP, "compression": compression, "use_dictionary": use_dictionary}
    pq.write_table(table, tmp_path / "a.parquet", **options)
    names = tuple(columns(1))
    rows = read(str(tmp_path / "a.parquet"), names)
    assert len(rows) == N
    for row, wanted in zip(rows, pq.read_table(tmp_path / "a.parquet").to_pylist()):
        for name, got in zip(names, row):
            check(got, name, wanted[name])
    types = dict(zip(names, (x.dtype.name for x in rows[0])))
    assert {t: types[t] for t in NUMBERS} == {t: t for t in NUMBERS}
    others = {"vector": "float32", "wide": "int16", "box": "float32", "flag": "bool", "label": "int64", "kind": "uint8"}
    assert {k: types[k] for k in others} == others


def test_paths_patterns_folders_and_lists(files, monkeypatch):
    monkeypatch.chdir(files)
    every = [list(range(N))]
    both = [str(files / f"train-{k}.parquet") for k in (0, 1)]
    for path in (str(files), files, str(files / "train-*.parquet"), "train-[01].parquet", both, "train-?.parquet"):
        assert labels(path) == every
    assert labels(both[::-1]) == [[*range(70, 100), *range(70)]]
    assert labels(both[1]) == [list(range(70, 100))]


def test_sources(files):
    out = build(str(files), ("label", "text"), batch_size=90).run()
    path = str(files / "train-1.parquet")
    assert out[1][79].source_info() == f"{path} at row 9"


@pytest.mark.parametrize("shuffle", [{}, {"shuffle": "windows", "shuffle_window": 2}, {"shuffle": "global"}], ids=str)
@pytest.mark.parametrize("num_shards", [1, 3])
def test_shards_have_every_sample_once(files, shuffle, num_shards):
    parts = [
        build(str(files), num_shards=num_shards, shard_id=i, stick_to_shard=not shuffle, **shuffle)
        for i in range(num_shards)
    ]
    for _ in range(3):
        got = []
        for i, p in enumerate(parts):
            for _ in range((i + 1) * N // num_shards - i * N // num_shards):
                got.append(p.run()[0].at(0).item())
        assert sorted(got) == list(range(N))
        assert (got != list(range(N))) == bool(shuffle)


def test_windows_mix_neighbouring_row_groups_only(files):
    """Every window of the epoch has the rows of whole row groups, in random order."""
    group_of = np.repeat(np.arange(13), [8] * 8 + [6] + [8] * 3 + [6])
    orders, firsts = labels(str(files), 4, shuffle="windows", shuffle_window=4, seed=5), []
    for order in orders:
        assert sorted(order) == list(range(N))
        groups, windows = group_of[order], []
        while len(groups):
            n = int(np.isin(groups, list(dict.fromkeys(groups.tolist()))[:4]).sum())
            windows.append(groups[:n])
            groups = groups[n:]
        assert [len(set(w.tolist())) for w in windows] == [4, 4, 4, 1]
        assert all((np.diff(w) != 0).sum() > len(w) // 3 for w in windows[:3]), "the rows of a window are not mixed"
        firsts.append(frozenset(windows[0].tolist()))
    assert len(set(firsts)) > 1, "the same row groups come together in every epoch"
    assert orders[0] != orders[1] != orders[2]


@pytest.mark.parametrize("num_threads, batch_size", [(1, 1), (4, 7), (3, 64)])
def test_order_depends_on_nothing_else(files, num_threads, batch_size):
    pipe = build(str(files), shuffle="windows", num_threads=num_threads, batch_size=batch_size)
    got = [x for _ in range(-(-2 * N // batch_size)) for x in pipe.run()[0].as_array().ravel().tolist()]
    assert got[: 2 * N] == sum(labels(str(files), 2, shuffle="windows"), [])


def test_checkpoints(files):
    kwargs = {"shuffle": "windows", "shuffle_window": 3, "batch_size": 9, "pipeline": {"enable_checkpointing": True}}
    first = build(str(files), **kwargs)
    for _ in range(14):
        first.run()
    again = build(str(files), **resumed(kwargs, first.checkpoint()))
    for _ in range(12):
        assert again.run()[0].as_array().tolist() == first.run()[0].as_array().tolist()
    other = {**kwargs, "shuffle_window": 4}
    with pytest.raises(ValueError, match="shuffle_window is 4 here, 3 in the checkpoint"):
        build(str(files), **resumed(other, first.checkpoint())).build()


def test_resumed_with_other_shards(files):
    kwargs = {"shuffle": "windows", "shuffle_window": 3, "batch_size": 5}
    saving = {**kwargs, "pipeline": {"enable_checkpointing": True}}
    two = [build(str(files), num_shards=2, shard_id=i, **saving) for i in range(2)]
    seen = [x for _ in range(4) for p in two for x in p.run()[0].as_array().ravel().tolist()]
    saved = [p.checkpoint() for p in two]
    three = [build(str(files), num_shards=3, shard_id=i, **resumed(kwargs, saved)) for i in range(3)]
    seen += [x for _ in range(4) for p in three for x in p.run()[0].as_array().ravel().tolist()]
    assert sorted(seen) == list(range(N))


def test_weights(files):
    weight = np.where(np.arange(N) % 10 == 3, 1.0, 0.0)
    assert set(sum(labels(str(files), 2, weights=weight), [])) == set(range(3, N, 10))


def test_each_row_group_is_decoded_once(files, monkeypatch):
    from penstock.operators.read import _tables

    read_groups, real = [], _tables.ParquetFiles.read
    monkeypatch.setattr(_tables.ParquetFiles, "read", lambda self, k, *a: read_groups.append(k) or real(self, k, *a))
    pipe = build(str(files), shuffle="windows", shuffle_window=2, batch_size=10)
    for _ in range(10):
        pipe.run()
    assert len(read_groups) == len(set(read_groups)) == 13


def test_row_groups_of_the_window_are_kept(files, monkeypatch):
    """With large row groups, where a small batch has no row of some row groups of the window."""
    from penstock.operators.read import _row_groups, _tables

    read_groups, real = [], _tables.ParquetFiles.read
    monkeypatch.setattr(_tables.ParquetFiles, "read", lambda self, k, *a: read_groups.append(k) or real(self, k, *a))
    monkeypatch.setattr(_row_groups, "MOST_BYTES", 0)
    pipe = build(str(files), shuffle="windows", shuffle_window=6, batch_size=2)
    for _ in range(30):
        pipe.run()
    assert len(read_groups) == len(set(read_groups)) >= 6


def test_row_groups_are_given_up(files, monkeypatch):
    from penstock.operators.read import _row_groups

    monkeypatch.setattr(_row_groups, "MOST_BYTES", 0)
    pipe = build(str(files), ("label", "content"), shuffle="windows", shuffle_window=2, batch_size=10)
    batches = [pipe.run() for _ in range(30)]
    reader = next(iter(pipe._executor.plan.sources)).op
    assert len(reader.groups._kept) <= 6
    for label, content in batches:  # whose memory is still theirs
        for i in range(10):
            k = label.at(i).item()
            assert bytes(content.at(i)) == b"%d" % k * (k % 5)


def test_what_is_given_out_can_not_be_written_to(files):
    """As row groups are cached for later batches."""
    out = build(str(files), ("content",), batch_size=5).run()[0]
    assert not out.at(4).flags.writeable


# Null, damage and errors ----------------------------------------------------------------------------------------------


def test_rows_without_a_value(tmp_path):
    table = pa.table(
        {
            "content": pa.array([b"a", None, b"c", b"d", b"e"]),
            "label": pa.array([0, 1, None, 3, 4]),
            "vector": pa.array([[1.0], [2.0], [3.0], [4.0, None], [5.0]]),
        }
    )
    pq.write_table(table, tmp_path / "a.parquet")
    pipe = build(str(tmp_path / "a.parquet"), ("content", "label", "vector"), batch_size=5, on_error="skip")
    out = pipe.run()
    assert [bytes(out[0].at(i)) for i in range(2)] == [b"a", b"e"] and out[1].as_array().ravel().tolist() == [0, 4]
    errors = pipe.errors()[:3]
    assert [e.reason.split(" has ")[0].split()[-1] for e in errors] == ["'content'", "'label'", "'vector'"]
    assert errors[2].source.endswith("a.parquet, row group 0, row 3")


NULLABLE = {
    "list": (lambda: pa.list_(pa.float32()), [1.0, 2.0]),
    "list of two": (lambda: pa.list_(pa.float32(), 2), [3.0, 4.0]),
    "bool": (lambda: pa.bool_(), True),
    "string": (lambda: pa.string(), "x"),
    "int8": (lambda: pa.int8(), 5),
}


@pytest.mark.parametrize("kind", NULLABLE)
def test_null_is_a_bad_sample_of_every_type(tmp_path, kind):
    of, value = NULLABLE[kind]
    pq.write_table(pa.table({"x": pa.array([None, value, None, value], of())}), tmp_path / "a.parquet")
    pipe = build(str(tmp_path / "a.parquet"), ("x",), batch_size=4, on_error="skip")
    out = pipe.run()[0]
    assert len(out) == 2
    for i in range(2):
        check(np.array(out.at(i)), "x", value)


def test_contents_that_are_files(tmp_path):
    (tmp_path / "there.jpg").write_bytes(b"of a file")
    rows = [
        {"bytes": b"inside", "path": "no.jpg"},
        {"bytes": None, "path": str(tmp_path / "there.jpg")},
        {"bytes": None, "path": "there.jpg"},
        {"bytes": None, "path": "no.jpg"},
        {"bytes": None, "path": None},
    ]
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    pq.write_table(pa.table({"image": pa.array(rows, kind)}), tmp_path / "a.parquet")
    pipe = build(str(tmp_path / "a.parquet"), ("image",), batch_size=5, on_error="skip")
    out = pipe.run()[0]
    assert [bytes(out.at(i)) for i in range(3)] == [b"inside", b"of a file", b"of a file"]
    reasons = [e.reason for e in pipe.errors()[:2]]
    assert "no.jpg" in reasons[0] and "neither bytes nor a path" in reasons[1]


def test_a_damaged_row_group(tmp_path):
    pq.write_table(pa.table(columns()), tmp_path / "a.parquet", row_group_size=25, compression="none")
    about = pq.read_metadata(tmp_path / "a.parquet").row_group(1).column(0)
    path = str(tmp_path / "a.parquet")
    first = labels(path, names=("label", "image"))
    raw = bytearray((tmp_path / "a.parquet").read_bytes())
    at = about.dictionary_page_offset or about.data_page_offset
    raw[at : at + 200] = b"\xff" * 200
    (tmp_path / "a.parquet").write_bytes(raw)
    pipe = build(path, ("label", "image"), batch_size=100, on_error="skip")
    assert pipe.run()[0].as_array().ravel().tolist() == [k for k in first[0] if not 25 <= k < 50]
    assert "row group 1, row 0" in pipe.errors()[0].source and "the row group can't be read" in pipe.errors()[0].reason


def test_a_file_that_changes(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table(columns()), path, row_group_size=10)
    pipe = build(str(path), batch_size=10, shuffle="windows", shuffle_window=1)
    pipe.build()
    os.truncate(path, 100)
    with pytest.raises(RuntimeError, match="the file has changed since the pipeline was built"):
        pipe.run()


@pytest.mark.parametrize(
    "kwargs, error",
    [
        ({"names": ()}, "'columns' is an empty list"),
        ({"names": ("nothing",)}, "there is no column 'nothing'; there are image, content"),
        ({"path": []}, "'path' is an empty list"),
        ({"path": 7}, "'path' takes paths, a pyarrow.Table or a datasets.Dataset; got 7"),
        ({"path": "/no/such/file.parquet"}, "/no/such/file.parquet"),
        ({"path": "/no/such/*.parquet"}, "no file matches"),
        ({"shuffle": "windows", "shuffle_window": 0}, "shuffle_window takes at least 1; got 0"),
        ({"shuffle_window": 4}, "'shuffle_window' can be used only with shuffle='windows'"),
        ({"shuffle": "windows", "batch_by_length": [1] * N}, "batch_by_length can't be used with shuffle='windows'"),
    ],
    ids=str,
)
def test_errors_of_arguments(files, kwargs, error):
    with pytest.raises((ValueError, TypeError, RuntimeError), match=error):
        build(**({"path": str(files)} | kwargs)).build()


@pytest.mark.parametrize("content", [b"", b"PAR1", b"no parquet at all, but of some length" * 9])
def test_files_that_are_none(tmp_path, content):
    (tmp_path / "a.parquet").write_bytes(content)
    with pytest.raises((ValueError, RuntimeError), match="a.parquet"):
        build(str(tmp_path / "a.parquet")).build()


UNREADABLE = {
    "a time": lambda: pa.timestamp("s"),
    "a list": lambda: pa.list_(pa.string()),
    "a structure": lambda: pa.struct([("x", pa.int8())]),
    "a date": lambda: pa.date32(),
}


@pytest.mark.parametrize("kind", UNREADABLE)
def test_columns_that_can_not_be_read(tmp_path, kind):
    column = pa.array([None], UNREADABLE[kind]())
    pq.write_table(pa.table({"label": [1], "x": column}), tmp_path / "a.parquet")
    assert labels(str(tmp_path / "a.parquet")) == [[1]]
    with pytest.raises(ValueError, match="the column 'x' is of the type .* can be read"):
        build(str(tmp_path / "a.parquet"), ("x",)).build()


def test_files_that_differ(tmp_path):
    pq.write_table(pa.table({"label": [1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"label": ["1"]}), tmp_path / "b.parquet")
    with pytest.raises(ValueError, match="b.parquet: the column 'label' has another type than in .*a.parquet"):
        build(str(tmp_path)).build()
