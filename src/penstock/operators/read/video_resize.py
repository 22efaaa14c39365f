# SPDX-License-Identifier: Apache-2.0
"""Sequences of resized frames of video files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.op import REGISTRY
from ..geometry._resampling import Resampling
from ..geometry._resize_size import ResizeSize
from ._decoded_clips import decode_clips
from .legacy_clips import LegacyClips
from .video import Video, scaled

_OF_RESIZE = (ResizeSize.schema.keys() | Resampling.schema.keys()) - LegacyClips.schema.keys()


class VideoResize(Video, ResizeSize, Resampling):  # type: ignore[misc]  # only arguments count: calls are expanded
    """Reads sequences of frames as `readers.video` does, and resizes them as `resize` does.

    Outputs are those of `readers.video`. With device="gpu", the GPU decodes what it supports, and resizes.

    >>> from penstock import fn, pipeline_def
    >>> @pipeline_def(batch_size=2)
    ... def pipe():
    ...     return fn.readers.video_resize(
    ...         filenames=["examples/clips/clock.mp4"], sequence_length=4, resize_shorter=24
    ...     )
    >>> pipe().run()[0].shape()
    [(4, 24, 32, 3), (4, 24, 32, 3)]
    """

    deprecated = ("VideoReaderResize",)
    kernel = ""

    @classmethod
    def expand(cls, inputs: tuple, kwargs: dict[str, Any], call: Callable[..., Any]) -> Any:
        resizing = {k: v for k, v in kwargs.items() if k in _OF_RESIZE}
        reading = {k: v for k, v in kwargs.items() if k not in _OF_RESIZE}
        if "dtype" in kwargs:
            resizing["dtype"] = kwargs["dtype"]

        def finish(frames: Any) -> Any:
            return scaled(call(REGISTRY["resize"], (frames,), resizing), reading, call)

        return decode_clips("_video.legacy_clips", reading, call, finish)
