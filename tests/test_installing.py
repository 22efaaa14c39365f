# SPDX-License-Identifier: Apache-2.0
"""docs/installing.md names what there is: every variable of the environment and every optional package."""

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
