# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest
from scipy import stats

from penstock import fn, pipeline_def

P_VALUE = 1e-4


def draw(n=2000, inputs=None, num_threads=2, seed=1, iterations=1, **kwargs):
    @pipeline_def(batch_size=n, num_threads=num_threads, seed=seed)
    def pipe():
        columns = {
            k: fn.external_source(source=lambda i, v=v: v) if isinstance(v[0], np.ndarray) else v
            for k, v in kwargs.items()
        }
        fed = [fn.external_source(source=lambda: inputs, layout="HWC")] if inputs else []
        return fn.roi_random_crop(*fed, **columns)

    p = pipe()
    for _ in range(iterations):
        (out,) = p.run()
    got = np.array(out.as_array())
    assert got.dtype == np.int64
    return got


def places(crop, start, end, size):
    """All positions along one axis allowed by the definition."""
    candidates = range(-100, 200) if size is None else range(0, size - crop + 1)
    covers = [p for p in candidates if (p >= start and p + crop <= end) or (p <= start and p + crop >= end)]
    return covers


@pytest.mark.parametrize(
    "crop, start, end, size",
    [
        ((5, 5), (2, 2), (10, 10), (20, 20)),
        ((15, 5), (2, 2), (10, 10), (20, 20)),
        ((15, 5), (2, 2), (10, 10), None),
        ((11, 5), (2, 2), (10, 10), (12, 20)),
        ((8, 20), (2, 0), (10, 20), (20, 20)),
        ((3, 4, 9), (2, 2, 1), (5, 9, 3), (9, 9, 9)),
        ((6,), (4,), (4,), (20,)),
        ((5, 5), (-3, 2), (10, 10), None),
    ],
)
@pytest.mark.parametrize("by_shape", [False, True])
def test_each_place_is_equally_likely(crop, start, end, size, by_shape):
    region = {"roi_shape": list(np.subtract(end, start))} if by_shape else {"roi_end": list(end)}
    kwargs = {} if size is None else {"in_shape": list(size)}
    got = draw(crop_shape=list(crop), roi_start=list(start), **region, **kwargs)
    assert got.shape == (2000, len(crop))
    for d in range(len(crop)):
        allowed = places(crop[d], start[d], end[d], None if size is None else size[d])
        values, counts = np.unique(got[:, d], return_counts=True)
        assert values.tolist() == allowed
        assert len(allowed) == 1 or stats.chisquare(counts).pvalue > P_VALUE
    if len(crop) > 1 and all(len(np.unique(got[:, d])) > 1 for d in (0, 1)):  # axes are independent
        table = np.histogram2d(got[:, 0], got[:, 1], [len(np.unique(got[:, d])) for d in (0, 1)])[0]
        assert stats.chi2_contingency(table).pvalue > P_VALUE


def test_an_input_gives_the_shape():
    images = [np.zeros((12, 20 + i, 3), "u1") for i in range(40)]
    got = draw(40, images, crop_shape=[11, 15], roi_start=[2, 2], roi_end=[10, 10])
    assert got.shape == (40, 2) and set(got[:, 0]) == {0, 1} and got[:, 1].max() <= 2


def test_threads_seeds_and_batches():
    kwargs = dict(crop_shape=[50, 50], roi_start=[200, 200], roi_end=[900, 900], n=50)
    first = draw(num_threads=1, **kwargs)
    assert (first == draw(num_threads=4, **kwargs)).all()
    assert (first != draw(seed=2, **kwargs)).any() and (first != draw(iterations=2, **kwargs)).any()


def test_arguments_that_differ_from_sample_to_sample():
    n = 30
    start = [np.int32([i, 2 * i]) for i in range(n)]
    crop = [np.int32([1 + i, 3]) for i in range(n)]
    got = draw(n, roi_start=start, crop_shape=crop, roi_shape=[4, 5])
    for g, s, c in zip(got, start, crop):
        for d, extent in enumerate((4, 5)):
            assert g[d] in places(c[d], s[d], s[d] + extent, None)


BASE = dict(crop_shape=[5, 5], roi_start=[2, 2], roi_end=[10, 10])


@pytest.mark.parametrize(
    "change, error, text",
    [
        ({"roi_shape": [1, 1]}, ValueError, "either `roi_end` or `roi_shape`"),
        ({"roi_start": [2]}, RuntimeError, "`roi_start` has 1 values, `crop_shape` has 2"),
        ({"in_shape": [4, 20]}, RuntimeError, r"the window \[5, 5\] is larger than the sample \[4, 20\]"),
        ({"in_shape": [9, 20]}, RuntimeError, r"reaches out of the sample \[9, 20\]"),
        ({"in_shape": [9]}, RuntimeError, "the sample has 1 axes"),
        ({"roi_end": [1, 10]}, RuntimeError, "ends before it begins"),
        ({"crop_shape": [-1, 5]}, RuntimeError, "can't be negative"),
        ({"crop_shap": [1, 5]}, TypeError, "Did you mean 'crop_shape'"),
    ],
)
def test_errors(change, error, text):
    with pytest.raises(error, match=text):
        draw(2, **{**BASE, **change})


def test_shape_given_twice():
    with pytest.raises(RuntimeError, match="given twice"):
        draw(1, [np.zeros((20, 20, 3), "u1")], in_shape=[20, 20], **BASE)
