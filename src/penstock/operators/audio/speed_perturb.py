# SPDX-License-Identifier: Apache-2.0
"""Signals played faster or slower."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.batch import Spec
from ...core.errors import SampleErrors
from ...core.op import Arg, Arguments, Operator, PerSample
from ._rates import lobes_of

_TYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "float32")
_LARGEST = 2**40


class SpeedPerturb(Operator):
    """Plays a signal `speed` times as fast, which also shortens it and raises its pitch (Ko et al., Audio Augmentation
    for Speech Recognition, 2015, with speeds of 0.9, 1.0 and 1.1).

    The output has `ceil(n / speed)` samples, computed with a windowed sinc filter as in `fn.audio_resample`. The
    sampling rate is kept. Input: (time) or (time, channels), integers of up to 32 bits or float32. The output has the
    type and layout of the input.

    >>> from penstock import fn, pipeline_def, types
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return fn.audio.speed_perturb(types.Constant([1.0] * 11), speed=fn.random.uniform(values=[1.1]))
    >>> pipe().run()[0].at(0).shape
    (10,)
    """

    module = "audio"
    kernel = "audio/audio_resample"
    by_frame = False
    speed = PerSample(float, doc="Factor of the speed, above 0; rounded to six decimals.")
    quality = Arg(
        float, 50.0, "Quality, from 0 to 100, as in `fn.audio_resample`. Higher values keep more of high frequencies."
    )
    antialias = Arg(
        bool, True, "Whether to remove frequencies that a faster signal can't hold; otherwise they are aliased."
    )

    def setup(self) -> None:
        self.lobes = lobes_of(self.values["quality"])

    def plan(self, a: Arguments, x: Spec) -> None:
        if x.dtype.name not in _TYPES:
            raise TypeError(f"the input has the type {x.dtype.name}; supported: {', '.join(_TYPES)}")
        if x.ndim not in (1, 2):
            raise ValueError(f"a signal has one dimension (time) or two (time, channels); the input has {x.ndim}")
        # Rounds, as float32 stores 0.9 as 0.89999998, which would change the length.
        a.rate = np.floor(a.speed.astype("f8") * 1e6 + 0.5) / 1e6
        SampleErrors.where(
            ~((a.rate > 0) & np.isfinite(a.rate)), lambda i: f"speed {a.speed[i]} is not a number above 0"
        )
        length = np.ceil(x.shape[:, 0] / a.rate)
        SampleErrors.where(length > _LARGEST, lambda i: f"the output would have {length[i]:.0f} samples")
        a.length = length.astype("i8")

    def outputs(self, a: Arguments, x: Spec) -> Spec:
        shape = x.shape.copy()
        shape[:, 0] = a.length
        return x.like(shape=shape)

    def params(self, a: Arguments, x: Spec, out: Spec) -> dict[str, Any]:
        ones = a.rate * 0.0 + 1.0
        return {
            "in_rate": a.rate,
            "out_rate": ones,
            "factor": 1.0,
            "offset": 0.0,
            "lobes": self.lobes,
            "antialias": a.antialias,
        }
