# SPDX-License-Identifier: Apache-2.0
"""Writes a page per operator into build/docs (or the folder given): signature, inputs, arguments, and its example, run.

`make docs`. The pages come from the operators' classes; nothing here is kept by hand.
"""

from __future__ import annotations

import contextlib
import doctest
import inspect
import io
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

from penstock import signatures  # noqa: E402
from penstock.core.op import REGISTRY, Arg, Operator  # noqa: E402


class ExampleError(Exception):
    """An example that does not give what it says."""


def example(cls: type[Operator]) -> str:
    """The examples of the docstring as a transcript of a run."""
    test = doctest.DocTestParser().get_doctest(inspect.cleandoc(cls.__doc__ or ""), {}, cls.__name__, None, 0)
    if not test.examples:
        return ""
    report = io.StringIO()
    runner = doctest.DocTestRunner(verbose=False)
    with contextlib.redirect_stdout(report):
        runner.run(test, out=report.write)
    if runner.failures:
        raise ExampleError(report.getvalue())
    lines = []
    for e in test.examples:
        first, *more = e.source.rstrip("\n").split("\n")
        lines += [f">>> {first}", *(f"... {m}" for m in more)]
        lines += e.want.rstrip("\n").split("\n") if e.want else []
    return "```python\n" + "\n".join(lines) + "\n```\n"


def prose(cls: type[Operator]) -> str:
    """The docstring without its examples."""
    parts = doctest.DocTestParser().parse(inspect.cleandoc(cls.__doc__ or ""))
    return "".join(p for p in parts if isinstance(p, str)).strip()


def row(arg: Arg) -> str:
    default = "required" if arg.required else f"`{signatures.default_text(arg)}`"
    kind = signatures.type_text(arg).removesuffix(" | None").replace("|", "\\|")
    return f"| `{arg.name}` | {kind} | {default} | {signatures.remark(arg).replace('|', chr(92) + '|')} |"


def page(cls: type[Operator]) -> str:
    """The page of one operator."""
    inputs = [n + ("" if needed else " (optional)") for n, needed in signatures.input_names(cls)]
    args = signatures.arguments(cls)
    lines = [f"# fn.{cls.fn_name}", "", prose(cls), ""]
    ops = f"{cls.module + '.' if cls.module else ''}{cls.__name__}"
    lines += [f"Also `ops.{ops}`. Devices: {', '.join(cls.devices)}."]
    if cls.deprecated:
        lines += [f"Former names: {', '.join(f'`{d}`' for d in cls.deprecated)}."]
    lines += ["", "## Inputs", "", ", ".join(inputs) if inputs else "None."]
    if cls.layouts:
        lines += [f"Layouts: {', '.join(cls.layouts)}."]
    for title, wanted in (("Arguments", False), ("Arguments without effect", True)):
        shown = [a for a in args if (a.hidden or bool(a.deprecated)) == wanted]
        if shown:
            lines += [
                "",
                f"## {title}",
                "",
                "| name | type | default | meaning |",
                "|---|---|---|---|",
                *map(row, shown),
            ]
    if text := example(cls):
        lines += ["", "## Example", "", text]
    return "\n".join(lines).rstrip() + "\n"


def summary(cls: type[Operator]) -> str:
    return inspect.cleandoc(cls.__doc__ or "").partition("\n")[0]


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    index = ["# Operators", "", "| operator | |", "|---|---|"]
    for name, cls in sorted(REGISTRY.items()):
        (folder / f"{name}.md").write_text(page(cls))
        index.append(f"| [fn.{name}]({name}.md) | {summary(cls)} |")
    (folder / "index.md").write_text("\n".join(index) + "\n")
    print(f"{len(REGISTRY)} operators in {folder}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "docs")
