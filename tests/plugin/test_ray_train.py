# SPDX-License-Identifier: Apache-2.0
"""examples/ray_train.py: a run interrupted within an epoch resumes to the same weights as an uninterrupted one."""

import os
import subprocess
import sys

import pytest

from modules import ROOT
from optional_packages import needs


def run(folder, *arguments):
    command = [sys.executable, ROOT / "examples" / "ray_train.py", ROOT / "examples" / "data", "--storage", folder]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([*map(str, command), *arguments], env=env, capture_output=True, text=True, timeout=300)
    assert not done.returncode, done.stderr[-3000:]
    return done.stdout.strip().splitlines()[-1]


@pytest.mark.slow
@needs("ray", "torch")
def test_a_stopped_run_goes_on(tmp_path):
    whole = run(tmp_path / "whole")
    assert run(tmp_path / "parts", "--stop-at", "4").startswith("4 steps")
    assert run(tmp_path / "parts") == whole
