# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest
from scipy import stats

from harness import Case, op_test, run
from penstock import fn, pipeline_def, types

# For a single colour, the result is independent of the random numbers.
TestUniform = op_test(
    "jitter",
    lambda x, **kwargs: x,
    ("u1", "u2", "i2", "f4"),
    args=[{"fill_value": 3}, {"nDegree": 1}, {"mask": 0}, {"fill_value": 3, "interp_type": types.INTERP_LINEAR}],
    make_input=lambda rng, case: [np.full((h, w, 3), 3, case.dtype) for h, w in ((5, 4), (1, 1), (0, 4), (8, 37))],
    errors=[
        ({"nDegree": -1}, ValueError, r"nDegree must be in \[0, 32767\], got -1"),
        ({"interp_type": types.INTERP_CUBIC}, ValueError, "supported: INTERP_NN, INTERP_LINEAR"),
    ],
    dali_differs={"-": "DALI has it on the GPU only"},
)


def places(h, w):
    """An image whose pixel values are their positions."""
    return np.stack(np.mgrid[:h, :w][::-1], -1).astype("f4")


def moved(h=60, w=90, device="cpu", batches=1, seed=1, threads=1, **kwargs):
    @pipeline_def(batch_size=2, num_threads=threads, seed=seed, device_id=0 if device == "gpu" else None)
    def pipe():
        x = fn.external_source(source=lambda i: [places(h, w)] * 2, layout="HWC", device=device)
        return fn.jitter(x, fill_value=-1000, **kwargs)

    p, outs = pipe(), []
    for _ in range(batches):
        (out,) = p.run()
        out = out.as_cpu() if device == "gpu" else out
        outs += [np.array(out.at(i)) for i in range(2)]
    return np.stack(outs) - places(h, w)


@pytest.mark.parametrize("degree", [0, 1, 2, 5, 12])
def test_steps_are_equally_likely(degree):
    r = degree // 2
    steps = moved(nDegree=degree)[:, r : 60 - r, r : 90 - r].reshape(-1, 2).astype(int)
    assert np.abs(steps).max() == r
    table = np.zeros((2 * r + 1,) * 2)
    np.add.at(table, (steps[:, 0] + r, steps[:, 1] + r), 1)
    if r:
        assert stats.chisquare(table.ravel()).pvalue > 1e-4
        assert stats.chi2_contingency(table).pvalue > 1e-4
        neighbours = np.corrcoef(steps[:-1, 0], steps[1:, 0])[0, 1]
        assert abs(neighbours) < 0.05


def test_pixels_from_outside_are_filled():
    (first, _), k = moved(nDegree=4), 2
    outside = (first < -500).any(-1)
    assert outside[:k].any() and not outside[k:-k, k:-k].any()


def test_it_is_the_same_for_any_threads_and_differs_between_samples_batches_and_seeds():
    a, b = moved(batches=2, threads=1, seed=4), moved(batches=2, threads=3, seed=4)
    np.testing.assert_array_equal(a, b)
    assert all((a[i] != a[j]).any() for i in range(4) for j in range(i))
    assert (moved(seed=5) != a[:2]).any()


def test_the_gpu_draws_the_same():
    np.testing.assert_array_equal(moved(20, 33, nDegree=6), moved(20, 33, "gpu", nDegree=6))


def test_a_mask_per_sample():
    x = [places(9, 8), places(9, 8)]
    kept, changed = run("jitter", x, Case("f4", "HWC", {"mask": None}), {"mask": [np.int32(0), np.int32(1)]})[0]
    np.testing.assert_array_equal(kept, x[0])
    assert (changed != x[1]).any()
