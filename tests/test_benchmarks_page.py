# SPDX-License-Identifier: Apache-2.0
"""docs/benchmarks.md and the chart of the README agree with bench/results."""

import re

from modules import ROOT, load


def test_page_and_chart_are_those_of_the_results():
    tool = load(ROOT / "tools" / "benchmarks_page.py")
    again = "run python tools/benchmarks_page.py"
    assert (ROOT / "docs" / "benchmarks.md").read_text() == tool.page(), again
    assert (ROOT / "docs" / "images" / "speed.svg").read_text() == tool.chart(), again


def test_the_readme_claims_no_more_than_the_chart_shows():
    tool = load(ROOT / "tools" / "benchmarks_page.py")
    (chart,) = re.findall(r"!\[([^]]*)\]\(docs/images/speed.svg\)", (ROOT / "README.md").read_text())
    claimed = [float(x) for x in re.findall(r"(\d+\.\d+) times", chart)]
    shown = []
    for _, name, rows in tool.CHART:
        ours, theirs = (tool.rate(name, rows[label]) for label in ("penstock", "DALI 2.4"))
        shown.append(round(ours / theirs, 1))
    assert claimed == shown
