# SPDX-License-Identifier: Apache-2.0
"""Reads Caffe2's LMDB databases."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.op import Arg
from ._lmdb import LmdbReader
from ._records import Parsed

_SPARSE, _WEIGHTED, _NONE = 1, 3, 4  # label types


class Caffe2(LmdbReader):
    """Reads images, labels and more from LMDB databases of Caffe2's message TensorProtos.

    Outputs, each from the next tensor of a record:

    * with `image_available`, the image, uint8: encoded ones of shape (size,), others (height, width, channels);
    * unless `label_type` is 4, labels: unchanged, int32 or float32 (n,), or for sparse ones a vector of `num_labels`
      elements, which are 1, or the label's weight (float32), at the labels and 0 elsewhere;
    * `additional_inputs` vectors, float32, int32 or int64;
    * with `bbox`, int32 (4,).

    Records are read in the order of their keys. A damaged database raises an error when the pipeline is built; a
    damaged record is a bad sample (see `on_error` of the pipeline). Databases must not be modified while they are read.

    >>> import lmdb, tempfile
    >>> from penstock import fn, pipeline_def
    >>> folder = tempfile.mkdtemp()
    >>> picture = b"\\x10\\x04\\x32\\x09a picture"  # TensorProto(data_type=STRING, string_data=[b"a picture"])
    >>> label = b"\\x10\\x02\\x20\\x07"  # TensorProto(data_type=INT32, int32_data=[7])
    >>> with lmdb.open(folder) as database, database.begin(write=True) as records:
    ...     _ = records.put(b"0", b"".join(b"\\x0a" + bytes([len(t)]) + t for t in (picture, label)))
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return tuple(fn.readers.caffe2(path=folder))
    >>> pictures, labels = pipe().run()
    >>> bytes(pictures.at(0)), labels.at(0).tolist()
    (b'a picture', [7])
    """

    module = "readers"
    deprecated = ("Caffe2Reader",)
    parser = "read/caffe2"

    path = Arg([str], doc="Folders of the databases, each with a file data.mdb, or such files.")
    image_available = Arg(bool, True, "Whether the first tensor of a record is an image.")
    label_type = Arg(
        int,
        0,
        "0: a single label; 1: the indices of several; 2: a dense vector; 3: indices, with weights in the next tensor; "
        "4: no labels.",
    )
    num_labels = Arg(int, 1, "Number of classes, for sparse labels.")
    additional_inputs = Arg(int, 0, "Number of additional tensors.")
    bbox = Arg(bool, False, "Whether the last tensor is a box.")

    def setup(self) -> None:
        super().setup()
        v, name = self.values, "fn.readers.caffe2"
        if not 0 <= v["label_type"] <= _NONE:
            raise ValueError(f"{name}: label_type takes 0 to 4; got {v['label_type']}")
        if v["num_labels"] < 1:
            raise ValueError(f"{name}: num_labels takes at least 1; got {v['num_labels']}")
        if not 0 <= v["additional_inputs"] <= 60:
            raise ValueError(f"{name}: additional_inputs takes 0 to 60; got {v['additional_inputs']}")
        if not self.n_outputs():
            raise ValueError(f"{name}: without picture, labels and additional inputs nothing is left")

    def n_outputs(self) -> int:
        v = self.values
        return bool(v["image_available"]) + (v["label_type"] != _NONE) + v["additional_inputs"] + bool(v["bbox"])

    def parsed(self) -> tuple[Parsed, ...]:
        v = self.values
        outputs = [Parsed(np.dtype("u1"), None)] if v["image_available"] else []
        if v["label_type"] != _NONE:
            outputs.append(Parsed(np.dtype("f4") if v["label_type"] == _WEIGHTED else None, (None,)))
        outputs += [Parsed(None, (None,))] * v["additional_inputs"]
        return (*outputs, *([Parsed(np.dtype("i4"), (None,))] if v["bbox"] else []))

    def parser_arguments(self) -> dict[str, Any]:
        v = self.values
        return {
            "has_image": int(v["image_available"]),
            "label_type": v["label_type"],
            "num_labels": v["num_labels"],
            "additional": v["additional_inputs"],
            "has_bbox": int(v["bbox"]),
        }
