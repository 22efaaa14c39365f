# SPDX-License-Identifier: Apache-2.0
"""The code of documents about DALI runs unchanged (see documents.py). Without these documents, equivalent programs are
tested: tests/plugin/test_jax_documents.py, test_as_dali.py."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = Path(os.environ.get("PENSTOCK_DOCUMENTS", ROOT.parent / "shared" / "seeds"))


@pytest.mark.parametrize(
    ("document", "framework", "result"),
    [
        ("000", "clu", "11 cells, 1 printed lines"),
        ("001", "jax", "40 cells, 4"),
        ("004", "torch", "1 cells, 0 printed lines"),
    ],
)
def test_documents(document, framework, result):
    pytest.importorskip(framework)
    files = list(FOLDER.glob(f"{document}_*.txt"))
    if not files:
        pytest.skip(f"no document {document}_*.txt in {FOLDER} (PENSTOCK_DOCUMENTS)")
    gpu = ["gpu"] if os.environ.get("PENSTOCK_TEST_GPU") == "1" else []
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])}
    if not gpu:
        env |= {"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-m", "penstock.as_dali", str(Path(__file__).with_name("documents.py"))]
    command += [str(files[0]), str(ROOT / "examples" / "data"), *gpu]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.stdout.startswith(result), done.stdout + done.stderr[-3000:]
    print(done.stdout)
