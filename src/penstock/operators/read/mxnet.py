# SPDX-License-Identifier: Apache-2.0
"""Reads MXNet's RecordIO files."""

from __future__ import annotations

import numpy as np

from ...core import storage
from ...core.op import Arg
from ._indices import read_pairs, records_of
from ._records import Parsed, RecordReader, Records


class MXNet(RecordReader):
    """Reads images and labels from RecordIO files, as written by MXNet's `im2rec`.

    Outputs: the encoded image, uint8 of shape (bytes,), and its labels, float32 of shape (labels,). Damaged records are
    bad samples (see `on_error` of the pipeline).

    >>> import os, struct, tempfile
    >>> from penstock import fn, pipeline_def
    >>> path = os.path.join(tempfile.mkdtemp(), "a.rec")
    >>> image = struct.pack("<IfQQ", 0, 7.0, 0, 0) + b"jpeg"
    >>> _ = open(path, "wb").write(struct.pack("<II", 0xced7230a, len(image)) + image)
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return fn.readers.mxnet(path=path)
    >>> contents, labels = pipe().run()
    >>> bytes(contents.at(0)), labels.at(0).tolist()
    (b'jpeg', [7.0])
    """

    module = "readers"
    deprecated = ("MXNetReader",)

    path = Arg([str], doc="Paths of the RecordIO files.")
    index_path = Arg(
        [str],
        None,
        "Paths of the index of each file, as written by `rec2idx` and `im2rec`. Without it, the files are scanned "
        "when the pipeline is built, and the result is kept in the user's cache until they change.",
    )

    parser = "read/recordio"

    def setup(self) -> None:
        super().setup()
        v = self.values
        if not v["path"]:
            raise ValueError("'path' is an empty list")
        if v["index_path"] is not None and len(v["index_path"]) != len(v["path"]):
            raise ValueError(f"{len(v['index_path'])} paths of indices for {len(v['path'])} files; each has its own")

    def find(self) -> Records:
        return records_of(self.values["path"], "recordio_records", self.values["index_path"], _rows)

    def parsed(self) -> tuple[Parsed, ...]:
        return Parsed(), Parsed(np.dtype("f4"), (None,))


def _rows(index: str, path: str) -> np.ndarray:
    """Offsets and sizes, from lines "number offset". A record ends where the next one begins."""
    offset = np.sort(read_pairs(index)[:, 1])
    end = np.append(offset[1:], max(storage.size(path), int(offset[-1]) if len(offset) else 0))
    return np.stack([offset, end[: len(offset)] - offset], axis=1)
