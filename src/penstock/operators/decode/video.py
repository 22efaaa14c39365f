# SPDX-License-Identifier: Apache-2.0
"""Encoded videos to sequences of frames."""

from __future__ import annotations

import weakref
from functools import cache
from typing import Any, ClassVar

import numpy as np

from ...core import kernels
from ...core.batch import Batch, Spec
from ...core.dtypes import DALIImageType, to_numpy
from ...core.errors import SampleErrors
from ...core.op import Arg, Arguments, Operator, PerSample
from ...core.rows import allocate
from ._ffmpeg import open_ffmpeg
from ._padding import PAD_MODES, padded

_RANGE = ("start_frame", "end_frame", "sequence_length", "stride")
_NO_EFFECT = "Accepted for compatibility."


class Video(Operator):
    """Decodes frames of videos: all, a range, or those listed in `frames`.

    Input: the bytes of a file (uint8): MP4, QuickTime, Matroska, WebM, AVI, MPEG-TS, MPEG-PS or a stream of H.264, HEVC
    or MPEG-2 without a container; with H.264, HEVC, VP8, VP9, AV1, MPEG-4, MPEG-2, MJPEG or ProRes of 8 to 12 bits.
    Output: RGB or YCbCr (FHWC, uint8). Frame numbers count the frames in the order in which they are shown, without
    those that the file's edit list cuts off; frame rates may vary. Only the frames asked for are converted, and only
    those that they depend on are decoded besides. Frames are not rotated: that is what the file's metadata ask of a
    player.

    FFmpeg does the decoding: that of `pip install penstock[video]`, the system's, or that in the folder
    PENSTOCK_FFMPEG. ImportError if there is none.
    With device="mixed" the GPU's video engines decode what they can (H.264 and HEVC, as far as the GPU has them), and
    their frames never pass the CPU. What they don't decode the CPU does, and frames are copied.
    A damaged file is an error of its sample; the pipeline's `on_error` decides what follows.

    >>> from penstock import fn, pipeline_def
    >>> @pipeline_def(batch_size=1, num_threads=1)
    ... def pipe():
    ...     files, _ = fn.readers.file(files=["examples/clips/clock.webm"])
    ...     return fn.decoders.video(files, start_frame=2, sequence_length=4, stride=2)
    >>> pipe().run()[0].at(0).shape
    (4, 48, 64, 3)
    """

    module = "decoders"
    kernel = "video/decode_video"
    gpu_stage = "penstock.operators.decode.gpu.video:VideoDecoding"
    fuses_with: ClassVar[dict[str, str]] = {"resize": "_video.resized_video"}
    windowed = "HW"
    peeks = (0,)
    experimental = True
    devices: ClassVar[tuple[str, ...]] = ("cpu", "mixed")

    frames = PerSample(
        [int],
        None,
        "Numbers of the frames to decode, in any order, as often as wanted. Not together with the range's arguments.",
        ragged=True,
    )
    start_frame = PerSample(int, None, "First frame of the range; 0 by default.")
    end_frame = PerSample(
        int, None, "End of the range, exclusive; the number of frames by default. Not with `sequence_length`."
    )
    sequence_length = PerSample(int, None, "Number of frames to decode from `start_frame` on.")
    stride = PerSample(int, None, "Distance from one frame of the range to the next; 1 by default.")
    pad_mode = Arg(
        str,
        "constant",
        "What stands for frames that the video doesn't have: 'none' (a range ends earlier, `frames` fails), 'constant' "
        "(`fill_value`), 'edge' or 'repeat' (the first or last frame), 'reflect_1001' or 'symmetric', 'reflect_101' or "
        "'reflect' (mirrored, with or without the last frame twice).",
    )
    fill_value = Arg([int], [0], "Colour of frames padded by 'constant', 0 to 255: one value or red, green, blue.")
    image_type = Arg(
        DALIImageType,
        DALIImageType.RGB,
        "Colours of the frames: RGB, or YCbCr as the stream has them, in 8 bits and with chroma at every pixel.",
    )
    build_index = Arg(bool, True, _NO_EFFECT, hidden=True)
    affine = Arg(bool, True, _NO_EFFECT, hidden=True)

    def setup(self) -> None:
        name, v = self.display_name(), self.values
        if v["pad_mode"] not in PAD_MODES:
            raise ValueError(f"{name}: Invalid pad_mode: {v['pad_mode']}. Valid options are: {', '.join(PAD_MODES)}")
        if len(v["fill_value"]) not in (1, 3):
            raise ValueError(f"{name}: fill_value takes 1 value, or 3 for red, green, blue; got {len(v['fill_value'])}")
        if not all(0 <= x <= 255 for x in v["fill_value"]):
            raise ValueError(f"{name}: fill_value must be in range [0, 255]; got {v['fill_value']}")
        if v["image_type"] not in (DALIImageType.RGB, DALIImageType.YCbCr):
            raise ValueError(f"{name}: image_type takes RGB or YCbCr; got {v['image_type'].name}")
        try:
            open_ffmpeg()
        except ImportError as e:
            raise ImportError(f"{name}: {e}") from None

    def plan(self, a: Arguments, *inputs: Spec) -> None:
        given = [k for k in _RANGE if k in a.given]
        if "frames" in a.given and given:
            raise ValueError(f"Cannot specify both `frames` and any of {', '.join(f'`{k}`' for k in given)}")
        if {"end_frame", "sequence_length"} <= set(given):
            raise ValueError("Cannot specify both `sequence_length` and `end_frame`")
        a.indices = _Indices(a.peeked(0))  # until the kernel has run
        a.info = a.indices.info
        a.numbers, a.counts = _listed(a) if "frames" in a.given else _range(a)
        a.numbers = padded(a.numbers, a.info["frames"], PAD_MODES[a.pad_mode])

    def outputs(self, a: Arguments, *inputs: Spec) -> Spec:
        shape = np.stack([a.counts, a.info["height"], a.info["width"], np.full(a.n, 3, "i8")], 1)
        return Spec(shape, to_numpy(np.uint8), "FHWC")

    def params(self, a: Arguments, *specs: Spec) -> dict[str, Any]:
        out = specs[-1]
        fill = np.uint8(a.fill_value * 3 if len(a.fill_value) == 1 else a.fill_value)
        return {
            "index": a.info["index"],
            "frames": a.numbers,
            "y": out.origin[:, 1],
            "x": out.origin[:, 2],
            "as_ycbcr": a.image_type == DALIImageType.YCbCr,
            "fill": np.broadcast_to(np.append(fill, np.uint8(0)), (a.n, 4)),
        }


