# SPDX-License-Identifier: Apache-2.0
"""Writes the sources of the site, Markdown for Sphinx, into build/site/source (or the folder given).

`make site` has Sphinx make HTML of them. The texts are those of the checkout: the guide is cut into a page for each
chapter, tutorials come from the notebooks, the reference from the operators' classes (reference.py). Links are made to
fit, and a link that leads nowhere is an error.
"""

from __future__ import annotations

import argparse
import html
import json
import os
import posixpath
import re
import shutil
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tools")]

from reference import TITLES, Reference, fenced  # noqa: E402

# Pages in the order of the contents, by their sections. "guide: X" is a chapter of docs/guide.md.
SECTIONS = {
    "Start": ["docs/installing.md", "docs/comparison.md", "docs/faq.md"],
    "Tutorials": [
        f"examples/{name}.ipynb"
        for name in (
            "pytorch_image_classification",
            "jax_getting_started",
            "jax_several_devices",
            "vit_flax",
            "keras_image_classification",
            "paddle_getting_started",
            "moving_from_dali",
            "writing_an_operator",
            "t5x_clu",
        )
    ],
    "How to": [
        "docs/recipes.md",
        "docs/from_torchvision.md",
        "docs/from_dali.md",
        "docs/from_tf_data.md",
        "guide: Data in a bucket",
        "guide: Bad files",
        "docs/slow_training.md",
        "docs/many_gpus.md",
        "docs/production.md",
        "docs/workers.md",
        "docs/plugins.md",
    ],
    "Guide": ["docs/guide.md"],
    "Reference": ["reference/index.md", "docs/sources.md", "docs/torchvision.md", "docs/conformance.md"],
    "Running it": ["docs/releases.md", "SECURITY.md", "CHANGELOG.md"],
    "Behind it": ["docs/benchmarks.md", "docs/scaling.md", "docs/decisions/README.md", "CONTRIBUTING.md"],
}
# Other pages, and the names that some have on the site.
NAMES = {
    "README.md": "index.md",
    "docs/guide.md": "guide/index.md",
    "docs/benchmarks.md": "benchmarks/index.md",
    "docs/decisions/README.md": "decisions/index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CODE_OF_CONDUCT.md": "code_of_conduct.md",
    "examples/data/LICENSES.md": "example_licences.md",
}
FOLDERS = {
    "bench": "docs/benchmarks.md",
    "bench/results": "docs/benchmarks.md",
    "docs/decisions": "docs/decisions/README.md",
}
FENCE = re.compile(r"^ {0,3}(```+|~~~+).*?^ {0,3}\1 *$", re.M | re.S)
CODE = re.compile(FENCE.pattern + r"|(?<!`)(`+)(?!`).+?(?<!`)\2(?!`)", re.M | re.S)
LINK = re.compile(r"(!?\[[^\]]*\]\()([^)\s]+)(\))")


class LinkError(Exception):
    """A link that leads nowhere."""


def outside_code(text: str, change: Callable[[str], str], code: re.Pattern = CODE) -> str:
    """The text with `change` made where it is no code."""
    kept: list[str] = []

    def keep(found: re.Match) -> str:
        kept.append(found[0])
        return f"\0{len(kept) - 1}\0"

    return re.sub("\0(\\d+)\0", lambda m: kept[int(m[1])], change(code.sub(keep, text)))


