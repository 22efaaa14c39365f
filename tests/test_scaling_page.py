# SPDX-License-Identifier: Apache-2.0
"""docs/scaling.md agrees with bench/scaling.py, and the simulation with results calculated by hand."""

import importlib

import numpy as np
import pytest

from modules import ROOT


@pytest.fixture
def scaling(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    return importlib.import_module("scaling")


def test_the_model_is_near_what_was_measured(scaling):
    r = scaling.measured()
    for task in ("val", "crop"):
        assert scaling.predicted(r, task) == pytest.approx(r.workers[task], rel=0.25)


def test_crews(scaling):
    assert scaling.crews(256, 1000).sum() == 1000 and set(scaling.crews(256, 1000)) == {3, 4}


def test_limits_are_what_their_units_say(scaling):
    found = scaling.limits(scaling.Costs(1e-4, 1e-4), 2, 10, 150_000)
    assert found["CPUs of the workers"] == pytest.approx(10 * scaling.WORKER_CPUS * 5000)
    assert found["one thread of each trainer"] == pytest.approx(20_000)
    assert found["network of the trainers"] == pytest.approx(2 * 10e9 / 8 * 0.9 / 150_000)


def test_without_failures_the_smallest_crew_decides(scaling, monkeypatch):
    monkeypatch.setattr(scaling, "HOURS", 0.05)
    smallest = int(scaling.crews(16, 62).min())
    for factor in (0.5, 1.0, 2.0):
        found = scaling.simulate(1000.0, factor * smallest * 1000.0, 1e12, 1, trainers=16)
        assert found["deaths"] == 0
        assert found["share"] == pytest.approx(min(1.0, 1 / factor), rel=0.02)


def test_workers_that_are_away_are_missing(scaling, monkeypatch):
    """With one trainer and three workers, a third of the throughput is lost while one is away, and its batches."""
    monkeypatch.setattr(scaling, "HOURS", 5.0)
    monkeypatch.setattr(scaling, "WINDOW", 200)  # so that these count
    found = scaling.simulate(20_000.0, 60_000.0, 0.5, 1, trainers=1)
    assert found["deaths"] > 10
    lost = found["deaths"] * (scaling.JOIN_S / 3 + scaling.WINDOW * scaling.BATCH / 60_000)
    assert 1 - found["share"] == pytest.approx(lost / (5 * 3600), rel=0.1)


def test_the_page_has_the_limits_computed_now(scaling):
    page = (ROOT / "docs" / "scaling.md").read_text()
    r = scaling.measured()
    found = scaling.limits(scaling.costs(r), scaling.TRAINERS, scaling.WORKERS, scaling.SIDE**2 * 3)
    for name, rate in found.items():
        assert f"| {name} | {rate:,.0f} |" in page, "run bench/scaling.py"
    assert np.isfinite(list(found.values())).all()
