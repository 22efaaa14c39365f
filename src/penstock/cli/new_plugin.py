# SPDX-License-Identifier: Apache-2.0
"""`penstock new-plugin NAME`: creates a package with its own operators, from examples/plugin_template."""

from __future__ import annotations

import keyword
import os
import re
from pathlib import Path

INSTALLED = Path(__file__).parent.parent / "plugin_template"
IN_CHECKOUT = Path(__file__).parents[3] / "examples" / "plugin_template"
MODULE, PROJECT = "my_effects", "my-effects"  # names in the template


class Refused(Exception):
    """The package was not written; the text is the reason."""


def create(name: str, parent: Path) -> list[Path]:
    """Writes the package `name` into a new folder in `parent`. Returns the files."""
    module, project = name.replace("-", "_"), name.replace("_", "-")
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", module) or keyword.iskeyword(module) or module == "penstock":
        raise Refused(f"{name!r} is not a package name: use lower case letters, digits and single dashes")
    folder = parent / project
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise Refused(f"{folder} exists and is not empty")
    template = INSTALLED if INSTALLED.is_dir() else IN_CHECKOUT
    written = []
    for source in sorted(template.rglob("*")):
        if source.is_dir() or "__pycache__" in source.parts:
            continue
        target = folder / str(source.relative_to(template)).replace(MODULE, module)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(source.read_text().replace(MODULE, module).replace(PROJECT, project))
        written.append(target)
    return written


def report(written: list[Path]) -> str:
    folder = Path(os.path.commonpath(written))
    files = "\n".join(f"    {path.relative_to(folder)}" for path in written)
    return (
        f"{folder} has a package with one operator, fn.gain:\n\n{files}\n\nIts README says how it is built and tested:"
        "\n\n"
        f"    cd {folder}\n    pip install . && pip install pytest && pytest"
    )
