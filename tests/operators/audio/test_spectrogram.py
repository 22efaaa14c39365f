# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest
from scipy.signal import get_window
from signals import signals

from harness import op_test
from penstock import fn, pipeline_def


def mirrored(at, n):
    """Positions in a signal mirrored at its outermost elements: numpy.pad's mode "reflect"."""
    before, behind = max(0, -at.min()), max(0, at.max() - n + 1)
    return np.pad(np.arange(n), (before, behind), mode="reflect" if n > 1 else "edge")[at + before]


def reference(
    x,
    nfft=None,
    window_length=512,
    window_step=256,
    window_fn=None,
    power=2,
    center_windows=True,
    reflect_padding=True,
    layout="ft",
):
    n = x.size
    x = x.astype("f8").ravel()
    i = np.arange(window_length)
    window = 0.5 - 0.5 * np.cos(2 * np.pi * (i + 0.5) / window_length) if window_fn is None else np.array(window_fn)
    windows = n // window_step + 1 if center_windows else max(n - window_length, 0) // window_step + 1
    first = -(window_length // 2) if center_windows else 0
    at = first + window_step * np.arange(windows)[:, None] + i
    if center_windows and reflect_padding:
        taken = x[mirrored(at, n)]
    else:
        taken = np.where((at >= 0) & (at < n), x[np.clip(at, 0, n - 1)], 0)
    out = np.abs(np.fft.rfft(taken * window, nfft or window_length)) ** power
    return (out.T if layout == "ft" else out).astype("f4")


WINDOWS = [
    {},
    {"window_length": 400, "window_step": 160, "nfft": 512},
    {"window_length": 401, "window_step": 100, "nfft": 512, "power": 1},
    {"window_length": 63, "window_step": 50, "nfft": 64, "window_fn": get_window("hamming", 63, False).tolist()},
    {"window_length": 2, "window_step": 1, "nfft": 4},
    {"window_length": 30, "window_step": 31},
]
TestWindows = op_test(
    "spectrogram",
    reference,
    dtypes=("f4",),
    layouts=("",),
    ulps=16,
    args=[
        {**w, **p, **lay} for w in WINDOWS for p in ({}, {"reflect_padding": False}) for lay in ({}, {"layout": "tf"})
    ],
    make_input=signals(1, 2, 7, 511, 512, 513, 3000, 16000),
    errors=[
        ({"nfft": 200}, ValueError, "nfft is at least the window_length of 512; got 200"),
        ({"power": 3}, ValueError, r"power takes 1 \(magnitudes\) or 2"),
        ({"layout": "t"}, ValueError, "layout takes 'ft' or 'tf'"),
        ({"window_step": 0}, ValueError, "window_step takes a positive number"),
        ({"window_fn": [1.0, 2.0]}, ValueError, "window_fn has 2 factors, window_length is 512"),
    ],
)
TestNotCentered = op_test(
    "spectrogram",
    reference,
    dtypes=("f4",),
    layouts=("",),
    ulps=16,
    args=[{**w, "center_windows": False} for w in WINDOWS],
    make_input=signals(400, 511, 512, 513, 768, 3000),
)
# Powers of two, small primes, primes beyond the radices (Bluestein), odd lengths.
LENGTHS = (3, 5, 6, 9, 15, 25, 27, 31, 32, 35, 37, 74, 77, 121, 169, 240, 400, 480, 999, 1009, 1024, 1184, 2018, 4096)
TestTransforms = op_test(
    "spectrogram",
    reference,
    dtypes=("f4",),
    layouts=("t",),
    ulps=16,
    args=[{"window_length": 3, "window_step": 40, "nfft": n, "window_fn": [0.5, 1.0, -2.0]} for n in LENGTHS]
    + [{"window_length": n, "window_step": n} for n in LENGTHS],
    make_input=signals(77, 2500),
)


def one_sided(x, **kwargs):
    @pipeline_def(batch_size=1, num_threads=1)
    def pipe():
        return fn.spectrogram(fn.external_source(source=lambda i: [x]), **kwargs)

    return pipe().run()[0].at(0)


@pytest.mark.parametrize("shape", [(600, 1), (1, 600), (1, 600, 1)])
def test_axes_of_extent_1_are_ignored(shape):
    x = np.random.default_rng(1).random(shape).astype("f4")
    np.testing.assert_array_equal(one_sided(x), one_sided(x.ravel()))


def test_silence_is_exactly_zero_beside_noise():
    x = np.random.default_rng(1).random(8192).astype("f4")
    x[4096:] = 0
    out = one_sided(x, center_windows=False)
    assert (out[:, 16:] == 0).all() and (out[:, :15] > 0).any()


def test_nan_stays_in_its_windows():
    x = np.random.default_rng(1).random(8192).astype("f4")
    clean = one_sided(x)
    x[4000] = np.nan
    bad = np.isnan(one_sided(x)).any(axis=0)
    assert set(np.flatnonzero(bad)) == {15, 16}
    np.testing.assert_array_equal(one_sided(x)[:, ~bad], clean[:, ~bad])


@pytest.mark.parametrize(
    "shape, kwargs, text",
    [
        ((0,), {}, "the signal is empty"),
        ((100,), {"center_windows": False}, "has 100 samples, too few for a window of 512"),
        ((300, 2), {}, r"one signal is needed, but the input has the shape \[300, 2\]"),
    ],
)
def test_samples_without_spectrogram(shape, kwargs, text):
    with pytest.raises(RuntimeError, match=text):
        one_sided(np.zeros(shape, "f4"), **kwargs)


def test_type_of_the_input():
    with pytest.raises(RuntimeError, match="type int16; fn.cast it to float32"):
        one_sided(np.zeros(600, "i2"))
