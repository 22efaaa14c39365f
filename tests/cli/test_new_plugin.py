# SPDX-License-Identifier: Apache-2.0
"""`penstock new-plugin` writes a package that is built, installed and tested outside of the tree."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from penstock.cli.command import main

ROOT = Path(__file__).parents[2]
builds = pytest.mark.skipif(
    not shutil.which("c++") or not importlib.util.find_spec("scikit_build_core"),
    reason="needs a compiler and scikit-build-core",
)


def run(*command, cwd, **variables):
    # cmake and ninja of this environment; penstock from the checkout.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    env = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT / "src"), "CCACHE_DISABLE": "1", **variables}
    done = subprocess.run([str(c) for c in command], cwd=cwd, env=env, capture_output=True, text=True)
    assert not done.returncode, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.mark.slow
@builds
def test_it_is_built_installed_and_tested(tmp_path):
    run(sys.executable, "-m", "penstock", "new-plugin", "colour-tricks", cwd=tmp_path)
    project, site = tmp_path / "colour-tricks", tmp_path / "site"
    pip = (sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "--no-index")
    run(*pip, "-w", tmp_path / "wheels", project, cwd=tmp_path)
    (wheel,) = (tmp_path / "wheels").glob("colour_tricks-0.1.0-py3-none-linux_*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    files = {"gain.py", "libcolour_tricks.so"} | {f"kernels/colour_tricks/gain.{e}" for e in ("h", "cpp", "cu")}
    assert {f"colour_tricks/{name}" for name in files} <= set(names)
    zipfile.ZipFile(wheel).extractall(site)
    # Outside of its sources, so that the installed package is tested.
    shutil.copytree(project / "tests", tmp_path / "tests")
    found = os.pathsep.join([str(site), str(ROOT / "src")])
    shown = run(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests", cwd=tmp_path, PYTHONPATH=found)
    # On the emulated GPU if there is no other GPU and a compiler is available.
    assert re.search(r"^(7 passed|4 passed, 3 skipped)", shown, re.M)


@pytest.mark.parametrize("name", ("My-Effects", "9lives", "a--b", "class", "penstock", "a/b", ""))
def test_names_that_are_refused(name, tmp_path, capsys):
    assert main(["new-plugin", name, "--folder", str(tmp_path)]) == 1
    assert "is not a package name" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_nothing_is_overwritten(tmp_path, capsys):
    assert main(["new-plugin", "a-b", "--folder", str(tmp_path)]) == 0
    assert "fn.gain" in capsys.readouterr().out
    text = "".join(p.read_text() + str(p) for p in (tmp_path / "a-b").rglob("*") if p.is_file())
    assert "my_effects" not in text and "my-effects" not in text
    assert main(["new-plugin", "a-b", "--folder", str(tmp_path)]) == 1
    assert "is not empty" in capsys.readouterr().err
