# SPDX-License-Identifier: Apache-2.0
"""What readers of videos have in common: their arguments, and which sequences there are."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from ...core.batch import Batch
from ...core.dtypes import DALIImageType
from ...core.op import Arg
from ...core.source_name import SourceName
from ..decode._padding import PAD_MODES, padded
from ._records import RecordReader, Records
from ._videos import Videos, find_files, range_in_frames, sequences

_ROUNDINGS = ("start_down_end_up", "start_up_end_down", "all_up", "all_down")
_FRAME_NUMBERS = {"none": "none", "False": "none", "scalar": "scalar", "True": "scalar", "sequence": "sequence"}


class Sequences(RecordReader, abstract=True):
    """The arguments, and which sequences there are."""

    filenames = Arg([str], [], "Paths of the videos.")
    file_root = Arg(str, "", "Folder of the data set: its sub-folders, sorted, are the classes 0, 1, ...")
    file_list = Arg(
        str,
        "",
        'Path of a text file of lines "path label [start [end]]". Relative paths are in its folder. Sequences lie '
        "between start and end.",
    )
    file_list_format = Arg(
        str,
        "timestamps",
        "What start and end are: 'timestamps' in seconds, or numbers of 'frames', of which negative ones count from "
        "the end.",
    )
    file_list_rounding = Arg(
        str,
        "start_down_end_up",
        "Which frame a time between two stands for: 'start_down_end_up', 'start_up_end_down', 'all_up' or 'all_down'.",
    )
    file_list_include_end = Arg(
        bool, True, "Accepted for compatibility; as in DALI 2.4 a range ends before the frame at its end.", hidden=True
    )
    labels = Arg([int], None, "One label for each of `filenames`.")
    sequence_length = Arg(int, doc="Frames of each sequence.")
    stride = Arg(int, 1, "Distance from one frame of a sequence to the next.")
    step = Arg(
        int, -1, "Distance from the first frame of a sequence to that of the next; by default sequence_length * stride."
    )
    uniform_sample = Arg(
        bool,
        False,
        "Gives one sequence of each video: frames at equal distances from its first (or the range's) to its last. "
        "`stride`, `step` and `pad_mode` are ignored then.",
    )
    pad_mode = Arg(
        str,
        "none",
        "What becomes of frames behind a video's end: 'none' (a last sequence that is too short is left out), "
        "'constant' (`fill_value`), 'edge' or 'repeat', 'reflect_1001' or 'symmetric', 'reflect_101' or 'reflect'.",
    )
    fill_value = Arg([int], [0], "Colour of frames padded by 'constant', 0 to 255: one value or red, green, blue.")
    enable_frame_num = Arg(
        str,
        "none",
        "Adds an output: 'scalar' (or True), the number of a sequence's first frame, of shape (1,); 'sequence', that "
        "of each frame, of shape (F,), -1 for padded ones; 'none' (or False), no output.",
    )
    enable_timestamps = Arg(
        bool, False, "Adds an output: when each frame is shown, in seconds (float64, (F,)); -1 for padded frames."
    )
    image_type = Arg(DALIImageType, DALIImageType.RGB, "Colours of the frames: RGB.")

    parser = "read/video_clip"

    def setup(self) -> None:
        super().setup()
        who, v = self.display_name(), self.values
        for name, accepted in (
            ("file_list_format", ("timestamps", "frames")),
            ("file_list_rounding", _ROUNDINGS),
            ("pad_mode", tuple(PAD_MODES)),
            ("enable_frame_num", tuple(_FRAME_NUMBERS)),
        ):
            if v[name] not in accepted:
                raise ValueError(f"{who}: {name} takes one of {', '.join(accepted)}; got {v[name]!r}")
        for name in ("sequence_length", "stride"):
            if v[name] < 1:
                raise ValueError(f"{who}: {name} takes at least 1; got {v[name]}")
        if v["image_type"] != DALIImageType.RGB:
            raise ValueError(f"{who}: image_type takes RGB; for other colours call fn.color_space_conversion behind it")
        self.frame_numbers = _FRAME_NUMBERS[v["enable_frame_num"]]

    def find(self) -> Records:
        v, who = self.values, self.display_name()
        names, self.labels_of, ranges = find_files(who, v)
        self.videos = videos = Videos(names)
        if videos.errors and len(videos.errors) == len(names):
            first = min(videos.errors)
            raise ValueError(
                f"{who}: none of the {len(names)} videos can be read; {names.path(first)}: {videos.errors[first]}"
            )
        length, stride = v["sequence_length"], v["stride"]
        step, mode = v["step"] if v["step"] > 0 else length * stride, PAD_MODES[v["pad_mode"]]
        files, numbers, shown = [], [], []
        for i, n in enumerate(videos.frames.tolist()):
            if not n:  # a bad sample, which says why when it is read
                starts, start, end = np.zeros(1, "i8"), 0, 0
            else:
                times = None if v["file_list_format"] == "frames" else lambda i=i: videos.times(i)
                start, end = range_in_frames(ranges[i] if ranges else (), n, times, v["file_list_rounding"])
                starts = sequences(start, end, length, stride, step, mode != "none")
            frames = starts[:, None] + np.arange(length) * stride
            if v["uniform_sample"]:
                at = np.linspace(start, max(end - 1, start), length)
                frames = starts = np.floor(at + 0.5).astype("i8")[None][: 1 if end > start or not n else 0]
            inside = padded(frames - start, np.full(len(starts), max(end - start, 1)), mode)
            files.append(np.full(len(starts), i))
            numbers.append(np.where((inside < 0) | (n == 0), -1, inside + start))
            if v["enable_timestamps"]:
                shown.append(np.where(numbers[-1] < 0, -1.0, np.append(videos.times(i), -1.0)[numbers[-1]]))
        self.file_of, self.times_of = np.concatenate(files), np.concatenate(shown) if shown else np.zeros((0, length))
        self.frame_of = np.ascontiguousarray(np.concatenate(numbers), "i4")  # of each sequence; -1: padded
        if not len(self.file_of):
            raise ValueError(
                f"{who}: no video is long enough for a sequence of {length} frames with a stride of {stride}"
            )
        self.clip_frames, self.place_of = _each_once(self.frame_of)
        offset, size = videos.spans(self.file_of, self.clip_frames)
        self.offset_of = offset
        return Records(names, object=self.file_of, offset=offset, length=size, gap=0)

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
        return 2 + self._has_labels() + (_FRAME_NUMBERS[v["enable_frame_num"]] != "none") + v["enable_timestamps"]

    def _has_labels(self) -> bool:
        return bool(self.values["labels"] is not None or self.values["file_root"] or self.values["file_list"])

    def finish(self, index: np.ndarray, batches: tuple[Batch, ...]) -> tuple[Batch, ...]:
        """The clip, which of its frames make the sequence, then labels, frame numbers and times."""
        sources = batches[0].sources
        columns = [self.place_of[index]]
        if self._has_labels():
            assert self.labels_of is not None
            columns.append(self.labels_of[self.file_of[index]][:, None])
        if self.frame_numbers == "scalar":
            columns.append(self.frame_of[index, :1])
        elif self.frame_numbers == "sequence":
            columns.append(self.frame_of[index])
        if self.values["enable_timestamps"]:
            columns.append(self.times_of[index])
        return *batches, *(Batch.from_array(np.ascontiguousarray(c), sources=sources) for c in columns)


def _each_once(frames: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of sequences (n, count) of frame numbers: the frames of each in the order of the video, each once (-1 behind the
    last), and where among them those of the sequence are (-1 where it has none)."""
    once, place = frames.copy(), np.tile(np.arange(frames.shape[1], dtype="i4"), (len(frames), 1))
    for row in np.flatnonzero((np.diff(frames, axis=1) <= 0).any(1) | (frames < 0).any(1)):
        unique, back = np.unique(frames[row], return_inverse=True)
        missing = int(unique[0] < 0)
        once[row] = -1
        once[row, : len(unique) - missing] = unique[missing:]
        place[row] = back - missing
    return once, place
