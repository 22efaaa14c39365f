# SPDX-License-Identifier: Apache-2.0
"""Names of very many files in a compact form: one block of bytes, and the offset of each name."""

from __future__ import annotations

import codecs
import fnmatch
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from ...core import listings, storage
from ...core.source_name import SourceName

_OTHER_SCHEME = re.compile(rb"(?:\A|\0)(?!(?:%s)://)[A-Za-z][A-Za-z0-9+.-]*://" % "|".join(storage.SCHEMES).encode())


class FileNames:
    """Names under `root`, as concatenated zero-terminated bytes. Absolute names and URLs ignore the root."""

    def __init__(self, root: str, parts: Iterable[Sequence[bytes]]):
        """`parts`: lists of names, such as one list per folder."""
        self.root = np.frombuffer(os.fsencode(os.path.join(root, "") if root else "") + b"\0", "u1")
        blocks, lengths = [], []
        for names in parts:
            if names:
                blocks.append(b"\0".join(names))
                lengths.append(np.fromiter(map(len, names), "i8", len(names)) + 1)
        blocks.append(b"")
        text = b"\0".join(blocks)
        self.has_urls = storage.is_url(root) or b"://" in text
        if self.has_urls and not storage.is_url(root) and (unknown := _OTHER_SCHEME.search(text)):
            name = os.fsdecode(text[unknown.start() :].strip(b"\0").partition(b"\0")[0])
            raise ValueError(storage.unknown_scheme(storage.without_secrets(name)))
        self.text = np.frombuffer(text, "u1")
        self.root_address, self.text_address = self.root.ctypes.data, self.text.ctypes.data
        self._begins = np.cumsum(np.concatenate([np.zeros(1, "i8"), *lengths]))  # with the end of the last name
        self.begins_address = self._begins.ctypes.data

    def __len__(self) -> int:
        return len(self._begins) - 1

    def path(self, index: int) -> SourceName:
        name = self._name(index)
        return SourceName(storage.without_secrets(self.full_path(index)), storage.without_secrets(name))

    def full_path(self, index: int) -> str:
        """The path for opening the file; may contain secrets of a URL."""
        name = self._name(index)
        return name if storage.is_url(name) else os.path.join(os.fsdecode(self.root[:-1].tobytes()), name)

    def full_paths(self) -> list[str]:
        root, names = os.fsdecode(self.root[:-1].tobytes()), os.fsdecode(self.text.tobytes()).split("\0")[: len(self)]
        if not self.has_urls:
            return [os.path.join(root, name) for name in names] if root else names
        return [name if storage.is_url(name) else os.path.join(root, name) for name in names]

    def _name(self, index: int) -> str:
        return os.fsdecode(self.text[int(self._begins[index]) : int(self._begins[index + 1]) - 1].tobytes())


def _as_fnmatch(pattern: str) -> str:
    """Converts a shell pattern to the syntax of the module fnmatch, which does not have `[^...]` and backslashes."""
    return re.sub(r"\\(.)|\[\^", lambda m: f"[{m[1]}]" if m[1] else "[!", pattern)


def matcher(patterns: Sequence[str], case_sensitive: bool) -> Callable[[str], bool]:
    """Whether a name matches one of the glob patterns: `*`, `?`, `[...]`, `[!...]`, `[^...]`, a backslash before a
    literal."""
    texts = list(patterns) if case_sensitive else [p.lower() for p in patterns]
    # Patterns such as "*.jpg" are by far the most frequent, and matching suffixes is much faster.
    suffixes = tuple(t[1:] for t in texts if t[:1] == "*" and not re.search(r"[*?\[\\]", t[1:]))
    others = [t for t in texts if not (t[:1] == "*" and t[1:] in suffixes)]
    fold = str if case_sensitive else str.lower
    if not others:
        return lambda name: fold(name).endswith(suffixes)
    flags = 0 if case_sensitive else re.IGNORECASE
    glob = re.compile("|".join(fnmatch.translate(_as_fnmatch(t)) for t in others), flags).match
    return lambda name: fold(name).endswith(suffixes) or glob(name) is not None


def _listing(folder: str, wanted: Callable[[str], bool], folders: bool = False) -> list[bytes]:
    """Names of the files (or folders) in a folder, sorted by bytes."""
    try:
        if storage.is_url(folder) and folders:
            return [os.fsencode(n) for n in listings.folders_in(folder) if wanted(n)]
        is_wanted = os.DirEntry.is_dir if folders else _is_file_or_link
        with os.scandir(folder) as entries:
            names = [os.fsencode(e.name) for e in entries if wanted(e.name) and is_wanted(e)]
    except OSError as e:
        raise OSError(e.errno, f"the folder can't be listed: {e.strerror}", folder) from None
    names.sort()
    return names


