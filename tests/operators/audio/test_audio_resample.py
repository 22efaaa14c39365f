# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest
from signals import signals

from harness import op_test, per_sample, saturate
from penstock import fn, pipeline_def, types


def in_range(x, source, target):
    """Values of the type `source` in the range of the type `target`."""
    if source == target:
        return x
    if source.kind == "i":
        x = x / np.iinfo(source).max
    elif source.kind == "u":
        x = x / (np.iinfo(source).max / 2) - 1
    if target.kind == "i":
        return x * np.iinfo(target).max
    return (x + 1) * (np.iinfo(target).max / 2) if target.kind == "u" else x


def places(n, scale):
    """Positions of the outputs in the input, accumulated in float32 within blocks of 256, as in DALI."""
    out = []
    for begin in range(0, n, 256):
        start = begin * scale
        at = np.full(min(256, n - begin), np.float32(scale), "f4")
        at[0] = np.float32(start - np.floor(start))
        out += [np.floor(start) + float(p) for p in np.add.accumulate(at, dtype="f4")]
    return np.array(out)


def reference(x, scale=None, in_rate=None, out_rate=None, out_length=None, quality=50.0, dtype=None, antialias=False):
    target = x.dtype if dtype is None else np.dtype(types.to_numpy_type(dtype))
    n = len(x)
    if out_length is not None:
        rates = max(n, 1), max(out_length, 1)
        length = out_length
    else:
        rates = (1, float(np.float32(scale))) if scale is not None else (float(in_rate), float(out_rate))
        length = int(np.ceil(n * rates[1] / rates[0]))
    if not length:
        return np.zeros((0, *x.shape[1:]), target)
    lobes = int(0.007 * quality**2 - 0.09 * quality + 3 + 0.5)
    signal = in_range(x.astype("f8"), x.dtype, target)
    # A table of a Hann-windowed sinc with 64 steps per lobe, interpolated linearly.
    step = np.arange(-32 * lobes, 32 * lobes + 1)
    table = np.sinc(step / 32) * (0.5 + 0.5 * np.cos(2 * np.pi * step / (64 * lobes + 1)))
    out = np.zeros((length, *x.shape[1:]))
    for o, p in enumerate(places(length, rates[0] / rates[1])):
        k = np.arange(max(int(np.ceil(p)) - lobes, 0), min(int(np.floor(p)) + lobes, n - 1) + 1)
        out[o] = np.tensordot(np.interp((k - p) * 32, step, table, 0, 0), signal[k], 1)
    return saturate(out, target)


RATES = [
    {"scale": 2.0},
    {"in_rate": 16000.0, "out_rate": 22050.0},
    {"in_rate": 44100.0, "out_rate": 16000.0},
    {"scale": 0.01},
    {"scale": 1.0},
    {"out_length": 137},
    {"scale": per_sample(0.5, 2)},
    {"in_rate": per_sample(8000, 48000), "out_rate": per_sample(8000, 48000)},
    {"out_length": per_sample(1, 3000, dtype="i8")},
]
TestRates = op_test(
    "audio_resample",
    reference,
    dtypes=("f4",),
    layouts=("",),
    args=[*RATES, *({"scale": 1.3, "quality": q} for q in (0.0, 10.0, 75.0, 100.0)), {"scale": 0.0}],
    make_input=signals(1, 2, 3, 100, 3000),
    ulps=80,
    errors=[
        ({"in_rate": 2.0}, ValueError, "in_rate and out_rate must be given together"),
        ({"out_length": 5}, ValueError, "is needed; got out_length, scale"),
        ({"quality": 101.0}, ValueError, "quality takes a number from 0 to 100"),
        ({"dtype": types.FLOAT64}, RuntimeError, "output type float64 is not supported"),
    ],
)
INTEGERS = ("u1", "i1", "u2", "i2")
OF_TYPE = [{"scale": 1.5}, *({"scale": 1.5, "dtype": t} for t in (types.FLOAT, types.INT16, types.UINT8, types.INT32))]
TestIntegers = op_test(
    "audio_resample",
    reference,
    dtypes=INTEGERS,
    layouts=("",),
    args=[a for a in OF_TYPE if a.get("dtype") != types.INT32],
    make_input=signals(300, 7),
    steps=1,
    share=0.05,
    ulps=80,
)


def several_channels(rng, case):
    return [rng.standard_normal(s).astype("f4") for s in ((300, 2), (40, 32), (7, 1), (9, 0), (0, 2))]


TestChannels = op_test(
    "audio_resample",
    reference,
    dtypes=("f4",),
    layouts=("tc",),
    args=[{"scale": 1.3}, {"in_rate": 44100.0, "out_rate": 16000.0, "quality": 20.0}],
    make_input=several_channels,
    ulps=80,
)


def resample(x, **kwargs):
    @pipeline_def(batch_size=1, num_threads=1)
    def pipe():
        return fn.audio_resample(fn.external_source(source=lambda i: [x]), **kwargs)

    return pipe().run()[0].at(0)


def sine(hertz, rate, seconds=0.5):
    return np.sin(2 * np.pi * hertz * np.arange(int(rate * seconds)) / rate).astype("f4")


def test_antialiasing_removes_what_the_output_cannot_hold():
    rates = {"in_rate": 44100.0, "out_rate": 16000.0}
    middle = slice(200, -200)
    high = sine(10000, 44100)
    assert np.sqrt(np.mean(resample(high, **rates)[middle] ** 2)) > 0.7  # aliased to 6 kHz, as in DALI
    assert np.abs(resample(high, antialias=True, **rates)[middle]).max() < 2e-3
    low = resample(sine(3000, 44100), antialias=True, **rates)
    np.testing.assert_allclose(low[middle], sine(3000, 16000)[: len(low)][middle], atol=2e-3)


def test_antialiasing_changes_nothing_upwards():
    x = np.random.default_rng(0).random(1000).astype("f4")
    np.testing.assert_array_equal(resample(x, scale=1.5, antialias=True), resample(x, scale=1.5))


@pytest.mark.parametrize(
    "shape, kwargs, text",
    [
        ((0,), {"out_length": 5}, "an empty signal can't become 5 samples"),
        ((4, 5, 2), {"scale": 2.0}, "the input has 3"),
        ((5,), {"in_rate": 0.0, "out_rate": 5.0}, "the rates 0.0 and 5.0 can't be used: they are positive"),
        ((5,), {"scale": -1.0}, "the scale -1.0 can't be used"),
        ((5,), {"scale": 1e30}, "the output would have"),
    ],
)
def test_what_cannot_be_resampled(shape, kwargs, text):
    with pytest.raises(RuntimeError, match=text):
        resample(np.zeros(shape, "f4"), **kwargs)
