# SPDX-License-Identifier: Apache-2.0
"""Signals that begin or end softly."""

from __future__ import annotations

from typing import Any

from ...core.batch import Spec
from ...core.errors import SampleErrors
from ...core.op import Arg, Arguments, PerSample
from ._float_only import FloatOnly

_SHAPES = ("linear", "exponential", "logarithmic", "quarter_sine", "half_sine")  # enum FadeShape of the kernel


class Fade(FloatOnly):
    """Multiplies the beginning of a signal by a gain that rises from 0 to 1, and its end by one that falls to 0.

    Sample i of a fade of `n` samples is at `t = i / (n - 1)`; the only sample of a fade of 1 is at 0, and so becomes
    zero. The fade-out is the same in reverse. Where the fades overlap, both gains apply. If a fade is longer than the
    signal, only its first part is used. Input: float32, (time) or (time, channels). The output has the same shape and
    layout.

    >>> from penstock import fn, pipeline_def, types
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return fn.audio.fade(types.Constant([4.0] * 6), fade_in=3, fade_out=2)
    >>> pipe().run()[0].at(0).tolist()
    [0.0, 2.0, 4.0, 4.0, 4.0, 0.0]
    """

    module = "audio"
    kernel = "audio/fade"
    fade_in = PerSample(int, 0, "Length of the fade-in, in samples; 0: none.", bits=64)
    fade_out = PerSample(int, 0, "Length of the fade-out, in samples; 0: none.", bits=64)
    shape = Arg(
        str,
        "linear",
        'Gain as a function of `t`: "linear" is t, "exponential" 2^(t - 1) t, "logarithmic" min(1, 1 + log10(0.1 + '
        't)), "quarter_sine" sin(pi t / 2), "half_sine" (1 - cos(pi t)) / 2.',
    )

    def setup(self) -> None:
        if self.values["shape"] not in _SHAPES:
            raise ValueError(f"shape takes {', '.join(map(repr, _SHAPES))}; got {self.values['shape']!r}")

    def plan(self, a: Arguments, x: Spec) -> None:
        super().plan(a, x)
        if x.ndim not in (1, 2):
            raise ValueError(f"a signal has one dimension (time) or two (time, channels); the input has {x.ndim}")
        SampleErrors.where(a.fade_in < 0, lambda i: f"fade_in {a.fade_in[i]} is negative")
        SampleErrors.where(a.fade_out < 0, lambda i: f"fade_out {a.fade_out[i]} is negative")

    def outputs(self, a: Arguments, x: Spec) -> Spec:
        return x.like()

    def params(self, a: Arguments, x: Spec, out: Spec) -> dict[str, Any]:
        return {"fade_in": a.fade_in, "fade_out": a.fade_out, "shape": _SHAPES.index(a.shape)}
