# SPDX-License-Identifier: Apache-2.0
"""Encoded sounds to samples."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ...core.batch import Spec
from ...core.dtypes import DALIDataType, to_numpy
from ...core.errors import SampleErrors
from ...core.op import Arg, Arguments, Operator, PerSample
from ._rates import lobes_of
from ._sound_files import read_headers

_TYPES = ("INT16", "INT32", "FLOAT")


class Audio(Operator):
    """Decodes audio files: WAV, FLAC, Ogg (Vorbis, Opus), MP3, AIFF, MP4, WebM and AAC, detected by content.

    FFmpeg, installed as for `decoders.video`, decodes MP4, M4A, QuickTime, Matroska and WebM files (with AAC, ALAC,
    MP3, Opus, Vorbis, FLAC or AC-3) and raw AAC (ADTS). Matroska and WebM files do not store the number of samples, so
    they are decoded once more to count them.

    Input: the bytes of a file (uint8). Outputs: the samples, (time, channels), or (time) with `downmix`, without a
    layout; and the sampling rate, a float32 scalar. float32 samples are in [-1, 1]; integers are scaled to the range of
    their type, float32 by its largest value. If a slice or crop follows, only that part of WAV and FLAC files is
    decoded, and other formats only up to its end; the result is the same. A WAV file that is shorter than its header
    states gives the samples that are present. For video files, the audio track is decoded: parts removed by the edit
    list are left out, and if the audio starts later than the video, it begins with silence, so that times match the
    frames of `decoders.video`. Any other damage is an error of the sample, which the pipeline's `on_error` handles.

    >>> from penstock import fn, pipeline_def, types
    >>> import io, wave, numpy as np
    >>> file = io.BytesIO()
    >>> with wave.open(file, "wb") as f:
    ...     f.setparams((2, 2, 16000, 0, "NONE", ""))
    ...     f.writeframes(np.int16([[16384, -16384], [8192, 0]]))
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return fn.decoders.audio(types.Constant(np.frombuffer(file.getvalue(), "u1")))
    >>> samples, rate = pipe().run()
    >>> samples.at(0).tolist(), float(rate.at(0))
    ([[0.5, -0.5], [0.25, 0.0]], 16000.0)
    """

    traced = True
    module = "decoders"
    deprecated = ("AudioDecoder",)
    by_frame = False
    kernel = "audio/decode_audio"
    devices = ("cpu",)
    reads_rest = True
    windowed = "?"  # all axes; they have no names
    peeks: ClassVar[tuple[int, ...]] = (0,)

    dtype = Arg(DALIDataType, DALIDataType.FLOAT, f"Type of the samples, one of {', '.join(_TYPES)}.")
    downmix = Arg(bool, False, "Returns the mean of the channels, as one signal without a channel axis.")
    sample_rate = PerSample(
        float,
        0.0,
        "Sampling rate in Hz to which the audio is resampled; 0 keeps the rate of the file. If it is given, even as 0, "
        "the second output is this value, as in DALI.",
    )
    quality = Arg(float, 50.0, "Resampling quality, from 0 to 100, as in `fn.audio_resample`.")

    def setup(self) -> None:
        if self.values["dtype"].name not in _TYPES:
            raise ValueError(f"dtype={self.values['dtype'].name} is not supported; supported: {', '.join(_TYPES)}")
        self.lobes = lobes_of(self.values["quality"])

    def n_outputs(self) -> int:
        return 2

    def plan(self, a: Arguments, *inputs: Spec) -> None:
        a.info = read_headers(a.batches[0], a.native)
        rate = a.info["rate"]
        a.rate = np.where(a.sample_rate > 0, a.sample_rate.astype("f8"), rate)
        length = np.where(a.rate == rate, a.info["frames"], np.ceil(a.info["frames"] * a.rate / rate))
        SampleErrors.where(
            ~(length < 2.0**40), lambda i: f"a sample_rate of {a.rate[i]} Hz would give {length[i]:.0f} samples"
        )
        a.length = length.astype("i8")

    def outputs(self, a: Arguments, *inputs: Spec) -> tuple[Spec, ...]:
        shape = np.stack([a.length] if a.downmix else [a.length, a.info["channels"].astype("i8")], axis=1)
        return Spec(shape, to_numpy(a.dtype)), Spec.uniform(len(shape), (), "f4")

    def params(self, a: Arguments, *specs: Spec) -> dict[str, Any]:
        origin = specs[-2].origin
        return {
            **{k: a.info[k] for k in ("frames", "offset", "rate", "channels", "encoding")},
            "begin": 0,
            "length": a.info["frames"],
            "out_rate": a.rate,
            "told_rate": a.sample_rate if "sample_rate" in a.given else a.rate,
            "first_frame": origin[:, 0],
            "first_channel": 0 if a.downmix else origin[:, 1],
            "downmix": a.downmix,
            "lobes": self.lobes,
        }
