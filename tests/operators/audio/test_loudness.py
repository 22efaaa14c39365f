# SPDX-License-Identifier: Apache-2.0
"""Loudness compared with ITU-R BS.1770-4, implemented with SciPy's filters, and with its calibration."""

import numpy as np
import pytest
from scipy import signal

from harness import op_test, per_sample
from penstock import fn, pipeline_def

# Tables 1 and 2 of the standard, for 48 kHz.
SHELF = [1.53512485958697, -2.69169618940638, 1.19839281085285], [1.0, -1.69065929318241, 0.73248077421585]
HIGH_PASS = [1.0, -2.0, 1.0], [1.0, -1.99004745483398, 0.99007225036621]


def weighted(x, rate):
    """Signal (n, channels) after the K-weighting. At other rates, frequencies have the gain of 48 kHz."""
    if rate == 48000:
        return signal.lfilter(*HIGH_PASS, signal.lfilter(*SHELF, x, axis=0), axis=0)
    n = 2 * len(x) + int(rate)  # room for the filter's response after the end
    frequencies = np.minimum(np.fft.rfftfreq(n, 1 / rate), 23999)
    response = np.prod([signal.freqz(*f, frequencies, fs=48000)[1] for f in (SHELF, HIGH_PASS)], axis=0)
    return np.fft.irfft(np.fft.rfft(x, n, axis=0) * response[:, None], n, axis=0)[: len(x)]


def loudness(x, rate=48000):
    x = x.astype("f8").reshape(len(x), -1)
    y = weighted(x, rate)
    weights = np.array([1, 1, 1, 1.41, 1.41])[: x.shape[1]]
    step, block = round(rate / 10), 4 * round(rate / 10)
    begins = range(0, len(x) - block + 1, step) if len(x) >= block else [0]
    power = np.array([weights @ np.mean(y[b : b + block] ** 2, axis=0) for b in begins])
    of = lambda p: -0.691 + 10 * np.log10(p)  # noqa: E731
    with np.errstate(divide="ignore"):
        loud = power[of(power) > -70]
        if not len(loud):
            return None
        if len(x) >= block:
            loud = loud[of(loud) > of(np.mean(loud)) - 10]
    return of(np.mean(loud))


def reference(x, sample_rate, target=-23.0):
    if not x.size or (found := loudness(x, float(sample_rate))) is None:
        return x
    return (x * 10 ** ((np.float32(target) - found) / 20)).astype("f4")


def sounds(*shapes):
    def make(rng, case):
        made = []
        for i, shape in enumerate(shapes):
            envelope = 10 ** (-2 * rng.random(-(-shape[0] // 9000) + 1))  # parts 40 dB apart, for the gates
            gain = np.repeat(envelope, 9000)[: shape[0]].reshape(-1, *[1] * (len(shape) - 1))
            made.append((rng.standard_normal(shape) * gain * 0.1 * (i + 1)).astype("f4"))
        return made

    return make


TestSignals = op_test(
    "audio.loudness",
    reference,
    dtypes=("f4",),
    layouts=("", "t"),
    args=[
        {"sample_rate": 48000.0},
        {"sample_rate": 48000.0, "target": -14.0},
        {"sample_rate": 48000.0, "target": per_sample(-30, -10)},
    ],
    make_input=sounds((19200,), (1,), (0,), (70000,), (5000,), (24001,), (120000,)),
    ulps=64,
    errors=[
        ({"sample_rate": 0.0}, RuntimeError, r"sample_rate 0.0 is not in \[1000"),
        ({"sample_rate": 48000.0, "target": float("nan")}, RuntimeError, "target nan is not a finite number"),
    ],
)
TestChannels = op_test(
    "audio.loudness",
    reference,
    dtypes=("f4",),
    layouts=("tc",),
    args=[{"sample_rate": 48000.0}],
    make_input=sounds((60000, 2), (20000, 1), (0, 2), (30000, 5), (100, 4)),
    ulps=64,
)
TestRates = op_test(
    "audio.loudness",
    reference,
    dtypes=("f4",),
    layouts=("t",),
    args=[{"sample_rate": r} for r in (8000.0, 16000.0, 22050.0, 44100.0, 96000.0, per_sample(8000, 50000))],
    make_input=sounds((19200,), (70000,), (5000,)),
    ulps=1e5,  # 0.1 dB: the bilinear transform distorts high frequencies
)


def brought(x, **kwargs):
    @pipeline_def(batch_size=1, num_threads=1)
    def pipe():
        return fn.audio.loudness(fn.external_source(source=lambda i: [x]), **kwargs)

    return pipe().run()[0].at(0)


@pytest.mark.parametrize("rate", [16000, 44100, 48000, 192000])
def test_calibration(rate):
    """A sine of full scale at 997 Hz in one channel has -3.01 LUFS by the standard."""
    tone = np.sin(2 * np.pi * 997 * np.arange(2 * rate) / rate).astype("f4")
    gain = brought(tone, sample_rate=float(rate), target=-23.0).max() / tone.max()
    assert abs(20 * np.log10(gain) - (-23 + 3.01)) < 0.06
    stereo = np.stack([tone, tone], 1)
    gain = brought(stereo, sample_rate=float(rate), target=-23.0).max() / tone.max()
    assert abs(20 * np.log10(gain) + 23) < 0.06


def test_gates():
    """EBU Tech 3341, cases 3 and 4: quiet parts are ignored. Stereo sine of 1000 Hz at these levels."""
    rate = 48000

    def tones(*parts):
        x = np.concatenate([10 ** (db / 20) * np.sin(2 * np.pi * np.arange(s * rate) * 1000 / rate) for db, s in parts])
        return np.stack([x, x], 1).astype("f4")

    for parts in ([(-36, 10), (-23, 60), (-36, 10)], [(-72, 10), (-36, 10), (-23, 60), (-36, 10), (-72, 10)]):
        x = tones(*parts)
        gain = brought(x, sample_rate=48000.0, target=-23.0).max() / x.max()
        assert abs(20 * np.log10(gain)) < 0.1


@pytest.mark.parametrize("x", [np.zeros(40000, "f4"), np.full(40000, 1e-9, "f4"), np.zeros(7, "f4")])
def test_silence_stays(x):
    np.testing.assert_array_equal(brought(x, sample_rate=16000.0), x)


def test_a_signal_that_is_not_finite_does_not_hang():
    x = np.zeros(40000, "f4")
    x[5] = np.nan
    assert brought(x, sample_rate=16000.0).shape == x.shape


@pytest.mark.parametrize(
    "x, text",
    [
        (np.zeros(3, "i2"), "has the type int16; fn.cast"),
        (np.zeros((9, 6), "f4"), "the signal has 6 channels; the standard weights up to 5"),
    ],
)
def test_what_has_no_loudness(x, text):
    with pytest.raises(RuntimeError, match=text):
        brought(x, sample_rate=16000.0)
