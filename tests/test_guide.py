# SPDX-License-Identifier: Apache-2.0
"""The code in docs/guide.md, README.md and most other pages runs, and lines with `# -> value` have that value."""

import ast
import importlib.util
import linecache
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
GUIDE = ROOT / "docs" / "guide.md"


def blocks(path: Path) -> list[tuple[int, str]]:
    """The Python blocks of a text, with the numbers of their first lines."""
    text = path.read_text()
    found = re.finditer(r"^```python\n(.*?)^```$", text, re.M | re.S)
    return [(text.count("\n", 0, m.start(1)) + 1, m[1]) for m in found]


def execute(path: Path, line: int, code: str, names: dict) -> int:
    """Runs a block. Returns the number of compared values."""
    file = f"{path}, block in line {line}"
    linecache.cache[file] = (len(code), None, code.splitlines(keepends=True), file)
    compared = 0
    for statement in ast.parse(code).body:
        last = code.splitlines()[statement.end_lineno - 1]
        expected = re.search(r"  # -> (.*)$", last)
        if expected and isinstance(statement, ast.Expr):
            value = eval(compile(ast.Expression(statement.value), file, "eval"), names)
            assert str(value) == expected[1], f"{path.name}, line {line + statement.lineno - 1}"
            compared += 1
        else:
            assert not expected, "a value is expected of what is no expression"
            exec(compile(ast.Module([statement], []), file, "exec"), names)
    return compared


@pytest.fixture
def checkout(monkeypatch, tmp_path) -> Path:
    """Changes to a writable working folder that has examples/data."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_guide(checkout):
    names: dict = {}
    compared = 0
    for line, code in blocks(GUIDE):
        needed = re.findall(r"# needs (\w+)", code)
        if all(importlib.util.find_spec(n) for n in needed):
            compared += execute(GUIDE, line, code, names)
    assert compared >= 15
    assert (checkout / "trace.json").stat().st_size > 1000


PAGES = (
    "README.md",
    "docs/faq.md",
    "docs/from_tf_data.md",
    "docs/from_torchvision.md",
    "docs/many_gpus.md",
    "docs/production.md",
    "docs/slow_training.md",
)


def execute_page(page: str) -> int:
    """Runs the blocks of a page whose packages are installed. Returns the number of compared values."""
    names: dict = {}
    compared = 0
    for line, code in blocks(ROOT / page):
        if all(importlib.util.find_spec(n) for n in re.findall(r"# needs (\w+)", code)):
            compared += execute(ROOT / page, line, code, names)
    return compared


@pytest.mark.parametrize("page", PAGES)
def test_page(page, checkout):
    execute_page(page)


def test_page_for_programs_of_dali(checkout):
    """Runs in a separate process, as it replaces `nvidia.dali` by penstock."""
    code = "import penstock.as_dali, test_guide; print(test_guide.execute_page('docs/from_dali.md'))"
    found = os.pathsep.join(map(str, (ROOT / "src", ROOT / "tests")))
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": found}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "3"


# Statements of docs/comparison.md and their sources in the tables of measurements: a result, a row, and its columns.
FIGURES = {
    "on two CPU cores 5.8 times DALI's": ("images_cpu", r"val, against DALI \| (\S+)"),
    "on an H200 6.4 times": ("images_gpu", r"val, mixed \| (\S+)"),
    "instead of\n  [577]": ("startup", r"nvidia.dali \| \S+ \| \S+ \| (\S+)"),
    "3.0 to 5.6 times for log-mel": ("audio", r"FLAC > log-mel of 80 \| DALI \| \S+ \| \S+ \| (\S+)"),
    "to 5.6 times for log-mel": ("audio", r"WAV > log-mel of 80 \| DALI \| \S+ \| \S+ \| (\S+)"),
    "1.5 times for decoding short WAV": ("audio", r"\| 5 s of WAV \| DALI \| \S+ \| \S+ \| (\S+)"),
    "reading 4.3 times": ("formats", r"reading tfrecord, against tf.data \| (\S+)"),
    "normalising 11.8 times": ("formats", r"val from tfrecord, against tf.data \| (\S+)"),
    "[7.5 times]": ("images_cpu", r"against PyTorch DataLoader \+ Pillow \| (\S+)"),
    "archives 12.7 times": ("formats", r"against the library webdataset \| (\S+)"),
    "4.1 times": ("remote", r"tar shards, against webdataset \| (\S+)"),
}


@pytest.mark.parametrize("said", FIGURES)
def test_figures_of_the_comparison(said):
    page, (name, row) = (ROOT / "docs" / "comparison.md").read_text(), FIGURES[said]
    assert said in page
    figure = re.search(r"\b(?<![.])\d+(\.\d+)?", said)[0]
    measured = re.search(row, (ROOT / "bench" / "results" / f"{name}.md").read_text())[1]
    assert abs(float(figure) - float(measured)) <= 0.5 * 10.0 ** -len(figure.partition(".")[2]) + 0.01


def test_a_wrong_value_is_caught(tmp_path):
    with pytest.raises(AssertionError, match="line 11"):
        execute(tmp_path / "guide.md", 10, "x = 1\nx + 1  # -> 3\n", {})


def test_the_readme_leads_to_the_guide():
    assert "(docs/guide.md)" in (ROOT / "README.md").read_text()


def test_long_pages_begin_with_their_contents(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    contents = importlib.import_module("contents")
    assert len(contents.pages()) >= 5
    stale = [page.name for page in contents.pages() if page.read_text() != contents.with_contents(page.read_text())]
    assert not stale, "run tools/contents.py"


TEXTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("path", TEXTS, ids=lambda p: p.name)
def test_links_lead_somewhere(path):
    prose = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.M | re.S)
    links = re.findall(r"\]\((?!https?:)([^)#]+)", prose)
    missing = [link for link in links if not (path.parent / link).exists()]
    assert not missing
