# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest
from axes_cases import ERRORS, NO_AXES, TYPES, axes_of, photographs, shaped_input, shapes

from harness import Case, op_test, run


def of_nothing(dtype):
    """DALI's result for no elements."""
    return (np.finfo if np.dtype(dtype).kind == "f" else np.iinfo)(dtype).max


def reference(x, axes=None, axis_names=None, keep_dims=False):
    along = axes_of(x.ndim, axes, axis_names)
    return np.min(x, axis=along, keepdims=keep_dims, initial=of_nothing(x.dtype)).astype(x.dtype)


TestMin = op_test(
    "reductions.min",
    reference,
    cases=[*photographs(args=[(("u1", "f4"), NO_AXES)]), *shapes()],
    make_input=shaped_input,
    errors=ERRORS,
)


@pytest.mark.parametrize("dtype", TYPES)
def test_the_whole_range(dtype):
    info = (np.finfo if np.dtype(dtype).kind == "f" else np.iinfo)(dtype)
    x = np.array([1, info.min, 2, info.max, 3] * 200, dtype)
    ((y,),) = run("reductions.min", [x], Case(dtype, "", {}), {})
    assert y == info.min and y.dtype == dtype


def test_infinity_and_nan():
    nan, inf = np.nan, np.inf
    x = np.float32([[nan, 1, 2], [inf, nan, inf]])
    ((y,),) = run("reductions.min", [x], Case("f4", "", {"axes": [1]}), {})
    assert y.tolist() == [1, inf]
