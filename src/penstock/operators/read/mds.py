# SPDX-License-Identifier: Apache-2.0
"""Reads the shards of MosaicML Streaming (MDS)."""

from __future__ import annotations

import json
import os
from typing import Any, NamedTuple

import numpy as np

from ...core import dtypes, storage
from ...core.op import Arg
from ...core.rows import MAX_DIMS
from ._file_names import FileNames
from ._records import Parsed, RecordReader, Records
from ._scanning import scan_all
from ._shards import unpacked
from ._table import scan

# Values as in kernels/read/mds.h.
_BYTES, _FIXED, _ARRAY, _PIL = range(4)
_AS_THEY_ARE = ("bytes", "str", "jpeg", "png", "json", "str_int", "str_float", "str_decimal")
_SIZED = "uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 float32 float64"
_NUMBERS = {"int": "int64", **{name: name for name in _SIZED.split()}}
_OUTPUT = np.dtype([(n, "i8") for n in ("column", "kind", "dtype", "ndim")] + [("shape", "i8", MAX_DIMS)])


class _Encoding(NamedTuple):
    """The encoding of a column, and its output."""

    kind: int
    parsed: Parsed


class _Shard(NamedTuple):
    path: str
    packed: str  # the compressed file, "" if there is none
    compression: str
    bytes: int  # uncompressed size
    samples: int


