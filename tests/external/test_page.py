# SPDX-License-Identifier: Apache-2.0
"""The code in docs/sources.md runs with the documented results."""

from test_guide import ROOT, blocks, execute


def test_page():
    names: dict = {}
    page = ROOT / "docs" / "sources.md"
    assert sum(execute(page, line, code, names) for line, code in blocks(page)) == 7
