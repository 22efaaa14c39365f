# SPDX-License-Identifier: Apache-2.0
"""Signals at another sampling rate."""

from typing import Any

import numpy as np

from ...core.batch import Spec
from ...core.dtypes import DALIDataType, to_numpy
from ...core.errors import SampleErrors
from ...core.op import Arg, Arguments, Operator, PerSample
from ._rates import lobes_of, to_range

_TYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "float32")


class AudioResample(Operator):
    """Resamples a signal with a windowed sinc filter.

    The ratio is given by `in_rate` and `out_rate`, by `scale`, or by `out_length`; the output has
    `ceil(n * out_rate / in_rate)` samples. The signal is taken to be zero beyond its ends. Input: (time) or (time,
    channels), integers of up to 32 bits or float32. If the output type differs from the input type, values are scaled
    from the range of one to that of the other; the range of float32 is -1 to 1. The layout is kept.

    >>> from penstock import fn, pipeline_def, types
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return fn.audio_resample(types.Constant([0.0, 1.0, 0.0, -1.0, 0.0]), scale=2.0)
    >>> [round(float(x), 2) for x in pipe().run()[0].at(0)[:8]]
    [0.0, 0.52, 1.0, 0.84, 0.0, -0.84, -1.0, -0.52]
    """

    kernel = "audio/audio_resample"
    by_frame = False
    experimental = True
    in_rate = PerSample(float, None, "Sampling rate of the input, in any unit. Requires `out_rate`.")
    out_rate = PerSample(float, None, "Sampling rate of the output, in the unit of `in_rate`.")
    scale = PerSample(float, None, "Ratio of the output's number of samples to the input's.")
    out_length = PerSample(int, None, "Number of samples of the output.", bits=64)
    quality = Arg(
        float,
        50.0,
        "Quality, from 0 to 100. Higher values use longer filters, which keep more of the high frequencies: they "
        "extend over 3 (0), 16 (50) or 64 (100) samples on either side.",
    )
    dtype = Arg(DALIDataType, None, "Type of the output. By default that of the input.")
    antialias = Arg(
        bool,
        False,
        "Whether to remove frequencies above half of the output rate before the rate is lowered. With False, as in "
        "DALI, they are aliased to lower frequencies.",
    )

    def setup(self) -> None:
        given = {k for k in ("in_rate", "out_rate", "scale", "out_length") if k in self.given}
        if ("in_rate" in given) != ("out_rate" in given):
            raise ValueError("in_rate and out_rate must be given together")
        ways = (given - {"in_rate"}).copy()
        if len(ways) != 1:
            what = f"got {', '.join(sorted(given))}" if ways else "got none of them"
            raise ValueError(f"either in_rate and out_rate, or scale, or out_length is needed; {what}")
        self.lobes = lobes_of(self.values["quality"])

    def plan(self, a: Arguments, x: Spec) -> None:
        wanted = x.dtype if self.values["dtype"] is None else to_numpy(self.values["dtype"])
        for what, dtype in (("input", x.dtype), ("output", wanted)):
            if dtype.name not in _TYPES:
                raise TypeError(f"{what} type {dtype.name} is not supported; supported: {', '.join(_TYPES)}")
        if x.ndim not in (1, 2):
            raise ValueError(f"a signal has one dimension (time) or two (time, channels); the input has {x.ndim}")
        a.type, a.factor = wanted, to_range(x.dtype, wanted)
        n = x.shape[:, 0]
        if a.out_length is not None:
            a.length = a.out_length.astype("i8")
            SampleErrors.where(a.length < 0, lambda i: f"out_length {a.length[i]} is negative")
            a.rates = np.maximum(n, 1).astype("f8"), np.maximum(a.length, 1).astype("f8")
        else:
            if a.scale is not None:
                a.rates = n * 0.0 + 1.0, a.scale.astype("f8")
                wrong, name = ~(a.rates[1] >= 0), "scale"
            else:
                a.rates = a.in_rate.astype("f8"), a.out_rate.astype("f8")
                wrong, name = ~((a.rates[0] > 0) & (a.rates[1] >= 0)), "rates"
            wrong = wrong | ~np.isfinite(a.rates[0] + a.rates[1])
            SampleErrors.where(
                wrong,
                lambda i: (
                    f"the {name} {' and '.join(str(r[i]) for r in a.rates[name == 'scale' :])} can't be used: they are "
                    "positive numbers"
                ),
            )
            length = np.ceil(n * a.rates[1] / a.rates[0])
            SampleErrors.where(length > 2**40, lambda i: f"the output would have {length[i]:.0f} samples")
            a.length = length.astype("i8")
        SampleErrors.where((n == 0) & (a.length > 0), lambda i: f"an empty signal can't become {a.length[i]} samples")

    def outputs(self, a: Arguments, x: Spec) -> Spec:
        shape = x.shape.copy()
        shape[:, 0] = a.length
        return x.like(shape=shape, dtype=a.type)

    def params(self, a: Arguments, x: Spec, out: Spec) -> dict[str, Any]:
        return {
            "in_rate": a.rates[0],
            "out_rate": a.rates[1],
            "factor": a.factor[0],
            "offset": a.factor[1],
            "lobes": self.lobes,
            "antialias": a.antialias,
        }
