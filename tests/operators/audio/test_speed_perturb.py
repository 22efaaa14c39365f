# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest
from signals import signals

from harness import op_test, per_sample
from penstock import fn, pipeline_def


def lobes(quality):
    return round(0.007 * quality**2 - 0.09 * quality + 3)


def reference(x, speed, quality=50.0, antialias=True):
    """A Hann-windowed sinc around each position i * speed; for higher speeds, it is wider and proportionally lower."""
    speed = round(float(speed), 6)
    n = int(np.ceil(len(x) / speed))
    bandwidth = min(1 / speed, 1.0) if antialias else 1.0
    width = lobes(quality)
    out = np.zeros((n, *x.shape[1:]))
    for i in range(n):
        at = (np.arange(len(x)) - i * speed) * bandwidth
        near = np.abs(at) <= width
        weights = np.sinc(at[near]) * 0.5 * (1 + np.cos(np.pi * at[near] / width)) * bandwidth
        out[i] = np.tensordot(weights, x[near].astype("f8"), 1)
    return out.astype("f4")


TestSpeeds = op_test(
    "audio.speed_perturb",
    reference,
    dtypes=("f4",),
    layouts=("t",),
    args=[
        {"speed": 0.9},
        {"speed": 1.0},
        {"speed": 1.1},
        {"speed": per_sample(0.5, 2)},
        {"speed": 1.5, "antialias": False},
        {"speed": 0.75, "quality": 80.0},
    ],
    make_input=signals(1, 16, 700, 0, 1200),
    atol=4e-3,  # positions are accumulated in float32 within blocks of 256, as in audio_resample and DALI
    errors=[
        ({"speed": 0.0}, RuntimeError, "speed 0.0 is not a number above 0"),
        ({"speed": float("nan")}, RuntimeError, "speed nan is not a number above 0"),
        ({"speed": 1e-12}, RuntimeError, "speed"),
        ({"speed": 1.0, "quality": 101.0}, ValueError, "quality takes a number from 0 to 100"),
    ],
)
TestChannels = op_test(
    "audio.speed_perturb",
    reference,
    dtypes=("f4",),
    layouts=("tc",),
    args=[{"speed": 1.1}],
    make_input=lambda rng, case: [rng.standard_normal(s).astype("f4") for s in ((300, 2), (1, 1), (50, 5))],
    atol=4e-3,
)


def played(x, speed, **kwargs):
    @pipeline_def(batch_size=1, num_threads=1)
    def pipe():
        return fn.audio.speed_perturb(fn.external_source(source=lambda i: [x], layout="t"), speed=speed, **kwargs)

    return pipe().run()[0].at(0)


@pytest.mark.parametrize("speed, length", [(0.9, 17778), (1.1, 14546), (0.7, 22858), (0.8, 20000), (1.6, 10000)])
def test_lengths_are_those_of_the_decimal_number(speed, length):
    assert len(played(np.zeros(16000, "f4"), speed)) == length


def test_a_tone_becomes_higher_and_what_can_not_be_held_vanishes():
    t = np.arange(16000)
    tone = np.sin(2 * np.pi * 440 / 16000 * t).astype("f4")
    y = played(tone, 1.25)
    want = np.sin(2 * np.pi * 550 / 16000 * np.arange(len(y)))
    assert np.abs(y - want)[100:-100].max() < 1e-3
    high = np.sin(2 * np.pi * 7500 / 16000 * t).astype("f4")  # would be 9,375 Hz
    assert np.sqrt(np.mean(played(high, 1.25)[100:-100] ** 2)) < 0.02
    assert np.sqrt(np.mean(played(high, 1.25, antialias=False)[100:-100] ** 2)) > 0.5


def test_integers_keep_their_type():
    x = (1000 * np.sin(np.arange(800) / 9)).astype("i2")
    assert played(x, 1.0).dtype == np.int16 and np.abs(played(x, 1.0) - x.astype("i4")).max() <= 1


def test_types():
    with pytest.raises(RuntimeError, match="the input has the type float64; supported: int8"):
        played(np.zeros(9), 1.0)
    with pytest.raises(RuntimeError, match=r"one dimension \(time\) or two"):
        played_3d()


def played_3d():
    @pipeline_def(batch_size=1, num_threads=1)
    def pipe():
        return fn.audio.speed_perturb(fn.external_source(source=lambda i: [np.zeros((2, 2, 2), "f4")]), speed=1.0)

    pipe().run()
