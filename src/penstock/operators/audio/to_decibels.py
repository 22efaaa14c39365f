# SPDX-License-Identifier: Apache-2.0
"""Magnitudes on a logarithmic scale."""

from typing import Any

import numpy as np

from ...core.batch import Spec
from ...core.op import Arg, Arguments
from ._float_only import FloatOnly


class ToDecibels(FloatOnly):
    """Converts magnitudes or powers to decibels:
    `out = multiplier * log10(max(10^(cutoff_db / multiplier), in / reference))`.

    NaN, zero and negative values become `cutoff_db`. Input: float32 of any shape. The output has the same shape and
    layout.

    >>> from penstock import fn, pipeline_def, types
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return fn.to_decibels(types.Constant([0.0, 0.001, 10.0, 100.0]), cutoff_db=-40.0, reference=1.0)
    >>> pipe().run()[0].at(0).round(3).tolist()
    [-40.0, -30.0, 10.0, 20.0]
    """

    kernel = "audio/decibels"
    multiplier = Arg(float, 10.0, "10 for powers, 20 for magnitudes.")
    reference = Arg(
        float,
        0.0,
        "Value that corresponds to 0 dB. If it is not given, the largest element of the sample, or 1 if none is "
        "positive; 0 is an error, as in DALI.",
    )
    cutoff_db = Arg(float, -200.0, "Smallest value of the output, in decibels.")

    def setup(self) -> None:
        if "reference" in self.given and self.values["reference"] == 0:
            raise ValueError("reference can't be zero; leave it out for the largest element of each sample")

    def outputs(self, a: Arguments, x: Spec) -> Spec:
        return x.like()

    def kernel_for(self, a: Arguments, x: Spec, out: Spec) -> str:
        return "audio/decibels" if a.reference else "audio/decibels_of_largest"

    def params(self, a: Arguments, x: Spec, out: Spec) -> dict[str, Any]:
        with np.errstate(divide="ignore", over="ignore"):
            ratio = np.float32(10.0 ** (np.float64(a.cutoff_db) / np.float64(a.multiplier)))
        smallest = np.nextafter(np.float32(0), np.float32(1))  # has a finite logarithm
        params = {"multiplier": a.multiplier, "smallest": float(max(ratio, smallest))}
        return {**params, "reference": a.reference} if a.reference else params
