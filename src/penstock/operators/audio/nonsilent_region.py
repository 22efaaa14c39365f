# SPDX-License-Identifier: Apache-2.0
"""Finds the part of a signal that is not silent."""

from typing import Any

import numpy as np

from ...core.batch import Spec
from ...core.op import Arg, Arguments, Operator

_TYPES = ("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float32")


class NonsilentRegion(Operator):
    """Finds the part of a signal that is not silent.

    A sample is silent if the mean square of every window of `window_length` samples that contains it is below
    `reference_power * 10^(cutoff_db / 10)`. Outputs: the beginning and the length of the part, int32 scalars; the
    length is 0 if the whole signal is silent. Input: one dimension, integers or float32. For float32, the mean squares
    are running sums in float32; `reset_interval` limits their rounding error.

    >>> from penstock import fn, pipeline_def, types
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     signal = types.Constant([0.0, 0.0, 0.1, 1.0, 0.5, 0.0])
    ...     return fn.nonsilent_region(signal, window_length=1, reset_interval=1, cutoff_db=-10.0)
    >>> [int(o.at(0)) for o in pipe().run()]
    [3, 2]
    """

    kernel = "audio/nonsilent_region"
    by_frame = False
    cutoff_db = Arg(float, -60.0, "Power below which the signal is silent, in decibels relative to `reference_power`.")
    reference_power = Arg(
        float,
        0.0,
        "Power that corresponds to 0 dB, positive. If it is not given, the largest mean square of the signal; 0 is an "
        "error, as in DALI.",
    )
    window_length = Arg(int, 2048, "Length of the sliding window, in samples; limited to that of the signal.")
    reset_interval = Arg(
        int,
        8192,
        "Number of samples after which running sums of float32 are computed anew, a multiple of `window_length`; -1: "
        "never. It has no effect on integers, whose sums are exact.",
    )

    def setup(self) -> None:
        v = self.values
        if v["window_length"] < 1:
            raise ValueError(f"window_length takes a positive number of samples; got {v['window_length']}")
        if v["reference_power"] < 0 or ("reference_power" in self.given and not v["reference_power"] > 0):
            raise ValueError(f"reference_power takes a positive number; got {v['reference_power']}")

    def n_outputs(self) -> int:
        return 2

    def plan(self, a: Arguments, x: Spec) -> None:
        if x.dtype.name not in _TYPES:
            raise TypeError(f"input type {x.dtype.name} is not supported; supported: {', '.join(_TYPES)}")
        if x.ndim != 1:
            raise ValueError(f"a signal has one dimension; the input has {x.ndim}")
        interval, window = a.reset_interval, a.window_length
        if x.dtype.kind == "f" and interval != -1 and (interval < 1 or interval % window):
            raise ValueError(f"reset_interval takes a multiple of the window_length of {window}, or -1; got {interval}")

    def outputs(self, a: Arguments, x: Spec) -> tuple[Spec, ...]:
        return Spec.uniform(x.n, (), "i4"), Spec.uniform(x.n, (), "i4")

    def params(self, a: Arguments, *specs: Spec) -> dict[str, Any]:
        with np.errstate(over="ignore"):
            threshold = np.float32(np.power(10.0, a.cutoff_db / 10))
        # Sums of integers are exact, whatever the interval: one that lets the kernel add up several parts at a time.
        exact = specs[0].dtype.kind != "f"
        return {
            "threshold": float(threshold),
            "reference": a.reference_power,
            "window_length": a.window_length,
            "reset_interval": max(8192, a.window_length) if exact else a.reset_interval,
        }
