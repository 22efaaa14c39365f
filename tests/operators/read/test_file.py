# SPDX-License-Identifier: Apache-2.0
"""readers.file: which files it finds, what it reads, and errors for unreadable files."""

import os
import threading

import numpy as np
import pytest

from penstock import fn, ops, pipeline_def, types
from penstock.core.kernels import library


@pytest.fixture
def tree(tmp_path):
    """Class folders with files that contain their own path."""
    root = tmp_path / "data"
    for folder in ("b", "a", "B", "10", "9", ".hidden"):
        (root / folder).mkdir(parents=True)
        for name in ("2.jpg", "10.jpg", "1.JPG", "note.txt", "é.png"):
            (root / folder / name).write_text(f"{folder}/{name}")
    (root / "empty").mkdir()
    (root / "a" / "deeper").mkdir()
    (root / "a" / "deeper" / "no.jpg").write_text("no")
    (root / "a" / "folder.jpg").mkdir()
    (root / "a" / "link.jpg").symlink_to("2.jpg")
    (root / "linked").symlink_to("b")
    (root / "top.jpg").write_text("no")
    return root


def build(batch_size=1, **kwargs):
    @pipeline_def(batch_size=batch_size, num_threads=2)
    def pipe():
        return tuple(fn.readers.file(name="r", **kwargs))

    return pipe()


def found(**kwargs):
    """(name, label, content) of one epoch."""
    pipe = build(**kwargs)
    out = []
    for _ in range(pipe.epoch_size("r")):
        data, label = pipe.run()
        assert label[0].source_info() == data[0].source_info()
        out.append((data[0].source_info(), int(label.at(0)[0]), bytes(data.at(0)).decode()))
    return out


def by_hand(root, wanted, folders=None):
    """The definition: subfolders in byte order are the classes, with the matching files in them."""
    out = []
    names = sorted((n for n in os.listdir(root) if os.path.isdir(root / n)), key=os.fsencode)
    for label, folder in enumerate(n for n in names if folders is None or folders(n)):
        for name in sorted(os.listdir(root / folder), key=os.fsencode):
            path = root / folder / name
            if path.is_file() and wanted(name):
                out.append((f"{folder}/{name}", label, path.read_text()))
    return out


def test_file_root(tree):
    assert found(file_root=str(tree)) == by_hand(tree, lambda n: n.lower().endswith((".jpg", ".png")))
    assert found(file_root=str(tree) + "/") == found(file_root=str(tree))
    assert max(label for _, label, _ in found(file_root=str(tree))) == 7  # an empty folder is a class too


@pytest.mark.parametrize(
    "kwargs, wanted, folders",
    [
        ({"file_filters": ["*.txt"]}, lambda n: n == "note.txt", None),
        ({"file_filters": ["*.JPG"]}, lambda n: n.lower().endswith(".jpg"), None),
        ({"file_filters": ["*.JPG"], "case_sensitive_filter": True}, lambda n: n == "1.JPG", None),
        ({"case_sensitive_filter": True}, lambda n: n.endswith((".jpg", ".png")), None),
        ({"file_filters": ["1?.j*", "[n]ote.*"]}, lambda n: n in ("10.jpg", "note.txt"), None),
        ({"file_filters": ["[!0-9]*"]}, lambda n: not n[0].isdigit(), None),
        ({"file_filters": ["*"]}, lambda n: True, None),
        ({"file_filters": ["*"], "dir_filters": ["A", "B"]}, lambda n: True, lambda f: f.lower() in "ab"),
        (
            {"file_filters": ["*"], "dir_filters": ["[0-9]*", "a"], "case_sensitive_filter": True},
            lambda n: True,
            lambda f: f in ("10", "9", "a"),
        ),
    ],
)
def test_filters(tree, kwargs, wanted, folders):
    assert found(file_root=str(tree), **kwargs) == by_hand(tree, wanted, folders)


def test_files(tree):
    paths = [str(tree / "b" / "2.jpg"), str(tree / "a" / "note.txt")]
    assert found(files=paths) == [(paths[0], 0, "b/2.jpg"), (paths[1], 1, "a/note.txt")]
    assert found(files=paths, labels=[7, -3]) == [(paths[0], 7, "b/2.jpg"), (paths[1], -3, "a/note.txt")]
    relative = found(files=["b/2.jpg", paths[1]], file_root=str(tree))
    assert relative == [("b/2.jpg", 0, "b/2.jpg"), (paths[1], 1, "a/note.txt")]


def test_files_relative_to_the_working_folder(tree, monkeypatch):
    monkeypatch.chdir(tree)
    assert found(files=["b/2.jpg"]) == [("b/2.jpg", 0, "b/2.jpg")]


