# SPDX-License-Identifier: Apache-2.0
"""readers.file: which files it finds, its outputs, and its errors."""

import os
import re
import time

import numpy as np
import pytest

from penstock import PipelineError, fn, pipeline_def

LINE = "return fn.readers.file(name=" + '"reader", **kwargs)'  # as it stands in `reader` below


@pipeline_def(batch_size=4, num_threads=2, seed=1)
def reader(**kwargs):
    return fn.readers.file(name="reader", **kwargs)


def read(make=reader, **kwargs) -> list[tuple[str, int]]:
    """(content, label) of the samples of one epoch."""
    pipe = make(**kwargs)
    pipe.build()
    left, found = pipe.epoch_size("reader"), []
    while left > 0:
        data, labels = pipe.run()
        found += [(bytes(np.asarray(data[i])).decode(), int(np.asarray(labels[i])[0])) for i in range(len(data))]
        left -= len(data)
    return found[: pipe.epoch_size("reader")]


# Each file contains its own name, so contents identify the file.
FILES = [
    *("b/2.jpg", "b/10.jpg", "b/1.JPG", "b/deep/not_visited.jpg", "B/x.png", "a b/y y.webp", "a b/.hidden.jpg"),
    *(".dot/z.bmp", "in_no_class.jpg", "c/notes.txt", "d1/q.Tiff", "é/ü.jpg", "c/[x].jpg", "c/a.jpg", "c/^.jpg"),
    *("c/s.wav", "c/s.flac", "c/s.ogg", "c/p.ppm", "c/p.pgm", "c/p.pbm", "c/p.pnm", "c/p.jp2", "c/p.tif", "c/p.jpeg"),
    *("c/none", "c/p.jpgx", "c/jpg"),
]
LISTS = {
    "plain.txt": "b/2.jpg 7\n\na b/y y.webp 5\nb/2.jpg 0\n",
    "tabs.txt": "b/2.jpg\t7\r\nc/a.jpg   8  \r\n",
    "last.txt": "c/a.jpg 2147483647",
}
PATTERNS = ("*", "[!a-m]*.jpg", "[^a-m]*", "\\[x].jpg", "*.\\jpg", ".*", "*.JPG", "*.*f")


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    root = tmp_path_factory.mktemp("tree")
    for name in FILES:
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(name)
    (root / "an_empty_class").mkdir()
    (root / "linked").symlink_to(root / "b")
    (root / "c" / "link.jpg").symlink_to(root / "b" / "2.jpg")
    for name, text in LISTS.items():
        (root / name).write_text(text)
    return root


