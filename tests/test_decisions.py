# SPDX-License-Identifier: Apache-2.0
"""The index lists every decision once, by its title, with a status that refers to existing decisions."""

import re
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "docs" / "decisions"
ROW = re.compile(r"\| \[(\d{4})\]\(([^)]+)\) \| (.+) \| (.+) \|")
STATUS = re.compile(r"Accepted|(Amended|Superseded) by \[\d{4}\]\(.+")


def test_the_index_is_complete():
    rows = [ROW.fullmatch(line) for line in (FOLDER / "README.md").read_text().splitlines() if line.startswith("| [")]
    assert all(rows)
    files = sorted(p.name for p in FOLDER.glob("*.md") if p.name != "README.md")
    assert [row[2] for row in rows] == files
    assert [name[:4] for name in files] == [f"{i + 1:04}" for i in range(len(files))], "one after the other"
    for number, name, title, status in (row.groups() for row in rows):
        assert name.startswith(number + "-")
        heading = (FOLDER / name).read_text().splitlines()[0]
        assert re.sub(r"^# \d{4}[.:]? ", "", heading) == title, name
        assert STATUS.fullmatch(status), f"{name}: {status}"
        for other in re.findall(r"\]\(([^)]+)\)", status):
            assert (FOLDER / other).exists() and other > name, f"{name}: {other}"
