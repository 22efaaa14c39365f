# SPDX-License-Identifier: Apache-2.0
"""Writes the reference of operators as Markdown: a page per operator with its signature, inputs, arguments, pictures
and its example, run; a page per family; the enumerations; a gallery. `tools/site.py` makes them a part of the site.

The pages come from the operators' classes; by hand are only the calls that are shown in pictures (doc_pictures.py,
doc_sounds.py).
"""

from __future__ import annotations

import contextlib
import doctest
import inspect
import io
import re
import sys
from enum import Enum
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tools")]

import doc_pictures as pictures  # noqa: E402

from penstock import types  # noqa: E402
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
    """The examples of the docstring as a transcript of a run; what needs a GPU is shown as it is written where there is
    none."""
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
        lines += [f">>> {first}", *(f"... {m}" for m in more)]
        if printed.strip():
            lines.append(printed.rstrip())
    return fenced("\n".join(lines), "pycon")


def fenced(text: str, language: str) -> str:
    return f"```{language}\n{text}\n```\n"


def escape(text: str) -> str:
    """Markdown in which `<` outside of code is no tag."""
    parts = re.split(r"(`+[^`]+`+)", text)
    return "".join(p if i % 2 else re.sub(r"<(?=[\w/!])", "&lt;", p) for i, p in enumerate(parts))


def prose(cls: type[Operator]) -> str:
    """The docstring without its examples."""
    parts = doctest.DocTestParser().parse(inspect.cleandoc(cls.__doc__ or ""))
    return escape("".join(p for p in parts if isinstance(p, str)).strip())


