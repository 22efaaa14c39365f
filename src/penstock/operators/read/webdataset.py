# SPDX-License-Identifier: Apache-2.0
"""Reads WebDatasets: tar archives whose neighbouring members of one name make a sample."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from ...core.batch import Batch
from ...core.dtypes import DALIDataType, to_numpy
from ...core.kernels import library
from ...core.op import Arg
from ...core.rows import address
from ...core.source_name import SourceName, SourceNames
from ._file_names import FileNames
from ._kept_tables import kept
from ._records import Parsed, RecordReader, Records
from ._scanning import scan_all
from ._table import scan

_COLUMNS = {
    "offset": "i8",
    "size": "i8",
    "name_end": "i8",
    "ext_end": "i8",
    "sample_end": "i8",
    "names": "u1",
    "exts": "u1",
}
_BLOCK = 512  # bytes of a tar header, before each member
_MOST_TOLD = 20  # members of a sample in a warning
_TYPES = (
    "UINT8",
    "UINT16",
    "UINT32",
    "UINT64",
    "INT8",
    "INT16",
    "INT32",
    "INT64",
    "FLOAT16",
    "FLOAT",
    "FLOAT64",
    "BOOL",
)


class Webdataset(RecordReader):
    """Reads samples from tar archives in the WebDataset format.

    A sample consists of consecutive members with the same name before the first dot: `cat/1.jpg` and `cat/1.cls`. Each
    entry of `ext` is an output: the bytes of the member with that extension, as a vector of `dtypes`. Of several
    extensions, separated by semicolons ("jpg;png"), the first member that has one of them is used. Members with other
    extensions are not read.

    Outputs: one for each of `ext`, of shape (elements,). `source_info` is "archive:offset:member". Archives are ustar,
    pax or GNU tar, not compressed. Without `index_paths`, they are scanned when the pipeline is built, and the result
    is kept in the user's cache ($XDG_CACHE_HOME/penstock). A member that is truncated, or does not match an index, is a
    bad sample (see `on_error` of the pipeline).

    >>> import io, os, tarfile, tempfile
    >>> from penstock import fn, pipeline_def
    >>> path = os.path.join(tempfile.mkdtemp(), "train.tar")
    >>> with tarfile.open(path, "w") as archive:
    ...     for name, content in (("1.jpg", b"a picture"), ("1.cls", b"7")):
    ...         member = tarfile.TarInfo(name)
    ...         member.size = len(content)
    ...         archive.addfile(member, io.BytesIO(content))
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return tuple(fn.readers.webdataset(paths=path, ext=["jpg;png", "cls"]))
    >>> [bytes(x.at(0)) for x in pipe().run()]
    [b'a picture', b'7']
    """

    module = "readers"
    parser = "read/webdataset"

    paths = Arg([str], doc="Paths of the archives.")
    ext = Arg([str], doc='Extensions for each output, such as ["jpg;png", "cls"].')
    index_paths = Arg([str], None, "Paths of index files, one per archive, as written by wds2idx (v1.0 to v1.2).")
    dtypes = Arg([DALIDataType], None, "Types of the outputs. By default UINT8.")
    missing_component_behavior = Arg(
        str,
        "",
        'What happens to samples that lack a component: "empty" (the default) returns an empty vector, "skip" omits '
        'the sample, "error" raises an error when the pipeline is built.',
    )
    case_sensitive_extensions = Arg(bool, True, "Whether extensions are case-sensitive.")

    def setup(self) -> None:
        super().setup()
        v, name = self.values, "fn.readers.webdataset"
        if not v["paths"]:
            raise ValueError(f"{name}: 'paths' is an empty list; it takes the paths of tar archives")
        if not v["ext"]:
            raise ValueError(f"{name}: 'ext' is an empty list; it takes the extensions of each output")
        if v["index_paths"] and len(v["index_paths"]) != len(v["paths"]):
            raise ValueError(
                f"{name}: {len(v['index_paths'])} index_paths for {len(v['paths'])} paths; give one for each, or none"
            )
        self.missing = v["missing_component_behavior"].lower() or "empty"
        if self.missing not in ("empty", "skip", "error"):
            raise ValueError(
                f"{name}: missing_component_behavior takes 'empty', 'skip' or 'error'; "
                f"got {v['missing_component_behavior']!r}"
            )
        types = v["dtypes"] if v["dtypes"] is not None else [DALIDataType.UINT8] * len(v["ext"])
        if len(types) != len(v["ext"]):
            raise ValueError(f"{name}: {len(types)} dtypes for {len(v['ext'])} outputs of 'ext'; give one for each")
        for t in types:
            if DALIDataType(t).name not in _TYPES:
                raise ValueError(f"{name}: dtypes takes numbers and BOOL; got {DALIDataType(t).name}")
        self.types = [to_numpy(t) for t in types]

    def n_outputs(self) -> int:
        return len(self.values["ext"] or [""])

    def parsed(self) -> tuple[Parsed, ...]:
        return tuple(Parsed(t, (None,)) for t in self.types)

    def parser_arguments(self) -> dict[str, Any]:
        return {"n_outputs": self.n_outputs()}

    def find(self) -> Records:
        v = self.values
        paths = [os.path.expanduser(p) for p in v["paths"]]
        if v["index_paths"]:
            tables = scan_all("samples", [os.path.expanduser(p) for p in v["index_paths"]], _read_index)
        else:
            tables = scan_all("samples", paths, lambda p: kept("webdataset", p, lambda: _scan_archive(p)))
        columns: list[tuple[np.ndarray, ...]] = []
        self._members: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []  # by archive: match, ends, names
        for i, (path, table) in enumerate(zip(paths, tables)):
            member = match(table, v["ext"], v["case_sensitive_extensions"])
            lacks = (member < 0).any(axis=1)
            if lacks.any() and self.missing == "error":
                k = int(lacks.argmax())
                wanted = [e for e, m in zip(v["ext"], member[k]) if m < 0]
                first = _text(table["names"], table["name_end"], int(table["sample_end"][k - 1]) if k else 0)
                raise ValueError(
                    f"{path}: sample {k} ({first or 'without a name'}) has no member with the extension "
                    f"{' and '.join(wanted)}; "
                    "missing_component_behavior='skip' leaves such samples out"
                )
            if self.missing == "skip":
                member = member[~lacks]
            there = member >= 0
            at = np.maximum(member, 0)
            offset = np.where(there, table["offset"][at] - _BLOCK, 0)
            length = np.where(there, table["size"][at] + _BLOCK, 0)
            columns.append((np.where(there, i, -1), offset, length))
            self._members.append((member, table["name_end"], table["names"]))
        object, offset, length = (np.concatenate(c) for c in zip(*columns))
        self._there, self._offset = object >= 0, offset
        if not len(object):
            raise ValueError(
                f"there is no sample with members of the extensions {', '.join(v['ext'])} in {len(paths)} archives, "
                f"the first of which is {paths[0]}"
            )
        if self.missing == "empty":
            self._warn_of_missing(tables)
        self._begins = np.cumsum([0, *(len(m[0]) for m in self._members)])
        self._names = [partial(self._component, k) for k in range(len(v["ext"]))]
        return Records(FileNames("", [[os.fsencode(p) for p in paths]]), object, offset, length)

    def _warn_of_missing(self, tables: Sequence[dict[str, np.ndarray]]) -> None:
        """Warns of outputs that no sample has, whose extensions are probably wrong."""
        never = ~np.logical_or.reduce([(member >= 0).any(axis=0) for member, _, _ in self._members])
        if never.any():
            exts, end, last = tables[0]["exts"], tables[0]["ext_end"], int(tables[0]["sample_end"][0])
            first = ", ".join(repr(_text(exts, end, i)) for i in range(min(last, _MOST_TOLD)))
            unknown = " and ".join(repr(e) for e, is_missing in zip(self.values["ext"], never) if is_missing)
            warnings.warn(
                f"fn.readers.webdataset: no sample has a member with the extension {unknown}, so these outputs are "
                f"empty; the first sample of {self.values['paths'][0]} has {first}",
                stacklevel=2,
            )

    def source_name(self, index: int) -> SourceName:
        return self._component(int(self._there[index].argmax()), index)

    def finish(self, index: np.ndarray, batches: tuple[Batch, ...]) -> tuple[Batch, ...]:
        for batch, name in zip(batches, self._names):
            batch.sources = SourceNames(name, index)
        return batches

    def _component(self, output: int, index: int) -> SourceName:
        """The source of one output of a sample."""
        archive = int(np.searchsorted(self._begins, index, "right")) - 1
        members, name_end, names = self._members[archive]
        member = int(members[index - self._begins[archive], output])
        path = self.values["paths"][archive]
        if member < 0:
            return SourceName(f"{path}, sample {index - int(self._begins[archive])}, which lacks it", "")
        name = _text(names, name_end, member)
        offset = int(self._offset[index, output]) + _BLOCK
        return SourceName(f"{path}, {name or 'a member'}, offset {offset}", f"{path}:{offset}:{name}")


def _scan_archive(path: str) -> dict[str, np.ndarray]:
    table = scan("wds_archive", os.fsencode(path), **_COLUMNS)
    if not len(table["sample_end"]):
        raise ValueError("the archive has no samples: no regular files whose names don't begin with a dot")
    return table


def _read_index(path: str) -> dict[str, np.ndarray]:
    return scan("wds_index", os.fsencode(path), **_COLUMNS)


def _text(texts: np.ndarray, ends: np.ndarray, i: int) -> str:
    """The i-th of the concatenated texts."""
    return os.fsdecode(texts[int(ends[i - 1]) if i else 0 : int(ends[i])].tobytes())


def match(table: dict[str, np.ndarray], ext: Sequence[str], case_sensitive: bool) -> np.ndarray:
    """Index (samples, outputs) of the member for each output, -1 if there is none."""
    wanted = [(e, k) for k, several in enumerate(ext) for e in several.split(";")]
    text = b"".join(os.fsencode(e) + b"\0" for e, _ in wanted)
    outputs = np.array([k for _, k in wanted], "i8")
    n = len(table["sample_end"])
    member = np.empty((n, len(ext)), "i8")
    ends = [np.ascontiguousarray(table[k], "i8") for k in ("sample_end", "ext_end")]
    exts = np.ascontiguousarray(table["exts"])
    library().wds_match(
        *(n, address(ends[0]), address(ends[1]), address(exts) if len(exts) else 0, len(wanted), text),
        *(address(outputs), len(ext), int(case_sensitive), address(member)),
    )
    return member
