# SPDX-License-Identifier: Apache-2.0
"""mypy --strict on programs that use penstock as it is installed."""

import os
import shutil
import subprocess
import sys

from modules import ROOT, load


def install(site):
    """Copies penstock into a folder for packages, with the stubs of the current version."""
    leave = shutil.ignore_patterns("*.so", "*.pyi", "__pycache__")
    shutil.copytree(ROOT / "src" / "penstock", site / "penstock", ignore=leave)
    load(ROOT / "tools" / "stubs.py").main(site / "penstock")


def check(folder, site, files):
    """What mypy prints. From its configuration here, it takes only which parts of frameworks it need not read."""
    project = (ROOT / "pyproject.toml").read_text()
    begin = project.index("[[tool.mypy.overrides]]")
    end = project.find("\n[", begin + 1)
    settings = site / "mypy.toml"
    settings.write_text(f"[tool.mypy]\n{project[begin : end if end > 0 else None]}")
    env = {**os.environ, "PYTHONPATH": str(site), "HOME": str(site), "MYPY_CACHE_DIR": os.devnull}
    command = [sys.executable, "-m", "mypy", "--strict", f"--config-file={settings}", *files]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    assert not done.stderr, done.stderr
    return done.stdout
