# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest
from axes_cases import ERRORS, NO_AXES, axes_of, count_of, near_means, photographs, shaped_input, shapes

from harness import Case, op_test, run


def reference(x, mean, axes=None, axis_names=None, keep_dims=False, ddof=0):
    """Computed in float64."""
    along = axes_of(x.ndim, axes, axis_names)
    kept = [1 if d in along else e for d, e in enumerate(x.shape)]
    center = mean.astype("f8").reshape(kept if mean.size == np.prod(kept) else 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        squares = ((x.astype("f8") - center) ** 2).sum(axis=along, keepdims=keep_dims)
        found = np.divide(squares, count_of(x, along) - ddof)
        return np.sqrt(found).astype("f4")


TestStdDev = op_test(
    "reductions.std_dev",
    reference,
    cases=photographs(
        args=[
            (("u1", "f4"), {"ddof": 1}),
            (("u2", "f4"), {"ddof": 3, "axes": [2]}),
            (("i4",), {"ddof": -2, "axes": [0, 2], "keep_dims": True}),
            (("u1", "f4"), NO_AXES),
        ]
    )
    + shapes(),
    make_input=shaped_input,
    extra_inputs=lambda rng, case: [near_means(case)],
    dali_differs={"axes=[]": "DALI gives 0 without axes, not the distances"},
    errors=ERRORS,
)
# One mean for all samples.
TestOneMean = op_test(
    "reductions.std_dev",
    reference,
    dtypes=("u1", "f4"),
    args=[{"axes": [0, 1]}, {}, {"axis_names": "C"}],
    extra_inputs=lambda rng, case: [[np.float32([3.5 + i]) for i in range(5)]],
    dali_differs={"axes=[0,1]": "DALI reads behind the mean", "axis_names=C": "DALI reads behind the mean"},
)


def test_small_deviations_beside_a_large_mean():
    x = np.random.default_rng(1).normal(1e6, 1, 100_000).astype("f4")
    mean = np.float32(x.mean(dtype="f8"))
    want = ((x.astype("f8") - mean) ** 2).mean() ** 0.5
    ((y,),) = run("reductions.std_dev", [x], Case("f4", "", {}), {}, extra=[[np.reshape(mean, 1)]])
    np.testing.assert_allclose(y, want, rtol=1e-6)


@pytest.mark.parametrize(
    "mean, text",
    [
        (
            np.zeros(2, "f4"),
            r"the mean has the shape \[2\]; an input of shape \[5, 3\] .* axes \[0\] needs \[3\], or one",
        ),
        (np.zeros(3, "f8"), "the mean takes float32, got float64"),
    ],
)
def test_means_that_do_not_fit(mean, text):
    with pytest.raises(RuntimeError, match=text):
        run("reductions.std_dev", [np.zeros((5, 3), "u1")], Case("u1", "", {"axes": [0]}), {}, extra=[[mean]])
