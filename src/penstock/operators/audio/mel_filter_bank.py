# SPDX-License-Identifier: Apache-2.0
"""Spectra on the mel scale."""

from functools import cache

import numpy as np

from ...core.batch import Spec
from ...core.op import Arg, Arguments
from ._weighted_sums import WeightedSums, sums_of

_LINEAR_TO = 1000.0  # Hz; below, Slaney's scale is linear, with 200 / 3 Hz per mel
_STEP = 0.068751777  # above, natural logarithm of the frequency ratio per mel


class MelFilterBank(WeightedSums):
    """Applies a bank of `nfilter` triangular filters to a spectrum. The filters overlap by half and are spaced evenly
    on the mel scale from `freq_low` to `freq_high`.

    The frequency axis is the axis "f" of the layout; without a layout it is the second to last axis, or the only axis
    of a vector. Its n bins are those of a Fourier transform of length 2 (n - 1). Input: float32, such as the output of
    `fn.spectrogram`. The output has the same layout.

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     spectrum = types.Constant(np.ones((257, 1), "f4"), layout="ft")
    ...     return fn.mel_filter_bank(spectrum, sample_rate=16000.0, nfilter=4, normalize=False)
    >>> [round(float(x), 1) for x in pipe().run()[0].at(0)[:, 0]]
    [19.8, 27.2, 48.9, 91.1]
    """

    nfilter = Arg(int, 128, "Number of filters.")
    sample_rate = Arg(float, 44100.0, "Sampling rate of the signal, in Hz.")
    freq_low = Arg(float, 0.0, "Lower end of the first filter, in Hz.")
    freq_high = Arg(
        float,
        0.0,
        "Upper end of the last filter, in Hz, at most `sample_rate`; 0: half of the sampling rate. A spectrum ends at "
        "half of the rate: the filters are cut off there, and those beyond give 0. Negative numbers are an error; DALI "
        "takes them for 0.",
    )
    normalize = Arg(
        bool,
        True,
        "Whether to multiply each filter by 2 / (its width in Hz), so that all have the same area. Otherwise their "
        "maximum is 1.",
    )
    mel_formula = Arg(
        str,
        "slaney",
        '"slaney": linear up to 1000 Hz, logarithmic above; "htk": `1127 * ln(1 + f / 700)`.',
    )

    def setup(self) -> None:
        v = self.values
        if v["mel_formula"] not in ("slaney", "htk"):
            raise ValueError(f"mel_formula takes 'slaney' or 'htk'; got {v['mel_formula']!r}")
        if v["nfilter"] < 1:
            raise ValueError(f"nfilter takes a positive number; got {v['nfilter']}")
        if not v["sample_rate"] > 0:
            raise ValueError(f"sample_rate takes a positive number of Hz; got {v['sample_rate']}")
        high = v["freq_high"] or v["sample_rate"] / 2
        if not 0 <= v["freq_low"] < high <= v["sample_rate"]:
            raise ValueError(
                f"0 <= freq_low < freq_high <= sample_rate is needed; got freq_low={v['freq_low']}, freq_high={high}, "
                f"sample_rate={v['sample_rate']}"
            )
        self.bank = (v["nfilter"], v["sample_rate"], v["freq_low"], high, v["mel_formula"], v["normalize"])

    def sums(self, extent: int) -> dict[str, np.ndarray]:
        return _bank(extent, *self.bank)

    def plan(self, a: Arguments, x: Spec) -> None:
        super().plan(a, x)
        if x.layout:
            a.at = x.layout.find("f")
            if a.at < 0:
                raise ValueError(f"the layout '{x.layout}' has no axis of frequencies, 'f'; set one by fn.reshape")
        else:
            a.at = max(x.ndim - 2, 0)
        if not x.ndim:
            raise ValueError("the input is a scalar; a spectrum is needed")

    def outputs(self, a: Arguments, x: Spec) -> Spec:
        shape = x.shape.copy()
        shape[:, a.at] = a.nfilter
        return x.like(shape=shape)


@cache
def _bank(
    bins: int, n: int, sample_rate: float, low: float, high: float, formula: str, normalize: bool
) -> dict[str, np.ndarray]:
    """Weights of the filters for a spectrum of `bins` bins."""
    first, last = _mel(np.array([low, high]), formula)
    edges = _hertz(np.linspace(first, last, n + 2), formula)
    hertz = np.arange(bins) * (sample_rate / 2 / max(bins - 1, 1))
    begin, middle, end = edges[:-2, None], edges[1:-1, None], edges[2:, None]
    weights = np.minimum((hertz - begin) / (middle - begin), (end - hertz) / (end - middle))
    weights = np.where(weights > 1e-9, weights, 0)  # removes rounding errors at the ends
    return sums_of(weights * (2 / (end - begin)) if normalize else weights)


def _mel(hertz: np.ndarray, formula: str) -> np.ndarray:
    if formula == "htk":
        return 1127 * np.log1p(hertz / 700)
    logarithmic = 15 + np.log(np.maximum(hertz, _LINEAR_TO) / _LINEAR_TO) / _STEP
    return np.where(hertz < _LINEAR_TO, hertz * 3 / 200, logarithmic)


def _hertz(mel: np.ndarray, formula: str) -> np.ndarray:
    if formula == "htk":
        return 700 * np.expm1(mel / 1127)
    return np.where(mel < 15, mel * 200 / 3, _LINEAR_TO * np.exp(_STEP * (np.maximum(mel, 15) - 15)))
