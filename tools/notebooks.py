# SPDX-License-Identifier: Apache-2.0
"""Runs the tutorials in examples/*.ipynb without Jupyter, as CI does.

`python tools/notebooks.py [NOTEBOOK ...]` runs the cells of each notebook (all by default) in a process of its own, in
the folder of the notebook. `--save` also stores what the cells print and show in the notebooks. `--new SCRIPT NOTEBOOK`
makes a notebook of a script in which `# %% [markdown]` begins a text and `# %%` a cell.

A cell has plain Python only. If its last line is an expression, its value is shown, as in Jupyter. The notebook's
metadata may name the modules it needs: {"penstock": {"requires": ["torch"]}}; without them it is left out.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib.util
import io
import json
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"
MISSING = 77  # exit status for a notebook that needs a module that is not installed


def cells(notebook: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    """The cells with code, and their code."""
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            yield cell, "".join(cell["source"])


def program(path: Path) -> str:
    """All code of a notebook, for type checkers."""
    return "\n\n".join(code for _, code in cells(json.loads(path.read_text())))


def _show(value: Any) -> dict[str, list[str]]:
    """What Jupyter would show of a value, by MIME type."""
    html = value._repr_html_() if hasattr(value, "_repr_html_") else None
    shown = {"text/html": html.splitlines(True)} if html else {}
    return {**shown, "text/plain": repr(value).splitlines(True)}


def _run_cell(code: str, name: str, namespace: dict[str, Any]) -> list[dict[str, Any]]:
    """Runs a cell; returns its outputs in the form of the notebook format."""
    tree = ast.parse(code, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    outputs: list[dict[str, Any]] = []
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, name, "exec"), namespace)
        value = eval(compile(ast.Expression(last.value), name, "eval"), namespace) if last is not None else None
        data = None if value is None else _show(value)
    if printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": printed.getvalue().splitlines(True)})
    if data is not None:
        outputs.append({"output_type": "execute_result", "execution_count": None, "metadata": {}, "data": data})
    return outputs


def run(path: Path, save: bool) -> int:
    """Runs a notebook in this process; returns the exit status."""
    import linecache
    import types

    notebook = json.loads(path.read_text())
    for module in notebook["metadata"].get("penstock", {}).get("requires", []):
        if importlib.util.find_spec(module) is None:
            print(f"{path.name}: left out, as {module} is not installed")
            return MISSING
    main = types.ModuleType("__main__")  # so that what cells define can be pickled
    sys.modules["__main__"] = main
    sys.path.insert(0, str(path.parent))
    os.chdir(path.parent)
    begin = time.perf_counter()
    for i, (cell, code) in enumerate(cells(notebook), 1):
        name = f"<cell {i} of {path.name}>"
        linecache.cache[name] = (len(code), None, code.splitlines(True), name)
        try:
            outputs = _run_cell(code, name, main.__dict__)
        except BaseException:
            traceback.print_exc()
            print(f"{path.name}: cell {i} failed")
            return 1
        for output in outputs:
            print("".join(output.get("text") or output["data"]["text/plain"]).rstrip("\n"))
            if "execution_count" in output:
                output["execution_count"] = i
        cell["outputs"], cell["execution_count"] = outputs, i
    print(f"{path.name}: {time.perf_counter() - begin:.1f} s")
    if save:
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")
    return 0


def new(script: str) -> dict[str, Any]:
    """The notebook of a script with cell marks. Lines of text have the form of comments; `# requires: torch, jax` in
    the first text fills the metadata."""
    notebook: dict[str, Any] = {
        "cells": [],
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    for part in ("\n" + script).split("\n# %%")[1:]:
        kind, _, body = part.partition("\n")
        lines = body.strip("\n").splitlines()
        if kind.strip() == "[markdown]":
            for line in [x for x in lines if x.startswith("# requires:")]:
                lines.remove(line)
                modules = [m.strip() for m in line.partition(":")[2].split(",")]
                notebook["metadata"]["penstock"] = {"requires": modules}
            lines = [line.removeprefix("#").removeprefix(" ") for line in lines]
        text = "\n".join(lines).strip("\n").splitlines(True)
        cell = {"cell_type": "markdown", "id": f"cell-{len(notebook['cells'])}", "metadata": {}, "source": text}
        if kind.strip() != "[markdown]":
            cell |= {"cell_type": "code", "execution_count": None, "outputs": []}
        notebook["cells"].append(cell)
    return notebook


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("notebooks", nargs="*", type=Path)
    parser.add_argument("--save", action="store_true", help="store the outputs in the notebooks")
    parser.add_argument("--new", nargs=2, type=Path, metavar=("SCRIPT", "NOTEBOOK"))
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.new:
        args.new[1].write_text(json.dumps(new(args.new[0].read_text()), indent=1, ensure_ascii=False) + "\n")
        return 0
    paths = [p.resolve() for p in args.notebooks or sorted(EXAMPLES.glob("*.ipynb"))]
    if args.here:
        return run(paths[0], args.save)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])}
    # On busy machines small models with several threads wait for each other: a minute instead of seconds.
    environment.setdefault("OMP_NUM_THREADS", "1")
    failed = []
    for path in paths:
        command = [sys.executable, __file__, "--here", str(path), *(["--save"] if args.save else [])]
        status = subprocess.run(command, env=environment).returncode
        if len(paths) == 1:
            return status
        failed += [path.name] if status not in (0, MISSING) else []
    print(f"failed: {', '.join(failed)}" if failed else f"{len(paths)} notebooks ran")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
