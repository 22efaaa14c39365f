# SPDX-License-Identifier: Apache-2.0
"""Operators under former names with other defaults, compared with the real DALI."""

import warnings

import pytest

from conformance import grid, oracle
from conformance.oracle import Bound, Result
from conformance.recipes import RECIPES
from conformance.test_operators import DECLARED
from penstock import fn, pipeline_def
from penstock.core.op import REGISTRY

RECIPE = RECIPES["resize_crop_mirror"]
CASES = list(grid.cases(RECIPE, REGISTRY["resize_crop_mirror"].schema))
CASES = [c for c in CASES if c.dtype == "u1" or c.layout != "HWC"]
DIFFERS = {k: v for test in DECLARED["resize_crop_mirror"] for k, v in test.dali_differs.items()}


def ours(case, samples, columns) -> Result:
    @pipeline_def(batch_size=len(samples), num_threads=1, seed=1)
    def pipe():
        x = fn.external_source(source=lambda i: samples, layout=case.layout or None)
        data = {k: fn.external_source(source=lambda i, v=v: list(v)) for k, v in columns.items()}
        return fn.fast_resize_crop_mirror(x, **{**case.kwargs, **data})

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return oracle._collect(pipe().run())
    except Exception as e:
        return Result(error=oracle._cause(e))


@pytest.mark.parametrize("antialias", (None, True, False))
def test_fast_resize_crop_mirror(antialias):
    """Without antialiasing by default."""
    tally, wrong = oracle.Tally(), []
    bound = Bound(RECIPE.steps, RECIPE.ulps)
    for case in CASES if antialias is None else CASES[::5]:
        if antialias is not None:
            case = oracle.Case(case.dtype, case.layout, {**case.kwargs, "antialias": antialias})
        samples, extra, columns = grid.data(RECIPE, case)
        theirs = oracle.run_dali("fast_resize_crop_mirror", case, samples, columns, extra)
        if theirs.error and any(x.size == 0 for x in samples):
            keep = [i for i, x in enumerate(samples) if x.size]
            samples, columns = [samples[i] for i in keep], {k: [v[i] for i in keep] for k, v in columns.items()}
            theirs = oracle.run_dali("fast_resize_crop_mirror", case, samples, columns, extra)
        got = ours(case, samples, columns)
        problem = oracle.compare(theirs, got, bound, tally)
        tally.cases += 1
        meant = oracle.Case(case.dtype, case.layout, {"antialias": False, **case.kwargs})
        about = ((theirs, got), "resize_crop_mirror", meant, samples, columns, bound)
        if problem and not tally.excuse(problem, DIFFERS, case.id, lambda d, about=about: oracle.is_among(d, *about)):
            wrong.append(f"{case.id}: {problem}")
    assert not wrong, "\n".join(wrong[:9])
    excused = sum(map(len, tally.deliberate.values()))
    assert tally.cases - tally.both_raise - excused >= (20 if antialias is None else 5)
