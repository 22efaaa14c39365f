# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest
from scipy import stats

from penstock import fn, pipeline_def

P_VALUE = 1e-4
TYPES = ("u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f4")
MASK = np.array([[1, 0, 0, 0, 5], [0, 0, 3, 0, 0], [0, 3, 0, 0, 0], [0, 0, 0, 0, 7]])


def draw(masks, num_threads=2, seed=1, **kwargs):
    """One position per mask."""

    @pipeline_def(batch_size=len(masks), num_threads=num_threads, seed=seed)
    def pipe():
        x = fn.external_source(source=[masks], cycle=True)
        columns = {
            k: fn.external_source(source=[v], cycle=True) if isinstance(v, list) else v for k, v in kwargs.items()
        }
        return fn.segmentation.random_mask_pixel(x, **columns)

    places = pipe().run()[0]
    return np.stack([places.at(i) for i in range(len(masks))])


def check_uniform(mask, chosen, **kwargs):
    """All pixels marked by `chosen` are drawn equally often, and others never."""
    places = draw([mask] * 1200, **kwargs)
    assert places.dtype == np.int64 and places.shape == (1200, mask.ndim)
    counts = np.zeros(mask.shape, "i8")
    np.add.at(counts, tuple(places.T), 1)
    assert counts[~chosen].sum() == 0
    assert stats.chisquare(counts[chosen]).pvalue > P_VALUE if chosen.sum() > 1 else True


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    "kwargs, chosen",
    [
        ({}, MASK >= 0),
        ({"foreground": 0, "value": 3}, MASK >= 0),
        ({"foreground": 1}, MASK > 0),
        ({"foreground": -7, "threshold": 3.0}, MASK > 3),
        ({"foreground": 1, "threshold": 2.5}, MASK > 2.5),
        ({"foreground": 1, "threshold": -1.0}, MASK >= 0),
        ({"foreground": 1, "value": 3}, MASK == 3),
        ({"foreground": 1, "value": 0}, MASK == 0),
    ],
    ids=str,
)
def test_each_pixel_of_the_foreground(dtype, kwargs, chosen):
    check_uniform(MASK.astype(dtype), chosen, **kwargs)


@pytest.mark.parametrize(
    "kwargs",
    [
        {"threshold": 100.0},
        {"value": 100},
        {"threshold": 1e30},
        {"threshold": float("inf")},
        {"threshold": float("nan")},
    ],
    ids=str,
)
def test_no_foreground(kwargs):
    """Then any pixel may be drawn."""
    for dtype in ("u1", "i8", "f4"):
        check_uniform(MASK.astype(dtype), MASK >= 0, foreground=1, **kwargs)


def test_values_beyond_the_type():
    """256 + 3 does not match 3, and -1 does not match 255."""
    mask = np.uint8([[3, 255], [0, 1]])
    for value in (259, -1):
        check_uniform(mask, mask >= 0, foreground=1, value=value)
    check_uniform(mask, mask >= 0, foreground=1, threshold=-1000.0)
    largest = np.array([2**63 - 1, 0, -(2**63)], "i8")
    check_uniform(largest, largest > 0, foreground=1, threshold=9e18)
    check_uniform(largest, largest >= 0, foreground=1, threshold=-9e18)


def test_not_a_number_is_no_foreground():
    mask = np.float32([np.nan, np.inf, -np.inf, 1, 0])
    check_uniform(mask, np.array([False, True, False, True, False]), foreground=1)


@pytest.mark.parametrize("shape", [(7,), (3, 4), (2, 3, 4), (2, 1, 3, 2, 2), ()])
def test_dimensions(shape):
    mask = np.random.default_rng(3).integers(0, 2, shape).astype("u1")
    if shape:
        check_uniform(mask, mask > 0, foreground=1)
    else:
        assert draw([mask] * 3).shape == (3, 0)


def test_large_masks():
    """Tests the borders of the blocks in which pixels are counted."""
    for n in (4095, 4096, 4097, 3 * 4096, 50001):
        mask = np.zeros(n, "u1")
        at = np.unique([0, n // 2, min(4095, n - 1), min(4096, n - 1), n - 1])
        mask[at] = 1
        places = draw([mask] * 300, foreground=1)[:, 0]
        assert set(places.tolist()) == set(at.tolist())
    assert len(np.unique(draw([np.ones(70001, "u1")] * 300, foreground=1))) > 290


def test_arguments_that_differ_from_sample_to_sample():
    n = 300
    flags = [np.int32(i % 2) for i in range(n)]
    places = draw([MASK.astype("u1")] * n, foreground=flags, value=[np.int32(3 if i < 100 else 7) for i in range(n)])
    values = MASK[tuple(places.T)]
    assert (values[1:100:2] == 3).all() and (values[101::2] == 7).all() and (values[::2] == 0).mean() > 0.5
    thresholds = [np.float32(i % 8) for i in range(n)]
    values = MASK[tuple(draw([MASK.astype("u1")] * n, foreground=1, threshold=thresholds).T)]
    assert all(v > t for v, t in zip(values, thresholds) if t < 7)


def test_ragged_masks_and_threads():
    rng = np.random.default_rng(0)
    masks = [rng.integers(0, 3, (h, w)).astype("u1") for h, w in ((5, 4), (1, 1), (33, 17), (80, 67), (2, 500))]
    first = draw(masks, num_threads=1, foreground=1, value=2)
    for p, m in zip(first, masks):
        assert m[tuple(p)] == 2 or not (m == 2).any()
    assert (first == draw(masks, num_threads=4, foreground=1, value=2)).all()
    assert (first != draw(masks, seed=2, foreground=1, value=2)).any()


def test_errors():
    with pytest.raises(ValueError, match="either `threshold` or `value`"):
        draw([MASK.astype("u1")], threshold=1.0, value=1)
    with pytest.raises(RuntimeError, match="the mask is empty"):
        draw([np.zeros((0, 5), "u1")])
    with pytest.raises(RuntimeError, match="must be of one of the types .* got float64"):
        draw([MASK.astype("f8")])
