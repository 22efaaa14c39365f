# SPDX-License-Identifier: Apache-2.0
"""The generated stubs name every operator with its arguments, and a type checker makes use of them."""

import ast
import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.core.op import REGISTRY, snake_case
from penstock.registry import places

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[1]

PROGRAM = """
from penstock import fn, ops, pipeline_def, types

@pipeline_def(batch_size=4, num_threads=2)
def pipe():
    x = fn.external_source(source=lambda i: [])
    y = fn.brightness(x, brightness=1.5, dtype=types.FLOAT)
    reveal_type(y)
    bright = ops.Brightness(brightness_shift=0.5)
    fn.brightness(x, brightnes=1.5)
    fn.brightness(x, brightness="a")
    return bright(y)
"""


@pytest.fixture(scope="module")
def stubs():
    spec = importlib.util.spec_from_file_location("stubs", ROOT / "tools" / "stubs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_operator_is_there(stubs):
    files = stubs.stubs()
    for cls in REGISTRY.values():
        for path, name, _ in places(cls):
            for root, spelled, kind in (("fn", snake_case(name), ast.FunctionDef), ("ops", name, ast.ClassDef)):
                base = "/".join([root, *path])
                tree = ast.parse(files.get(f"{base}/__init__.pyi") or files[f"{base}.pyi"])
                (found,) = [n for n in tree.body if isinstance(n, kind) and n.name == spelled]
                if kind is ast.FunctionDef:
                    assert {a.arg for a in (*found.args.args, *found.args.kwonlyargs)} >= set(cls.schema), spelled


def test_those_beside_the_package_are_fresh(stubs):
    folder = ROOT / "src" / "penstock"
    present = {
        str(p.relative_to(folder)): p.read_text() for part in ("fn", "ops") for p in (folder / part).rglob("*.pyi")
    }
    if not present:
        pytest.skip("not built; `make stubs` writes them")
    assert present == stubs.stubs(), "the stubs are stale; run `make stubs`"


def test_a_type_checker_sees_them(stubs, tmp_path):
    pytest.importorskip("mypy")
    package = tmp_path / "src" / "penstock"
    shutil.copytree(ROOT / "src" / "penstock", package, ignore=shutil.ignore_patterns("*.so", "*.pyi", "__pycache__"))
    stubs.main(package)
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--check-untyped-defs",
        "--config-file=",
        f"--cache-dir={tmp_path}",
        program,
    ]
    out = subprocess.run(command, cwd=tmp_path, env={"MYPYPATH": str(tmp_path / "src")}, capture_output=True, text=True)
    assert 'Revealed type is "penstock.graph.node.DataNode"' in out.stdout, out.stdout + out.stderr
    assert 'did you mean "brightness"' in out.stdout
    assert 'Argument "brightness" to "brightness" has incompatible type "str"' in out.stdout
    assert "Found 2 errors" in out.stdout, out.stdout
