# SPDX-License-Identifier: Apache-2.0
"""Reads files as they are."""

from __future__ import annotations

import os
import zlib

import numpy as np

from ...core import kernels
from ...core.batch import Batch, Spec
from ...core.errors import SampleErrors
from ...core.op import Arg, Picks
from ...core.rows import ArgumentRows, TensorRows, address, allocate
from ._blocks import Blocks
from ._file_names import FileNames, Paths, read_list, scan
from ._sharded import ShardedSource

_MEDIA = ("jpg", "jpeg", "png", "bmp", "tif", "tiff", "pnm", "ppm", "pgm", "pbm", "jp2", "webp", "flac", "ogg", "wav")
_BYTE, _INT32, _INT64 = np.dtype("u1"), np.dtype("i4"), np.dtype("i8")


class File(ShardedSource):
    """Reads whole files and gives their bytes and labels.

    The files are given in one of three ways: `file_root` alone is a folder whose sub-folders are the classes; `files`,
    with or without `labels`, is a list; `file_list` names a text file of lines "path label".

    Outputs: the bytes, uint8 of shape (size,), and the label, int32 of shape (1,). Both know the path (`source_info`).
    A file that is missing, empty, no regular file, can't be read, or shrinks while it is read is a bad sample: see
    `on_error` of the pipeline. Files are read whole, in parallel and ahead, in native threads.

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

    file_root = Arg(
        str,
        None,
        "Folder of the data set. Alone: its sub-folders, sorted, are the classes 0, 1, ... and the files in them, "
        "sorted, "
        "the samples; deeper folders are not visited. With `files` or `file_list`: the folder that relative paths "
        "are in.",
    )
    files = Arg([str], None, "Paths of the files, relative to `file_root` or else to the working folder.")
    labels = Arg([int], None, "One label for each of `files`; by default their numbers.")
    file_list = Arg(
        str,
        None,
        'Path of a text file of lines "path label". Relative paths are in `file_root`, by default the list\'s folder.',
    )
    file_filters = Arg([str], [f"*.{e}" for e in _MEDIA], "Glob patterns of the files to read from `file_root`.")
    dir_filters = Arg([str], None, "Glob patterns of the sub-folders of `file_root` to read; all by default.")
    case_sensitive_filter = Arg(
        bool, False, "Whether `file_filters` and `dir_filters` tell capital letters from small ones."
    )

    def setup(self) -> None:
        super().setup()
        v = self.values
        if v["file_root"] is None and v["files"] is None and v["file_list"] is None:
            raise ValueError("fn.readers.file: 'file_root', 'files' or 'file_list' is needed")
        if v["files"] is not None and v["file_list"] is not None:
            raise ValueError("fn.readers.file: 'files' and 'file_list' can't be used together")
        if v["labels"] is not None and v["files"] is None:
            raise ValueError("fn.readers.file: 'labels' can be used only together with 'files'")
        if v["files"] is not None and not v["files"]:
            raise ValueError("fn.readers.file: 'files' is an empty list")
        if v["labels"] is not None and len(v["labels"]) != len(v["files"]):
            raise ValueError(f"fn.readers.file: {len(v['labels'])} labels for {len(v['files'])} files")
        for name in ("file_filters", "dir_filters"):
            if v[name] is not None and not v[name]:
                raise ValueError(
                    f"fn.readers.file: '{name}' is an empty list; leave it out to read everything it applies to"
                )
        self.names = FileNames("", [])
        self._idle: list[_Reading] = []
        self.labels_of = np.zeros(0, "i4")

    def n_outputs(self) -> int:
        return 2

    def find(self) -> int:
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
        self._labels_address = self.labels_of.ctypes.data
        return len(self.names)

    def fingerprint(self) -> int:
        return zlib.crc32(self.labels_of.tobytes(), zlib.crc32(self.names.text.tobytes()))

    def load(self, picks: Picks, io: kernels.Pool) -> tuple[Batch, ...]:
        index = np.ascontiguousarray(picks.columns["index"], _INT64)
        n = len(index)
        try:
            reading = self._idle.pop()
        except IndexError:
            reading = _Reading(n)
        if reading.n != n:
            reading = _Reading(n)
        (encoded, at), (label, at_label) = allocate(n, kernels.TENSOR), allocate((n, 1), _INT32)
        label_rows, at_label_rows = allocate(n, kernels.TENSOR)
        sources, owner = Paths(self.names, index), Blocks(encoded, at)
        kernels.library().name_files(
            *(address(index), n, self.names.root_address, self.names.text_address, self.names.begins_address),
            *(self._labels_address, reading.arguments, at, reading.out, at_label, at_label_rows),
        )
        labels = Batch(reading.label_spec, label_rows, (label,), sources, label)
        labels.rows_address = at_label_rows
        batch = Batch(Spec(encoded["shape"][:, :1], _BYTE), encoded, (owner,), sources)
        batch.rows_address = at
        # Last, as this thread's caches are cold when it goes on.
        outcome = reading.run(io)
        if outcome.failed:
            raise SampleErrors({int(i): outcome.reason(i) for i in outcome.status.nonzero()[0]}, sources)
        if not self._idle:
            self._idle.append(reading)
        return batch, labels


class _Reading:
    """The native reading of n files, kept from batch to batch until one can't be read."""

    def __init__(self, n: int):
        kernel = kernels.kernel("read/whole_file")
        arguments, out = ArgumentRows(n, kernel.args, kernel.pointers), TensorRows(n)
        self.n, self.arguments, self.out = n, arguments.address, out.address
        self.label_spec = Spec.uniform(n, (1,), _INT32)
        self._program = kernels.Program([kernels.Step(kernel, arguments.array, [(out.array, -1)], [])], n)
        self._outcome = kernels.Outcome(np.zeros(n, "i4"), n, 1)
        self._chain = self._program.bind(self._outcome, chunk=1)

    def run(self, io: kernels.Pool) -> kernels.Outcome:
        """Fills in addresses and extents of encoded samples."""
        outcome = self._outcome
        outcome.failed = kernels.library().pool_run(io.handle(), self._chain)
        return outcome


def _nothing_found(root: str, folders: list[str], dir_filters: list[str] | None, file_filters: list[str]) -> str:
    if not folders:
        matching = f" that match dir_filters={dir_filters}" if dir_filters is not None else ""
        return (
            f"no sub-folders{matching} in {root}; file_root is a folder with one sub-folder per class (for other "
            "arrangements use 'files' or 'file_list')"
        )
    some = ", ".join(folders[:5]) + (", ..." if len(folders) > 5 else "")
    return f"no files that match file_filters={file_filters} in the {len(folders)} sub-folders of {root} ({some})"