def test_classes_are_the_sorted_folders(tmp_path):
    for name in ("b/z.jpg", "b/a.jpg", "a/1.jpg", "B/10.jpg", "B/9.jpg"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    assert read(file_root=str(tmp_path)) == [
        *(("B/10.jpg", 0), ("B/9.jpg", 0)),
        *(("a/1.jpg", 1), ("b/a.jpg", 2), ("b/z.jpg", 2)),
    ]


def test_an_empty_class_keeps_its_number(tree):
    folders = sorted((f for f in os.listdir(tree) if os.path.isdir(tree / f)), key=os.fsencode)
    numbers = {folder: i for i, folder in enumerate(folders)}
    found = read(file_root=str(tree))
    assert ("é/ü.jpg", numbers["é"]) in found and ("b/2.jpg", numbers["linked"]) in found
    assert all(
        label == numbers[name.split("/")[0]]
        for name, label in found
        if label != numbers["linked"] and name != "b/2.jpg"
    )
    assert numbers["an_empty_class"] not in {label for _, label in found}


@pytest.mark.parametrize(
    "filters, case, names",
    [
        (None, False, "[x].jpg ^.jpg a.jpg link.jpg p.jp2 p.jpeg p.pbm p.pgm p.pnm p.ppm p.tif s.flac s.ogg s.wav"),
        (["*.JPG"], False, "[x].jpg ^.jpg a.jpg link.jpg"),
        (["*.JPG"], True, ""),
        (["*.txt", "*.wav"], True, "notes.txt s.wav"),
        (["a.jpg"], True, "a.jpg"),
        (["?.jpg"], False, "^.jpg a.jpg"),
        (["[a-m]*.jpg"], False, "a.jpg link.jpg"),
        (["[!a-m]*.jpg"], False, "[x].jpg ^.jpg"),
        (["[^a-m]*.jpg"], False, "[x].jpg ^.jpg"),
        (["\\[x].jpg"], False, "[x].jpg"),
        (["P.P?M", "s.*"], False, "p.pbm p.pgm p.pnm p.ppm s.flac s.ogg s.wav"),
        (["*p*.j*"], True, "p.jp2 p.jpeg p.jpgx"),
        (["*"], False, None),
    ],
    ids=str,
)
def test_file_filters(tree, filters, case, names):
    kwargs = {} if filters is None else {"file_filters": filters}
    kwargs |= {"file_root": str(tree), "dir_filters": ["c"], "case_sensitive_filter": case}
    expected = sorted(os.listdir(tree / "c"), key=os.fsencode) if names is None else names.split()
    if not expected:
        with pytest.raises(ValueError, match="no files that match"):
            reader(**kwargs).build()
        return
    contents = ["b/2.jpg" if name == "link.jpg" else f"c/{name}" for name in expected]
    assert read(**kwargs) == [(content, 0) for content in contents]


@pytest.mark.parametrize(
    "filters, case, folders",
    [
        (["b"], False, ["B", "b"]),
        (["b"], True, ["b"]),
        (["[b-e]*"], True, ["b", "c", "d1"]),
        (["*d*"], True, [".dot", "d1", "linked"]),
        (["c", "é"], False, ["c", "é"]),
    ],
    ids=str,
)
def test_dir_filters_number_what_is_left(tree, filters, case, folders):
    pipe = reader(file_root=str(tree), dir_filters=filters, case_sensitive_filter=case, file_filters=["*.*"])
    pipe.build()
    found = set()
    for _ in range(-(-pipe.epoch_size("reader") // 4)):
        data, labels = pipe.run()
        for i in range(4):
            found.add((data[i].source_info().split("/")[-2], int(np.asarray(labels[i])[0])))
    assert found == {(folder, i) for i, folder in enumerate(folders)}


def test_files(tree):
    names = ["c/a.jpg", "b/2.jpg", "c/a.jpg", "c/notes.txt"]
    given = [str(tree / n) for n in names]
    expected = list(zip(names, range(4)))
    assert read(files=given) == expected
    assert read(files=names, file_root=str(tree)) == expected
    assert read(files=given, file_root="/no/such/folder") == expected  # absolute paths need no root
    assert read(files=names, file_root=str(tree), labels=[9, -1, 9, 0]) == list(zip(names, [9, -1, 9, 0]))
    assert read(files=given, file_filters=["*.none"]) == expected  # filters are about folders


def test_files_relative_to_the_working_folder(tree, monkeypatch):
    monkeypatch.chdir(tree)
    assert read(files=["b/2.jpg", "./c/a.jpg"]) == [("b/2.jpg", 0), ("c/a.jpg", 1)]


def test_file_list(tree, tmp_path):
    expected = [("b/2.jpg", 7), ("a b/y y.webp", 5), ("b/2.jpg", 0)]
    assert read(file_list=str(tree / "plain.txt")) == expected
    elsewhere = tmp_path / "elsewhere.txt"
    elsewhere.write_text(LISTS["plain.txt"])
    assert read(file_list=str(elsewhere), file_root=str(tree)) == expected
    elsewhere.write_text("".join(f"{tree / name} {label}\n" for name, label in expected))
    assert read(file_list=str(elsewhere)) == expected
    assert read(file_list=str(tree / "tabs.txt")) == [("b/2.jpg", 7), ("c/a.jpg", 8)]
    assert read(file_list=str(tree / "last.txt")) == [("c/a.jpg", 2**31 - 1)]


@pytest.mark.parametrize(
    "kwargs",
    [{}, {"dir_filters": ["b"]}, {"dir_filters": ["b", "[^a]*"], "case_sensitive_filter": True}]
    + [{"file_filters": [f], "case_sensitive_filter": c} for f in PATTERNS for c in (False, True)]
    + [{"file_list": name} for name in LISTS],
    ids=str,
)
def test_finds_what_dali_finds(tree, kwargs):
    dali = pytest.importorskip("nvidia.dali", reason="the real DALI is not installed")
    kwargs = {**kwargs, "file_root": str(tree)}
    if "file_list" in kwargs:
        kwargs["file_list"] = str(tree / kwargs["file_list"])

    @dali.pipeline_def(batch_size=4, num_threads=1, device_id=None, seed=1)
    def theirs():
        return tuple(dali.fn.readers.file(name="reader", **kwargs))

    assert read(**kwargs) == read(theirs)


def test_outputs(tmp_path):
    rng = np.random.default_rng(0)
    contents = [rng.integers(0, 256, size, "u1").tobytes() for size in (1, 63, 4096, 4097, 3_000_001, 7, 64, 65)]
    paths = [tmp_path / f"{i}" for i in range(len(contents))]
    for path, content in zip(paths, contents):
        path.write_bytes(content)
    pipe = reader(files=list(map(str, paths)))
    for first in (0, 4, 0):
        data, labels = pipe.run()
        assert labels.as_array().dtype == np.int32 and labels.as_array().shape == (4, 1)
        for i in range(4):
            got = np.asarray(data[i])
            assert got.dtype == np.uint8 and got.tobytes() == contents[first + i]
            assert data[i].source_info() == labels[i].source_info() == str(paths[first + i])


def test_a_batch_keeps_its_bytes_while_others_are_read(tmp_path):
    paths = [tmp_path / f"{i}" for i in range(8)]
    for i, path in enumerate(paths):
        path.write_bytes(bytes([i]) * 10_000)
    pipe = reader(files=list(map(str, paths)), prefetch_queue_depth=3)
    first = pipe.run()[0]
    views = [np.asarray(first[i]) for i in range(4)]
    del first
    for _ in range(20):
        pipe.run()
    del pipe
    assert [set(v.tolist()) for v in views] == [{0}, {1}, {2}, {3}]


def bad_samples(root):
    """Path -> what the error must say."""
    (root / "empty").write_bytes(b"")
    (root / "folder").mkdir()
    (root / "dangling").symlink_to(root / "nowhere")
    (root / "loop").symlink_to(root / "loop")
    os.mkfifo(root / "pipe")
    return {
        "empty": "empty",
        "folder": "directory",
        "missing": "No such file",
        "dangling": "No such file",
        "loop": "symbolic links",
        "pipe": "not a regular file",
        "x" * 300: "name too long",
    }


def test_bad_samples(tmp_path):
    reasons = bad_samples(tmp_path)
    (tmp_path / "good").write_text("good")
    for name, reason in reasons.items():
        files = ["good", name, "good", "good"]
        with pytest.raises(PipelineError, match=f"(?is){re.escape(reason)}.*{name}") as e:
            reader(files=files, file_root=str(tmp_path)).run()
        assert LINE in str(e.value) and os.path.basename(__file__) in str(e.value)
        pipe = reader(files=files, file_root=str(tmp_path), on_error="skip")
        assert pipe.run()[1].as_array().ravel().tolist() == [0, 2, 3]
        error = pipe.errors()[0]
        assert error.source == str(tmp_path / name) and re.search(reason, error.reason, re.I)
        assert error.operator == "fn.readers.file" and (error.iteration, error.sample) == (0, 1)


def test_a_link_that_leads_nowhere_is_a_bad_sample_not_a_gap(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "1.jpg").write_text("1")
    (tmp_path / "a" / "2.jpg").symlink_to("nowhere.jpg")
    pipe = reader(file_root=str(tmp_path), batch_size=2)
    with pytest.raises(PipelineError, match=r"2\.jpg"):
        pipe.run()
    assert pipe.epoch_size("reader") == 2


def cases_of_errors():
    yield {}, "'file_root', 'files' or 'file_list'"
    yield {"labels": [1]}, "'files'"
    yield {"file_root": "ROOT/nothing"}, "No such file.*ROOT/nothing"
    yield {"file_root": ""}, "can't be listed"
    yield {"file_root": "ROOT/b/2.jpg"}, "Not a directory.*ROOT/b/2.jpg"
    yield {"file_root": "ROOT/an_empty_class"}, "no sub-folders in ROOT/an_empty_class"
    yield {"file_root": "ROOT", "dir_filters": ["zz*"]}, r"no sub-folders.*dir_filters=\['zz\*'\]"
    yield {"file_root": "ROOT", "file_filters": ["*.zz"]}, r"no files.*\*\.zz.*ROOT"
    yield {"file_root": "ROOT", "dir_filters": ["an_empty_class"]}, "no files.*1 sub-folders.*an_empty_class"
    yield {"file_root": "ROOT", "dir_filters": []}, "'dir_filters' is an empty list"
    yield {"file_root": "ROOT", "file_filters": []}, "'file_filters' is an empty list"
    yield {"file_root": "ROOT", "labels": [1, 2]}, "'labels'.*'files'"
    yield {"files": []}, "'files' is an empty list"
    yield {"files": ["a", "b"], "labels": [1]}, "1 labels for 2 files"
    yield {"files": ["a"], "labels": []}, "0 labels for 1 files"
    yield {"files": ["a"], "file_list": "ROOT/plain.txt"}, "'files' and 'file_list'"
    yield {"file_list": "ROOT/nothing.txt"}, "file list can't be read.*ROOT/nothing.txt"
    yield {"file_list": "ROOT"}, "file list can't be read.*directory.*ROOT"
    yield {"file_root": "ROOT", "num_shards": 2, "shard_id": 2}, "shard_id=2, num_shards=2"
    yield {"file_root": "ROOT", "shard_id": -1}, "shard_id=-1"
    yield {"file_root": "ROOT", "num_shards": 0}, "num_shards=0"
    yield {"file_root": "ROOT", "num_shards": 1000}, "fewer than num_shards=1000"
    yield {"file_root": "ROOT", "shuffle": "yes"}, "'global'.*'yes'"
    yield {"file_root": "ROOT", "shuffle": "global", "random_shuffle": True}, "random_shuffle and shuffle"
    yield {"file_root": "ROOT", "shuffle_after_epoch": True, "random_shuffle": True}, "only one of"
    yield {"file_root": "ROOT", "shuffle_after_epoch": True, "stick_to_shard": True}, "implies stick_to_shard"
    yield {"file_root": "ROOT", "random_shuffle": True, "initial_fill": 0}, "initial_fill.*got 0"
    yield {"file_root": 7}, "'file_root' takes a string, got 7"
    yield {"files": ["a"], "labels": ["x"]}, "'labels' takes an integer"
    yield {"file_rot": "ROOT"}, "file_rot.*file_root"


@pytest.mark.parametrize("kwargs, says", list(cases_of_errors()), ids=str)
def test_errors_name_the_thing_and_the_line(tree, kwargs, says):
    kwargs = {k: v.replace("ROOT", str(tree)) if isinstance(v, str) else v for k, v in kwargs.items()}
    with pytest.raises((ValueError, TypeError, RuntimeError, OSError)) as e:
        reader(**kwargs).build()
    text = str(e.value)
    assert re.search(says.replace("ROOT", re.escape(str(tree))), text, re.S), text
    assert "fn.readers.file" in text and LINE in text and os.path.basename(__file__) in text


@pytest.mark.parametrize(
    "text, says",
    [
        ("a.jpg 1\nb.jpg\n", "line 2.*'b.jpg'"),
        ("a.jpg one\n", "line 1.*'a.jpg one'"),
        ("a.jpg 1.5\n", "line 1"),
        ("5\n", "line 1.*'5'"),
        ("a.jpg 3000000000\n", "a.jpg.*int32: 3000000000"),
        ("", "has no entries"),
        ("\n \n", "has no entries"),
    ],
    ids=str,
)
def test_wrong_lists(tmp_path, text, says):
    path = tmp_path / "list.txt"
    path.write_text(text)
    with pytest.raises(ValueError, match=f"(?s){says}") as e:
        reader(file_list=str(path)).build()
    assert str(path) in str(e.value) and LINE in str(e.value)


def test_a_class_folder_that_may_not_be_listed(tree, monkeypatch):
    """Is an error instead of being skipped. The failure is simulated, as tests may run as root, who has all
    permissions."""
    scandir = os.scandir

    def refusing(path):
        if os.path.basename(path) == "c":
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    with pytest.raises(RuntimeError, match=f"(?s)Permission denied.*{re.escape(str(tree / 'c'))}"):
        reader(file_root=str(tree)).build()


def test_lazy_init_looks_at_the_first_batch(tmp_path):
    root = tmp_path / "later"
    pipe = reader(file_root=str(root), lazy_init=True)
    pipe.build()
    (root / "a").mkdir(parents=True)
    (root / "a" / "1.jpg").write_text("1")
    assert bytes(np.asarray(pipe.run()[0][0])) == b"1"
    assert pipe.epoch_size("reader") == 1
    missing = reader(file_root=str(tmp_path / "never"), lazy_init=True)
    with pytest.raises((RuntimeError, ValueError, OSError), match="never") as e:
        missing.run()
    assert "fn.readers.file" in str(e.value)


@pytest.mark.parametrize(
    "kwargs",
    [
        {"skip_cached_images": True},
        {"read_ahead": True},
        {"lazy_init": True},
        {"dont_use_mmap": True},
        {"prefetch_queue_depth": 3},
        {"tensor_init_bytes": 10},
        {"bytes_per_sample_hint": [10]},
    ],
    ids=str,
)
def test_accepted_without_effect(tree, kwargs):
    @pipeline_def(batch_size=4, num_threads=2)
    def pipe():
        return fn.readers.file(name="reader", file_root=str(tree), **kwargs)

    assert read(pipe) == read(file_root=str(tree))


@pytest.mark.slow
def test_lists_many_files_in_seconds(tmp_path):
    folders, each = 30, 1000
    for f in range(folders):
        folder = tmp_path / f"n{f:08}"
        folder.mkdir()
        for i in range(each):
            os.close(os.open(folder / f"n{f:08}_{i}.JPEG", os.O_CREAT | os.O_WRONLY))
    pipe = reader(file_root=str(tmp_path))
    begin = time.process_time()
    pipe.build()
    took = time.process_time() - begin  # of processors: the machine may have other things to do
    assert pipe.epoch_size("reader") == folders * each
    rate = folders * each / took
    assert rate > 25_000, f"{rate:.0f} files listed per second"