def _files(root: str, folders: Sequence[bytes], wanted: Callable[[str], bool]) -> Iterator[tuple[int, list[bytes]]]:
    """Files in folders under `root`; each of `folders` ends with a slash or is empty. Yields the folder's index and
    some of its names under `root`, sorted by bytes."""
    paths = [os.path.join(root, os.fsdecode(folder.rstrip(b"/"))) for folder in folders]
    if storage.is_url(root):
        for i, found in enumerate(listings.objects_in_each(paths)):
            for page in found.pages():
                yield i, [folders[i] + name for name in page if wanted(os.fsdecode(name))]
        return
    for i, path in enumerate(paths):
        yield i, [folders[i] + name for name in _listing(path, wanted)]


def _is_file_or_link(entry: os.DirEntry) -> bool:
    """All links are included, so that a dangling link becomes a bad sample instead of being silently omitted."""
    return entry.is_symlink() or entry.is_file(follow_symlinks=False)


def scan(
    root: str, dir_filters: Sequence[str] | None, file_filters: Sequence[str], case_sensitive: bool
) -> tuple[FileNames, np.ndarray, list[str]]:
    """Files in the sub-folders of `root`, labels (int32: index of the file's folder in sorted order), and the
    folders."""
    in_folder = matcher(dir_filters, case_sensitive) if dir_filters is not None else lambda name: True
    folders = _listing(root, in_folder, folders=True)
    counts = np.zeros(len(folders), "i8")

    def files() -> Iterator[list[bytes]]:
        for i, names in _files(root, [folder + b"/" for folder in folders], matcher(file_filters, case_sensitive)):
            counts[i] += len(names)
            yield names

    found = FileNames(root, files())
    return found, np.repeat(np.arange(len(folders), dtype="i4"), counts), [os.fsdecode(f) for f in folders]


def files_in(root: str, pattern: str) -> FileNames:
    """Files in `root`, and then in its sub-folders, that match a glob pattern."""
    folders = [name + b"/" for name in _listing(root, lambda name: True, folders=True)]
    folders.insert(0, b"" if storage.is_url(root) else b"./")
    return FileNames(root, (names for _, names in _files(root, folders, matcher([pattern], True))))


def folders_of_files(root: str, patterns: Sequence[str]) -> tuple[FileNames, list[int]]:
    """Files in the sub-folders of `root` that match a glob pattern, in the order of their paths, and the number of
    files of each folder. Names that begin with a dot are skipped."""
    matches = matcher(patterns, False)
    folders = [name + b"/" for name in _listing(root, lambda name: not name.startswith("."), folders=True)]
    folders.sort()
    parts = list(_files(root, folders, lambda name: not name.startswith(".") and matches(name)))
    counts = [0] * len(folders)
    for i, names in parts:
        counts[i] += len(names)
    return FileNames(root, (names for _, names in parts)), counts


def lines_of(path: str) -> list[bytes]:
    """The lines of a file list, without the mark that some editors put before UTF-8. Raises OSError."""
    try:
        text = storage.read(path)
    except OSError as e:
        raise OSError(e.errno, f"the file list can't be read: {e.strerror}", storage.without_secrets(path)) from None
    return text.removeprefix(codecs.BOM_UTF8).split(b"\n")


def read_names(path: str, root: str | None) -> FileNames:
    """Files from a list with one path per line. Relative paths are in `root`, or in the list's folder."""
    names = [line.rstrip() for line in lines_of(path) if line.strip()]
    return FileNames(storage.folder_of(path) if root is None else root, [names])


_LINE = re.compile(rb"(.*\S)\s+([+-]?\d+)\s*")


def read_list(path: str, root: str | None) -> tuple[FileNames, np.ndarray]:
    """Files and labels (int32) from lines of "path label". Relative paths are in `root`, or in the list's folder."""
    names, labels = [], []
    for number, line in enumerate(lines_of(path), 1):
        match = _LINE.fullmatch(line)
        if match is not None:
            names.append(match[1])
            labels.append(int(match[2]))
        elif line.strip():
            text = line.strip().decode("utf-8", "replace")
            raise ValueError(
                f"line {number} of the file list {path} must be a path, a space and an integer label; got {text!r}"
            )
    if labels and (max(labels) >= 2**31 or min(labels) < -(2**31)):
        i = next(i for i, v in enumerate(labels) if not -(2**31) <= v < 2**31)
        raise ValueError(
            f"the label of {os.fsdecode(names[i])} in the file list {path} does not fit into int32: {labels[i]}"
        )
    return FileNames(storage.folder_of(path) if root is None else root, [names]), np.array(labels, "i4")
