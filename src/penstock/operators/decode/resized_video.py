# SPDX-License-Identifier: Apache-2.0
"""Encoded videos to sequences of resized frames."""

from __future__ import annotations

from typing import Any, ClassVar

from ...core.batch import Spec
from ...core.op import Arguments
from ..geometry._resampling import Resampling, source_windows, spatial
from ..geometry._resize_size import ResizeSize
from .video import Video


class ResizedVideo(Video, ResizeSize, Resampling):
    """Equivalent to `decoders.video` followed by `resize`: each frame is resized as soon as it is decoded, and only the
    rows and columns that the resized frame needs are converted to RGB.

    >>> from penstock import fn, pipeline_def
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return fn.readers.video_resize(filenames=["examples/clips/clock.mp4"], sequence_length=2, size=(20, 30))
    >>> pipe().run()[0].shape()
    [(2, 20, 30, 3)]
    """

    module = "_video"
    kernel = "video/decode_resized"
    devices = ("cpu",)
    experimental = False
    fuses_with: ClassVar[dict[str, str]] = {}
    windowed = "HW"

    @classmethod
    def display_name(cls) -> str:
        return "fn.decoders.video and fn.resize"

    def setup(self) -> None:
        Video.setup(self)
        ResizeSize.setup(self)

    def plan(self, a: Arguments, *inputs: Spec) -> None:
        super().plan(a, *inputs)
        a.decoded = super().outputs(a, *inputs)
        self.check_types(a, a.decoded)
        self.plan_size(a, a.decoded)

    def outputs(self, a: Arguments, *inputs: Spec) -> Spec:
        return self.resized(a, a.decoded)

    def region(self, a: Arguments, x: Spec, out: Spec) -> None:  # type: ignore[override]  # as Operator has it
        return None  # the whole encoded input is needed

    def params(self, a: Arguments, *specs: Spec) -> dict[str, Any]:
        x, out, axes = a.decoded, specs[-1], spatial(a.decoded)
        origin, size = source_windows(a, x.shape, axes, self.origin(a, out), out.stored[:, axes])
        decoding, resizing = Video.params(self, a, *specs), Resampling.params(self, a, x, out)
        used = ("roi_start", "roi_end", "in_size", "out_size", "out_origin", "min_filter", "mag_filter", "antialias")
        return {
            **{k: decoding[k] for k in ("index", "frames", "as_ycbcr", "fill")},
            **{k: resizing[k] for k in (*used, "rule")},
            "in_origin": origin[:, axes],
            "window": size[:, axes],
        }
