# SPDX-License-Identifier: Apache-2.0
"""Writes the contents of the long pages in docs: a line with a link to each chapter, behind the first paragraph."""

from __future__ import annotations

import re
from pathlib import Path

from build_site import headings, slug

ROOT = Path(__file__).resolve().parents[1]
MARK = "**On this page:** "
WRITTEN_BY_TOOLS = ("benchmarks.md", "conformance.md")
LONG = 100  # lines: about two screens


def pages() -> list[Path]:
    """Those that have contents."""
    found = sorted((ROOT / "docs").glob("*.md"))
    return [p for p in found if p.name not in WRITTEN_BY_TOOLS and p.read_text().count("\n") > LONG]


def with_contents(text: str) -> str:
    """The page with the contents that it should have."""
    text = re.sub(rf"^{re.escape(MARK)}.*\n\n", "", text, flags=re.M)
    chapters = [re.sub(r"[`*]", "", title) for level, title in headings(text) if level == 2]
    line = MARK + " · ".join(f"[{title}](#{slug(title)})" for title in chapters)
    title, first, rest = text.split("\n\n", 2)
    return "\n\n".join((title, first, line, rest))


if __name__ == "__main__":
    for page in pages():
        page.write_text(with_contents(page.read_text()))
