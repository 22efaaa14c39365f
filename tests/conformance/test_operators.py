# SPDX-License-Identifier: Apache-2.0
"""Every deterministic operator against the real DALI: the cases of its own test and those of the grid."""

import functools
import zlib

import pytest

from conformance import grid, oracle, report
from conformance.oracle import Bound
from conformance.recipes import RECIPES
from harness import Case
from modules import operator_tests
from penstock.core.op import REGISTRY

_SHOWN = 25

DECLARED = {name: tests for name, tests in operator_tests().items() if not name.startswith("_")}  # operators of DALI


def _chosen(case, is_sample):
    """All cases, or a fixed fifteenth of them."""
    return not is_sample or zlib.crc32(case.id.encode()) % 15 == 0


def _check(name, case, data, bound, differs, tally, device):
    """Runs a case in both libraries and adds it to the tally."""
    samples, extra, columns = data
    theirs = oracle.run_dali(name, case, samples, columns, extra, device)
    if theirs.error and any(s.size == 0 for s in samples):
        keep = [i for i, s in enumerate(samples) if s.size]
        samples, extra = [samples[i] for i in keep], [[e[i] for i in keep] for e in extra]
        columns = {k: [v[i] for i in keep] for k, v in columns.items()}
        theirs = oracle.run_dali(name, case, samples, columns, extra, device)
        if not theirs.error:
            tally.note("DALI refuses the empty sample; compared without it")
    tally.cases += 1
    ours = oracle.run_penstock(name, case, samples, columns, extra, device)
    wrong = oracle.compare(theirs, ours, bound, tally)
    holds = functools.partial(oracle.is_among, results=(theirs, ours), name=name, case=case, samples=samples)
    if wrong and not tally.excuse(wrong, differs, case.id, lambda d: holds(d, columns=columns, bound=bound)):
        tally.failures.append(f"{case.id}: {wrong}")


def _fail(failures):
    if failures:
        more = f"\n... and {len(failures) - _SHOWN} more" if len(failures) > _SHOWN else ""
        text = "\n".join(failures[:_SHOWN])
        pytest.fail(f"{len(failures)} cases differ from DALI:\n{text}{more}", pytrace=False)


def _skip_where_missing(name, device):
    if not oracle.has_operator(name):
        pytest.skip("not an operator of DALI's")
    if device == "gpu" and not oracle.has_gpu_forms(name):
        pytest.skip("not both have it on the GPU")


@pytest.mark.parametrize("name", sorted(DECLARED))
def test_declared_cases(name, is_sample, device):
    _skip_where_missing(name, device)
    tally = report.tally(name)
    before = len(tally.failures)
    recipe = RECIPES.get(name)
    for test in DECLARED[name]:
        steps = test.steps if test.dali_steps is None else test.dali_steps
        # A recipe's bound is relative, so it is stricter.
        bound = Bound(steps, max(4, recipe.ulps)) if recipe else Bound(steps, max(test.ulps, 4), test.atol)
        for case in test.cases:
            if _chosen(case, is_sample):
                _check(name, case, test.data(case), bound, test.dali_differs, tally, device)
    _fail(tally.failures[before:])


@pytest.mark.parametrize("recipe_name", sorted(RECIPES))
def test_grid(recipe_name, is_sample, device):
    name, recipe = recipe_name.split()[0], RECIPES[recipe_name]
    _skip_where_missing(name, device)
    tally = report.tally(name)
    before = len(tally.failures)
    declared = DECLARED.get(name, [])
    differs = {**{k: v for t in declared for k, v in t.dali_differs.items()}, **recipe.differs}
    steps = max([recipe.steps, *(t.dali_steps for t in declared if t.dali_steps is not None)])
    bound = Bound(steps, recipe.ulps)
    for case in grid.cases(recipe, REGISTRY[name].schema):
        if _chosen(case, is_sample):
            _check(name, case, grid.data(recipe, case), bound, differs, tally, device)
    _fail(tally.failures[before:])


@pytest.mark.parametrize("name", sorted(n for n, tests in DECLARED.items() if any(t.errors for t in tests)))
def test_declared_errors(name):
    """If only penstock raises, this is not a fault, but it is listed."""
    _skip_where_missing(name, "cpu")
    for test in DECLARED[name]:
        for kwargs, _, _ in test.errors:
            first = test.cases[0]
            case = Case(first.dtype, first.layout, {**first.kwargs, **kwargs})
            samples, extra, columns = test.data(case)
            if not oracle.run_dali(name, case, samples, columns, extra).error:
                given = ", ".join(f"{k}={v!r}" for k, v in kwargs.items())
                report.tally(name).note(f"penstock raises, DALI does not: {given}")
