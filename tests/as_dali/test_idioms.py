# SPDX-License-Identifier: Apache-2.0
"""Idioms of programs written for DALI, run with `python -m penstock.as_dali`, compared with DALI's results.

reference/idioms.json is DALI 2.4's output of `python tests/as_dali/programs/idioms.py examples/data`.
tests/conformance/test_idioms_of_programs.py checks that it is up to date."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "tests" / "as_dali" / "programs" / "idioms.py"
EXPECTED = json.loads((ROOT / "tests" / "reference" / "idioms.json").read_text())
# Tolerances for means and deviations after resampling and colour operators in 8 bits.
LARGEST = {"uint8": 0.1, "float16": 0.01, "float32": 0.01}


def different(name, got, want):
    """The path at which two outputs differ, or nothing."""
    if want and isinstance(want[0], list) and not (len(want) == 4 and isinstance(want[1], str)):
        assert len(got) == len(want), f"{name}: {len(got)} for {len(want)}"
        return [d for i, (g, w) in enumerate(zip(got, want)) for d in different(f"{name}[{i}]", g, w)]
    same = got[:2] == want[:2]
    if same and want:
        limit = LARGEST.get(want[1], 0) * max(1.0, abs(want[3]) / 64)
        same = all(abs(g - w) <= limit + 1e-9 for g, w in zip(got[2:], want[2:]))
    return [] if same else [f"{name}: {got}, DALI {want}"]


def run(*arguments):
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, "-m", "penstock.as_dali", PROGRAM, ROOT / "examples" / "data", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=200)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_idioms(device):
    given = run(*["gpu"] * (device == "gpu"))
    assert list(given) == list(EXPECTED)
    wrong = [d for name in EXPECTED for d in different(name, given[name], EXPECTED[name])]
    assert not wrong, "\n".join(wrong)


def test_the_comparison_sees_what_differs():
    want = [[[2, 3], "uint8", 10.0, 3.0], [[[1], "int32", 5.0, 0.0]]]
    assert different("x", want, want) == []
    for other in (
        [[[3, 2], "uint8", 10.0, 3.0], want[1]],
        [[[2, 3], "int8", 10.0, 3.0], want[1]],
        [[[2, 3], "uint8", 11.0, 3.0], want[1]],
        [want[0], [[[1], "int32", 5.5, 0.0]]],
    ):
        assert len(different("x", other, want)) == 1
