# SPDX-License-Identifier: Apache-2.0
"""Reads recordings of speech and their texts, from NeMo manifests."""

from __future__ import annotations

import os
import warnings
import zlib
from typing import Any

import numpy as np

from ...core import storage
from ...core.dtypes import DALIDataType, from_numpy, to_numpy
from ...core.op import Arg
from ...core.source_name import SourceName
from ..audio._rates import lobes_of
from ..decode._ffmpeg import open_ffmpeg
from ._file_names import FileNames
from ._records import APART, Parsed, RecordReader, Records
from ._scanning import scan_all
from ._table import scan

_COLUMNS = {
    "offset": "f8",
    "duration": "f8",
    "path_end": "i8",
    "paths": "u1",
    "text_end": "i8",
    "texts": "u1",
    "bad_line": "i8",
    "why_end": "i8",
    "whys": "u1",
}
_TYPES = ("INT16", "INT32", "FLOAT")
_BY_FFMPEG = (b".m4a", b".mp4", b".mov", b".mkv", b".mka", b".webm", b".aac")
_MOST_TOLD = 3  # lines listed in a warning


class NemoAsr(RecordReader):
    """Reads recordings of speech from NeMo manifests: text files with one JSON object per line.

    An entry has `audio_filepath`, and may have `text`, `duration` and `offset` (in seconds), which select a part of the
    recording. Other keys are ignored. Relative paths are relative to the working folder, or to the manifest's folder if
    the manifest's first file exists only there. Invalid lines are omitted with a warning. Recordings are decoded as by
    `fn.decoders.audio`. If a long WAV file has several entries, or one with an `offset`, only its header and the
    samples of the entry are read, by URL too.

    Outputs: the samples, (time), or (time, channels) without `downmix`, without a layout; and, if requested, in this
    order: the sampling rate of the recording (before resampling), a float32 scalar; its text in UTF-8, uint8, empty if
    the entry has none; the index of the entry among those that are read, int64 of shape (1,).

    >>> import json, os, tempfile, wave
    >>> from penstock import fn, pipeline_def
    >>> folder = tempfile.mkdtemp()
    >>> with wave.open(os.path.join(folder, "a.wav"), "wb") as file:
    ...     file.setparams((1, 2, 16000, 0, "NONE", ""))
    ...     file.writeframes(bytes(2 * 16000))
    >>> with open(os.path.join(folder, "train.json"), "w") as file:
    ...     entry = {"audio_filepath": os.path.join(folder, "a.wav"), "duration": 1.0, "text": "silence"}
    ...     _ = file.write(json.dumps(entry))
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return tuple(fn.readers.nemo_asr(manifest_filepaths=[os.path.join(folder, "train.json")]))
    >>> sound, rate, text = pipe().run()
    >>> sound.at(0).shape, float(rate.at(0)), bytes(text.at(0))
    ((16000,), 16000.0, b'silence')
    """

    module = "readers"
    deprecated = ("NemoAsrReader",)
    parser = "read/nemo_asr"

    manifest_filepaths = Arg([str], doc="Paths of the manifests.")
    dtype = Arg(DALIDataType, DALIDataType.FLOAT, f"Type of the samples, one of {', '.join(_TYPES)}.")
    downmix = Arg(bool, True, "Whether to return the mean of the channels, as one signal without a channel axis.")
    sample_rate = Arg(float, -1.0, "Sampling rate to which recordings are resampled, in Hz. By default they are not.")
    quality = Arg(float, 50.0, "Resampling quality, from 0 to 100, as in `fn.audio_resample`.")
    min_duration = Arg(
        float, 0.0, "Entries with a shorter duration, in seconds, or without one are omitted; 0: no minimum."
    )
    max_duration = Arg(float, 0.0, "Entries with a longer duration, in seconds, are omitted; 0: no maximum.")
    read_sample_rate = Arg(bool, True, "Whether to return sampling rates.")
    read_text = Arg(bool, True, "Whether to return texts.")
    read_idxs = Arg(bool, False, "Whether to return the indices of entries.")
    normalize_text = Arg(bool, False, "No longer used.", hidden=True, deprecated="it has no effect")

    def setup(self) -> None:
        super().setup()
        v = self.values
        if not v["manifest_filepaths"]:
            raise ValueError("fn.readers.nemo_asr: 'manifest_filepaths' is an empty list; it takes paths of manifests")
        if v["dtype"].name not in _TYPES:
            raise ValueError(f"dtype={v['dtype'].name} is not supported; supported: {', '.join(_TYPES)}")
        self.lobes = lobes_of(v["quality"])

    def parsed(self) -> tuple[Parsed, ...]:
        v, scalar = self.values, ()
        outputs = [Parsed(to_numpy(v["dtype"]), (None,) if v["downmix"] else (None, None))]
        outputs += [Parsed(np.dtype("f4"), scalar)] * v["read_sample_rate"]
        outputs += [Parsed()] * v["read_text"]
        outputs += [Parsed(np.dtype("i8"), (1,))] * v["read_idxs"]
        return tuple(outputs)

    def parser_arguments(self) -> dict[str, Any]:
        v = self.values
        return {
            "offset": self.begins[None],
            "duration": self.durations[None],
            "texts": self.texts[None],
            "text_end": self.text_end[None],
            "sample_rate": max(v["sample_rate"], 0.0),
            "dtype": from_numpy(to_numpy(v["dtype"])),
            "lobes": self.lobes,
            **{k: v[k] for k in ("downmix", "read_sample_rate", "read_text", "read_idxs")},
        }

    def find(self) -> Records:
        v = self.values
        manifests = [os.path.expanduser(p) for p in v["manifest_filepaths"]]
        tables = scan_all("entries", manifests, lambda p: scan("nemo_manifest", os.fsencode(p), **_COLUMNS))
        paths: list[bytes] = []
        texts: list[bytes] = []
        for manifest, table in zip(manifests, tables):
            _warn(manifest, table)
            paths += _in_folder(_split(table["paths"], table["path_end"]), manifest)
            texts += _split(table["texts"], table["text_end"])
        offset, duration = (np.concatenate([t[k] for t in tables]) for k in ("offset", "duration"))
        low, high = (float(np.float32(v[k])) for k in ("min_duration", "max_duration"))
        taken = np.ones(len(paths), bool)
        if low > 0:
            taken &= duration >= low
        if high > 0:
            taken &= ~(duration > high)
        kept = np.flatnonzero(taken)
        if not len(kept):
            limits = f"; {len(paths)} have another duration than min_duration={low:g} and max_duration={high:g} allow"
            raise ValueError(
                f"there are no entries in {len(manifests)} manifests, the first of which is "
                f"{storage.without_secrets(manifests[0])}"
                f"{limits if paths else ''}"
            )
        self.begins, self.durations = offset[kept], duration[kept]
        self.text_end = np.cumsum([len(texts[i]) for i in kept], dtype="i8")
        self.texts = np.frombuffer(b"".join(texts[i] for i in kept) + b"\0", "u1")
        if any(paths[i].lower().endswith(_BY_FFMPEG) for i in kept):
            open_ffmpeg()
        names: dict[bytes, int] = {}
        object = np.array([names.setdefault(paths[i], len(names)) for i in kept], "i8")
        # Parts of recordings are not read ahead: the parser reads only the part if the format allows it.
        is_part = (self.begins > 0) | (np.bincount(object)[object] > 1)
        lengths = np.where(is_part, 0, -1)
        return Records(FileNames("", [list(names)]), object, np.zeros(len(kept), "i8"), lengths, gap=APART)

    def lengths_found(self) -> np.ndarray:
        missing = np.flatnonzero(~(self.durations >= 0))
        if len(missing):
            raise ValueError(
                f"'batch_by_length' is True, but {len(missing)} of {len(self.durations)} entries have no duration, the "
                f"first of them {self.source_name(int(missing[0]))}; add them to the manifest, or give an array with a "
                "length for each entry"
            )
        return self.durations

    def source_name(self, index: int) -> SourceName:
        path = self.records.objects.path(int(self.records.object[index]))  # type: ignore[index]
        return SourceName(f"{path}, entry {index}", path.given)

    def fingerprint(self) -> int:
        return zlib.crc32(self.begins.tobytes(), zlib.crc32(self.texts.tobytes(), super().fingerprint()))


