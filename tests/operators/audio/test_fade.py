# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest
from signals import signals

from harness import op_test, per_sample
from penstock import fn, pipeline_def

SHAPES = {
    "linear": lambda t: t,
    "exponential": lambda t: 2 ** (t - 1) * t,
    "logarithmic": lambda t: np.log10(0.1 + t) + 1,
    "quarter_sine": lambda t: np.sin(t * np.pi / 2),
    "half_sine": lambda t: np.sin(t * np.pi - np.pi / 2) / 2 + 0.5,
}


def reference(x, fade_in=0, fade_out=0, shape="linear"):
    n, gain = len(x), np.ones(len(x))
    rising = np.clip(SHAPES[shape](np.linspace(0, 1, int(fade_in))), 0, 1)[:n]
    falling = np.clip(SHAPES[shape](np.linspace(0, 1, int(fade_out))), 0, 1)[:n][::-1]
    gain[: len(rising)] *= rising
    gain[n - len(falling) :] *= falling
    return (x * gain.reshape(-1, *[1] * (x.ndim - 1))).astype("f4")


ARGUMENTS = [{"fade_in": 10, "fade_out": 7, "shape": s} for s in SHAPES]
ARGUMENTS += [
    {},
    {"fade_in": 1},
    {"fade_out": 1},
    {"fade_in": 900, "fade_out": 5000},
    {"fade_in": per_sample(0, 50, dtype="i8"), "fade_out": per_sample(0, 50, dtype="i8")},
]
TestSignals = op_test(
    "audio.fade",
    reference,
    dtypes=("f4",),
    layouts=("", "t"),
    args=ARGUMENTS,
    make_input=signals(1, 2, 16, 1000, 0, 4001),
    errors=[
        ({"fade_in": -1}, RuntimeError, "fade_in -1 is negative"),
        ({"fade_out": -3}, RuntimeError, "fade_out -3 is negative"),
        ({"shape": "cubic"}, ValueError, "shape takes 'linear', 'exponential'"),
    ],
)
TestChannels = op_test(
    "audio.fade",
    reference,
    dtypes=("f4",),
    layouts=("tc",),
    args=ARGUMENTS[:2],
    make_input=lambda rng, case: [rng.standard_normal(s).astype("f4") for s in ((300, 2), (1, 1), (0, 2), (50, 5))],
)


@pytest.mark.parametrize("given", ["constant", "data"])
def test_fades_of_64_bits(given):
    n = 2**40 + 1

    @pipeline_def(batch_size=1, num_threads=1)
    def pipe():
        fade_in = n if given == "constant" else fn.external_source(source=lambda i: [np.array(n)])
        return fn.audio.fade(fn.external_source(source=lambda i: [np.ones(3, "f4")]), fade_in=fade_in)

    np.testing.assert_allclose(pipe().run()[0].at(0), np.arange(3) / 2**40)


@pytest.mark.parametrize(
    "x, text", [(np.zeros(3, "i2"), "the input has the type int16; fn.cast"), (np.zeros((2, 2, 2), "f4"), "has 3")]
)
def test_what_is_no_signal(x, text):
    @pipeline_def(batch_size=1, num_threads=1)
    def pipe():
        return fn.audio.fade(fn.external_source(source=lambda i: [x]), fade_in=2)

    with pytest.raises(RuntimeError, match=text):
        pipe().run()
