# SPDX-License-Identifier: Apache-2.0
"""Readers with one file per sample. Files are given as a folder, a list, or a text file with a list."""

from __future__ import annotations

import os
from typing import Any

from ...core.op import Arg
from ...core.source_name import SourceName
from ._file_names import FileNames, files_in, read_names
from ._records import RecordReader


def check_given(who: str, v: dict[str, Any]) -> None:
    """Raises ValueError unless the values of `file_root`, `files` and `file_list` say where the files are."""
    if v["file_root"] is None and v["files"] is None and v["file_list"] is None:
        raise ValueError(f"{who}: 'file_root', 'files' or 'file_list' is needed")
    if v["files"] is not None and v["file_list"] is not None:
        raise ValueError(f"{who}: 'files' and 'file_list' can't be used together")
    if v["files"] is not None and not v["files"]:
        raise ValueError(f"{who}: 'files' is an empty list")


class FilesOfFolder(RecordReader, abstract=True):
    """Base of such readers without labels. Subclasses declare `file_filter` with their own default."""

    file_root = Arg(
        str,
        None,
        "Folder of the data set. By itself, the samples are the files in it and in its sub-folders, sorted. With "
        "`files` or `file_list`, the folder of relative paths.",
    )
    files = Arg([str], None, "Paths of the files, relative to `file_root` if it is given, or to the working folder.")
    file_list = Arg(
        str, None, "Path of a text file with one path per line, relative to `file_root`, by default the list's folder."
    )

    def setup(self) -> None:
        super().setup()
        check_given(self.display_name(), self.values)

    def source_name(self, index: int) -> SourceName:
        return self.records.objects.path(index)

    def find_files(self) -> FileNames:
        v = self.values
        root = None if v["file_root"] is None else os.path.expanduser(v["file_root"])
        if v["files"] is not None:
            names = FileNames(root or "", [[os.fsencode(f) for f in v["files"]]])
        elif v["file_list"] is not None:
            names = read_names(os.path.expanduser(v["file_list"]), root)
        else:
            assert root is not None
            names = files_in(root, v["file_filter"])
        if not len(names):
            raise ValueError(f"there are no files {v['file_filter']!r} in {root}" if root else "there are no files")
        return names
