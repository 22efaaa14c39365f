# SPDX-License-Identifier: Apache-2.0
"""Spectra along one axis."""

from typing import Any

from ...core.batch import Spec
from ...core.errors import SampleErrors
from ...core.op import Arg, Arguments
from ._float_only import FloatOnly


class PowerSpectrum(FloatOnly):
    """Computes the power spectrum along an axis: the squared magnitudes of the Fourier transform.

    The frequencies are 0 to half of the sampling rate, so the axis becomes `nfft // 2 + 1` long. The layout is kept.
    Input: float32 of any shape.

    >>> from penstock import fn, pipeline_def, types
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return fn.power_spectrum(types.Constant([1.0, 0.0, -1.0, 0.0]))
    >>> pipe().run()[0].at(0).tolist()
    [0.0, 4.0, 0.0]
    """

    kernel = "audio/power_spectrum"
    axis = Arg(int, -1, "Index of the axis. Negative values count from the last.")
    nfft = Arg(
        int, None, "Length of the transform, to which the axis is cut or zero-padded. By default the axis's length."
    )
    power = Arg(int, 2, "2 for squared magnitudes (power), 1 for magnitudes.")

    def setup(self) -> None:
        if self.values["power"] not in (1, 2):
            raise ValueError(f"power takes 1 (magnitudes) or 2 (powers); got {self.values['power']}")
        if self.values["nfft"] is not None and self.values["nfft"] < 1:
            raise ValueError(f"nfft takes a positive number; got {self.values['nfft']}")

    def plan(self, a: Arguments, x: Spec) -> None:
        super().plan(a, x)
        a.at = x.ndim - 1 if a.axis == -1 else a.axis
        if not 0 <= a.at < x.ndim:
            raise ValueError(f"axis {a.axis} is out of range for an input of {x.ndim} axes")
        a.length = x.shape[:, a.at] if a.nfft is None else x.shape[:, a.at] * 0 + a.nfft
        SampleErrors.where(a.length == 0, lambda i: "an empty axis has no spectrum; give nfft to pad it with zeros")

    def outputs(self, a: Arguments, x: Spec) -> Spec:
        shape = x.shape.copy()
        shape[:, a.at] = a.length // 2 + 1
        return x.like(shape=shape)

    def params(self, a: Arguments, x: Spec, out: Spec) -> dict[str, Any]:
        return {"axis": a.at, "nfft": a.length, "power": a.power}
