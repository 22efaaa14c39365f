# SPDX-License-Identifier: Apache-2.0
"""bench/operators.py measures every operator or refers to another benchmark."""

import importlib
import json
import re
from types import SimpleNamespace

import pytest

from modules import ROOT, load
from penstock.core.op import REGISTRY

REFERENCE = json.loads((ROOT / "tests" / "reference" / "operators.json").read_text())


@pytest.fixture
def table(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    return importlib.import_module("operator_cases")


def _plain(name: str) -> str:
    return re.sub(r"^experimental\.|_", "", name.replace("__", ".").lower())


def test_every_operator_has_a_case_or_a_reason(table):
    cases = {_plain(c.name) for c in table.CASES}
    reasons = tuple(table.ELSEWHERE)
    missing = [n for n in REGISTRY if _plain(n) not in cases and not n.startswith(reasons)]
    assert not missing, "give bench/operator_cases.py a case for each"
    dalis = [n for n in REFERENCE if _plain(n) not in cases and not _plain(n).startswith(tuple(map(_plain, reasons)))]
    assert not dalis


def test_a_case_names_what_there_is(table):
    known = {_plain(n) for n in [*REGISTRY, *REFERENCE]}
    assert [c.name for c in table.CASES if _plain(c.name) not in known] == []
    assert [k for c in table.CASES for k in c.inputs if k not in table.KINDS] == []
    titles = [c.title for c in table.CASES]
    assert sorted(titles) == sorted(set(titles)), "cases of an operator need notes that differ"


def test_what_is_measured_again(table):
    # Imported by its path, as "operators" may already be a folder of tests.
    bench = load(ROOT / "bench" / "operators.py")
    answers = lambda ours, theirs: {"penstock": ours, "DALI": theirs}  # noqa: E731
    cases = {
        "missing": None,
        "fast": answers({"wall": 1.0}, {"wall": 2.0}),
        "slow": answers({"wall": 2.0}, {"wall": 1.0}),
        "absent": answers({"absent": "no GPU form"}, {}),
        "failed": answers({"wall": 1.0}, {"failed": "crashed"}),
    }

    def is_open(again):
        options = SimpleNamespace(by="wall", again=again, against="")
        return {name for name, kept in cases.items() if bench.is_open(kept, options)}

    assert is_open(0.0) == {"missing"}
    assert is_open(1.0) == {"missing", "slow", "failed"}


def test_a_case_that_is_measured_again(table):
    """Its ratio is the median of those of all measurements, not the last or the best one."""
    bench, answers = load(ROOT / "bench" / "operators.py"), None
    for ours, theirs in [(1.0, 0.9), (4.0, 2.0), (2.0, 4.0), (8.0, 8.8), (1.0, 0.95)]:
        answers = bench.with_earlier(answers, {"penstock": {"wall": ours}, "DALI": {"wall": theirs}})
    assert bench.ratio_of(*answers.values(), "wall") == 0.95
    assert answers["penstock"]["wall"] == 2.0
    failed = {"penstock": {"failed": "crashed"}, "DALI": {"wall": 1.0}}
    assert bench.with_earlier(answers, failed) == failed
