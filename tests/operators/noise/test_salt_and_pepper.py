# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest
from noise import TYPES, check_determinism, check_types, disturb
from scipy import stats

P_VALUE = 1e-4


def test_determinism():
    check_determinism("salt_and_pepper", prob=0.3)
    check_determinism("salt_and_pepper", prob=0.3, per_channel=True)


def test_types():
    check_types("salt_and_pepper")


@pytest.mark.parametrize("dtype", TYPES)
def test_default_values(dtype):
    low, high = (-1, 1) if dtype == "f4" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    got = disturb("salt_and_pepper", [np.full((100, 1), 7, dtype)], prob=0.5)[0]
    assert set(got.ravel().tolist()) == {low, 7, high}


LAYOUTS = {"HWC": (60, 50, 3), "CHW": (3, 60, 50), "FHWC": (2, 30, 50, 3), "": (60, 50, 3), "CFHW": (3, 2, 30, 50)}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("channels", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("prob, salt", [(0.05, 0.5), (0.6, 0.2)])
def test_pixels(layout, channels, per_channel, prob, salt):
    """Chi-square of how often pixels (elements) are salt, pepper and left alone."""
    shape = tuple(channels if n == 3 else n for n in LAYOUTS[layout])
    arguments = {"prob": prob, "salt_vs_pepper": salt, "per_channel": per_channel}
    got = disturb("salt_and_pepper", [np.full(shape, 7, "u1")], layout or None, **arguments)[0]
    pixels = np.moveaxis(got, layout.find("C") if layout else -1, -1).reshape(-1, channels)
    if not per_channel:
        assert (pixels == pixels[:, :1]).all()
        pixels = pixels[:, 0]
    counts = [np.count_nonzero(pixels == v) for v in (255, 0, 7)]
    expected = np.array([prob * salt, prob * (1 - salt), 1 - prob]) * pixels.size
    assert stats.chisquare(counts, expected).pvalue > P_VALUE
    if per_channel and channels > 1:  # each channel by itself
        hit = pixels != 7
        both = np.count_nonzero(hit[:, 0] & hit[:, 1])
        assert stats.binomtest(both, len(hit), prob**2).pvalue > P_VALUE


@pytest.mark.parametrize("layout", ["HWC", "CHW", "FHWC"])
@pytest.mark.parametrize("dtype", ["u1", "i8", "f4"])
@pytest.mark.parametrize("channels", [1, 3, 5])
def test_devices_agree(layout, dtype, channels):
    samples = [
        np.full([{"C": channels, "F": 2}.get(c, n) for c, n in zip(layout, s)], 7, dtype)
        for s in ((9, 5, 6, 1), (1, 1, 1, 1), (33, 7, 3, 1))
        for s in ([s[i % 3] for i in range(len(layout))],)
    ]
    here, there = (disturb("salt_and_pepper", samples, layout, device=d, prob=0.4) for d in ("cpu", "gpu"))
    for a, b in zip(here, there):
        np.testing.assert_array_equal(a, b)


def test_values():
    x = np.full((50, 50, 3), 7, "u1")
    for arguments, expected in (
        ({"salt_val": 30.6, "pepper_val": 3.5}, {31, 4, 7}),
        ({"salt_val": 300.0, "pepper_val": -3.0}, {255, 0, 7}),
        ({"salt_val": 30.0}, {30, 0, 7}),
        ({"prob": 0.0}, {7}),
        ({"prob": 1.0}, {0, 255}),
        ({"prob": 1.0, "salt_vs_pepper": 1.0}, {255}),
        ({"prob": 1.0, "salt_vs_pepper": 0.0}, {0}),
    ):
        got = disturb("salt_and_pepper", [x], "HWC", **{"prob": 0.5, **arguments})[0]
        assert set(got.ravel().tolist()) == expected
    got = disturb("salt_and_pepper", [x.astype("f4")], "HWC", prob=0.5, salt_val=30.5, pepper_val=-3.25)[0]
    assert set(got.ravel().tolist()) == {30.5, 7, -3.25}


def test_arguments_that_differ_from_sample_to_sample():
    p = [np.float32(v) for v in (0, 0.2, 0.9, 1)]
    s = [np.float32(v) for v in (0.5, 0, 1, 0.25)]
    bright = [np.float32(v) for v in (9, 10, 11, 12)]
    got = disturb("salt_and_pepper", [np.full((5000, 1), 7, "u1")] * 4, prob=p, salt_vs_pepper=s, salt_val=bright)
    for x, prob, salt, value in zip(got, p, s, bright):
        assert abs((x == value).mean() - prob * salt) < 0.04 and abs((x == 0).mean() - prob * (1 - salt)) < 0.04


@pytest.mark.parametrize(
    "layout, shape, arguments, text",
    [
        ("HWC", (2, 2, 3), {"prob": 1.5}, r"`prob` must be in \[0, 1\]; got 1.5"),
        ("HWC", (2, 2, 3), {"prob": float("nan")}, "got nan"),
        ("HWC", (2, 2, 3), {"salt_vs_pepper": -0.25}, r"`salt_vs_pepper` must be in \[0, 1\]; got -0.25"),
        ("HW", (2, 2), {}, "first or the last axis of the layout; got 'HW'"),
        ("FCHW", (2, 3, 2, 2), {}, "got 'FCHW'"),
    ],
)
def test_errors(layout, shape, arguments, text):
    with pytest.raises(RuntimeError, match=text):
        disturb("salt_and_pepper", [np.zeros(shape, "u1")], layout, **arguments)


def test_scalars():
    assert disturb("salt_and_pepper", [np.uint8(3)], prob=1.0, pepper_val=9.0, salt_val=9.0)[0] == 9
    assert disturb("salt_and_pepper", [np.full(3, 7, "u1")], prob=1.0, salt_vs_pepper=1.0)[0].tolist() == [255] * 3
