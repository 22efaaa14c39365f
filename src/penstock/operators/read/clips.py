# SPDX-License-Identifier: Apache-2.0
"""Reads the compressed frames that sequences of videos need."""

from __future__ import annotations

import numpy as np

from ...core.op import Arg
from ..decode._padding import PAD_MODES
from ._sequences import Sequences
from ._videos import ROUNDINGS, Ranges, Videos, range_in_frames


class Clips(Sequences):
    """Reads the compressed data for `experimental.readers.video`: for each sequence the compressed frames that it
    needs, and the order of its frames.

    >>> from penstock import fn, pipeline_def
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return fn.experimental.readers.video(filenames=["examples/clips/clock.mp4"], sequence_length=3)
    >>> pipe().run()[0].shape()
    [(3, 48, 64, 3)]
    """

    module = "_video"
    file_list_format = Arg(
        str,
        "timestamps",
        "Unit of start and end: 'timestamps' in seconds, or numbers of 'frames', of which negative ones count from the "
        "end.",
    )
    file_list_rounding = Arg(
        str,
        "start_down_end_up",
        "How a time between two frames is rounded: 'start_down_end_up', 'start_up_end_down', 'all_up' or 'all_down'.",
    )
    file_list_include_end = Arg(
        bool, True, "Accepted for compatibility; as in DALI 2.4 a range ends before the frame at its end.", hidden=True
    )
    uniform_sample = Arg(
        bool,
        False,
        "Returns one sequence per video: frames at equal distances from the first frame (or the range's) to the last. "
        "`stride`, `step` and `pad_mode` are ignored.",
    )
    pad_mode = Arg(
        str,
        "none",
        "How frames after a video's end are filled: 'none' (a last sequence that is too short is omitted), 'constant' "
        "(`fill_value`), 'edge' or 'repeat', 'reflect_1001' or 'symmetric', 'reflect_101' or 'reflect'.",
    )
    fill_value = Arg([int], [0], "Colour of frames padded by 'constant', 0 to 255: one value or red, green, blue.")

    @classmethod
    def display_name(cls) -> str:
        return "fn.experimental.readers.video"  # the operator with these arguments

    def setup(self) -> None:
        super().setup()
        self.check_choice("file_list_format", ("timestamps", "frames"))
        self.check_choice("file_list_rounding", tuple(ROUNDINGS))
        self.check_choice("pad_mode", tuple(PAD_MODES))

    def padding(self) -> str:
        return PAD_MODES[self.values["pad_mode"]]

    def ranges(self, videos: Videos, given: Ranges | None) -> tuple[np.ndarray, np.ndarray]:
        start, end = np.zeros(len(videos), "i8"), videos.frames.copy()
        as_frames, rounding = self.values["file_list_format"] == "frames", self.values["file_list_rounding"]
        for i in np.flatnonzero(videos.frames).tolist() if given else ():
            times = None if as_frames else lambda i=i: videos.times_of(i)
            start[i], end[i] = range_in_frames(given[i], int(videos.frames[i]), times, rounding)  # type: ignore[index]
        return start, end

    def starts(self, start: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, int]:
        v = self.values
        if v["uniform_sample"]:
            return (end > start).astype("i8"), 1
        span = v["sequence_length"] * v["stride"]
        step = v["step"] if v["step"] > 0 else span
        count = np.maximum((end - start - span) // step + 1, 0)
        if self.padding() != "none":
            count += start + count * step < end  # a sequence that extends beyond the end
        return count, step

    def frames_from(self, first: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
        if not self.values["uniform_sample"]:
            return super().frames_from(first, start, end)
        at = np.linspace(start, np.maximum(end - 1, start), self.values["sequence_length"], axis=1)
        return np.floor(at + 0.5).astype("i8")
