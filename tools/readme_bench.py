# SPDX-License-Identifier: Apache-2.0
"""Copies the tables of bench/results into README.md, between its two `bench` marks: python tools/readme_bench.py"""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = {
    "images_gpu.md": "Images per second on the GPU",
    "images_cpu.md": "Images per second on the CPU",
    "startup.md": "Starting up",
}
WIDEST = 4  # columns of a table that README shows; all are in the result file
START = "<!-- bench: written by tools/readme_bench.py from bench/results -->\n"
END = "<!-- /bench -->"


def section(name: str, title: str) -> str:
    """The result file without its heading: what it was measured on, and the first columns of its tables."""
    text = (ROOT / "bench" / "results" / name).read_text(encoding="utf-8")
    body = re.sub(r"\A# .*\n+", "", text).strip()
    body = re.sub(r"^\|.*\|$", lambda row: "|".join(row[0].split("|")[: WIDEST + 1]) + "|", body, flags=re.M)
    return f"### {title}\n\n{body}\n\nFrom [bench/results/{name}](bench/results/{name}).\n"


def main() -> None:
    readme = ROOT / "README.md"
    before, _, rest = readme.read_text(encoding="utf-8").partition(START)
    _, mark, after = rest.partition(END)
    if not mark:
        raise SystemExit("README.md has lost its bench marks")
    sections = [section(n, t) for n, t in RESULTS.items() if (ROOT / "bench" / "results" / n).exists()]
    table = "\n## How fast\n\n" + "\n".join(sections) + "\n" if sections else ""
    readme.write_text(before + START + table + END + after, encoding="utf-8")


if __name__ == "__main__":
    main()