def _listed(a: Arguments) -> tuple[np.ndarray, np.ndarray]:
    """(n, most) numbers of the frames that `frames` lists, and how many each sample has."""
    lengths, total = a.lengths("frames"), a.info["frames"]
    numbers = a.frames.astype("i8")
    outside = (numbers < 0) | (numbers >= total[:, None])
    outside &= np.arange(numbers.shape[1]) < lengths[:, None]
    if a.pad_mode == "none":
        SampleErrors.where(
            outside.any(1),
            lambda i: (
                f"Unexpected out-of-bounds frame index {numbers[i][outside[i]][0]} for pad_mode='none' and a video of "
                f"{total[i]} frames; choose another pad_mode, or numbers 0 to {total[i] - 1}"
            ),
        )
    return numbers, lengths


def _range(a: Arguments) -> tuple[np.ndarray, np.ndarray]:
    """The same of the range."""
    total = a.info["frames"]
    start = np.zeros(a.n, "i8") if a.start_frame is None else a.start_frame.astype("i8")
    stride = np.ones(a.n, "i8") if a.stride is None else a.stride.astype("i8")
    SampleErrors.where(
        start >= total,
        lambda i: f"Start frame {start[i]} is out of bounds, expected range [0, {total[i]})",
    )
    SampleErrors.where(stride < 1, lambda i: f"stride takes at least 1; got {stride[i]}")
    if a.sequence_length is not None:
        counts = a.sequence_length.astype("i8")
        SampleErrors.where(counts < 0, lambda i: f"sequence_length takes at least 0; got {counts[i]}")
    else:
        end = total if a.end_frame is None else a.end_frame.astype("i8")
        SampleErrors.where(
            end <= start, lambda i: f"end_frame ({end[i]}) must be greater than start_frame ({start[i]})"
        )
        counts = -((start - end) // stride)
    if a.pad_mode == "none":
        SampleErrors.where(start < 0, lambda i: f"start_frame takes 0 or more for pad_mode='none'; got {start[i]}")
        counts = np.minimum(counts, -((start - total) // stride))
    numbers = start[:, None] + np.arange(max(int(counts.max(initial=0)), 1)) * stride[:, None]
    return numbers, counts


@cache
def _info_type() -> np.dtype:
    return kernels.read_struct(kernels.read_header("video/decode_video.h"), "VideoInfo")[0]


def frames_in(batch: Batch) -> int:
    """How many frames the encoded video in a batch of one sample has. RuntimeError if it can't be read."""
    try:
        return int(_Indices(batch).info["frames"][0])
    except SampleErrors as e:
        raise RuntimeError(next(iter(e.reasons.values()))) from None


class _Indices:
    """What the containers of a batch say, read once for the plan and the kernel. SampleErrors names those that can't be
    read."""

    def __init__(self, batch: Batch):
        spec = batch.spec
        if spec.ndim < 1 or spec.dtype.name not in ("uint8", "int8"):
            raise ValueError(
                f"an encoded video is an array of bytes (uint8); got {spec.dtype.name} with {spec.ndim} dimensions"
            )
        self.info, at_info = allocate(spec.n, _info_type())
        texts, at = allocate((spec.n, kernels.ERROR_SIZE), np.dtype("u1"))
        handle = kernels.library().plan_videos(batch.rows_address, spec.n, at_info, at)
        weakref.finalize(self, kernels.library().end_videos, handle).atexit = False
        text = lambda i: texts[i].tobytes().split(b"\0")[0].decode("utf-8", "replace")
        SampleErrors.where(self.info["frames"] == 0, text)
