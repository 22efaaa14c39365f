# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

from harness import op_test
from penstock import fn, pipeline_def

LENGTHS = (1, 16, 1000, 0, 4001, 9000)


def reference(x, response, normalize=True, keep_delay=False):
    """The convolution by its definition, in float64."""
    if not x.size:
        return x
    a, h = (v.astype("f8").reshape(len(v), -1) for v in (x, response))
    delay = 0 if keep_delay else int(np.argmax(np.abs(h)) // h.shape[1])
    channels = [np.convolve(a[:, c], h[:, c % h.shape[1]])[delay : delay + len(a)] for c in range(a.shape[1])]
    channels = [np.concatenate([c, np.zeros(len(a) - len(c))]) for c in channels]
    y = np.stack(channels, 1)
    if normalize and np.any(y):
        y *= np.sqrt(np.mean(a**2) / np.mean(y**2))
    return y.reshape(x.shape).astype("f4")


def room(rng, taps):
    """Noise that fades after the direct sound."""
    h = rng.standard_normal(taps) * np.exp(-5 * np.arange(taps) / taps) * 0.3
    h[taps // 5] = 2
    return h.astype("f4")


ARGUMENTS = [{}, {"normalize": False}, {"keep_delay": True}]
TestSignals = op_test(
    "audio.reverb",
    reference,
    dtypes=("f4",),
    layouts=("", "t"),
    args=ARGUMENTS,
    make_input=lambda rng, case: [rng.standard_normal(n).astype("f4") for n in LENGTHS],
    extra_inputs=lambda rng, case: [[room(rng, n) for n in (5, 33, 300, 9, 2500, 1)]],
    ulps=64,
)


def channels(*shapes):
    return lambda rng, case: [rng.standard_normal(s).astype("f4") for s in shapes]


SHAPES = ((100, 2), (3, 1), (0, 2), (50, 5))
for name, responses in (
    ("TestOneResponse", lambda rng, case: [[room(rng, 30) for _ in SHAPES]]),
    ("TestChannels", lambda rng, case: [[np.stack([room(rng, 70)] * s[1], 1) * s[0] for s in SHAPES]]),
    ("TestMono", lambda rng, case: [[room(rng, 30)[:, None] for _ in SHAPES]]),
):
    globals()[name] = op_test(
        "audio.reverb",
        reference,
        dtypes=("f4",),
        layouts=("tc",),
        args=ARGUMENTS,
        make_input=channels(*SHAPES),
        extra_inputs=responses,
        ulps=64,
    )


def sounding(x, response, **kwargs):
    @pipeline_def(batch_size=1, num_threads=1)
    def pipe():
        data = (fn.external_source(source=lambda i, v=v: [v]) for v in (x, response))
        return fn.audio.reverb(*data, **kwargs)

    return pipe().run()[0].at(0)


def test_a_single_tap_delays_or_not():
    x, late = np.arange(1, 6, dtype="f4"), np.float32([0, 0, -0.5])
    np.testing.assert_allclose(sounding(x, late, normalize=False), -0.5 * x, atol=1e-6)
    np.testing.assert_allclose(sounding(x, late, normalize=False, keep_delay=True), [0, 0, -0.5, -1, -1.5], atol=1e-6)
    np.testing.assert_allclose(sounding(x, late), -x, atol=1e-5)


def test_silence_and_infinity():
    x = np.float32([1, 2, 3])
    assert sounding(x, np.zeros(4, "f4")).tolist() == [0, 0, 0]
    assert sounding(np.zeros(3, "f4"), x).tolist() == [0, 0, 0]
    assert sounding(np.float32([np.nan, 1]), x).shape == (2,)


@pytest.mark.parametrize(
    "x, response, text",
    [
        (np.ones(3, "f4"), np.ones(0, "f4"), "the impulse response is empty"),
        (np.ones((3, 2), "f4"), np.ones((3, 3), "f4"), "the impulse response has 3 channels, the signal 2"),
        (np.ones(3, "f4"), np.ones((3, 3), "f4"), "the impulse response has 3 channels, the signal 1"),
        (np.ones(3, "i2"), np.ones(3, "f4"), "input 0 has the type int16; fn.cast it"),
        (np.ones(3, "f4"), np.ones((3, 1, 1), "f4"), "input 1 has 3"),
    ],
)
def test_what_cannot_be_convolved(x, response, text):
    with pytest.raises(RuntimeError, match=text):
        sounding(x, response)
