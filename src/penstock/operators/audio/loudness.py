# SPDX-License-Identifier: Apache-2.0
"""Signals brought to a loudness."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.batch import Spec
from ...core.errors import SampleErrors
from ...core.op import Arguments, PerSample
from ._float_only import FloatOnly

_RATES = 1000.0, 1e6
_MOST_CHANNELS = 5


class Loudness(FloatOnly):
    """Scales a signal so that its integrated loudness, as defined by ITU-R BS.1770, becomes `target`.

    The loudness is measured after the K-weighting filter, in blocks of 400 ms that begin every 100 ms. Blocks below -70
    LUFS are ignored, and so are blocks more than 10 LU below the loudness of the rest. A signal shorter than a block
    counts as one block. If no block is loud enough, the output equals the input. Input: float32, (time) or (time,
    channels) with up to 5 channels: left, right, centre, left surround and right surround; surround channels have the
    weight 1.41. The output has the same shape and layout and is not clipped.

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> tone = np.sin(2 * np.pi * 997 * np.arange(48000) / 48000).astype(np.float32)  # of -3.01 LUFS
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return fn.audio.loudness(types.Constant(tone, layout="t"), sample_rate=48000.0, target=-23.01)
    >>> print(f"{pipe().run()[0].at(0).max():.3f}")
    0.100
    """

    module = "audio"
    kernel = "audio/loudness"
    sample_rate = PerSample(float, doc="Sampling rate of the signal, in Hz, from 1000 to 1000000.")
    target = PerSample(float, -23.0, "Loudness of the output, in LUFS (also called LKFS).")

    def plan(self, a: Arguments, x: Spec) -> None:
        super().plan(a, x)
        if x.ndim not in (1, 2):
            raise ValueError(f"a signal has one dimension (time) or two (time, channels); the input has {x.ndim}")
        low, high = _RATES
        wrong = ~((a.sample_rate >= low) & (a.sample_rate <= high))
        SampleErrors.where(wrong, lambda i: f"sample_rate {a.sample_rate[i]} is not in [{low:g}, {high:g}]")
        SampleErrors.where(~np.isfinite(a.target), lambda i: f"target {a.target[i]} is not a finite number")
        if x.ndim == 2:
            channels = x.shape[:, 1]
            SampleErrors.where(
                channels > _MOST_CHANNELS,
                lambda i: f"the signal has {channels[i]} channels; the standard weights up to {_MOST_CHANNELS}",
            )

    def outputs(self, a: Arguments, x: Spec) -> Spec:
        return x.like()

    def params(self, a: Arguments, x: Spec, out: Spec) -> dict[str, Any]:
        return {"sample_rate": a.sample_rate, "target": a.target}
