# SPDX-License-Identifier: Apache-2.0
"""When rules are traced, how long plans are kept, and when tracing is given up."""

import numpy as np
import pytest

from penstock.core import plan_cache
from penstock.core.plan_cache import PlanCache
from penstock.core.plan_memory import TracedPlan
from penstock.core.traced import Untraceable


class Rows:
    """A batch of n rows with one column."""

    frames, values = None, {}

    def __init__(self, n, low=0):
        self.n, self.epoch, self.position = n, np.zeros(n, "u4"), np.arange(low, low + n)


class Planner:
    """Doubles the positions of the samples; counts what was traced, by the number of samples."""

    def __init__(self, error=None):
        self.traced, self.error = [], error
        self.cache = PlanCache(self, is_traced=True)

    def fill(self, to, rows):
        if isinstance(to, TracedPlan):
            self.traced.append(rows.n)
            if self.error is not None:
                raise self.error
        x = (
            to.input(rows.position, "positions", lambda ctx: ctx.position)
            if isinstance(to, TracedPlan)
            else rows.position
        )
        if (x < 0).any():
            raise ValueError("a position is below zero")
        to.more["doubled"] = [x * 2]

    def plan_of(self, ctx, at):
        return self

    def run(self, rows, kind="kind"):
        plan = self.cache.plan((kind,), rows)
        np.testing.assert_array_equal(plan.more["doubled"][0], 2 * rows.position)
        self.cache.done(plan)
        return isinstance(plan, TracedPlan)


def test_each_size_is_traced_when_it_has_come_twice():
    planner = Planner()
    sizes = [4, 4, 3, 4, 4, 3, 3, 1, 3]
    by_program = [planner.run(Rows(n, low=k)) for k, n in enumerate(sizes)]
    assert by_program == [False, False, False, True, True, False, True, False, True]
    assert planner.traced == [4, 3]
    assert planner.cache.counts == {"by program": 4, "by rules": 5}


def test_batches_planned_at_once_have_plans_of_their_own():
    planner = Planner()
    for k in range(3):
        planner.run(Rows(4, k))
    plans = [planner.cache.plan(("kind",), Rows(4, low)) for low in (10, 20, 30)]
    for plan, low in zip(plans, (10, 20, 30)):
        np.testing.assert_array_equal(plan.more["doubled"][0], 2 * Rows(4, low).position)
    assert len(set(map(id, plans))) == 3 and planner.traced == [4] * 3


@pytest.mark.parametrize("error, times", [(Untraceable("so"), 1), (RuntimeError("so"), plan_cache._ATTEMPTS)])
def test_rules_that_can_not_be_traced_are_not_tried_for_ever(error, times):
    planner = Planner(error)
    assert not any(planner.run(Rows(2, k)) for k in range(40))
    assert len(planner.traced) == times
    ((why, found),) = planner.cache.untraceable.items()
    assert why.endswith("so") and found == 1


def test_a_program_whose_checks_fail_is_traced_again_and_then_given_up(monkeypatch):
    planner = Planner()
    monkeypatch.setattr(TracedPlan, "refill", lambda self, ctx: False)
    for k in range(300):
        planner.run(Rows(2, k))
    assert len(planner.traced) == plan_cache._ATTEMPTS


def test_a_bad_batch_is_left_to_the_rules():
    planner = Planner()
    for k in range(5):
        planner.run(Rows(2, k))
    with pytest.raises(ValueError, match="below zero"):
        planner.run(Rows(2, -1))
    assert planner.run(Rows(2, 7)) and planner.traced == [2]


def test_few_kinds_and_rows_are_kept(monkeypatch):
    planner = Planner()
    monkeypatch.setattr(plan_cache, "_KEPT_ROWS", 10)
    for n in (4, 6, 9):
        for k in range(3):
            planner.run(Rows(n, k))
    assert [plan.n for plan in planner.cache.programs()] == [9]
    for k in range(3 * plan_cache._KINDS):
        planner.run(Rows(1), kind=k)
    assert len(planner.cache._kinds) <= plan_cache._KINDS
