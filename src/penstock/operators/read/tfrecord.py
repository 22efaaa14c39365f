# SPDX-License-Identifier: Apache-2.0
"""Reads TFRecord files."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np

from ...core.op import Arg
from ...core.rows import MAX_DIMS
from ._indices import read_pairs, records_of
from ._records import Parsed, RecordReader, Records

# Values as in penstock.tfrecord and the parser.
_INT64, _STRING, _FLOAT = 0, 1, 2
_DEFAULTS: dict[int, tuple[type, ...]] = {_INT64: (int,), _STRING: (str, bytes), _FLOAT: (int, float)}
_TYPES: dict[int, np.dtype] = {_INT64: np.dtype("i8"), _STRING: np.dtype("u1"), _FLOAT: np.dtype("f4")}
_WANTED = np.dtype(
    [(n, "i8") for n in ("name", "name_size", "kind", "is_fixed", "volume", "ndim")]
    + [("shape", "i8", MAX_DIMS), ("default", "i8"), ("default_size", "i8")]
)


class TFRecord(RecordReader):
    """Reads features from TFRecord files of `tf.Example`s.

    Returns a dictionary, with an output for each key of `features`. A feature is described by
    `tfrecord.FixedLenFeature(shape, dtype, default)` or `tfrecord.VarLenFeature([partial_shape,] dtype, default)`:

    * numbers, int64 or float32: of the `shape`, or with as many rows of `partial_shape` as there are values;
    * one string, such as an encoded image, by `FixedLenFeature([], tfrecord.string, "")`: uint8 of shape (bytes,); the
      first one if there are several;
    * several strings, by `FixedLenFeature([k], tfrecord.string, "")` or a VarLenFeature: uint8 of the shape, with the
      length of the longest string as the last extent; shorter strings are padded with zeros.

    If an example does not have a feature, or has no values for it, a FixedLenFeature has its default, and a
    VarLenFeature no elements. Other types or numbers of values than described and damaged records are errors of the
    sample (see `on_error` of the pipeline). For a `tf.SequenceExample`, the features of its context are read.

    >>> import os, tempfile
    >>> from penstock import fn, pipeline_def, tfrecord
    >>> path = os.path.join(tempfile.mkdtemp(), "a.tfrecord")
    >>> record = "1200000000000000241f64250a100a0e0a056c6162656c12051a030a0107" + (
    ...     "368c84b9"
    ... )
    >>> _ = open(path, "wb").write(2 * bytes.fromhex(record))
    >>> @pipeline_def(batch_size=2)
    ... def pipe():
    ...     features = {"label": tfrecord.FixedLenFeature([1], tfrecord.int64, -1)}
    ...     return fn.readers.tfrecord(path=path, features=features)["label"]
    >>> pipe().run()[0].as_array().tolist()
    [[7], [7]]
    """

    module = "readers"
    deprecated = ("TFRecordReader",)

    path = Arg([str], doc="Paths of the TFRecord files, which must not be compressed.")
    index_path = Arg(
        [str],
        None,
        "Paths of the index of each file, as written by `tfrecord2idx`. Without it, the files are scanned when the "
        "pipeline is built, and the result is kept in the user's cache until they change.",
    )
    features = Arg(object, doc="Dictionary of the features to read, by name.")
    use_o_direct = Arg(
        bool, False, "Accepted for compatibility; files are read through the system's cache.", hidden=True
    )
    verify_checksums = Arg(bool, True, "Whether a record with a wrong checksum is a bad sample. Otherwise it is read.")

    def setup(self) -> None:
        super().setup()
        v = self.values
        if not v["path"]:
            raise ValueError("'path' is an empty list")
        if v["index_path"] is not None and len(v["index_path"]) != len(v["path"]):
            raise ValueError(f"{len(v['index_path'])} paths of indices for {len(v['path'])} files; each has its own")
        features = v["features"]
        if not isinstance(features, dict) or not features:
            raise TypeError(f"'features' takes a dictionary with at least one feature by its name; got {features!r}")
        for name, feature in features.items():
            if not isinstance(name, str):
                raise TypeError(f"'features' takes names as keys; got {name!r}")
            if not all(hasattr(feature, k) for k in ("dtype", "default", "shape", "is_fixed")):
                raise TypeError(
                    f"the feature '{name}' has to be made by tfrecord.FixedLenFeature or tfrecord.VarLenFeature; got "
                    f"{feature!r}"
                )
            default = _DEFAULTS.get(feature.dtype)
            extents = [] if feature.shape is None else list(feature.shape)
            if (
                default is None
                or not isinstance(feature.default, default)
                or not all(isinstance(n, int) and n >= 0 for n in extents)
            ):  # invalid in a modified serialised pipeline
                raise ValueError(f"the feature '{name}' has a type, shape or default that can't be: {feature!r}")
            if len(feature.shape or ()) > MAX_DIMS - 2:
                raise ValueError(
                    f"the feature '{name}' has {len(feature.shape)} dimensions; at most {MAX_DIMS - 2} are possible"
                )

    def output_names(self) -> tuple[str, ...]:
        return tuple(self.values["features"] or ())

    def n_outputs(self) -> int:
        return len(self.values["features"])

    def find(self) -> Records:
        v = self.values
        return records_of(v["path"], "tfrecord_records", v["index_path"], lambda index, path: read_pairs(index))

    parser = "read/tf_example"

    def parsed(self) -> tuple[Parsed, ...]:
        outputs = []
        for f in self.values["features"].values():
            extents: tuple[int, ...] = tuple(f.shape or ())
            shape: tuple[int | None, ...] = extents if f.is_fixed else (None, *extents)
            if f.dtype == _STRING:
                shape = (None,) if f.is_fixed and math.prod(extents) == 1 else (*shape, None)
            outputs.append(Parsed(_TYPES[f.dtype], shape))
        return tuple(outputs)

    def parser_arguments(self) -> dict[str, Any]:
        features, text = self.values["features"], b""
        wanted = np.zeros(len(features), _WANTED)

        def put(data: bytes) -> tuple[int, int]:
            nonlocal text
            text += data
            return len(text) - len(data), len(data)

        for row, (name, f) in zip(wanted, features.items()):
            row["name"], row["name_size"] = put(os.fsencode(name))
            shape = f.shape or ()
            row["kind"], row["is_fixed"], row["ndim"] = f.dtype, f.is_fixed, len(shape)
            row["volume"], row["shape"][: len(shape)] = int(np.prod(shape, dtype="i8")), shape
            if f.dtype == _STRING:
                default = f.default if isinstance(f.default, bytes) else os.fsencode(f.default)
                row["default"], row["default_size"] = put(default)
            elif f.dtype == _FLOAT:
                row["default"] = int(np.float32(f.default).view("u4"))
            else:
                row["default"] = f.default
        return {
            "text": np.frombuffer(text + b"\0", "u1")[None],
            "features": wanted.view("i8").reshape(1, -1),
            "n_features": len(features),
            "verifies": self.values["verify_checksums"],
        }
