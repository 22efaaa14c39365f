# SPDX-License-Identifier: Apache-2.0
"""docs/installing.md lists every environment variable and every optional package. The package declares the Python
versions that are tested."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "installing.md").read_text()


def test_every_variable_is_described():
    texts = [p.read_text() for e in ("py", "cpp", "h") for f in ("src", "kernels") for p in (ROOT / f).rglob(f"*.{e}")]
    used = {name for text in texts for name in re.findall(r"\bPENSTOCK_[A-Z_]*[A-Z]\b", text)}
    described = set(re.findall(r"^\| `(PENSTOCK_\w+)` \|", PAGE, re.M))
    assert "PENSTOCK_FFMPEG" in used and used == described


def test_optional_packages_exist():
    extras = set(re.findall(r"^(\w+) = \[", (ROOT / "pyproject.toml").read_text(), re.M))
    named = set(re.findall(r"\[(\w+)\]`", PAGE))
    assert {"cuda12", "torch", "video"} <= named <= extras


def test_the_pythons_of_the_package_are_those_that_are_tested():
    jobs = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    tested = set(re.findall(r'"(3\.\d+)"', jobs))
    project = (ROOT / "pyproject.toml").read_text()
    claimed = set(re.findall(r'"Programming Language :: Python :: (3\.\d+)"', project))
    assert "3.11" in claimed and claimed == tested
    oldest = min(claimed, key=lambda v: int(v[2:]))
    assert f'requires-python = ">={oldest}"' in project
    assert f'\npython_version = "{oldest}"' in project  # for which mypy looks
    assert ("Free Threading" in project) == bool(re.search(r'"3\.\d+t"', jobs))
