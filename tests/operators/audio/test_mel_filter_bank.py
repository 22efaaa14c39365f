# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest
from signals import spectra

from harness import op_test
from penstock import fn, pipeline_def, types


def to_mel(hertz, formula):
    if formula == "htk":
        return 2595 * np.log10(1 + hertz / 700) * (1127 * np.log(10) / 2595)
    return hertz * 3 / 200 if hertz < 1000 else 15 + np.log(hertz / 1000) / (np.log(6.4) / 27)


def to_hertz(mel, formula):
    if formula == "htk":
        return 700 * (np.exp(mel / 1127) - 1)
    return mel * 200 / 3 if mel < 15 else 1000 * np.exp((mel - 15) * np.log(6.4) / 27)


def reference(
    x, nfilter=128, sample_rate=44100.0, freq_low=0.0, freq_high=0.0, normalize=True, mel_formula="slaney", axis=0
):
    """Triangles, one frequency at a time."""
    high = freq_high or sample_rate / 2
    x = np.moveaxis(x.astype("f8"), axis, 0)
    mels = np.linspace(to_mel(freq_low, mel_formula), to_mel(high, mel_formula), nfilter + 2)
    edges = [to_hertz(m, mel_formula) for m in mels]
    out = np.zeros((nfilter, *x.shape[1:]))
    for k, spectrum in enumerate(x):
        f = k * sample_rate / 2 / max(len(x) - 1, 1)
        for m in range(nfilter):
            lo, mid, hi = edges[m : m + 3]
            weight = (f - lo) / (mid - lo) if f <= mid else (hi - f) / (hi - mid)
            if weight > 1e-9:
                out[m] += weight * spectrum * (2 / (hi - lo) if normalize else 1)
    return np.moveaxis(out, 0, axis).astype("f4")


ARGUMENTS = [
    {},
    {"nfilter": 10},
    {"nfilter": 1},
    {"mel_formula": "htk", "normalize": False},
    {"nfilter": 80, "sample_rate": 16000.0},
    {"nfilter": 40, "sample_rate": 16000.0, "freq_low": 300.0, "freq_high": 3000.0, "mel_formula": "htk"},
    {"nfilter": 23, "sample_rate": 8000.0, "freq_low": 20.0, "normalize": False},
]
OPTIONS = {"dtypes": ("f4",), "args": ARGUMENTS, "ulps": 200}
TestFrequenciesFirst = op_test(
    "mel_filter_bank",
    reference,
    layouts=("ft",),
    make_input=spectra((257, 12), (257, 1), (257, 0), (257, 133)),
    errors=[
        ({"nfilter": 0}, ValueError, "nfilter takes a positive number"),
        ({"mel_formula": "bark"}, ValueError, "mel_formula takes 'slaney' or 'htk'; got 'bark'"),
        ({"freq_low": 500.0, "freq_high": 400.0}, ValueError, "freq_low < freq_high"),
        ({"sample_rate": 8000.0, "freq_high": 8001.0}, ValueError, "freq_high <= sample_rate"),
        ({"freq_high": -1.0}, ValueError, "freq_low < freq_high"),
        ({"sample_rate": 0.0}, ValueError, "sample_rate takes a positive number"),
    ],
    **OPTIONS,
)
TestTimeFirst = op_test(
    "mel_filter_bank",
    lambda x, **kw: reference(x, axis=1, **kw),
    layouts=("tf",),
    make_input=spectra((12, 257), (1, 129), (35, 3), (4, 0)),
    **OPTIONS,
)
TestWithoutLayout = op_test(
    "mel_filter_bank",
    lambda x, **kw: reference(x, axis=x.ndim - 2, **kw),
    layouts=("",),
    make_input=spectra((3, 65, 9), (2, 33, 20)),
    **OPTIONS,
)


def test_filters_beyond_half_of_the_rate_find_nothing():  # where DALI reads behind its input
    x = np.random.default_rng(0).random((65, 3)).astype("f4")
    kwargs = {"freq_high": 30000.0, "nfilter": 60}
    data = types.Constant(x, layout="ft")
    out = pipeline_def(lambda: fn.mel_filter_bank(data, **kwargs), batch_size=1)().run()[0].at(0)
    np.testing.assert_allclose(out, reference(x, **kwargs), rtol=1e-5, atol=1e-7)
    assert (out[-1] == 0).all()


def test_a_layout_without_frequencies():
    x = types.Constant(np.zeros((5, 3), "f4"), layout="HW")
    with pytest.raises(RuntimeError, match="the layout 'HW' has no axis of frequencies"):
        pipeline_def(lambda: fn.mel_filter_bank(x), batch_size=1)().run()
