# SPDX-License-Identifier: Apache-2.0
"""Reads files as they are."""

from __future__ import annotations

import os
import zlib
from typing import Any

import numpy as np

from ...core.batch import Batch
from ...core.op import Arg
from ._file_names import FileNames, read_list, scan
from ._files_of_folder import check_given
from ._records import RecordReader, Records

_LONG = 256 << 10  # bytes; of larger files, decoders that need a part read only this part
_NEVER = (1 << 63) - 1

_MEDIA = ("jpg", "jpeg", "png", "bmp", "tif", "tiff", "pnm", "ppm", "pgm", "pbm", "jp2", "webp", "flac", "ogg", "wav")


class File(RecordReader):
    """Reads whole files and returns their bytes and labels.

    The files are given in one of three ways: `file_root` alone is a folder whose sub-folders are the classes; `files`,
    with or without `labels`, is a list; `file_list` is a text file of lines "path label".

    Outputs: the bytes, uint8 of shape (size,), and the label, int32 of shape (1,). Both have the path as `source_info`.
    A file that is missing, empty, not a regular file, can't be read, or shrinks while it is read is a bad sample (see
    `on_error` of the pipeline). Native threads read whole files, in parallel and ahead. One exception: WAV files that
    are used only by `fn.decoders.audio` are read by the decoder if the system has them in its cache, and of long ones
    only the part that a following slice or crop needs; not if they are read by URL.

    >>> import os, tempfile
    >>> from penstock import fn, pipeline_def
    >>> root = tempfile.mkdtemp()
    >>> for name in ("cat", "dog"):
    ...     os.mkdir(f"{root}/{name}")
    ...     _ = open(f"{root}/{name}/1.jpg", "w").write(name)
    >>> @pipeline_def(batch_size=2)
    ... def pipe():
    ...     return fn.readers.file(file_root=root)
    >>> contents, labels = pipe().run()
    >>> bytes(contents.at(1)), labels.at(1).tolist()
    (b'dog', [1])
    """

    module = "readers"
    deprecated = ("FileReader",)
    may_leave_rest = True

    file_root = Arg(
        str,
        None,
        "Folder of the data set. By itself, its sub-folders, sorted, are the classes 0, 1, ... and the files in them, "
        "sorted, are the samples; deeper folders are not searched. With `files` or `file_list`, the folder of relative "
        "paths.",
    )
    files = Arg([str], None, "Paths of the files, relative to `file_root` if it is given, or to the working folder.")
    labels = Arg([int], None, "One label for each of `files`. By default their indices.")
    file_list = Arg(
        str,
        None,
        'Path of a text file of lines "path label". Relative paths are in `file_root`, by default the list\'s folder.',
    )
    file_filters = Arg([str], [f"*.{e}" for e in _MEDIA], "Glob patterns of the files to read from `file_root`.")
    dir_filters = Arg([str], None, "Glob patterns of the sub-folders of `file_root` to read. By default all.")
    case_sensitive_filter = Arg(bool, False, "Whether `file_filters` and `dir_filters` are case-sensitive.")

    def setup(self) -> None:
        super().setup()
        v = self.values
        files, labels = v["files"], v["labels"]
        check_given("fn.readers.file", v)
        if labels is not None:
            if files is None:
                raise ValueError("fn.readers.file: 'labels' can be used only together with 'files'")
            if len(labels) != len(files):
                raise ValueError(f"fn.readers.file: {len(labels)} labels for {len(files)} files")
        for name in ("file_filters", "dir_filters"):
            if v[name] is not None and not v[name]:
                raise ValueError(
                    f"fn.readers.file: '{name}' is an empty list; leave it out to read everything it applies to"
                )
        self.names = FileNames("", [])
        self.labels_of = np.zeros(0, "i4")

    def n_outputs(self) -> int:
        return 2

    def find(self) -> Records:
        v = self.values
        root = None if v["file_root"] is None else os.path.expanduser(v["file_root"])
        if v["files"] is not None:
            self.names = FileNames(root or "", [[os.fsencode(f) for f in v["files"]]])
            self.labels_of = (
                np.arange(len(self.names), dtype="i4") if v["labels"] is None else np.array(v["labels"], "i4")
            )
        elif v["file_list"] is not None:
            self.names, self.labels_of = read_list(os.path.expanduser(v["file_list"]), root)
            if not len(self.names):
                raise ValueError(f"the file list {v['file_list']} has no entries")
        else:
            assert root is not None
            self.names, self.labels_of, folders = scan(
                root, v["dir_filters"], v["file_filters"], v["case_sensitive_filter"]
            )
            if not len(self.names):
                raise ValueError(_nothing_found(root, folders, v["dir_filters"], v["file_filters"]))
        alone = self.leaves_rest and not self.names.has_urls  # remote files are read ahead instead
        if alone:
            self.parser = "read/sound_head"  # type: ignore[misc]
        return Records(self.names, by_parser=alone)

    def parser_arguments(self) -> dict[str, Any]:
        return {"least": _LONG if self.gives_parts else _NEVER} if self.parser else {}

    def labels_found(self) -> np.ndarray:
        return self.labels_of

    def fingerprint(self) -> int:
        return zlib.crc32(self.labels_of.tobytes(), zlib.crc32(self.names.text.tobytes()))

    def finish(self, index: np.ndarray, batches: tuple[Batch, ...]) -> tuple[Batch, ...]:
        labels = self.labels_of[index].reshape(len(index), 1)
        return *batches, Batch.from_array(labels, sources=batches[0].sources)


def _nothing_found(root: str, folders: list[str], dir_filters: list[str] | None, file_filters: list[str]) -> str:
    if not folders:
        matching = f" that match dir_filters={dir_filters}" if dir_filters is not None else ""
        return (
            f"no sub-folders{matching} in {root}; file_root is a folder with one sub-folder per class (for other "
            "arrangements use 'files' or 'file_list')"
        )
    some = ", ".join(folders[:5]) + (", ..." if len(folders) > 5 else "")
    where = f"in the {len(folders)} sub-folders of {root} ({some})"
    return f"no files that match file_filters={file_filters} {where}; file_filters=['*'] takes all"
