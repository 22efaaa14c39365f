# SPDX-License-Identifier: Apache-2.0
"""Prints requirements of pyproject.toml, one per line: `python tools/requirements.py project test` (extras by name).

`project` stands for the required dependencies. Installing the extras of the checkout itself would build a wheel first.
"""

import sys
from pathlib import Path

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    from pip._vendor import tomli as tomllib

project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
lists = {"project": project["dependencies"], **project["optional-dependencies"]}
for name in sys.argv[1:]:
    print("\n".join(lists[name]))
