# SPDX-License-Identifier: Apache-2.0
"""Programs that use penstock pass a strict type checker: the tutorials, as a user's code would be checked."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# What is found, and why it is right to be found. Everything else is a mistake in the stubs or in the tutorial.
FOUND = {
    "moving_from_dali": {
        "call-arg": "the misspelt argument that it shows",
        "attr-defined": "what the real DALI, where it is installed, exports",
        "comparison-overlap": "the function of the real DALI is another one",
    },
    "writing_an_operator": {"attr-defined": "operators that it declares itself, which no stub has"},
    "vit_flax": {"arg-type": "Flax: apply() may give a tuple", "no-any-return": "Flax: apply() may give anything"},
    "planted": {"call-arg": "planted", "arg-type": "planted", "attr-defined": "planted"},
}
PLANTED = """
import penstock.fn as fn
from penstock import DataNode, Pipeline, pipeline_def


@pipeline_def(batch_size=2)
def define(folder: str) -> DataNode:
    jpegs, _ = fn.readers.file(file_root=folder)
    images = fn.resize(fn.decoders.image(jpegs), sise=3)
    return fn.brightness(images, brightness="much")


pipe: Pipeline = define("folder")
pipe.runn()
"""


@pytest.mark.slow
def test_tutorials(tmp_path):
    pytest.importorskip("mypy")
    spec = importlib.util.spec_from_file_location("notebooks", ROOT / "tools" / "notebooks.py")
    notebooks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(notebooks)
    for path in (ROOT / "examples").glob("*.ipynb"):
        (tmp_path / f"{path.stem}.py").write_text(notebooks.program(path) + "\n")
    (tmp_path / "planted.py").write_text(PLANTED)
    # The stubs of this very version, as a build makes them.
    package = tmp_path / "src" / "penstock"
    shutil.copytree(ROOT / "src" / "penstock", package, ignore=shutil.ignore_patterns("*.so", "*.pyi", "__pycache__"))
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    subprocess.run([sys.executable, ROOT / "tools" / "stubs.py", package], check=True, env=env)
    # --allow-untyped-calls: functions of JAX and PyTorch without types are called.
    options = ["--strict", "--allow-untyped-calls", "--ignore-missing-imports", "--follow-imports=silent"]
    files = sorted(p.name for p in tmp_path.glob("*.py"))
    command = [sys.executable, "-m", "mypy", *options, "--config-file=", f"--cache-dir={tmp_path}/cache", *files]
    env = {**os.environ, "MYPYPATH": str(tmp_path / "src")}
    out = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    wrong, planted = [], set()
    for line in out.stdout.splitlines():
        match = re.match(r"(\w+)\.py:.* error: .*\[([\w-]+)\]$", line)
        if match and match[1] == "planted":
            planted.add(match[2])
        if "error:" in line and not (match and match[2] in FOUND.get(match[1], {})):
            wrong.append(line)
    assert not wrong and not out.stderr, "\n".join([*wrong, out.stderr])
    assert planted == set(FOUND["planted"]), out.stdout
