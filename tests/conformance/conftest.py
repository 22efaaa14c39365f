# SPDX-License-Identifier: Apache-2.0
"""Comparison with the real DALI. `--sample` (or PENSTOCK_CONFORMANCE=sample) runs a fixed part of the cases and does
not change the report. `--part 3/8` runs every eighth test from the third on; the last of the eight writes the
report."""

import gc
import os
import platform

import pytest

from conformance import oracle, report


def pytest_addoption(parser):
    parser.addoption(
        "--sample", action="store_true", help="compare a fixed sample of the cases only (minutes become seconds)"
    )
    parser.addoption(
        "--part", default="", help="I/N: run one of N parts, and write the report when all N were run (see build/)"
    )
    parser.addoption(
        "--on-gpu", action="store_true", help="compare the operators that both have on the GPU there; without a report"
    )


def _part(config) -> tuple[int, int]:
    """(part, number of parts); parts count from 1."""
    i, n = (int(v) for v in (config.getoption("--part", "") or "1/1").split("/"))
    assert 1 <= i <= n, f"--part takes I/N with I in 1 to N, got {i}/{n}"
    return i, n


def pytest_collection_modifyitems(config, items):
    i, n = _part(config)
    if n > 1:
        config.hook.pytest_deselected(items=[x for k, x in enumerate(items) if k % n != i - 1])
        items[:] = items[i - 1 :: n]


@pytest.fixture(scope="session")
def device(request) -> str:
    return "gpu" if request.config.getoption("--on-gpu", False) else "cpu"


@pytest.fixture(scope="session")
def is_sample(request) -> bool:
    return request.config.getoption("--sample", False) or os.environ.get("PENSTOCK_CONFORMANCE") == "sample"


@pytest.fixture(scope="session", autouse=True)
def dali():
    if not oracle.load_dali():
        pytest.skip("the real DALI is not installed; `make conformance` installs it")
    oracle.store_no_tracebacks()
    gc.set_threshold(20_000, 20, 20)  # DALI rewrites programs as trees of objects, which collections would traverse


def pytest_sessionfinish(session, exitstatus):
    config = session.config
    partial = config.getoption("--sample", False) or os.environ.get("PENSTOCK_CONFORMANCE") == "sample"
    partial |= config.getoption("--on-gpu", False)
    partial |= bool(config.getoption("keyword", "") or config.getoption("--every", 1) > 1)
    partial |= hasattr(config, "workerinput")  # a pytest-xdist process runs only some of the cases
    if partial or any(".py" in a for a in config.args) or not report.TALLIES:
        return
    if not report.all_parts(*_part(config)):
        return
    import nvidia.dali

    report.PATH.parent.mkdir(exist_ok=True)
    report.PATH.write_text(
        report.text(nvidia.dali.__version__, f"{platform.machine()}, Python {platform.python_version()}")
    )
