# SPDX-License-Identifier: Apache-2.0
"""DALI's documents on JAX, run with DALI's names and two devices."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("jax")
pytest.importorskip("clu")

ROOT = Path(__file__).parents[2]


def test_documents():
    env = os.environ | {
        "XLA_FLAGS": "--xla_force_host_platform_device_count=2",
        "JAX_PLATFORMS": "cpu",
        "PYTHONPATH": str(ROOT / "src"),
    }
    command = [sys.executable, "-m", "penstock.as_dali", str(ROOT / "tests" / "plugin" / "jax_documents.py")]
    out = subprocess.run([*command, str(ROOT / "examples" / "data")], env=env, capture_output=True, text=True)
    assert out.stdout.strip() == "all as documented", out.stderr[-3000:]
