# SPDX-License-Identifier: Apache-2.0
"""Convolves signals with the impulse response of a room."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.batch import Spec
from ...core.errors import SampleErrors
from ...core.op import Arg, Arguments, Operator


class Reverb(Operator):
    """Convolves a signal with the impulse response of a room: `out[i] = sum of response[k] * in[i + delay - k]`. The
    length is kept.

    `delay` is the index of the response's largest absolute value, where the direct sound arrives, so that the signal is
    not shifted in time; with `keep_delay` it is 0. The signal is taken to be zero beyond its ends. Inputs: the signal,
    float32, (time) or (time, channels); the impulse response at the same sampling rate, float32, either (time), which
    applies to all channels, or with as many channels as the signal. The output has the shape and layout of the signal
    and is not clipped.

    >>> from penstock import fn, pipeline_def, types
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     sound, room = types.Constant([1.0, 0.0, 1.0, 2.0, 0.0]), types.Constant([0.0, 1.0, 0.5])
    ...     return fn.audio.reverb(sound, room, normalize=False)
    >>> [round(x, 3) for x in pipe().run()[0].at(0).tolist()]
    [1.0, 0.5, 1.0, 2.5, 1.0]
    """

    module = "audio"
    kernel = "audio/reverb"
    by_frame = False
    inputs = (2, 2)
    normalize = Arg(bool, True, "Whether to scale the output to the mean square of the signal.")
    keep_delay = Arg(bool, False, "Whether to keep the delay of the direct sound.")

    def plan(self, a: Arguments, x: Spec, response: Spec) -> None:
        for i, s in enumerate((x, response)):
            if s.dtype.name != "float32":
                raise TypeError(f"input {i} has the type {s.dtype.name}; fn.cast it to float32")
            if s.ndim not in (1, 2):
                raise ValueError(f"a signal has one dimension (time) or two (time, channels); input {i} has {s.ndim}")
        empty = (response.shape.prod(axis=1) == 0) & (x.shape.prod(axis=1) > 0)
        SampleErrors.where(empty, lambda i: "the impulse response is empty")
        if response.ndim > 1:
            own = response.shape[:, 1]
            channels = x.shape[:, 1] if x.ndim > 1 else np.ones_like(own)
            SampleErrors.where(
                (own != 1) & (own != channels),
                lambda i: (
                    f"the impulse response has {own[i]} channels, the signal {channels[i]}; they must have the same "
                    "number, or one"
                ),
            )

    def outputs(self, a: Arguments, x: Spec, response: Spec) -> Spec:
        return x.like()

    def params(self, a: Arguments, x: Spec, response: Spec, out: Spec) -> dict[str, Any]:
        return {"normalize": a.normalize, "keep_delay": a.keep_delay}
