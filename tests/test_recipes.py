# SPDX-License-Identifier: Apache-2.0
"""The recipes of docs/recipes.md run, and lines with `# -> value` have that value."""

import importlib.util
import re

from test_guide import ROOT, blocks, checkout, execute  # noqa: F401  (a fixture)

PAGE = ROOT / "docs" / "recipes.md"


def test_recipes(checkout):  # noqa: F811
    names: dict = {}
    found = blocks(PAGE)
    assert len(found) >= 15
    for line, code in found:
        needed = re.findall(r"# needs (\w+)", code)
        if all(importlib.util.find_spec(n) for n in needed):
            execute(PAGE, line, code, names)
