# SPDX-License-Identifier: Apache-2.0
"""Noise, random windows and permutations: distributions compared with the real DALI."""

import numpy as np
import pytest

from conformance import report
from conformance.test_random import BATCH, P_VALUE, Cycle, compare, draw, fail_if

GRAY = {t: np.full((40, 30, 3), v, t) for t, v in (("u1", 100), ("i1", -20), ("u2", 3000), ("i4", 70), ("f4", 0.5))}
GRAY |= {"f2": np.full((40, 30, 3), 8, "f2"), "i2": np.full((40, 30, 3), -100, "i2")}


@pytest.mark.parametrize("dtype", GRAY)
@pytest.mark.parametrize(
    "kwargs",
    [
        {},
        {"mean": 10.0, "stddev": 30.0},
        {"stddev": Cycle(np.float32([0, 5, 60]))},
        {"mean": Cycle(np.float32([-90, 0, 90])), "stddev": 1.5},
    ],
    ids=str,
)
def test_gaussian_noise(dtype, kwargs):
    compare("noise.gaussian", [GRAY[dtype]], kwargs, "HWC")


@pytest.mark.parametrize("dtype", GRAY)
@pytest.mark.parametrize(
    "kwargs", [{}, {"factor": 5.0}, {"factor": 0.0}, {"factor": Cycle(np.float32([1, 40]))}], ids=str
)
def test_shot_noise(dtype, kwargs):
    compare("noise.shot", [np.abs(GRAY[dtype])], kwargs, "HWC")


@pytest.mark.parametrize("dtype", GRAY)
@pytest.mark.parametrize(
    "kwargs",
    [
        {},
        {"prob": 0.3, "salt_vs_pepper": 0.2},
        {"prob": 0.4, "salt_val": 90.0, "pepper_val": 3.0},
        {"prob": Cycle(np.float32([0, 0.5])), "salt_vs_pepper": Cycle(np.float32([0, 0.3, 1]))},
        {"prob": 0.3, "per_channel": True},
    ],
    ids=str,
)
def test_salt_and_pepper(dtype, kwargs):
    """The channels of a pixel are changed together, or independently."""
    each = kwargs.get("per_channel", False)
    compare("noise.salt_and_pepper", [GRAY[dtype]], kwargs, "HWC", np.ravel if each else lambda x: x[..., 0].ravel())
    together = [draw(s, "noise.salt_and_pepper", [GRAY[dtype]], kwargs, layout="HWC") for s in ("dali", "penstock")]
    if dtype == "f2":  # rejected by both
        return
    for result in together:
        alike = all((x == x[..., :1]).all() for x in result.outputs[0])
        assert alike != each


WHOLE = {"roi_start": [4, 9], "roi_end": [30, 20]}
ROIS = [
    {"crop_shape": [8, 6], **WHOLE},
    {"crop_shape": [40, 6], **WHOLE},  # larger than the region along an axis
    {"crop_shape": [8, 6], "roi_start": [4, 9], "roi_shape": [26, 11]},
    {"crop_shape": [8, 20], **WHOLE, "in_shape": [32, 24]},
    {"crop_shape": Cycle(np.int32([[8, 6], [2, 3]])), **WHOLE},
    {"crop_shape": [8, 6], "roi_start": Cycle(np.int32([[0, 0], [5, 7]])), "roi_end": [30, 20]},
    {"crop_shape": [3], "roi_start": [1], "roi_end": [40]},
    {"crop_shape": [3, 4, 5], "roi_start": [0, 1, 2], "roi_shape": [9, 8, 7]},
    {"crop_shape": [8, 6], "roi_start": [4, 9]},
    {"crop_shape": [8, 6], **WHOLE, "roi_shape": [1, 1]},
    {"crop_shape": [40, 40], **WHOLE, "in_shape": [32, 24]},
]


@pytest.mark.parametrize("kwargs", ROIS, ids=str)
def test_roi_random_crop(kwargs):
    for axis in range(
        len(ROIS[0]["crop_shape"]) if isinstance(kwargs["crop_shape"], Cycle) else len(kwargs["crop_shape"])
    ):
        compare("roi_random_crop", [], kwargs, part=lambda x, axis=axis: x[axis : axis + 1])


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(
    "kwargs",
    [
        {},
        {"random_area": [0.3, 0.4]},
        {"random_aspect_ratio": [2.0, 3.0]},
        {"random_aspect_ratio": [1.0, 1.0], "random_area": [0.01, 0.02]},
        {"random_area": [1.5, 2.0], "num_attempts": 3},
        {"random_area": [0.0, 0.05]},
        {"num_attempts": 1},
    ],
    ids=str,
)
def test_random_crop_generator(kwargs, axis):
    """Begin and size along each axis."""
    compare("random_crop_generator", [np.int32([300, 500])], kwargs, part=lambda x: x[axis : axis + 1])


@pytest.mark.parametrize("no_fixed_points", [False, True])
@pytest.mark.parametrize("allow_repetitions", [False, True])
def test_batch_permutation(no_fixed_points, allow_repetitions):
    """Number of fixed points, number of distinct samples, and position of the first sample."""
    from scipy import stats

    tally = report.tally("batch_permutation")
    tally.cases += 1
    kwargs = {"no_fixed_points": no_fixed_points, "allow_repetitions": allow_repetitions}
    seen = []
    for side in ("dali", "penstock"):
        facts = []
        for seed in range(150):
            result = draw(side, "batch_permutation", [], kwargs, seed)
            assert not result.error, result.error
            order = np.array(result.outputs[0])
            assert order.dtype == np.int32 and order.shape == (BATCH,) and ((order >= 0) & (order < BATCH)).all()
            facts.append([(order == np.arange(BATCH)).sum(), len(set(order.tolist())), order[0]])
        seen.append(np.array(facts))
    for what, a, b in zip(("fixed points", "different ones", "the first"), *(s.T for s in seen)):
        p = stats.ks_2samp(a, b).pvalue
        fail_if(p < P_VALUE, tally, f"{kwargs}: {what} is distributed otherwise (p = {p:.2g}): {b[:9]}, DALI {a[:9]}")
