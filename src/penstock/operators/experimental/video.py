# SPDX-License-Identifier: Apache-2.0
"""Sequences of frames of video files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..read._decoded_clips import decode_clips
from ..read.clips import Clips


class Video(Clips):
    """Reads sequences of frames from videos, with any codec that `decoders.video` supports.

    A new sequence begins every `step` frames, as long as it lies completely in the video (the last may be padded). Only
    the bytes that a sequence needs are read and decoded. Frame numbers are exact for any frame rate. Files are indexed
    when the pipeline is built; a file that can't be read is a bad sample (see `on_error`), unless none can be read.

    Outputs: frames (FHWC, uint8, RGB); then, if requested, the label (int32, (1,)), the frame number and the
    timestamps. With device="gpu", the GPU's video engines decode what they support, as in `decoders.video`, and outputs
    are on the GPU.

    >>> from penstock import fn, pipeline_def
    >>> @pipeline_def(batch_size=2)
    ... def pipe():
    ...     return tuple(
    ...         fn.experimental.readers.video(
    ...             filenames=["examples/clips/clock.mp4"], labels=[7], sequence_length=4, enable_frame_num="scalar"
    ...         )
    ...     )
    >>> frames, labels, numbers = pipe().run()
    >>> frames.shape(), labels.as_array().tolist(), numbers.as_array().tolist()
    ([(4, 48, 64, 3), (4, 48, 64, 3)], [[7], [7]], [[0], [4]])
    """

    module = "experimental.readers"
    devices = ("cpu", "gpu")

    def n_outputs(self) -> int:
        return super().n_outputs() - 1

    @classmethod
    def expand(cls, inputs: tuple, kwargs: dict[str, Any], call: Callable[..., Any]) -> Any:
        return decode_clips("_video.clips", kwargs, call)