class MDS(RecordReader):
    """Reads data sets of MosaicML Streaming, as written by its `MDSWriter`: an `index.json` and shards.

    Each entry of `columns` is an output, whose form depends on the column's encoding:

    * "bytes", "jpeg", "png", "str", "json" and "str_int" (or "_float", "_decimal"): uint8 of shape (bytes,);
    * "int" and numbers such as "float32": the number's type ("int" is int64), of shape (1,);
    * "ndarray": the array's type and shape; if samples store the type, it must be the same in a batch;
    * "pil": uint8 of shape (height, width, channels), layout HWC, for the modes L, RGB and RGBA.

    Other encodings ("pkl", lists) are not supported. Shards compressed with "zstd", "gz", "bz2" or "snappy", or with
    "br" if the package brotli is installed, are decompressed to `local` when the pipeline is built, and again only if
    they change. A damaged sample is a bad sample (see `on_error` of the pipeline).

    >>> import json, os, struct, tempfile
    >>> from penstock import fn, pipeline_def
    >>> folder = tempfile.mkdtemp()
    >>> sample = struct.pack("<I", 4) + b"jpeg" + struct.pack("<q", 7)
    >>> shard = struct.pack("<III", 1, 12, 12 + len(sample)) + sample
    >>> _ = open(os.path.join(folder, "shard.00000.mds"), "wb").write(shard)
    >>> about = {"format": "mds", "samples": 1, "compression": None, "zip_data": None}
    >>> about |= {"column_names": ["image", "label"], "column_encodings": ["jpeg", "int"], "column_sizes": [None, 8]}
    >>> about["raw_data"] = {"basename": "shard.00000.mds", "bytes": len(shard)}
    >>> with open(os.path.join(folder, "index.json"), "w") as file:
    ...     json.dump({"version": 2, "shards": [about]}, file)
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return tuple(fn.readers.mds(path=folder, columns=["image", "label"]))
    >>> images, labels = pipe().run()
    >>> bytes(images.at(0)), labels.at(0).tolist()
    (b'jpeg', [7])
    """

    module = "readers"
    parser = "read/mds"

    path = Arg([str], doc="Folders with an index.json, which are read one after the other.")
    columns = Arg([str], doc='Names of the columns to return, such as ["image", "label"].')
    local = Arg(
        str,
        None,
        "Folder for decompressed shards. By default one in the user's cache ($XDG_CACHE_HOME/penstock/shards).",
    )

    def setup(self) -> None:
        super().setup()
        for name in ("path", "columns"):
            if not self.values[name]:
                raise ValueError(f"'{name}' is an empty list")

    def n_outputs(self) -> int:
        return len(self.values["columns"] or [""])

    def find(self) -> Records:
        shards: list[_Shard] = []
        self.names: list[str] = []
        for folder in self.values["path"]:
            shards += self._read_index(os.path.expanduser(folder))
        if not any(s.samples for s in shards):
            raise ValueError(f"there are no samples in {', '.join(self.values['path'][:3])}")
        missing = [c for c in self.values["columns"] if c not in self.names]
        if missing:
            raise ValueError(f"there is no column '{missing[0]}'; there are {', '.join(self.names)}")
        self.encodings = [_encoding(self.texts[self.names.index(c)], c) for c in self.values["columns"]]
        of_path = {s.packed or s.path: s for s in shards}
        local = self.values["local"]

        def samples(name: str) -> tuple[str, dict[str, np.ndarray]]:
            shard = of_path[name]
            path = unpacked(shard.path, shard.packed, shard.compression, shard.bytes, local) if shard.packed else name
            return path, scan("mds_samples", os.fsencode(path), shard.samples, offset="i8", length="i8")

        found = scan_all("samples", [s.packed or s.path for s in shards], samples)
        return Records(
            FileNames("", [[os.fsencode(path) for path, _ in found]]),
            np.repeat(np.arange(len(shards)), [s.samples for s in shards]),
            np.concatenate([t["offset"] for _, t in found]),
            np.concatenate([t["length"] for _, t in found]),
        )

    def _read_index(self, folder: str) -> list[_Shard]:
        path = f"{folder.rstrip('/')}/index.json"
        try:
            listed = json.loads(storage.read(path))["shards"]
            shards = [self._shard(folder, about) for about in listed]
        except OSError as e:
            raise OSError(e.errno, f"the index can't be read: {e.strerror}", storage.without_secrets(path)) from None
        except (KeyError, TypeError, AttributeError, RecursionError) as e:
            what = f"it lacks {e}" if isinstance(e, KeyError) else str(e)
            raise ValueError(f"{storage.without_secrets(path)} is not an index of MDS shards: {what}") from None
        except ValueError as e:
            raise ValueError(f"{storage.without_secrets(path)}: {e}") from None
        return shards

    def _shard(self, folder: str, about: dict[str, Any]) -> _Shard:
        raw, packed = about["raw_data"], about.get("zip_data") or {}
        name = raw["basename"]
        if about["format"] != "mds":
            raise ValueError(f"the shard {name} is of the format {about['format']!r}; 'mds' can be read")
        names, texts = list(about["column_names"]), list(about["column_encodings"])
        sizes = [-1 if s is None else int(s) for s in about["column_sizes"]]
        if not len(names) == len(texts) == len(sizes) or min(sizes, default=0) < -1:
            raise ValueError(f"the shard {name} has {len(names)} columns, {len(texts)} encodings and sizes {sizes}")
        if not self.names:
            self.names, self.texts, self.sizes = names, texts, sizes
        if (names, texts, sizes) != (self.names, self.texts, self.sizes):
            raise ValueError(f"the columns of the shard {name} differ from those of the first: {names}, {texts}")
        samples, size = int(about["samples"]), int(raw["bytes"])
        for part in filter(None, (name, packed.get("basename"))):
            if os.path.isabs(part) or ".." in part.split("/"):
                raise ValueError(f"the shard {part!r} lies outside of the data set's folder")
        compression = str(about.get("compression") or "").partition(":")[0] if packed else ""
        where = [f"{folder.rstrip('/')}/{n}" if n else "" for n in (name, packed.get("basename"))]
        return _Shard(where[0], where[1], compression, size, samples)

    def parsed(self) -> tuple[Parsed, ...]:
        return tuple(e.parsed for e in self.encodings)

    def parser_arguments(self) -> dict[str, Any]:
        outputs = np.zeros(self.n_outputs(), _OUTPUT)
        for row, name, (kind, p) in zip(outputs, self.values["columns"], self.encodings):
            row["column"], row["kind"] = self.names.index(name), kind
            row["dtype"] = -1 if p.dtype is None else dtypes.from_numpy(p.dtype)
            row["ndim"] = -1 if p.shape is None else len(p.shape)
            row["shape"][: len(p.shape or ())] = [n or 0 for n in p.shape or ()]
            if kind == _FIXED and p.dtype is not None:
                size = int(np.prod(row["shape"][: row["ndim"]])) * p.dtype.itemsize
                if self.sizes[row["column"]] == size:
                    continue
                raise ValueError(
                    f"the column '{name}' has the encoding {self.texts[row['column']]!r} and a size of "
                    f"{self.sizes[row['column']]} bytes, which do not fit"
                )
        sizes = np.array(self.sizes, "i8")
        return {
            "sizes": sizes[None],
            "outputs": outputs.view("i8").reshape(1, -1),
            "n_columns": len(sizes),
            "n_outputs": len(outputs),
        }


def _encoding(text: str, column: str) -> _Encoding:
    """Parses the name of a column's encoding in the index."""
    kind, *about = text.split(":")
    if text in _AS_THEY_ARE:
        return _Encoding(_BYTES, Parsed())
    if text in _NUMBERS:
        return _Encoding(_FIXED, Parsed(np.dtype(_NUMBERS[text]), (1,)))
    if text == "pil":
        return _Encoding(_PIL, Parsed(np.dtype("u1"), (None, None, None), "HWC"))
    if kind == "ndarray" and len(about) <= 2 and (not about or about[0] in _NUMBERS):
        dtype = np.dtype(about[0]) if about else None
        if len(about) < 2:
            return _Encoding(_ARRAY, Parsed(dtype, None))
        shape = tuple(map(int, about[1].split(",")))
        if len(shape) <= MAX_DIMS and min(shape) > 0:
            return _Encoding(_FIXED, Parsed(dtype, shape))
    raise ValueError(
        f"the column '{column}' has the encoding {text!r}; those that can be read are {', '.join(_AS_THEY_ARE)}, "
        f"ndarray, pil and numbers"
    )