def test_file_list(tree):
    (tree / "a" / "with space.jpg").write_text("space")
    listing = tree / "list.txt"
    listing.write_text(f"a/2.jpg 3\nb/é.png\t-4  \r\n\n   \na/with space.jpg   5\n{tree}/9/2.jpg 6")
    expected = [("a/2.jpg", 3), ("b/é.png", -4), ("a/with space.jpg", 5), (f"{tree}/9/2.jpg", 6)]
    assert [(p, label) for p, label, _ in found(file_list=str(listing))] == expected
    elsewhere = tree.parent / "list.txt"
    elsewhere.write_text("a/2.jpg 3")
    assert found(file_list=str(elsewhere), file_root=str(tree)) == [("a/2.jpg", 3, "a/2.jpg")]


def test_list_with_a_byte_order_mark(tree):
    """Editors and spreadsheets put one before UTF-8."""
    listing = tree / "list.txt"
    listing.write_text("b/é.png 7\r\na/2.jpg 8\r\n", encoding="utf-8-sig", newline="")
    assert found(file_list=str(listing)) == [("b/é.png", 7, "b/é.png"), ("a/2.jpg", 8, "a/2.jpg")]
    np.save(tree / "x.npy", np.arange(3))
    listing.write_text("x.npy\n", encoding="utf-8-sig")
    arrays = pipeline_def(lambda: fn.readers.numpy(file_list=str(listing)), batch_size=1, num_threads=1)()
    assert arrays.run()[0].at(0).tolist() == [0, 1, 2]


def test_names_that_are_no_text(tmp_path):
    folder = os.fsencode(tmp_path) + b"/class"
    os.mkdir(folder)
    for name in (b"\xff\xfe.jpg", b"new\nline.jpg"):
        with open(folder + b"/" + name, "wb") as f:
            f.write(b"content")
    assert [content for _, _, content in found(file_root=str(tmp_path))] == ["content"] * 2


def test_contents(tmp_path):
    rng = np.random.default_rng(1)
    sizes = [1, 63, 64, 65, 4096, 100_000, 3_000_000, 1]
    contents = [rng.integers(0, 256, n, "u1").tobytes() for n in sizes]
    for i, c in enumerate(contents):
        (tmp_path / f"{i}").write_bytes(c)
    pipe = build(8, files=[str(tmp_path / f"{i}") for i in range(8)])
    for _ in range(3):
        data, label = pipe.run()
        assert data.dtype == types.UINT8 and data.shape() == [(n,) for n in sizes]
        assert label.dtype == types.INT32 and label.as_array().tolist() == [[i] for i in range(8)]
        assert [bytes(data.at(i)) for i in range(8)] == contents
        assert all(data.at(i).ctypes.data % 64 == 0 for i in range(8))


def test_old_names(tree):
    with pytest.warns(DeprecationWarning, match="it is now fn.readers.file"):

        @pipeline_def(batch_size=1, num_threads=1)
        def pipe():
            a = fn.file_reader(files=[str(tree / "a" / "2.jpg")])
            return (*a, *ops.FileReader(files=[str(tree / "a" / "2.jpg")])(), *ops.readers.File(file_root=str(tree))())

        assert len(pipe().run()) == 6


def test_lazy_init(tree):
    pipe = build(file_root=str(tree / "nowhere"), lazy_init=True)
    pipe.build()
    with pytest.raises(RuntimeError, match="the folder can't be listed: No such file or directory: '.*nowhere'"):
        pipe.run()
    assert len(found(file_root=str(tree), lazy_init=True)) == len(found(file_root=str(tree)))


@pytest.mark.parametrize(
    "kwargs, text",
    [
        ({}, "'file_root', 'files' or 'file_list' is needed"),
        ({"files": []}, "'files' is an empty list"),
        ({"files": ["a"], "file_list": "b"}, "'files' and 'file_list' can't be used together"),
        ({"files": ["a"], "labels": [1, 2]}, "2 labels for 1 files"),
        ({"file_root": "/", "labels": [1]}, "'labels' can be used only together with 'files'"),
        ({"file_root": "{}", "file_filters": []}, "'file_filters' is an empty list"),
        (
            {"file_root": "{}", "file_filters": ["*.gif"]},
            r"no files that match file_filters=\['\*.gif'\] in the 8 sub.*takes all",
        ),
        ({"file_root": "{}", "dir_filters": ["x"]}, r"no sub-folders that match dir_filters=\['x'\] in "),
        ({"file_root": "{}/b"}, "no sub-folders in .*; file_root is a folder with one sub-folder per class"),
        ({"file_root": "none/a"}, "can't be listed: .*: 'none/a'; the current directory is /"),
        ({"file_root": "{}/*"}, r"can't be listed: .*/\*'; patterns are not expanded here.*glob.glob\(\)"),
        ({"file_root": "file://{}"}, "'file:///.*' is not one of the URLs .*: http://.*s3://.*; leave 'file://' out"),
        ({"files": ["a", "ftp://host/b"]}, "'ftp://host/b' is not one of the URLs that can be read: http://"),
        ({"file_root": "{}/none"}, "the folder can't be listed: No such file or directory: '.*/none'"),
        ({"file_root": "{}/top.jpg"}, "the folder can't be listed: Not a directory: '.*/top.jpg'"),
        ({"file_list": "{}/none.txt"}, "the file list can't be read: No such file or directory: '.*/none.txt'"),
        (
            {"file_list": "{}/a/note.txt"},
            "line 1 of the file list .* must be a path, a space and an integer label; got",
        ),
    ],
)
def test_errors_of_the_data_set(tree, kwargs, text):
    kwargs = {k: v.format(tree) if isinstance(v, str) else v for k, v in kwargs.items()}
    with pytest.raises((ValueError, RuntimeError), match=text) as caught:
        build(**kwargs).build()
    assert "test_file.py" in str(caught.value)


