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
from ...core.rows import address, allocate
from ._ffmpeg import open_ffmpeg
from ._frame_numbers import wanted_frames
from ._padding import PAD_MODES, padded

_NO_EFFECT = "Accepted for compatibility."


class Video(Operator):
    """Decodes frames of videos: all, a range, those listed in `frames`, or samples of the range: frames at equal
    distances (`uniform_sample`) or key frames (`key_frames`). `clip_pos` places the range: with random numbers, it is a
    clip at a random place.

    Input: the bytes of a file (uint8): MP4, QuickTime, Matroska, WebM, AVI, MPEG-TS, MPEG-PS or a stream of H.264, HEVC
    or MPEG-2 without a container; with H.264, HEVC, VP8, VP9, AV1, MPEG-4, MPEG-2, MJPEG or ProRes of 8 to 12 bits.
    Output: RGB or YCbCr (FHWC, uint8). Frame numbers count the frames in the order in which they are shown, without
    those that the file's edit list cuts off; frame rates may vary. Only the frames asked for are converted, and only
    those that they depend on are decoded besides. Frames are not rotated: that is what the file's metadata ask of a
    player.

    FFmpeg does the decoding: that of `pip install penstock[video]`, the system's, or that in the folder
    PENSTOCK_FFMPEG. ImportError if there is none.
    With device="mixed" the GPU's video engines decode what they can (H.264, HEVC, VP8 and VP9, as far as the GPU has
    them), and their frames never pass the CPU. What they don't decode the CPU does, and frames are copied.
    A damaged file is an error of its sample; the pipeline's `on_error` decides what follows.

    >>> from penstock import fn, pipeline_def
    >>> @pipeline_def(batch_size=1, num_threads=1)
    ... def pipe():
    ...     files, _ = fn.readers.file(files=["examples/clips/clock.webm"])
    ...     return fn.decoders.video(files, start_frame=2, sequence_length=4, stride=2)
    >>> pipe().run()[0].at(0).shape
    (4, 48, 64, 3)
    """

    traced = False
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
    clip_pos = PerSample(
        float,
        None,
        "Where the range of `sequence_length` frames begins, instead of `start_frame`: from 0 (at the first frame) to "
        "1 (so that it ends with the last). Uniform random numbers make all places equally likely. A range that is "
        "longer than the video begins at its first frame.",
    )
    uniform_sample = Arg(
        bool,
        False,
        "Decodes `sequence_length` frames at equal distances from the first of the range to the last, as "
        "`uniform_sample` of `experimental.readers.video`. `stride` and `pad_mode` are ignored then.",
    )
    key_frames = Arg(
        bool,
        False,
        "Decodes only the key frames of the range, which need no others: all, or `sequence_length` of them at the "
        "most, every `stride`-th. Videos have different numbers of them. `pad_mode` is ignored then.",
    )
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
        a.indices = _Indices(a.peeked(0))  # until the kernel has run
        a.info = a.indices.info
        numbers, a.counts = wanted_frames(a, a.info["frames"], a.indices.is_key)
        a.numbers = padded(numbers, a.info["frames"], PAD_MODES[a.pad_mode])

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

    def is_key(self, i: int) -> np.ndarray:
        """(frames,) whether a frame of sample `i` is decoded without others."""
        is_key = np.zeros(int(self.info["frames"][i]), "?")
        kernels.library().video_keys(int(self.info["index"][i]), address(is_key))
        return is_key
