# SPDX-License-Identifier: Apache-2.0
"""Reads sequences of frames from video files, as DALI's `readers.video`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.dtypes import DALIDataType
from ...core.op import REGISTRY
from ._decoded_clips import decode_clips
from .legacy_clips import LegacyClips


class Video(LegacyClips):
    """Reads sequences of frames from videos, with any codec that `decoders.video` supports.

    A new sequence begins every `step` frames, as long as it lies completely in the video; with `pad_sequences`,
    sequences may extend beyond the end. Only the bytes that a sequence needs are read and decoded. Frame numbers are
    exact for any frame rate. Files are indexed when the pipeline is built; a file that can't be read is a bad sample
    (see `on_error`), unless none can be read.

    Outputs: frames (FHWC, RGB or YCbCr, uint8 or float32); the label (int32, (1,)) if there are labels, from `labels`,
    the folders in `file_root` or the `file_list`; the frame number and the timestamps, if requested. With device="gpu",
    the GPU's video engines decode what they support, as in `decoders.video`, and outputs are on the GPU.

    >>> from penstock import fn, pipeline_def, types
    >>> @pipeline_def(batch_size=2)
    ... def pipe():
    ...     return tuple(
    ...         fn.readers.video(
    ...             filenames=["examples/clips/clock.mp4"], labels=[], sequence_length=4, enable_frame_num="sequence",
    ...             dtype=types.FLOAT, normalized=True
    ...         )
    ...     )
    >>> frames, labels, numbers = pipe().run()
    >>> frames.shape()[0], labels.as_array().tolist(), numbers.as_array().tolist()
    ((4, 48, 64, 3), [[0], [0]], [[0, 1, 2, 3], [4, 5, 6, 7]])
    """

    module = "readers"
    deprecated = ("VideoReader",)
    devices = ("cpu", "gpu")

    def n_outputs(self) -> int:
        return super().n_outputs() - 1

    @classmethod
    def expand(cls, inputs: tuple, kwargs: dict[str, Any], call: Callable[..., Any]) -> Any:
        def finish(frames: Any) -> Any:
            return scaled(frames, kwargs, call)

        return decode_clips("_video.legacy_clips", kwargs, call, finish)


def scaled(frames: Any, kwargs: dict[str, Any], call: Callable[..., Any]) -> Any:
    """Converts frames with values 0 to 255 according to `dtype` and `normalized`."""
    dtype = kwargs.get("dtype", DALIDataType.UINT8)
    if kwargs.get("normalized"):
        frames = call(REGISTRY["arithmetic"], (frames,), {"operation": "div", "constant": 255.0, "constant_at": 1})
    return (
        call(REGISTRY["cast"], (frames,), {"dtype": dtype}) if "dtype" in kwargs or "normalized" in kwargs else frames
    )