def test_errors_of_the_file_list(tree):
    listing = tree / "list.txt"
    for content, text in (
        ("", "has no entries"),
        ("a/2.jpg", "line 1 of .* got 'a/2.jpg'"),
        ("a/2.jpg 1\nb/2.jpg 1.5", "line 2 of .* got 'b/2.jpg 1.5'"),
        (" 4", "line 1 of"),
        ("a/2.jpg 3000000000", "the label of a/2.jpg in the file list .* does not fit into int32: 3000000000"),
    ):
        listing.write_text(content)
        with pytest.raises(ValueError, match=text):
            build(file_list=str(listing)).build()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_no_permission(tree):
    (tree / "a").chmod(0)
    with pytest.raises(RuntimeError, match="the folder can't be listed: Permission denied: '.*/a'"):
        build(file_root=str(tree)).build()
    (tree / "a").chmod(0o700)


def test_unreadable_files(tree):
    """Each is an error with its path, without hangs or leaks, and the pipeline continues."""
    os.mkfifo(tree / "a" / "pipe.jpg")
    (tree / "a" / "hollow.jpg").write_bytes(b"")
    (tree / "a" / "loop.jpg").symlink_to("loop.jpg")
    good = str(tree / "a" / "2.jpg")
    for bad, text in (
        ("gone.jpg", r"the file can't be opened: No such file or directory \(errno 2\)"),
        ("folder.jpg", "this is a directory, not a file"),
        ("pipe.jpg", "this is a device, pipe or socket, not a regular file"),
        ("hollow.jpg", "the file is empty"),
        ("loop.jpg", r"the file can't be opened: Too many levels of symbolic links \(errno 40\)"),
        ("2.jpg/x", r"the file can't be opened: Not a directory \(errno 20\)"),
        ("x" * 300, r"the file can't be opened: File name too long \(errno 36\)"),
    ):
        path = str(tree / "a" / bad)
        pipe = build(2, files=[good, path, good, good])
        for _ in range(2):
            with pytest.raises(RuntimeError, match=text) as caught:
                pipe.run()
            assert f"Sample 1 of iteration {2 * _}: {path}" in str(caught.value)
            assert bytes(pipe.run()[0].at(0)) == b"a/2.jpg"
    del pipe
    fds = len(os.listdir("/proc/self/fd"))
    used = library().memory_used()
    pipe = build(2, files=[good, str(tree / "gone.jpg")])
    for _ in range(50):
        with pytest.raises(RuntimeError):
            pipe.run()
    pipe.close()
    assert len(os.listdir("/proc/self/fd")) <= fds
    del pipe, caught
    assert library().memory_used() <= used + 100_000


def test_files_that_change_while_they_are_read(tmp_path):
    """A file that is truncated or replaced while reading is an error or has its old or new content."""
    path = tmp_path / "changing"
    stop = threading.Event()
    path.write_bytes(b"\x01" * 3_000_000)

    def change():
        i = 0
        while not stop.is_set():
            with open(path, "r+b") as f:
                f.truncate(1000 if i % 2 else 3_000_000)
            i += 1

    thread = threading.Thread(target=change)
    thread.start()
    try:
        pipe = build(4, files=[str(path)] * 4)
        for _ in range(60):
            try:
                data, _ = pipe.run()
            except RuntimeError as e:
                assert "the file shrank from 3000000 to" in str(e)
                continue
            for i in range(4):
                x = data.at(i)
                assert len(x) in (1000, 3_000_000) and x[:1000].min() == 1 and set(np.unique(x)) <= {0, 1}
    finally:
        stop.set()
        thread.join()


def test_many_at_once(tmp_path):
    """More files than a process may open."""
    for i in range(50):
        (tmp_path / f"{i}").write_text(f"{i}")
    files = [str(tmp_path / f"{i % 50}") for i in range(5000)]
    data, _ = build(5000, files=files).run()
    assert [bytes(data.at(i)) for i in range(5000)] == [f"{i % 50}".encode() for i in range(5000)]


def test_paths(tree):
    wanted = found(file_root=str(tree), file_filters=["*.jpg"])
    assert len(wanted) > 3 and found(file_root=tree, file_filters=["*.jpg"]) == wanted
    contents = [(tree / name, label) for name, label, _ in wanted]
    given = found(files=[p for p, _ in contents], labels=[k for _, k in contents])
    assert [g[1:] for g in given] == [w[1:] for w in wanted]
    (tree / "list.txt").write_text("".join(f"{p} {k}\n" for p, k in contents))
    assert found(file_list=tree / "list.txt", file_root=tree) == given
