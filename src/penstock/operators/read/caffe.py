# SPDX-License-Identifier: Apache-2.0
"""Reads Caffe's LMDB databases."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.op import Arg
from ._lmdb import LmdbReader
from ._records import Parsed

_BYTE, _INT32 = np.dtype("u1"), np.dtype("i4")


class Caffe(LmdbReader):
    """Reads images and labels from LMDB databases of Caffe's message Datum.

    Outputs: the image, uint8: encoded images unchanged, of shape (size,), others of shape (height, width, channels),
    with the bytes in the order of the database; and the label, int32 of shape (1,).

    Records are read in the order of their keys, databases in the order of `path`. A damaged database raises an error
    when the pipeline is built; a damaged record is a bad sample (see `on_error` of the pipeline). Databases must not be
    modified while they are read.

    >>> import lmdb, tempfile
    >>> from penstock import fn, pipeline_def
    >>> folder = tempfile.mkdtemp()
    >>> with lmdb.open(folder) as database, database.begin(write=True) as records:
    ...     _ = records.put(b"00000000", b"\\x22\\x09a picture\\x28\\x07")  # Datum(data=b"a picture", label=7)
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return tuple(fn.readers.caffe(path=folder))
    >>> pictures, labels = pipe().run()
    >>> bytes(pictures.at(0)), labels.at(0).tolist()
    (b'a picture', [7])
    """

    module = "readers"
    deprecated = ("CaffeReader",)
    parser = "read/caffe"

    path = Arg([str], doc="Folders of the databases, each with a file data.mdb, or such files.")
    image_available = Arg(bool, True, "Whether records have an image, which is then the first output.")
    label_available = Arg(bool, True, "Whether records have a label, which is then the last output.")

    def setup(self) -> None:
        super().setup()
        if not self.n_outputs():
            raise ValueError("fn.readers.caffe: image_available and label_available are both False; nothing is left")

    def n_outputs(self) -> int:
        return bool(self.values["image_available"]) + bool(self.values["label_available"])

    def parsed(self) -> tuple[Parsed, ...]:
        outputs = []
        if self.values["image_available"]:
            outputs.append(Parsed(_BYTE, None))
        if self.values["label_available"]:
            outputs.append(Parsed(_INT32, (1,)))
        return tuple(outputs)

    def parser_arguments(self) -> dict[str, Any]:
        v = self.values
        return {"has_image": int(v["image_available"]), "has_label": int(v["label_available"])}