def _split(texts: np.ndarray, ends: np.ndarray) -> list[bytes]:
    data, limits = texts.tobytes(), [0, *ends.tolist()]
    return [data[b:e] for b, e in zip(limits, limits[1:])]


def _in_folder(paths: list[bytes], manifest: str) -> list[bytes]:
    """Resolves relative paths in the manifest's folder if it is a URL, or if the first relative path exists only
    there."""
    folder, is_url = os.fsencode(storage.folder_of(manifest)), storage.is_url(manifest)
    relative = [not os.path.isabs(p) and not storage.is_url(p) for p in paths]
    first = next((p for p, r in zip(paths, relative) if r), None)
    if first is None or not (is_url or _is_only_in(folder, first)):
        return paths
    return [os.path.join(folder, p) if r else p for p, r in zip(paths, relative)]


def _is_only_in(folder: bytes, path: bytes) -> bool:
    return not os.path.exists(path) and os.path.exists(os.path.join(folder, path))


def _warn(manifest: str, table: dict[str, np.ndarray]) -> None:
    lines = table["bad_line"].tolist()
    if not lines:
        return
    whys = [w.decode("utf-8", "replace") for w in _split(table["whys"], table["why_end"])]
    told = "; ".join(f"line {line}: {why}" for line, why in zip(lines[:_MOST_TOLD], whys))
    more = f"; and {len(lines) - _MOST_TOLD} more" if len(lines) > _MOST_TOLD else ""
    name = storage.without_secrets(manifest)
    warnings.warn(f"{name}: lines that are not valid entries are left out: {told}{more}", stacklevel=2)
