# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest
from scipy import stats

from penstock import fn, pipeline_def
from penstock.core.rng import Random, key

P_VALUE = 1e-4


def draw(shapes, num_threads=2, seed=1, iterations=1, seed_of_operator=-1, **kwargs):
    @pipeline_def(batch_size=len(shapes), num_threads=num_threads, seed=seed)
    def pipe():
        return tuple(
            fn.random_crop_generator(fn.external_source(source=lambda: shapes), seed=seed_of_operator, **kwargs)
        )

    p = pipe()
    for _ in range(iterations):
        outputs = p.run()
    anchor, shape = (np.array(x.as_array()) for x in outputs)
    assert anchor.dtype == shape.dtype == np.int32 and anchor.shape == shape.shape == (len(shapes), 2)
    return anchor, shape


def same(n, *shape, dtype="i4"):
    return [np.array(shape, dtype)] * n


@pytest.mark.parametrize("height, width", [(400, 600), (600, 400), (500, 500)])
@pytest.mark.parametrize(
    "area, ratio",
    [([0.08, 1.0], [0.75, 1.333333]), ([0.2, 0.4], [0.5, 2.0]), ([0.1, 0.1], [1.0, 1.0]), ([0.0, 0.5], [0.5, 2.0])],
)
def test_distribution(height, width, area, ratio):
    """Areas and aspect ratios are in their ranges; small windows, which always fit, are uniform and log-uniform."""
    anchor, shape = draw(same(3000, height, width, 3), random_area=area, random_aspect_ratio=ratio)
    assert (anchor >= 0).all() and (anchor + shape <= [height, width]).all()
    shares, ratios = shape.prod(axis=1) / (height * width), shape[:, 1] / shape[:, 0]
    assert (shares > area[0] - 0.01).all() and (shares < area[1] + 0.01).all()
    assert (ratios > ratio[0] * 0.99).all() and (ratios < ratio[1] * 1.01).all()
    room = [height, width] - shape
    for d in range(2):  # the place is uniform in the room that there is
        free = room[:, d] > 100
        if free.sum() > 300:
            assert stats.kstest((anchor[free, d] + 0.5) / (room[free, d] + 1), "uniform").pvalue > P_VALUE
    if area == [0.2, 0.4]:
        assert stats.kstest((shares - 0.2) / 0.2, "uniform").pvalue > P_VALUE
        if height == width:
            log = (np.log(ratios) - np.log(0.5)) / (2 * np.log(2))
            assert stats.kstest(log, "uniform").pvalue > P_VALUE


def test_shapes_that_no_window_fits():
    anchor, shape = draw(same(50, 10, 1000), random_area=[0.9, 1.0], random_aspect_ratio=[0.75, 1.25])
    assert (shape[:, 0] == 10).all() and (anchor[:, 1] + shape[:, 1] <= 1000).all()
    anchor, shape = draw([np.int32([0, 200]), np.int32([7, 0]), np.int32([1, 1])])
    assert anchor.tolist() == [[0, 0]] * 3 and shape.tolist() == [[0, 0], [0, 0], [1, 1]]


@pytest.mark.parametrize("dtype", ["u1", "i2", "i4", "i8", "u8"])
def test_types_threads_seeds_and_batches(dtype):
    shapes = same(20, 100, 120, 3, dtype=dtype)
    first = draw(shapes, num_threads=1)
    np.testing.assert_array_equal(first, draw(shapes, num_threads=4))
    assert (first[0] != draw(shapes, seed=2)[0]).any() and (first[0] != draw(shapes, iterations=2)[0]).any()


@pytest.mark.parametrize(
    "shape, kwargs, error, text",
    [
        (np.float32([3, 4]), {}, RuntimeError, "must be integers; got float32"),
        (np.int32([[3, 4]]), {}, RuntimeError, "must be a vector .* got 2 dimensions"),
        (np.int32([3]), {}, RuntimeError, "needs height and width; got 1 values"),
        (np.int32([3, -4]), {}, RuntimeError, r"negative height or width: \[3, -4\]"),
        (np.int32([3, 4]), {"random_area": [0.5, 0.2]}, ValueError, "random_area takes a range"),
        (np.int32([3, 4]), {"random_area": [-0.1, 0.2]}, ValueError, "random_area takes a range .* 0 or more"),
        (np.int32([3, 4]), {"random_aspect_ratio": [0.0, 2.0]}, ValueError, "random_aspect_ratio takes a range"),
        (np.int32([3, 4]), {"num_attempts": 0}, ValueError, "num_attempts must be at least 1"),
        (np.int32([3, 4]), {"random_are": [0.5, 0.2]}, TypeError, "Did you mean 'random_area'"),
    ],
)
def test_errors(shape, kwargs, error, text):
    with pytest.raises(error, match=text):
        draw([shape], **kwargs)


def attempt(u, h, w, area, ratio):
    """The first allowed window, height and width, that follows from uniform numbers `u` (attempts, 2)."""
    for share, turn in u:
        a, r = (area[0] + (area[1] - area[0]) * share) * h * w, ratio[0] * (ratio[1] / ratio[0]) ** turn
        tall, wide = (max(round(np.sqrt(x)), 1) for x in (a / r, a * r))
        if tall <= h and wide <= w and ratio[0] <= wide / tall <= ratio[1]:
            return [tall, wide]
    return None


def test_windows_follow_from_the_random_numbers_of_the_sample():
    """By the documented rule, computed one by one from the numbers of `Random`."""
    sizes = np.random.default_rng(2).integers(20, 900, (400, 2))
    area, ratio = [0.3, 0.9], [0.5, 1.5]
    anchor, shape = draw(list(sizes.astype("i4")), random_area=area, random_aspect_ratio=ratio, seed_of_operator=11)
    numbers = Random(key(11, None), np.zeros(400, "u4"), np.arange(400))
    tries, places = numbers.uniform(20).reshape(400, 10, 2), numbers.uniform(2, stream=1)
    found = 0
    for i, (h, w) in enumerate(sizes.tolist()):
        possible = min(h, w / ratio[0]) * w >= area[0] * h * w and min(w, h * ratio[1]) * h >= area[0] * h * w
        if possible and (size := attempt(tries[i], h, w, area, ratio)) is not None:
            assert shape[i].tolist() == size
            found += 1
        assert anchor[i].tolist() == [int(p * (n - s + 1)) for p, n, s in zip(places[i], (h, w), shape[i])]
    assert found > 250
