# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest
from PIL import Image

from encoded_images import encode
from penstock import fn, pipeline_def

H, W = 100, 300
# Red is the row, green and blue are the column, so a window's position can be read from its pixels.
Y, X = np.mgrid[:H, :W]
PICTURE = np.stack([Y, X % 256, X // 256], -1).astype("u1")
FILE = encode(Image.fromarray(PICTURE), "PNG", compress_level=1)
QUICK = encode(Image.fromarray(PICTURE), "PPM")


def windows(n=400, seed=5, num_threads=2, file=FILE, **kwargs):
    """(n, 4): y, x, height, width of n windows."""

    @pipeline_def(batch_size=n, num_threads=num_threads, seed=seed)
    def pipe():
        return fn.decoders.image_random_crop(fn.external_source(source=lambda i: [file] * n), **kwargs)

    out = pipe().run()[0]
    result = []
    for i in range(n):
        a = np.array(out.at(i))
        y, x = int(a[0, 0, 0]), int(a[0, 0, 1]) + 256 * int(a[0, 0, 2])
        assert np.array_equal(a, PICTURE[y : y + a.shape[0], x : x + a.shape[1]])
        result.append((y, x, *a.shape[:2]))
    return np.array(result)


def expected_windows(n, area, ratio, attempts=10, seed=1):
    """The distribution by its definition: redrawn until a window fits."""
    rng = np.random.default_rng(seed)
    if W / H > ratio[1]:
        size = H, round(H * ratio[1])
    elif W / H >= ratio[0]:
        size = H, W
    else:
        size = round(W / ratio[0]), W
    h, w = (np.full(n, x) for x in size)
    drawn = np.arange(n)  # those that no window has fitted yet
    for _ in range(attempts):
        s, r = rng.uniform(*area, len(drawn)) * H * W, np.exp(rng.uniform(*np.log(ratio), len(drawn)))
        width, height = (np.maximum(1, np.round(x**0.5).astype(int)) for x in (s * r, s / r))
        fits = (width <= W) & (height <= H) & (ratio[0] <= width / height) & (width / height <= ratio[1])
        h[drawn[fits]], w[drawn[fits]] = height[fits], width[fits]
        drawn = drawn[~fits]
    return np.stack([rng.integers(0, H - h + 1), rng.integers(0, W - w + 1), h, w], 1)


@pytest.mark.parametrize(
    ("area", "ratio"),
    (((0.08, 1.0), (3 / 4, 4 / 3)), ((0.2, 0.5), (2.0, 4.0)), ((0.05, 0.3), (0.2, 0.5)), ((0.0, 0.5), (0.5, 2.0))),
)
def test_distribution(area, ratio):
    n = 3000
    got = windows(n, file=QUICK, random_area=list(area), random_aspect_ratio=list(ratio))
    want = expected_windows(20 * n, area, ratio)

    def features(v):
        y, x, h, w = v.T
        return np.stack([h * w / (H * W), np.log(w / h), y / np.maximum(H - h, 1), x / np.maximum(W - w, 1)])

    g, e = features(got), features(want)
    for name, a, b in zip(("area", "log ratio", "y", "x"), g, e):
        # Kolmogorov-Smirnov: 1.95 / sqrt(n) is exceeded once in a thousand tests.
        values = np.sort(np.concatenate([a, b]))
        cdf = [np.searchsorted(np.sort(s), values, "right") / len(s) for s in (a, b)]
        assert np.abs(cdf[0] - cdf[1]).max() < 1.95 * (1 / len(a) + 1 / len(b)) ** 0.5, name


def test_what_can_not_fit_gives_the_largest_window():
    assert (windows(5, random_area=[0.9, 1.0])[:, 2:] == (100, 133)).all()
    assert (windows(5, random_aspect_ratio=[0.1, 0.2], random_area=[0.9, 1.0])[:, 2:] == (100, 20)).all()
    assert (windows(5, random_aspect_ratio=[6.0, 7.0], random_area=[0.9, 1.0])[:, 2:] == (50, 300)).all()


def test_areas_of_nothing_and_of_more_than_the_image():
    assert (windows(5, random_area=[0.0, 0.0])[:, 2:] == 1).all()
    assert (windows(5, random_area=[2.0, 3.0])[:, 2:] == (100, 133)).all()
    assert windows(200, random_area=[0.0, 0.02])[:, 2:].prod(axis=1).max() < 0.03 * H * W


def test_the_same_for_any_number_of_threads_and_another_for_another_seed():
    np.testing.assert_array_equal(windows(50, num_threads=1), windows(50, num_threads=4))
    assert (windows(50) != windows(50, seed=6)).any(axis=1).mean() > 0.9
    np.testing.assert_array_equal(windows(50, seed=3, num_threads=1)[:, 2:].shape, (50, 2))


@pytest.mark.parametrize(
    ("kwargs", "text"),
    (
        ({"random_area": [0.5, 0.2]}, "random_area takes two ascending numbers, 0 or more; got"),
        ({"random_area": [-0.1, 0.5]}, "random_area takes two ascending numbers"),
        ({"random_aspect_ratio": [0.0, 2.0]}, "random_aspect_ratio takes two ascending numbers, positive"),
        ({"num_attempts": 0}, "num_attempts is at least 1; got 0"),
    ),
)
def test_errors(kwargs, text):
    with pytest.raises(ValueError, match=text):
        windows(1, **kwargs)
