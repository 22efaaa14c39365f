# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

from penstock import fn, pipeline_def, types
from resampling_reference import finish, resample


def windows(height, width, n=600, seed=1, **kwargs):
    """(n, 4) y0, y1, x0, x1 of the windows, read from resized coordinates."""
    image = np.stack(np.mgrid[:height, :width], axis=2).astype("f4")
    size = 48

    @pipeline_def(batch_size=n, num_threads=2, seed=seed)
    def pipe():
        x = fn.external_source(source=lambda i: [image] * n, no_copy=True, layout="HWC")
        return fn.random_resized_crop(x, size=(size, size), interp_type=types.INTERP_LINEAR, antialias=False, **kwargs)

    out = pipe().run()[0]
    ends = []
    for i in range(n):
        c = np.array(out.at(i), "f8")
        for line in (c[:, 0, 0], c[0, :, 1]):
            a, b = size // 4, size - size // 4  # border pixels are clamped
            step = (line[b] - line[a]) / (b - a)
            start = line[a] + 0.5 - (a + 0.5) * step
            ends.append((start, start + step * size))
    ends = np.array(ends).reshape(n, 4)
    np.testing.assert_allclose(ends, np.round(ends), atol=1e-2)
    return np.round(ends).astype(int)


def test_area_and_aspect_ratio_are_in_range():
    w = windows(200, 300)
    h, v = w[:, 1] - w[:, 0], w[:, 3] - w[:, 2]
    assert (w >= 0).all() and (w[:, 1] <= 200).all() and (w[:, 3] <= 300).all()
    area, ratio = h * v / 60000, v / h
    assert area.min() > 0.079 and area.max() <= 1.001
    assert ratio.min() >= 0.75 and ratio.max() <= 1.333334
    # Uniform positions: the window is as often near one side as near the other.
    place = w[:, 2] / np.maximum(300 - v, 1)
    assert abs(place[v < 250].mean() - 0.5) < 0.05
    assert abs(np.log(ratio).mean()) < 0.03


def test_area_is_uniform_where_every_window_fits():
    w = windows(400, 400, random_area=[0.1, 0.4], random_aspect_ratio=[0.9, 1.1])
    area = np.sort((w[:, 1] - w[:, 0]) * (w[:, 3] - w[:, 2]) / 160000)
    uniform = np.linspace(0.1, 0.4, len(area))
    assert np.abs(area - uniform).max() < 0.3 * 1.63 / np.sqrt(len(area))  # Kolmogorov and Smirnov, 1 %


@pytest.mark.parametrize("shape, want", [((100, 2000), (100, 133)), ((2000, 60), (80, 60))])
def test_images_without_a_fitting_window_get_the_largest(shape, want):
    w = windows(*shape, n=50)
    assert (w[:, 1] - w[:, 0] == want[0]).all() and (w[:, 3] - w[:, 2] == want[1]).all()


@pytest.mark.parametrize("dtype, layout", [("u1", "HWC"), ("f4", "HWC"), ("u1", "CHW")])
def test_pixels(dtype, layout):
    rng = np.random.default_rng(2)
    n, kwargs = 8, {"size": (20, 31), "seed": 5}
    images = [rng.integers(0, 256, (*rng.integers(10, 90, 2), 3)).astype(dtype) for _ in range(n)]
    coordinates = [np.stack(np.mgrid[: x.shape[0], : x.shape[1]], axis=2).astype("f4") for x in images]
    turned = images if layout == "HWC" else [np.ascontiguousarray(x.transpose(2, 0, 1)) for x in images]

    @pipeline_def(batch_size=n, num_threads=2)
    def pipe():
        x = fn.external_source(source=lambda i: turned, layout=layout)
        y = fn.external_source(source=lambda i: coordinates, layout="HWC")
        return fn.random_resized_crop(x, **kwargs), fn.random_resized_crop(y, antialias=False, **kwargs)

    out, where = pipe().run()
    for i, x in enumerate(images):
        ends = []
        for line in (np.array(where.at(i))[:, 0, 0], np.array(where.at(i))[0, :, 1]):
            m = len(line)
            a, b = m // 4, m - m // 4
            step = (line[b] - line[a]) / (b - a)
            start = line[a] + 0.5 - (a + 0.5) * step
            ends.append((round(float(start)), round(float(start + step * m))))
        want = finish(resample(x, 0, (20, 31), *zip(*ends)), dtype)
        got = np.array(out.at(i))
        got = got if layout == "HWC" else got.transpose(1, 2, 0)
        np.testing.assert_allclose(got.astype("f8"), want.astype("f8"), rtol=0, atol=1 if dtype == "u1" else 2e-3)


def test_frames_share_the_window():
    frame = np.random.default_rng(3).integers(0, 256, (40, 50, 3), "u1")

    @pipeline_def(batch_size=1, num_threads=1)
    def pipe():
        return fn.random_resized_crop(
            fn.external_source(source=lambda i: [np.stack([frame] * 3)], layout="FHWC"), size=16
        )

    out = pipe().run()[0].at(0)
    assert out.shape == (3, 16, 16, 3)
    np.testing.assert_array_equal(out[0], out[2])


def test_the_seed_decides():
    np.testing.assert_array_equal(windows(90, 120, n=20, seed=3), windows(90, 120, n=20, seed=3))
    assert (windows(90, 120, n=20, seed=3) != windows(90, 120, n=20, seed=4)).any()


@pytest.mark.parametrize(
    "kwargs, text",
    [
        ({"size": (0, 4)}, "size takes one or two positive"),
        ({"size": 4, "random_area": [0.5, 0.1]}, "random_area takes a range"),
        ({"size": 4, "num_attempts": 0}, "at least 1"),
        ({}, "size"),
    ],
)
def test_errors(kwargs, text):
    @pipeline_def(batch_size=1, num_threads=1)
    def pipe():
        return fn.random_resized_crop(
            fn.external_source(source=lambda i: [np.zeros((4, 4, 3), "u1")], layout="HWC"), **kwargs
        )

    with pytest.raises((ValueError, TypeError, RuntimeError), match=text):
        pipe().run()