def table(heads: list[str], rows: list[list[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join("| " + " | ".join(c.replace("|", r"\|") for c in line) + " |\n" for line in lines)


def figure(picture: str, caption: str) -> str:
    """A picture; its caption is its text for those who do not see it, too."""
    return f":::{{figure}} {picture}\n:alt: {caption.replace('`', '')}\n\n{caption}\n:::\n"


def container(name: str, content: str) -> str:
    """What the style sheet has rules for, under a class of that name."""
    return f"::::{{container}} {name}\n{content}::::\n"


def grid(figures: list[str]) -> str:
    return container("pictures", "\n".join(figures))


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


def type_link(arg: Arg) -> str:
    """The type, with links to the enumerations."""
    kind = signatures.type_text(arg).removesuffix(" | None")
    return re.sub(r"\bDALI\w+Type\b", lambda m: f"[{m[0]}](types.md#{m[0].lower()})", kind)


def row(arg: Arg) -> list[str]:
    default = "required" if arg.required else f"`{signatures.default_text(arg)}`"
    return [f"`{arg.name}`", type_link(arg), default, escape(signatures.remark(arg))]


def family(cls: type[Operator]) -> str:
    return cls.__module__.split(".")[-2]


def link(name: str) -> str:
    return f"[fn.{name}](fn.{name}.md)"


class Reference:
    """All pages, in a folder; without `pictures` and without running the `examples` they are made at once."""

    def __init__(self, folder: Path, pictures: bool = True, examples: bool = True):
        self.folder, self.with_pictures, self.examples = folder, pictures, examples
        self.names = sorted(
            n for n in REGISTRY if not n.startswith("_")
        )  # others are what `if` and auto_aug are made of
        self.files: dict[str, list[tuple[str, str]]] = {}  # per operator: pictures with their captions, before first

    def write(self) -> None:
        (self.folder / "pictures").mkdir(parents=True, exist_ok=True)
        for name in self.names:
            if self.with_pictures:
                self._draw(name)
            # Operators are found by the tables of their families and by the search: hundreds of entries in the contents
            # of each page help nobody.
            self._put(f"fn.{name}", "---\norphan: true\n---\n" + self.page(REGISTRY[name]))
        for kind, classes in self.families().items():
            self._put(kind, self.family_page(kind, classes))
        self._put("types", enumerations())
        self._put("index", self.index())
        self._put("gallery", self.gallery())

    def _put(self, name: str, text: str) -> None:
        (self.folder / f"{name}.md").write_text(text, encoding="utf-8")

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
        kind = family(cls)
        out = [f"# fn.{cls.fn_name}\n", f"[Operators](index.md) / [{TITLES[kind]}]({kind}.md)\n"]
        out += [prose(cls) + "\n"]
        if files := self.files.get(cls.fn_name):
            out += [grid([figure(*f) for f in files])]
        out += [fenced(signature(cls), "python")]  # behind the pictures, as it may be longer than a screen
        facts = [["Devices", ", ".join(cls.devices)], ["As a class", f"`ops.{ops}`"]]
        inputs = [n + ("" if needed else " (optional)") for n, needed in signatures.input_names(cls)]
        if len(inputs) > 4:
            inputs = [f"{cls.inputs[0]} to {cls.inputs[1]} inputs"]
        facts.insert(0, ["Inputs", ", ".join(inputs) or "none"])
        if cls.layouts:
            facts.insert(1, ["Layouts", " ".join(f"`{layout}`" for layout in cls.layouts)])
        if cls.deprecated:
            facts.append(["Former names", " ".join(f"`{d}`" for d in cls.deprecated)])
        out += ["## Inputs and devices\n", table(["what", "which"], facts)]
        args = signatures.arguments(cls)
        for title, wanted in (("Arguments", False), ("Arguments without effect", True)):
            rows = [row(a) for a in args if (a.hidden or bool(a.deprecated)) == wanted]
            if rows:
                out += [f"## {title}\n", container("arguments", table(["name", "type", "default", "meaning"], rows))]
        if self.examples and (transcript := example(cls)):
            out += ["## Example\n", transcript]
        return "\n".join(out)

    def families(self) -> dict[str, list[type[Operator]]]:
        found: dict[str, list[type[Operator]]] = {}
        for name in sorted(self.names, key=lambda n: (TITLES[family(REGISTRY[n])], n)):
            found.setdefault(family(REGISTRY[name]), []).append(REGISTRY[name])
        return found

    def family_page(self, kind: str, classes: list[type[Operator]]) -> str:
        rows = [[link(c.fn_name), escape(signatures.summary(c)), ", ".join(c.devices)] for c in classes]
        return f"# {TITLES[kind]}\n\n" + table(["operator", "what it does", "devices"], rows)

    def index(self) -> str:
        """All operators by family."""
        out = [f"# Operators\n\n{len(self.names)} operators by family; the [gallery](gallery.md) shows what they do."]
        for kind, classes in self.families().items():
            out.append(f"**[{TITLES[kind]}]({kind}.md)**: " + ", ".join(link(c.fn_name) for c in classes))
        return "\n\n".join(out) + "\n"

    def gallery(self) -> str:
        """All operators on images, before and after."""
        out = ["# Gallery\n\nPhotographs, and spectrograms of a sound, before and after, by the calls below them.\n"]
        for kind, classes in self.families().items():
            shown = [c.fn_name for c in classes if len(self.files.get(c.fn_name, [])) > 1]
            if shown:
                out.append(f"## {TITLES[kind]}\n")
            for name in shown:
                out += [f"### {name}\n", grid([figure(*f) for f in self.files[name][:2]]), link(name) + "\n"]
        return "\n".join(out)


def enumerations() -> str:
    """What arguments take that are no numbers: the page that their types lead to."""
    out = ["# Types\n\nThe enumerations of `penstock.types` that arguments take.\n"]
    for cls in (types.DALIDataType, types.DALIImageType, types.DALIInterpType):
        assert issubclass(cls, Enum)
        short = [n for n, v in vars(types).items() if isinstance(v, cls)]
        rows = [[f"`types.{n}`", f"`types.{cls.__name__}.{getattr(types, n).name}`"] for n in short]
        out += [f"## {cls.__name__}\n", inspect.cleandoc(cls.__doc__ or "") + "\n", table(["name", "in full"], rows)]
    return "\n".join(out)
