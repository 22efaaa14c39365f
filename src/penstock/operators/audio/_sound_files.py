# SPDX-License-Identifier: Apache-2.0
"""Reads the headers of a batch of audio files, in one native call."""

from __future__ import annotations

from functools import cache

import numpy as np

from ...core import kernels
from ...core.batch import Batch
from ...core.errors import SampleErrors
from ...core.rows import allocate
from ...core.tracing import IMMEDIATE, Native
from ..decode._ffmpeg import open_ffmpeg

_BYTE = np.dtype("u1")
_NEEDS_FFMPEG = -1  # of enum AudioEncoding


@cache
def _info_type() -> np.dtype:
    return kernels.read_struct(kernels.read_header("audio/audio_file.h"), "AudioInfo")[0]


def read_headers(batch: Batch | None, native: Native = IMMEDIATE) -> np.ndarray:
    """Records (n,) of frames, rate (Hz), channels, and position and format of the samples (offset, encoding). Raises
    SampleErrors for unreadable files."""
    assert batch is not None
    spec = batch.spec
    if spec.ndim != 1 or spec.dtype.name not in ("uint8", "int8"):
        raise ValueError(
            "an encoded sound is an array of bytes (uint8 or int8) with one dimension; got "
            f"{spec.dtype.name} with {spec.ndim}"
        )
    info, at = native.allocate(spec.n, _info_type())
    failed = native.call("plan_audio", batch.rows_address, spec.n, at, None)
    if failed and (info["encoding"] == _NEEDS_FFMPEG).any():
        try:
            open_ffmpeg()
        except ImportError as e:
            why = str(e)
            SampleErrors.where(info["encoding"] == _NEEDS_FFMPEG, lambda _: why)
        failed = native.call("plan_audio", batch.rows_address, spec.n, at, None)
    if failed:
        texts, at_texts = allocate((spec.n, kernels.ERROR_SIZE), _BYTE)
        native.call("plan_audio", batch.rows_address, spec.n, at, at_texts)
        SampleErrors.where(
            info["encoding"] == 0, lambda i: texts[i].tobytes().split(b"\0")[0].decode("utf-8", "replace")
        )
    return info
