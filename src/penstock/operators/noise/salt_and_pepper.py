# SPDX-License-Identifier: Apache-2.0
"""Replaces random pixels by very bright or very dark ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.batch import Spec
from ...core.draws import draws
from ...core.errors import SampleErrors
from ...core.op import Arg, Arguments, PerSample
from ._noise import Noise


class SaltAndPepper(Noise):
    """Replaces random pixels by very bright ones (salt) or very dark ones (pepper).

    A pixel, with all its channels, is replaced with probability `prob`: by salt with probability `salt_vs_pepper`,
    otherwise by pepper. Input: integers or float32 with channels first or last; without a layout, the last axis is the
    channels. The CPU and the GPU return the same numbers.

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> @pipeline_def(batch_size=1, seed=1)
    ... def pipe():
    ...     gray = types.Constant(np.full((100, 100, 3), 128, np.uint8), layout="HWC")
    ...     return fn.noise.salt_and_pepper(gray, prob=0.2)
    >>> x = pipe().run()[0].at(0)
    >>> np.unique(x).tolist(), bool(abs((x != 128).mean() - 0.2) < 0.02)
    ([0, 128, 255], True)
    """

    kernel = "noise/salt_and_pepper"
    prob = PerSample(float, 0.05, "Probability that a pixel is replaced, in [0, 1].")
    salt_vs_pepper = PerSample(float, 0.5, "Probability that a replaced pixel is salt, in [0, 1].")
    salt_val = PerSample(
        float, None, "Value of salt, rounded and clamped. By default the largest of an integer type, 1.0 for floats."
    )
    pepper_val = PerSample(
        float,
        None,
        "Value of pepper, rounded and clamped. By default the smallest of an integer type, -1.0 for floats.",
    )
    per_channel = Arg(bool, False, "Whether to replace the channels of a pixel independently.")

    def plan(self, a: Arguments, x: Spec) -> None:
        super().plan(a, x)
        for name in ("prob", "salt_vs_pepper"):
            p = getattr(a, name)
            SampleErrors.where(~((p >= 0) & (p <= 1)), lambda i, p=p, n=name: f"`{n}` must be in [0, 1]; got {p[i]:g}")
        a.channels, a.inner = np.ones(x.n, "i4"), True
        if not self.values["per_channel"] and x.ndim:
            axis = x.axis("C") if x.layout else x.ndim - 1
            if axis not in (0, x.ndim - 1):
                raise ValueError(
                    f"channels must be the first or the last axis of the layout; got '{x.layout}'; fn.transpose moves "
                    "them, fn.reshape gives layouts, and per_channel=True needs none"
                )
            a.channels, a.inner = np.maximum(x.shape[:, axis], 1), axis > 0 or x.ndim == 1

    def params(self, a: Arguments, x: Spec, out: Spec) -> dict[str, Any]:
        low, high = (-1.0, 1.0) if x.dtype.kind == "f" else (np.iinfo(x.dtype).min, np.iinfo(x.dtype).max)
        noise = np.rint(a.prob.astype("f8") * 2.0**32)
        return {
            **draws(a),
            "noise": noise,
            "salt": np.rint(noise * a.salt_vs_pepper),
            "bright": float(high) if a.salt_val is None else a.salt_val,
            "dark": float(low) if a.pepper_val is None else a.pepper_val,
            "inner": a.inner,
            "channels": a.channels,
        }
