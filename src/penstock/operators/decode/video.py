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
    """Decodes frames of videos: all frames, a range, those listed in `frames`, or a selection of the range: frames at
    equal distances (`uniform_sample`) or key frames (`key_frames`). `clip_pos` sets the position of the range; with
    random numbers, it selects a random clip.

    Input: the bytes of a file (uint8): MP4, QuickTime, Matroska, WebM, AVI, MPEG-TS, MPEG-PS or a stream of H.264, HEVC
    or MPEG-2 without a container; with H.264, HEVC, VP8, VP9, AV1, MPEG-4, MPEG-2, MJPEG or ProRes of 8 to 12 bits.
    Output: RGB or YCbCr (FHWC, uint8). Frame numbers count frames in presentation order, without those that the file's
    edit list removes; the frame rate may vary. Only the requested frames are converted, and only the frames that they
    depend on are decoded in addition. Frames are not rotated, even if the file's metadata ask players to do so.

    Decoding requires FFmpeg: from `pip install penstock[video]`, the system, or the folder given by the environment
    variable PENSTOCK_FFMPEG. Otherwise ImportError is raised. With device="mixed", the GPU's video engines decode what
    they support (H.264, HEVC, VP8 and VP9, depending on the GPU), without passing frames through the CPU. Other videos
    are decoded on the CPU, and their frames are copied. A damaged file is an error of the sample, which the pipeline's
    `on_error` handles.

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
        "Numbers of the frames to decode, in any order; repetitions are allowed. Not together with the range's "
        "arguments.",
        ragged=True,
    )
    start_frame = PerSample(int, None, "First frame of the range. By default 0.")
    end_frame = PerSample(
        int, None, "End of the range, exclusive. By default the number of frames. Not with `sequence_length`."
    )
    sequence_length = PerSample(int, None, "Number of frames to decode, from `start_frame`.")
    stride = PerSample(int, None, "Distance between consecutive frames of the range. By default 1.")
    clip_pos = PerSample(
        float,
        None,
        "Position of a range of `sequence_length` frames, instead of `start_frame`, from 0 (it begins at the first "
        "frame) to 1 (it ends at the last). Uniform random numbers make all positions equally likely. A range longer "
        "than the video begins at the first frame.",
    )
    uniform_sample = Arg(
        bool,
        False,
        "Decodes `sequence_length` frames at equal distances, from the first to the last of the range, as "
        "`uniform_sample` of `experimental.readers.video` does. `stride` and `pad_mode` are ignored.",
    )
    key_frames = Arg(
        bool,
        False,
        "Decodes only the key frames of the range, which do not depend on others: all, or at most `sequence_length` of "
        "them, every `stride`-th. Their number differs between videos. `pad_mode` is ignored.",
    )
    pad_mode = Arg(
        str,
        "constant",
        "How frames outside the video are filled: 'none' (a range ends early, `frames` raises an error), 'constant' "
        "(`fill_value`), 'edge' or 'repeat' (the first or last frame), 'reflect_1001' or 'symmetric' (mirrored, with "
        "the last frame twice), 'reflect_101' or 'reflect' (mirrored, without it).",
    )
    fill_value = Arg([int], [0], "Colour of frames padded by 'constant', 0 to 255: one value or red, green, blue.")
    image_type = Arg(
        DALIImageType,
        DALIImageType.RGB,
        "Colour space of the frames: RGB, or YCbCr as in the stream, with 8 bits and chroma at every pixel.",
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
        a.indices = _Indices(a.peeked(0))  # kept alive until the kernel has run
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
    """Number of frames of the encoded video in a batch of one sample. Raises RuntimeError if it can't be read."""
    try:
        return int(_Indices(batch).info["frames"][0])
    except SampleErrors as e:
        raise RuntimeError(next(iter(e.reasons.values()))) from None


class _Indices:
    """Indices of a batch of videos, read once for the plan and the kernel. Raises SampleErrors for unreadable
    videos."""

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
        """Whether each frame (frames,) of sample `i` can be decoded without others."""
        is_key = np.zeros(int(self.info["frames"][i]), "?")
        kernels.library().video_keys(int(self.info["index"][i]), address(is_key))
        return is_key
