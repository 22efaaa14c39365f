# SPDX-License-Identifier: Apache-2.0
"""Writes the catalogue of operators into build/docs (or the folder given): a page per operator with its signature,
inputs, arguments, pictures and its example, run; an index by family; a gallery.

`make docs`. The pages come from the operators' classes; by hand are only the calls that are shown in pictures
(doc_pictures.py, doc_sounds.py).
"""

from __future__ import annotations

import argparse
import contextlib
import doctest
import inspect
import io
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tools")]

import doc_html as html  # noqa: E402
import doc_pictures as pictures  # noqa: E402

from penstock.core.op import REGISTRY, Arg, Operator  # noqa: E402
from penstock.gpu import driver  # noqa: E402
from penstock.registry import signatures  # noqa: E402

TITLES = {
    "audio": "Audio",
    "augment": "Automatic augmentation",
    "bbox": "Boxes",
    "color": "Colour",
    "conditional": "Conditionals",
    "coord": "Points",
    "decode": "Decoding",
    "experimental": "Experimental",
    "external": "Sources",
    "filter": "Filters and image quality",
    "generic": "Tensors",
    "geometry": "Geometry",
    "math": "Arithmetic",
    "noise": "Noise",
    "python": "Python functions",
    "random": "Random numbers",
    "read": "Readers",
    "reductions": "Reductions",
    "segmentation": "Masks",
    "transforms": "Affine transforms",
}


class ExampleError(Exception):
    """An example that does not give what it says."""


class _Runner(doctest.DocTestRunner):
    """Runs examples and keeps what they printed."""

    def __init__(self) -> None:
        super().__init__(verbose=False)
        self.printed: list[str] = []

    def report_success(self, out, test, example, got):
        self.printed.append(got)


def has_gpu() -> bool:
    try:
        return driver.device_count() > 0
    except driver.CudaError:
        return False


def example(cls: type[Operator]) -> str:
    """The examples of the docstring as a transcript of a run, as HTML; what needs a GPU is shown as it is written where
    there is none."""
    test = doctest.DocTestParser().get_doctest(inspect.cleandoc(cls.__doc__ or ""), {}, cls.__name__, None, 0)
    if not test.examples:
        return ""
    if "cpu" in cls.devices or "mixed" in cls.devices or has_gpu():
        report, runner = io.StringIO(), _Runner()
        with contextlib.redirect_stdout(report):
            runner.run(test, out=report.write)
        if runner.failures:
            raise ExampleError(f"fn.{cls.fn_name}: {report.getvalue()}")
        outputs = runner.printed
    else:
        outputs = [e.want for e in test.examples]
    lines = []
    for e, printed in zip(test.examples, outputs):
        first, *more = e.source.rstrip("\n").split("\n")
        lines += [html.escape(f">>> {first}"), *(html.escape(f"... {m}") for m in more)]
        if printed.strip():
            lines.append(f'<span class="out">{html.escape(printed.rstrip())}</span>')
    return "<pre>" + "\n".join(lines) + "</pre>"


def prose(cls: type[Operator]) -> str:
    """The docstring without its examples."""
    parts = doctest.DocTestParser().parse(inspect.cleandoc(cls.__doc__ or ""))
    return "".join(p for p in parts if isinstance(p, str)).strip()


def signature(cls: type[Operator]) -> str:
    """The call with all arguments that have an effect, required ones first."""
    names = [n if needed else f"{n}=None" for n, needed in signatures.input_names(cls)]
    if len(names) > 3:
        names = [*names[: max(1, cls.inputs[0])], "..."]
    args = [a for a in signatures.arguments(cls) if not a.hidden and not a.deprecated]
    shown = [a.name if a.required else f"{a.name}={signatures.default_text(a)}" for a in args]
    every = [*names, "*", *shown, "device=None", "name=None"]
    one = f"fn.{cls.fn_name}({', '.join(every)})"
    return one if len(one) <= 100 else f"fn.{cls.fn_name}(\n    " + ",\n    ".join(every) + ",\n)"


def row(arg: Arg) -> list[str]:
    default = "required" if arg.required else f"`{signatures.default_text(arg)}`"
    kind = signatures.type_text(arg).removesuffix(" | None")
    return [html.inline(c) for c in (f"`{arg.name}`", kind, default, signatures.remark(arg))]


def family(cls: type[Operator]) -> str:
    return cls.__module__.split(".")[-2]


