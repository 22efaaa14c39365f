# SPDX-License-Identifier: Apache-2.0
"""Base of video readers: their arguments and outputs."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from ...core.batch import Batch
from ...core.dtypes import DALIImageType
from ...core.op import Arg
from ...core.source_name import SourceName
from ..decode._padding import padded
from ._records import RecordReader, Records
from ._videos import Ranges, Videos, find_files

FRAME_NUMBERS = {"none": "none", "False": "none", "scalar": "scalar", "True": "scalar", "sequence": "sequence"}
COLOURS = {DALIImageType.RGB, DALIImageType.YCbCr}


class Sequences(RecordReader, abstract=True):
    """A sample is a sequence of frames of a video, read as compressed frames. Subclasses define by `ranges` and
    `starts` where sequences begin."""

    filenames = Arg([str], [], "Paths of the videos.")
    file_root = Arg(str, "", "Folder of the data set: its sub-folders, sorted, are the classes 0, 1, ...")
    file_list = Arg(
        str,
        "",
        'Path of a text file of lines "path label [start [end]]". Relative paths are in its folder. Sequences are '
        "taken from the frames between start and end.",
    )
    labels = Arg([int], None, "One label for each of `filenames`.")
    sequence_length = Arg(int, doc="Number of frames per sequence.")
    stride = Arg(int, 1, "Distance between consecutive frames of a sequence.")
    step = Arg(
        int, -1, "Distance between the first frames of consecutive sequences. By default sequence_length * stride."
    )
    enable_frame_num = Arg(
        str,
        "none",
        "Whether to also return frame numbers: 'scalar' (or True) returns that of a sequence's first frame, of shape "
        "(1,); 'sequence' that of each frame, of shape (F,), -1 for padded ones; 'none' (or False) nothing.",
    )
    enable_timestamps = Arg(
        bool, False, "Whether to also return the time of each frame, in seconds (float64, (F,)); -1 for padded frames."
    )
    image_type = Arg(
        DALIImageType,
        DALIImageType.RGB,
        "Colour space of the frames: RGB, or YCbCr as in the stream, with 8 bits and chroma at every pixel.",
    )

    parser = "read/video_clip"

    def ranges(self, videos: Videos, given: Ranges | None) -> tuple[np.ndarray, np.ndarray]:
        """First frame and end (exclusive) of each video's range, each (files,). `given`: the ranges of the file list,
        or None."""
        raise NotImplementedError

    def starts(self, start: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, int]:
        """Number (files,) of sequences in each range, and the distance between their first frames."""
        raise NotImplementedError

    def frames_from(self, first: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
        """Frame numbers (n, sequence_length) of the sequences that begin at `first` (n,)."""
        return first[:, None] + np.arange(self.values["sequence_length"]) * self.values["stride"]

    def padding(self) -> str:
        """How frames after the end of a range are padded."""
        return "none"

    def setup(self) -> None:
        super().setup()
        who, v = self.display_name(), self.values
        self.check_choice("enable_frame_num", tuple(FRAME_NUMBERS))
        for name in ("sequence_length", "stride"):
            if v[name] < 1:
                raise ValueError(f"{who}: {name} takes at least 1; got {v[name]}")
        if v["image_type"] not in COLOURS:
            raise ValueError(f"{who}: image_type takes RGB or YCbCr; got {v['image_type'].name}")

    def check_choice(self, name: str, accepted: tuple[str, ...]) -> None:
        if self.values[name] not in accepted:
            raise ValueError(
                f"{self.display_name()}: {name} takes one of {', '.join(accepted)}; got {self.values[name]!r}"
            )

    def find(self) -> Records:
        v, who = self.values, self.display_name()
        names, self.labels_of, ranges = find_files(who, v)
        self.videos = videos = Videos(names)
        if videos.errors and len(videos.errors) == len(names):
            first = min(videos.errors)
            raise ValueError(
                f"{who}: none of the {len(names)} videos can be read; {names.path(first)}: {videos.errors[first]}"
            )
        is_bad = videos.frames == 0  # one bad sample each, which reports the reason when it is read
        start, end = self.ranges(videos, ranges)
        count, step = self.starts(start, end)
        count = np.where(is_bad, 1, np.maximum(count, 0))
        self.file_of = file = np.repeat(np.arange(len(names)), count)
        if not len(file):
            raise ValueError(
                f"{who}: no video is long enough for a sequence of {v['sequence_length']} frames with a stride of "
                f"{v['stride']}"
            )
        start, end, is_bad = start[file], end[file], is_bad[file]
        number = np.arange(len(file)) - (np.cumsum(count) - count)[file]
        frames = self.frames_from(start + number * step, start, end) - start[:, None]
        inside = padded(frames, np.maximum(end - start, 1), self.padding())
        frames = np.where((inside < 0) | is_bad[:, None], -1, inside + start[:, None])
        self.frame_of = np.ascontiguousarray(frames, "i4")  # (sequences, sequence_length); -1: padded
        if v["enable_timestamps"]:
            times, begins = videos.times()
            at = begins[file][:, None] + np.maximum(frames, 0)
            self.times_of = np.where(frames < 0, -1.0, np.append(times, -1.0)[np.minimum(at, len(times))])
        self.clip_frames, self.place_of = _each_once(self.frame_of)
        offset, size = videos.spans(file, self.clip_frames)
        self.offset_of = offset
        return Records(names, object=file, offset=offset, length=size, gap=0)

    def parser_arguments(self) -> dict[str, Any]:
        return {
            "files": self.videos.handle,
            "file": self.file_of[None],
            "offset": self.offset_of[None],
            "frames": self.clip_frames.reshape(1, -1),
            "count": self.clip_frames.shape[1],
        }

    def source_name(self, index: int) -> SourceName:
        path = self.videos.names.path(int(self.file_of[index]))
        frames = self.frame_of[index]
        where = f", frames {frames[frames >= 0].min()} to {frames.max()}" if frames.max() >= 0 else ""
        return SourceName(f"{path}{where}", path.given)

    def fingerprint(self) -> int:
        return zlib.crc32(self.frame_of.tobytes(), super().fingerprint())

    def n_outputs(self) -> int:
        v = self.values
        return 2 + self._has_labels() + (FRAME_NUMBERS[v["enable_frame_num"]] != "none") + v["enable_timestamps"]

    def _has_labels(self) -> bool:
        return bool(self.values["labels"] is not None or self.values["file_root"] or self.values["file_list"])

    def finish(self, index: np.ndarray, batches: tuple[Batch, ...]) -> tuple[Batch, ...]:
        """Returns the clip, the indices of the sequence's frames in it, labels, frame numbers and times."""
        sources = batches[0].sources
        columns = [self.place_of[index]]
        if self._has_labels():
            assert self.labels_of is not None
            columns.append(self.labels_of[self.file_of[index]][:, None])
        kind = FRAME_NUMBERS[self.values["enable_frame_num"]]
        if kind == "scalar":
            columns.append(self.frame_of[index, :1])
        elif kind == "sequence":
            columns.append(self.frame_of[index])
        if self.values["enable_timestamps"]:
            columns.append(self.times_of[index])
        return *batches, *(Batch.from_array(np.ascontiguousarray(c), sources=sources) for c in columns)


def _each_once(frames: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For sequences (n, count) of frame numbers: the sorted, distinct frames of each sequence, padded with -1, and the
    index of each frame of the sequence among them (-1 for padded frames)."""
    once, place = frames.copy(), np.tile(np.arange(frames.shape[1], dtype="i4"), (len(frames), 1))
    for row in np.flatnonzero((np.diff(frames, axis=1) <= 0).any(1) | (frames < 0).any(1)):
        unique, back = np.unique(frames[row], return_inverse=True)
        missing = int(unique[0] < 0)
        once[row] = -1
        once[row, : len(unique) - missing] = unique[missing:]
        place[row] = back - missing
    return once, place
