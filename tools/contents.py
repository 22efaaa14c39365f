# SPDX-License-Identifier: Apache-2.0
"""Writes the contents of the long pages in docs: a link to each chapter, behind the first paragraph.

A page's chapters are in one line, or if the page has groups of them, in a line for each group."""

from __future__ import annotations

import re
from pathlib import Path

from build_site import headings, slug

ROOT = Path(__file__).resolve().parents[1]
MARK = "**On this page:** "
WRITTEN_BY_TOOLS = ("benchmarks.md", "conformance.md")
LONG = 100  # lines: about two screens
GROUPS = {
    "# Guide": {
        "Reading": ["Your data", "Reading, shuffling, shards", "Data in a bucket", "Bad files", "Checkpoints"],
        "Decoding": ["Decoding", "Video", "Audio"],
        "Augmenting": [
            "Random numbers, and getting the same batch again",
            "Boxes and masks",
            "Noise, holes and pasting",
            "Automatic augmentation",
            "Conditionals",
            "Python functions in the graph",
        ],
        "Training": ["Iterators", "On the GPU", "Where the time goes", "Chains and windows", "Memory"],
        "Other ways to use it": [
            "Without a pipeline",
            "Transforms by torchvision's names",
            "Programs written for DALI",
            "Saving a pipeline, and looking into it",
            "Serving by Triton",
        ],
        "Reference": ["Tutorials", "What differs from DALI"],
    },
    "# Recipes": {
        "Data": [
            "Files listed in a CSV file or a pandas DataFrame",
            "Arrays, and memory-mapped arrays",
            "HDF5",
            "Zarr",
            "Tables: Arrow, pandas, Polars, DuckDB, SQL",
            "A data set of PyTorch",
            "Images with text or tokens",
        ],
        "Augmentation": [
            "Image and mask: the same crop and flip for both",
            "Detection: boxes that follow crops, flips and resizes",
            "Two views of an image: SimCLR, BYOL, DINO",
        ],
        "Validation": ["The pixels of Pillow and torchvision"],
    },
}


def pages() -> list[Path]:
    """Those that have contents."""
    found = sorted((ROOT / "docs").glob("*.md"))
    return [p for p in found if p.name not in WRITTEN_BY_TOOLS and p.read_text().count("\n") > LONG]


def with_contents(text: str) -> str:
    """The page with the contents that it should have."""
    text = re.sub(rf"^{re.escape(MARK)}.*\n\n", "", text, flags=re.M)
    text = re.sub(rf"^{re.escape(MARK.strip())}\n\n(\|.*\n)+\n", "", text, flags=re.M)
    chapters = [re.sub(r"[`*]", "", title) for level, title in headings(text) if level == 2]
    title, first, rest = text.split("\n\n", 2)
    contents = MARK + _links(chapters)
    if title in GROUPS:
        contents = _table(GROUPS[title], chapters)
    return "\n\n".join((title, first, contents, rest))


def _links(chapters: list[str]) -> str:
    return " · ".join(f"[{title}](#{slug(title)})" for title in chapters)


def _table(groups: dict[str, list[str]], chapters: list[str]) -> str:
    different = {title for group in groups.values() for title in group} ^ set(chapters)
    if different:
        raise ValueError(f"GROUPS and the page do not have the same chapters: {', '.join(sorted(different))}")
    rows = "".join(f"\n| {name} | {_links(group)} |" for name, group in groups.items())
    return f"{MARK.strip()}\n\n| | |\n|---|---|{rows}"


if __name__ == "__main__":
    for page in pages():
        page.write_text(with_contents(page.read_text()))