class Catalogue:
    def __init__(self, folder: Path):
        self.folder = folder
        self.files: dict[str, list[tuple[str, str]]] = {}  # per operator: pictures with their captions, before first

    def write(self, names: list[str]) -> None:
        (self.folder / "pictures").mkdir(parents=True, exist_ok=True)
        (self.folder / "style.css").write_text(html.STYLE)
        for name in _progress(names):
            self._draw(name)
            self._put(name, f"fn.{name}", self.page(REGISTRY[name]))
        self._put("index", "Operators", self.index(names))
        self._put("gallery", "Gallery", self.gallery(names))

    def _put(self, name: str, title: str, body: str) -> None:
        (self.folder / f"{name}.html").write_text(html.page(f"{title} - penstock", body), encoding="utf-8")

    def _picture(self, name: str, image) -> str:
        path = f"pictures/{name}.png"
        (self.folder / path).write_bytes(pictures.png(image))
        return path

    def _draw(self, name: str) -> None:
        files: list[tuple[str, str]] = []
        for i, shown in enumerate(pictures.known(name)):
            if i == 0:
                photo, image = Path(shown.photo).stem, pictures.photograph(shown.photo)
                if shown.before is not None:
                    photo, image = f"{photo}_{name}", shown.before(image)
                files.append((self._picture(f"_{photo}", image), "before"))
            for j, image in enumerate(pictures.make(name, shown)):
                files.append((self._picture(f"{name}_{i}_{j}", image), pictures.caption(name, shown)))
        self.files[name] = files

    def page(self, cls: type[Operator]) -> str:
        """The page of one operator."""
        ops = f"{cls.module + '.' if cls.module else ''}{cls.__name__}"
        text = prose(cls)
        out = [f"<h1>fn.{cls.fn_name}</h1>", f'<p class="soft">{TITLES.get(family(cls), family(cls))}</p>']
        out += [f"<pre>{html.escape(signature(cls))}</pre>"]
        if files := self.files.get(cls.fn_name):
            out += ['<div class="pictures">', *(html.figure(*f) for f in files), "</div>"]
        out += [html.prose(text)]
        facts = [["Devices", ", ".join(cls.devices)], ["As a class", f"<code>ops.{ops}</code>"]]
        inputs = [n + ("" if needed else " (optional)") for n, needed in signatures.input_names(cls)]
        if len(inputs) > 4:
            inputs = [f"{cls.inputs[0]} to {cls.inputs[1]} inputs"]
        facts.insert(0, ["Inputs", html.inline(", ".join(inputs) or "none")])
        if cls.layouts:
            facts.insert(1, ["Layouts", " ".join(f"<code>{layout}</code>" for layout in cls.layouts)])
        if cls.deprecated:
            facts.append(["Former names", " ".join(f"<code>{html.escape(d)}</code>" for d in cls.deprecated)])
        out += ["<h2>Inputs and devices</h2>", html.table([], facts)]
        args = signatures.arguments(cls)
        for title, wanted in (("Arguments", False), ("Arguments without effect", True)):
            rows = [row(a) for a in args if (a.hidden or bool(a.deprecated)) == wanted]
            if rows:
                out += [f"<h2>{title}</h2>", html.table(["name", "type", "default", "meaning"], rows)]
        if transcript := example(cls):
            out += ["<h2>Example</h2>", transcript]
        return "\n".join(out)

    def _families(self, names: list[str]) -> dict[str, list[type[Operator]]]:
        found: dict[str, list[type[Operator]]] = {}
        for name in sorted(names, key=lambda n: TITLES.get(family(REGISTRY[n]), family(REGISTRY[n]))):
            found.setdefault(family(REGISTRY[name]), []).append(REGISTRY[name])
        return found

    def index(self, names: list[str]) -> str:
        """All operators by family."""
        out = ["<h1>Operators</h1>", f"<p>{len(names)} operators. <a href='gallery.html'>See what they do.</a></p>"]
        for kind, classes in self._families(names).items():
            rows = [
                [
                    f'<a href="{c.fn_name}.html">fn.{c.fn_name}</a>',
                    html.inline(signatures.summary(c)),
                    ", ".join(c.devices),
                ]
                for c in sorted(classes, key=lambda c: c.fn_name)
            ]
            out += [f"<h2>{TITLES.get(kind, kind)}</h2>", html.table(["operator", "", "devices"], rows, "index")]
        return "\n".join(out)

    def gallery(self, names: list[str]) -> str:
        """All operators on images, before and after."""
        out = [
            "<h1>Gallery</h1>",
            "<p>Photographs, and spectrograms of a sound, before and after, by the calls below them.</p>",
        ]
        for kind, classes in self._families(names).items():
            cards = []
            for c in sorted(classes, key=lambda c: c.fn_name):
                files = self.files.get(c.fn_name, [])
                if len(files) > 1:
                    before, after = (
                        html.figure(path, "", f"{c.fn_name}.html").replace("<figcaption></figcaption>", "")
                        for path, _ in files[:2]
                    )
                    text = f'<a href="{c.fn_name}.html">fn.{c.fn_name}</a><br>{html.inline(files[1][1])}'
                    cards.append(
                        f'<figure><div class="pair">{before}{after}</div><figcaption>{text}</figcaption></figure>'
                    )
            if cards:
                out += [f"<h2>{TITLES.get(kind, kind)}</h2>", '<div class="gallery">', *cards, "</div>"]
        return "\n".join(out)


def _progress(names: list[str]):
    """The names, under a bar where somebody watches."""
    begin = time.perf_counter()
    for i, name in enumerate(names):
        if sys.stderr.isatty():
            filled = 30 * i // len(names)
            print(f"\r  [{'#' * filled}{'-' * (30 - filled)}] {i}/{len(names)} pages ", end="", file=sys.stderr)
        yield name
    if sys.stderr.isatty():
        print(f"\r\033[K{len(names)} pages in {time.perf_counter() - begin:.1f} s", file=sys.stderr)


def main(folder: Path) -> None:
    names = sorted(n for n in REGISTRY if not n.startswith("_"))  # others are what `if` and auto_aug are made of
    Catalogue(folder).write(names)
    print(f"{len(names)} operators: {folder / 'index.html'}, {folder / 'gallery.html'}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument(
        "folder", nargs="?", type=Path, default=ROOT / "build" / "docs", help="build/docs, if not given"
    )
    main(parser.parse_args().folder)
