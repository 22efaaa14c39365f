# SPDX-License-Identifier: Apache-2.0
"""Noise mixed into signals at a given signal-to-noise ratio."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.batch import Spec
from ...core.errors import SampleErrors
from ...core.op import Arguments, Operator, PerSample


class AddNoise(Operator):
    """Adds noise to a signal at the signal-to-noise ratio `snr`:
    `out = in + noise * sqrt(power(in) / power(noise) / 10^(snr / 10))`.

    The powers are mean squares of the whole signal and of the part of the noise that is added. If the noise is shorter
    than the signal, it is repeated. If the signal or the noise is silent, the output equals the signal. Inputs: the
    signal, float32, (time) or (time, channels); the noise, float32, either (time), which is added to all channels, or
    with as many channels as the signal. The output has the shape and layout of the signal and is not clipped.

    >>> from penstock import fn, pipeline_def, types
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return fn.audio.add_noise(types.Constant([2.0, -2.0, 2.0]), types.Constant([1.0, -1.0]), snr=20.0)
    >>> [round(x, 2) for x in pipe().run()[0].at(0).tolist()]
    [2.2, -2.2, 2.2]
    """

    module = "audio"
    kernel = "audio/add_noise"
    by_frame = False
    inputs = (2, 2)
    snr = PerSample(float, doc="Signal-to-noise ratio in decibels. 0: equally loud; 20: a tenth of the amplitude.")
    start = PerSample(int, 0, "Index of the first sample of the noise to use, modulo its length.", bits=64)

    def plan(self, a: Arguments, x: Spec, noise: Spec) -> None:
        for i, s in enumerate((x, noise)):
            if s.dtype.name != "float32":
                raise TypeError(f"input {i} has the type {s.dtype.name}; fn.cast it to float32")
            if s.ndim not in (1, 2):
                raise ValueError(f"a signal has one dimension (time) or two (time, channels); input {i} has {s.ndim}")
        channels, noises = (s.shape[:, 1] if s.ndim > 1 else np.ones_like(s.shape[:, 0]) for s in (x, noise))
        SampleErrors.where(
            (noises != 1) & (noises != channels),
            lambda i: (
                f"the noise has {noises[i]} channels, the signal {channels[i]}; they must have the same number, or one"
            ),
        )
        SampleErrors.where((noise.shape.prod(axis=1) == 0) & (x.shape.prod(axis=1) > 0), lambda i: "the noise is empty")
        SampleErrors.where(a.start < 0, lambda i: f"start {a.start[i]} is negative")
        SampleErrors.where(np.isnan(a.snr), lambda i: "snr is not a number")

    def outputs(self, a: Arguments, x: Spec, noise: Spec) -> Spec:
        return x.like()

    def params(self, a: Arguments, x: Spec, noise: Spec, out: Spec) -> dict[str, Any]:
        return {"snr": a.snr, "start": a.start}
