# SPDX-License-Identifier: Apache-2.0
"""`audio.time_mask` and `audio.freq_mask`: distributions of widths and positions, and filled values."""

import numpy as np
import pytest
from scipy import stats

from penstock import fn, pipeline_def


def masked(samples, op, layout="ft", batches=1, device="cpu", **kwargs):
    @pipeline_def(batch_size=len(samples), num_threads=2, device_id=0 if device == "gpu" else None, seed=3)
    def pipe():
        x = fn.external_source(source=lambda i: samples, layout=layout, device=device)
        return getattr(fn.audio, op)(x, **kwargs)

    p = pipe()
    outputs = [p.run()[0].as_cpu() for _ in range(batches)]
    return [np.array(o.at(i)) for o in outputs for i in range(len(samples))]


def stretches(lines):
    """(begin, width) of the one stretch of zeros of each line."""
    found = []
    for line in lines:
        at = np.flatnonzero(line == 0)
        assert len(at) == 0 or at[-1] - at[0] + 1 == len(at)
        found.append((at[0] if len(at) else -1, len(at)))
    return np.array(found)


@pytest.mark.parametrize("op, axis", [("freq_mask", 0), ("time_mask", 1)])
@pytest.mark.parametrize("layout", ["ft", "tf"])
def test_widths_and_places_are_uniform(op, axis, layout):
    """The seed is fixed, so the test passes always or never."""
    shape = (12, 9) if layout == "ft" else (9, 12)
    axis = axis if layout == "ft" else 1 - axis
    got = masked([np.ones(shape, "f4")] * 64, op, layout, batches=60, max_width=4)
    for y in got:  # whole lines
        assert (y == y.take([0], 1 - axis)).all()
    found = stretches([y.take(0, 1 - axis) for y in got])
    widths = np.bincount(found[:, 1], minlength=5)
    assert len(widths) == 5 and stats.chisquare(widths).pvalue > 1e-3
    for width in range(1, 5):
        begins = np.bincount(found[found[:, 1] == width, 0], minlength=shape[axis] - width + 1)
        assert len(begins) == shape[axis] - width + 1 and stats.chisquare(begins).pvalue > 1e-3


def test_bounds():
    x = [np.ones((3, 40), "f4")] * 64
    assert max(stretches([y[0] for y in masked(x, "time_mask", max_width=30, max_fraction=0.2, batches=9)])[:, 1]) == 8
    assert max(stretches([y[0] for y in masked(x, "time_mask", max_width=5, max_fraction=0.2, batches=9)])[:, 1]) == 5
    assert max(stretches([y[:, 0] for y in masked(x, "freq_mask", max_width=30)])[:, 1]) == 3
    for kwargs in ({"max_width": 0}, {"max_width": 9, "num_masks": 0}, {"max_width": 9, "max_fraction": 0.0}):
        assert all(y.all() for y in masked(x, "time_mask", **kwargs))


def test_several_masks_fill_values_and_ragged_samples():
    samples = [np.full((2, n), 5, "f4") for n in (1, 0, 30, 400)]
    got = masked(samples, "time_mask", max_width=10, num_masks=3, fill_value=-1.5, batches=20)
    counts = [int((np.diff((y[0] == -1.5).astype("i1")) == 1).sum()) for y in got[3::4]]
    assert max(counts) == 3 and all(set(np.unique(y)) <= {-1.5, 5} for y in got)
    assert [y.shape for y in got[:4]] == [x.shape for x in samples]
    assert samples[2].min() == 5


def test_signals_integers_and_no_layout():
    got = masked([np.arange(1, 30, dtype="i2")] * 8, "time_mask", "t", max_width=6, fill_value=-3)
    assert got[0].dtype == np.int16 and any((y == -3).any() for y in got)
    x = np.ones((4, 9), "u1")
    assert masked([x] * 8, "freq_mask", None, max_width=2)[0].dtype == np.uint8


def test_samples_differ_and_seeds_repeat():
    x = [np.ones((4, 300), "f4")] * 6
    a, b = (masked(x, "time_mask", max_width=200, batches=2) for _ in range(2))
    assert all(np.array_equal(p, q) for p, q in zip(a, b)) and len({y.tobytes() for y in a}) > 9
    c = masked(x, "time_mask", max_width=200, batches=2, seed=8)
    assert not all(np.array_equal(p, q) for p, q in zip(a, c))


@pytest.mark.parametrize("op", ["time_mask", "freq_mask"])
def test_the_gpu_masks_the_same(op):
    samples = [np.random.default_rng(i).random((20, n)).astype("f4") for i, n in enumerate((50, 1, 200))]
    kwargs = {"max_width": 12, "num_masks": 2, "batches": 3}
    for a, b in zip(masked(samples, op, **kwargs), masked(samples, op, device="gpu", **kwargs)):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    "op, kwargs, layout, text",
    [
        ("time_mask", {"max_width": -1}, "ft", "max_width -1 is negative"),
        ("time_mask", {"max_width": 1, "max_fraction": 1.5}, "ft", r"max_fraction 1.5 is not in \[0, 1\]"),
        ("freq_mask", {"max_width": 1}, "HW", "the input has the layout 'HW' and 2 dimensions; it needs an axis 'f'"),
        ("time_mask", {"max_width": 1, "num_masks": -1}, "ft", "num_masks takes 0 or more; got -1"),
        ("freq_mask", {}, "ft", "max_width"),
    ],
)
def test_mistakes(op, kwargs, layout, text):
    with pytest.raises((RuntimeError, ValueError, TypeError), match=text):
        masked([np.ones((2, 3), "f4")], op, layout, **kwargs)
