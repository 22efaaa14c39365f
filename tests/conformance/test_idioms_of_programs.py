# SPDX-License-Identifier: Apache-2.0
"""tests/reference/idioms.json, the reference of tests/as_dali/test_idioms.py, agrees with DALI."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("nvidia.dali")
TESTS = Path(__file__).parents[1]


def test_reference():
    program, photographs = TESTS / "as_dali" / "programs" / "idioms.py", TESTS.parent / "examples" / "data"
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"PYTHONWARNINGS": "ignore"}
    command = [sys.executable, program, photographs]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=200)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == json.loads((TESTS / "reference" / "idioms.json").read_text())
