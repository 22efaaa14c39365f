# SPDX-License-Identifier: Apache-2.0
"""Reads the compressed frames that sequences of videos need, with the sequences of DALI's `readers.video`."""

from __future__ import annotations

import numpy as np

from ...core.dtypes import DALIDataType
from ...core.op import Arg
from ._sequences import FRAME_NUMBERS, Sequences
from ._videos import Ranges, Videos

_NO_EFFECT = "Accepted for compatibility."


class LegacyClips(Sequences):
    """Reads the compressed data for `readers.video`: for each sequence the compressed frames that it needs, and the
    order of its frames.

    >>> from penstock import fn, pipeline_def
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return fn.readers.video(filenames=["examples/clips/clock.mp4"], sequence_length=3)
    >>> pipe().run()[0].shape()
    [(3, 48, 64, 3)]
    """

    module = "_video"
    labels = Arg([int], None, "One label for each of `filenames`; an empty list gives the labels 0, 1, ...")
    file_list_frame_num = Arg(
        bool,
        False,
        "Whether start and end in the file list are frame numbers instead of seconds; fractions are truncated. "
        "Negative numbers (and seconds) count from the end.",
    )
    file_list_include_preceding_frame = Arg(
        bool,
        False,
        "How times in the file list that are between two frames are rounded. True: the range starts with the frame "
        "before and ends after the frame shown at that time. By default it starts with the frame after and ends "
        "before the frame shown then.",
    )
    pad_sequences = Arg(
        bool,
        False,
        "Whether to return sequences that extend beyond the end; missing frames are zero, their numbers and times -1.",
    )
    dtype = Arg(DALIDataType, DALIDataType.UINT8, "Type of the frames: UINT8 or FLOAT.")
    normalized = Arg(bool, False, "Whether values are in [0, 1] instead of [0, 255].")
    channels = Arg(int, 3, _NO_EFFECT, hidden=True)
    additional_decode_surfaces = Arg(int, 2, _NO_EFFECT, hidden=True)
    skip_vfr_check = Arg(bool, False, "Has no effect: videos with a variable frame rate are read exactly.")

    @classmethod
    def display_name(cls) -> str:
        return "fn.readers.video"  # the operator with these arguments

    def setup(self) -> None:
        super().setup()
        who, v = self.display_name(), self.values
        if v["dtype"] not in (DALIDataType.UINT8, DALIDataType.FLOAT):
            raise ValueError(f"{who}: dtype takes UINT8 or FLOAT; got {v['dtype'].name}")
        if v["labels"] == []:
            v["labels"] = list(range(len(v["filenames"])))
        for name in ("enable_frame_num", "enable_timestamps"):
            if FRAME_NUMBERS.get(str(v[name])) != "none" and not v["file_list"] and v["labels"] is None:
                raise ValueError(f"{who}: {name} needs a `file_list`, or `filenames` together with `labels`")

    def padding(self) -> str:
        return "constant" if self.values["pad_sequences"] else "none"

    def ranges(self, videos: Videos, given: Ranges | None) -> tuple[np.ndarray, np.ndarray]:
        start, end = np.zeros(len(videos), "i8"), videos.frames.copy()
        for i in np.flatnonzero(videos.frames).tolist() if given else ():
            bounds = [float(word) for word in given[i]]  # type: ignore[index]
            if any(bounds):
                start[i], end[i] = self._range(videos, i, *bounds)
        return start, end

    def _range(self, videos: Videos, file: int, start: float, end: float = 0.0) -> tuple[int, int]:
        frames = int(videos.frames[file])
        if self.values["file_list_frame_num"]:
            last: float = frames
            first_frame = int(start) + (frames if start < 0 else 0)
            end_frame = int(end) + (frames if end <= 0 else 0)
        else:
            times = videos.times_of(file)
            last = times[-1] + (times[-1] - times[0]) / max(frames - 1, 1)  # end of the last frame
            times = np.append(times, last)
            sides = ("down", "up") if self.values["file_list_include_preceding_frame"] else ("up", "down")
            first_frame = _frame_at(start + (last if start < 0 else 0), times, sides[0])
            end_frame = _frame_at(end + (last if end <= 0 else 0), times, sides[1])
        if not 0 <= first_frame <= end_frame <= frames:
            what = "frame numbers" if self.values["file_list_frame_num"] else "seconds"
            raise ValueError(
                f"{self.display_name()}: the range from {start:g} to {end:g} ({what}) is not one of "
                f"{videos.names.path(file)}, which has {frames} frames and ends at {last:g}"
            )
        return first_frame, end_frame

    def starts(self, start: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, int]:
        v = self.values
        span = 1 + (v["sequence_length"] - 1) * v["stride"]
        step = v["step"] if v["step"] > 0 else v["sequence_length"] * v["stride"]
        whole = (end - start - span) // step + 1
        return -((start - end) // step) if v["pad_sequences"] else whole, step


def _frame_at(time: float, times: np.ndarray, side: str) -> int:
    """The frame that begins at a time or, if there is none, the next ("up") or previous ("down") one. The last of
    `times` is the end of the video; len(times) means beyond it."""
    up = int(np.searchsorted(times, time - 1e-6))  # times are only as exact as the file's clock
    exact = up < len(times) and abs(times[up] - time) <= 1e-6
    return up if side == "up" or exact or up == len(times) else max(up - 1, 0)
