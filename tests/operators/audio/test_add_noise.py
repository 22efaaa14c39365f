# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest
from signals import signals

from harness import op_test, per_sample
from penstock import fn, pipeline_def


def reference(x, noise, snr, start=0):
    if not x.size:
        return x
    added = noise[(start + np.arange(len(x))) % len(noise)].astype("f8")
    ratio = np.mean(x.astype("f8") ** 2) / np.mean(added**2) / 10 ** (np.float64(snr) / 10)
    added = added[:, None] if added.ndim < x.ndim else added
    return (x + np.sqrt(ratio) * added).astype("f4")


ARGUMENTS = [
    {"snr": 10.0},
    {"snr": -5.0, "start": 7},
    {"snr": per_sample(-10, 40), "start": per_sample(0, 5000, dtype="i8")},
]
TestSignals = op_test(
    "audio.add_noise",
    reference,
    dtypes=("f4",),
    layouts=("", "t"),
    args=ARGUMENTS,
    make_input=signals(1, 16, 1000, 0, 4001),
    extra_inputs=lambda rng, case: [[rng.standard_normal(n).astype("f4") for n in (5, 16, 300, 9, 9000)]],
    errors=[
        ({"snr": float("nan")}, RuntimeError, "snr is not a number"),
        ({"start": -1}, RuntimeError, "start -1 is negative"),
    ],
)


def channels(*shapes):
    return lambda rng, case: [rng.standard_normal(s).astype("f4") for s in shapes]


SHAPES = ((100, 2), (3, 1), (0, 2), (50, 5))
TestOneNoiseForAllChannels = op_test(
    "audio.add_noise",
    reference,
    dtypes=("f4",),
    layouts=("tc",),
    args=ARGUMENTS[:2],
    make_input=channels(*SHAPES),
    extra_inputs=lambda rng, case: [[rng.standard_normal(30).astype("f4") for _ in SHAPES]],
)
TestChannels = op_test(
    "audio.add_noise",
    reference,
    dtypes=("f4",),
    layouts=("tc",),
    args=ARGUMENTS[:2],
    make_input=channels(*SHAPES),
    extra_inputs=lambda rng, case: [[rng.standard_normal((30, s[1])).astype("f4") for s in SHAPES]],
)


def added(x, noise, **kwargs):
    @pipeline_def(batch_size=1, num_threads=1)
    def pipe():
        data = (fn.external_source(source=lambda i, v=v: [v]) for v in (x, noise))
        return fn.audio.add_noise(*data, **kwargs)

    return pipe().run()[0].at(0)


def test_the_ratio_is_that_of_the_powers():
    rng = np.random.default_rng(0)
    x, noise = (3 * rng.standard_normal(16000)).astype("f4"), rng.random(700).astype("f4")
    for snr in (-20.0, 0.0, 15.0):
        rest = added(x, noise, snr=snr).astype("f8") - x
        assert abs(10 * np.log10(np.mean(x.astype("f8") ** 2) / np.mean(rest**2)) - snr) < 1e-3


def test_silence():
    x, silent = np.float32([1, -2, 3]), np.zeros(3, "f4")
    np.testing.assert_array_equal(added(x, silent, snr=0.0), x)
    np.testing.assert_array_equal(added(silent, x, snr=0.0), silent)
    np.testing.assert_array_equal(added(x, x, snr=float("inf")), x)


@pytest.mark.parametrize(
    "x, noise, text",
    [
        (np.ones(3, "f4"), np.ones(0, "f4"), "the noise is empty"),
        (np.ones((3, 2), "f4"), np.ones((3, 3), "f4"), "the noise has 3 channels, the signal 2"),
        (np.ones(3, "i2"), np.ones(3, "f4"), "input 0 has the type int16; fn.cast it"),
        (np.ones(3, "f4"), np.ones((3, 1, 1), "f4"), "input 1 has 3"),
    ],
)
def test_what_cannot_be_mixed(x, noise, text):
    with pytest.raises(RuntimeError, match=text):
        added(x, noise, snr=1.0)