def slug(heading: str) -> str:
    """The anchor that GitHub and MyST give a heading."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.strip()).lower()
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


def headings(text: str) -> list[tuple[int, str]]:
    """Level and text of each heading."""
    return [(len(m[1]), m[2]) for m in re.finditer(r"^(#+) (.+)$", FENCE.sub("", text), re.M)]


def anchors(text: str) -> set[str]:
    found: set[str] = set()
    for _, title in headings(text):
        anchor, n = slug(title), 0
        while anchor in found:
            n += 1
            anchor = f"{slug(title)}-{n}"
        found.add(anchor)
    return found


def chapters(text: str) -> dict[str, str]:
    """The guide by its chapters, each with its headings one level up; what stands before the first has the name ""."""

    def raise_headings(text: str) -> str:
        return re.sub(r"^##(?=#* )", "\1#", text, flags=re.M)  # \1 marks those that were raised: code has lines with #

    first, *rest = outside_code(text, raise_headings, FENCE).split("\1# ")
    return {"": first} | {part.partition("\n")[0].strip(): "# " + part.replace("\1", "") for part in rest}


def shown(output: dict) -> str:
    """What a cell printed, or the pictures that it showed, each with a text for those who do not see it."""
    data = output.get("data", {})
    text = "".join(output.get("text") or data.get("text/plain", "")).rstrip("\n")
    if not (pictures := "".join(data.get("text/html", "")).replace("\n", " ")):
        return fenced(text, "text")
    pictures = re.sub(r'(?<= )title="([^"]*)"', r'alt="\1" \g<0>', pictures)
    pictures = pictures.replace("<svg ", f'<svg role="img" aria-label="{html.escape(text)}" ', 1)
    return f'<div class="output" tabindex="0">{pictures}</div>\n'


def notebook(path: Path) -> str:
    """A notebook as a page: its texts, its code, and what the code printed or showed."""
    out = []
    for cell in json.loads(path.read_text())["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            out.append(source + "\n")
            continue
        out.append(fenced(source, "python"))
        out += map(shown, cell.get("outputs", []))
    where = path.relative_to(ROOT).as_posix()
    return "\n".join([*out, f"The notebook itself is [{where}]({path.name}); `make notebooks` runs it.\n"])


def toctree(options: str, pages: Iterable[str]) -> str:
    """An entry in the contents for each page."""
    return f"\n```{{toctree}}\n{options}\n\n" + "\n".join(p.removesuffix(".md") for p in pages) + "\n```\n"


class Site:
    """The sources in memory, by their names on the site, with links that fit."""

    def __init__(self) -> None:
        self.of: dict[str, str] = dict(NAMES)  # names on the site of the files of the checkout
        for page in [p for pages in SECTIONS.values() for p in pages if ":" not in p and "reference/" not in p]:
            name = page.removeprefix("docs/").replace("examples/", "tutorials/").replace(".ipynb", ".md")
            self.of.setdefault(page, name)
        for folder, name in (("docs/decisions", "decisions"), ("bench/results", "benchmarks")):
            for path in sorted((ROOT / folder).glob("*.md")):
                self.of.setdefault(f"{folder}/{path.name}", f"{name}/{path.name}")
        self.guide = chapters((ROOT / "docs" / "guide.md").read_text())
        self.chapter_of = {a: self._chapter(c) for c, text in self.guide.items() for a in anchors(text)}
        self.files: set[str] = set()  # of the checkout, that pages show or offer
        self.pages: dict[str, str] = {}

    def _chapter(self, title: str) -> str:
        return f"guide/{slug(title) or 'index'}.md"

    def target(self, link: str, page: str) -> str:
        """Where a link in a file of the checkout leads to, by its name on the site with the anchor."""
        path, _, anchor = link.partition("#")
        file = posixpath.normpath(posixpath.join(posixpath.dirname(page), path)) if path else page
        file = FOLDERS.get(file, file)
        if file == "docs/guide.md":
            if anchor and anchor not in self.chapter_of:
                raise LinkError(f"{page}: the guide has no {anchor}")
            name = self.chapter_of[anchor] if anchor else self._chapter("")
            return f"{name}#{anchor}" if anchor else name
        if file in self.of and not (page == file and page.endswith(".ipynb") and path):
            return self.of[file] + (f"#{anchor}" if anchor else "")
        if not (ROOT / file).is_file() or file.endswith(".md"):
            raise LinkError(f"{page}: {link} is no file, or a page that is not on the site")
        self.files.add(file)
        return f"files/{file}"

    def add(self, page: str, text: str, name: str | None = None) -> None:
        """A page of the checkout, under its name on the site or the one given."""
        name = name or self.of[page]

        def fit(found: re.Match) -> str:
            if re.match(r"\w+:", found[2]):
                return found[0]
            path, _, anchor = self.target(found[2], page).partition("#")
            relative = posixpath.relpath(path, posixpath.dirname(name) or ".")
            return (
                found[1]
                + (f"#{anchor}" if anchor and path == name else relative + f"#{anchor}" * bool(anchor))
                + found[3]
            )

        self.pages[name] = outside_code(text, lambda part: LINK.sub(fit, part))

    def front(self) -> str:
        """The contents, below the README: they are beside every page."""
        out = []
        for section, pages in SECTIONS.items():
            names = [self._chapter(p.removeprefix("guide: ")) if ":" in p else self.of.get(p, p) for p in pages]
            out.append(toctree(f":hidden:\n:caption: {section}", names))
        return "".join(out)

    def write(self, folder: Path, pictures: bool = True, examples: bool = True) -> None:
        how_to = {p.removeprefix("guide: ") for p in SECTIONS["How to"] if ":" in p}
        for page in self.of:
            if page == "docs/guide.md":
                for title, text in self.guide.items():
                    if title:
                        first, _, rest = text.partition("\n")
                        note = "A chapter of the [guide](guide.md), which begins with the imports and `training`."
                        text = f"{first}\n\n{note}\n{rest}"
                    else:
                        own = [slug(c) for c in self.guide if c and c not in how_to]
                        text += toctree(":maxdepth: 1", own)
                    self.add(page, text, self._chapter(title))
            elif page.endswith(".ipynb"):
                self.add(page, notebook(ROOT / page))
            else:
                self.add(page, (ROOT / page).read_text())
        self.pages["index.md"] += "\n" + self.front()
        for index in ("decisions", "benchmarks"):
            names = sorted(n for n in self.pages if n.startswith(f"{index}/") and not n.endswith("/index.md"))
            self.pages[f"{index}/index.md"] += toctree(":hidden:", map(posixpath.basename, names))
        for name in ("code_of_conduct.md", "example_licences.md"):
            self.pages[name] = "---\norphan: true\n---\n" + self.pages[name]

        shutil.rmtree(folder, ignore_errors=True)
        reference = Reference(folder / "reference", pictures, examples)
        reference.write()
        index = folder / "reference" / "index.md"
        families = sorted(reference.families(), key=lambda kind: TITLES[kind])
        index.write_text(index.read_text() + toctree(":hidden:", ["gallery", "types", *families]))
        for name, text in self.pages.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        for file in sorted(self.files):
            at = folder / "files" / file
            at.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / file, at)
        for path in (ROOT / "tools" / "site_theme").iterdir():
            shutil.copy(path, folder)


def broken(folder: Path) -> list[str]:
    """Links in Markdown that lead to no file, or to no heading of it."""
    out = []
    texts = {p: p.read_text() for p in folder.rglob("*.md") if "files" not in p.relative_to(folder).parts}
    known = {p: anchors(text) for p, text in texts.items()}
    for page, text in texts.items():
        for link in (m[2] for m in LINK.finditer(CODE.sub("", text))):
            if re.match(r"\w+:", link):
                continue
            path, _, anchor = link.partition("#")
            file = Path(os.path.normpath(page.parent / path)) if path else page
            if not file.exists() or anchor and anchor not in known.get(file, ()):
                out.append(f"{page.relative_to(folder)}: {link}")
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "build" / "site" / "source")
    folder = parser.parse_args().folder
    Site().write(folder)
    if wrong := broken(folder):
        sys.exit("\n".join(["links that lead nowhere:", *wrong]))
    print(f"{sum(1 for _ in folder.rglob('*.md'))} pages in {folder}")


if __name__ == "__main__":
    main()
