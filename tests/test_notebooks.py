# SPDX-License-Identifier: Apache-2.0
"""The tutorials in examples/ run and have a valid notebook format."""

import json
import subprocess
import sys

import pytest

from modules import ROOT, load

TOOL = ROOT / "tools" / "notebooks.py"
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


@pytest.fixture(scope="module")
def tool():
    return load(TOOL)


def run(*args):
    return subprocess.run([sys.executable, TOOL, *args], capture_output=True, text=True)


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_runs(tool, path):
    done = run(path)
    if done.returncode == tool.MISSING:
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_is_a_small_notebook(path):
    notebook = json.loads(path.read_text())
    assert notebook["nbformat"] == 4 and {c["cell_type"] for c in notebook["cells"]} <= {"code", "markdown"}
    assert len({c["id"] for c in notebook["cells"]}) == len(notebook["cells"])
    assert notebook["cells"][0]["cell_type"] == "markdown" and notebook["cells"][0]["source"][0].startswith("# ")
    assert path.stat().st_size < 750_000, "the outputs that are stored are too large"


def test_a_failing_cell_fails(tool, tmp_path):
    (tmp_path / "script.py").write_text("# %% [markdown]\n# # Title\n# %%\nx = 2\nprint('said')\nx + 1\n# %%\n1 / 0\n")
    assert run("--new", tmp_path / "script.py", tmp_path / "n.ipynb").returncode == 0
    done = run(tmp_path / "n.ipynb")
    assert done.returncode == 1 and done.stdout.splitlines()[:2] == ["said", "3"]
    assert "ZeroDivisionError" in done.stderr and "1 / 0" in done.stderr and "cell 2 failed" in done.stdout
    assert tool.program(tmp_path / "n.ipynb") == "x = 2\nprint('said')\nx + 1\n\n1 / 0"


def test_outputs_are_stored_on_demand(tool, tmp_path):
    (tmp_path / "script.py").write_text("# %% [markdown]\n# # Title\n# requires: json\n# %%\n'shown'\n")
    run("--new", tmp_path / "script.py", tmp_path / "n.ipynb")
    assert run(tmp_path / "n.ipynb", "--save").returncode == 0
    notebook = json.loads((tmp_path / "n.ipynb").read_text())
    assert notebook["metadata"]["penstock"] == {"requires": ["json"]}
    (output,) = notebook["cells"][1]["outputs"]
    assert output["data"] == {"text/plain": ["'shown'"]} and output["execution_count"] == 1


def test_a_module_that_is_missing(tool, tmp_path):
    (tmp_path / "script.py").write_text("# %% [markdown]\n# # Title\n# requires: not_there\n# %%\n1 / 0\n")
    run("--new", tmp_path / "script.py", tmp_path / "n.ipynb")
    assert run(tmp_path / "n.ipynb").returncode == tool.MISSING
