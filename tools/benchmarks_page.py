# SPDX-License-Identifier: Apache-2.0
"""Writes docs/benchmarks.md and the chart docs/images/speed.svg from bench/results: python tools/benchmarks_page.py"""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"
SHOWN = {
    "images_gpu.md": "Images per second on the GPU",
    "images_cpu.md": "Images per second on the CPU",
    "startup.md": "Starting up",
}
WIDEST = 4  # columns of a table that the page shows; all are in the result file
# Title, result file, and its rows: the rival's best of several.
CHART = (
    (
        "NVIDIA H200, 16 CPU cores",
        "images_gpu.md",
        {"penstock": "val: penstock", "DALI 2.4": "val: DALI, 16 threads, load 0.9"},
    ),
    (
        "2 CPU cores, no GPU",
        "images_cpu.md",
        {
            "penstock": "val: penstock",
            "DALI 2.4": "val: DALI",
            "PyTorch DataLoader + Pillow": "val: PyTorch DataLoader + Pillow",
        },
    ),
)
LEFT, WIDTH, BAR, GAP = 236, 320, 24, 8  # of bars, in pixels
ACROSS = 640  # the chart: narrow, so that a telephone shows its letters in a size to read
INTRODUCTION = """# Benchmarks

Every figure is written by a script in [bench](../bench) into a file in [bench/results](../bench/results), with the
machine, the versions and the commit; rows in which a rival is faster stay in it. Rivals run in the same run, in turn.
`make bench` runs all of them on your machine. This page is written by `tools/benchmarks_page.py`.
"""


def body_of(name: str) -> str:
    """A result file without its heading."""
    return re.sub(r"\A# .*\n+", "", (RESULTS / name).read_text(encoding="utf-8")).strip()


def title_of(name: str) -> str:
    return (RESULTS / name).read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")


def commit_of(name: str) -> str:
    found = re.search(r"^(?:Commit|commit) (\w+)", body_of(name), flags=re.M)
    return found[1] if found else ""


def section(name: str, title: str) -> str:
    """What a result was measured on, and the first columns of its tables."""
    body = re.sub(r"^\|.*\|$", lambda row: "|".join(row[0].split("|")[: WIDEST + 1]) + "|", body_of(name), flags=re.M)
    return f"## {title}\n\n{body}\n\nAll columns: [bench/results/{name}](../bench/results/{name}).\n"


def rate(name: str, row: str) -> float:
    """Images per second of a row of a result."""
    (line,) = [line for line in body_of(name).splitlines() if line.startswith(f"| {row} |")]
    return float(line.split("|")[2])


def chart() -> str:
    """Bars of images per second, as SVG; each group has a scale of its own."""
    parts, y = [], 34
    for title, name, rows in CHART:
        rates = {label: rate(name, row) for label, row in rows.items()}
        parts.append(f'<text x="24" y="{y}" font-weight="bold">{title}</text>')
        y += 14
        for label, found in rates.items():
            length, colour = (
                max(WIDTH * found / max(rates.values()), 2),
                "#2186eb" if label == "penstock" else "#9fb3c8",
            )
            parts += [
                f'<text x="{LEFT - 10}" y="{y + 17}" text-anchor="end">{label}</text>',
                f'<rect x="{LEFT}" y="{y}" width="{length:.1f}" height="{BAR}" rx="3" fill="{colour}" />',
                f'<text x="{LEFT + length + 8:.1f}" y="{y + 17}">{found:,.0f}</text>',
            ]
            y += BAR + GAP
        y += 30
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {ACROSS} {y - 14}"',
        '  font-family="Helvetica, Arial, sans-serif" font-size="14" fill="#1f2933">',
        "<title>Images per second from JPEG files to normalised batches</title>",
        f'<rect x="0.5" y="0.5" width="{ACROSS - 1}" height="{y - 15}" rx="12" fill="#ffffff" stroke="#d9e2ec" />',
    ]
    return "\n".join([*head, *parts, "</svg>", ""])


def page() -> str:
    names = sorted(p.name for p in RESULTS.glob("*.md"))
    rows = [f"| [{title_of(n)}](../bench/results/{n}) | {commit_of(n)} |" for n in names]
    table = "\n".join(["| result | commit |", "|---|---|", *rows])
    sections = "\n".join(section(name, title) for name, title in SHOWN.items())
    return f"{INTRODUCTION}\n![Images per second](images/speed.svg)\n\n{table}\n\n{sections}"


def main() -> None:
    (ROOT / "docs" / "benchmarks.md").write_text(page(), encoding="utf-8")
    (ROOT / "docs" / "images" / "speed.svg").write_text(chart(), encoding="utf-8")


if __name__ == "__main__":
    main()
