# SPDX-License-Identifier: Apache-2.0
"""Rules of the code base: allowed imports, the length of files, and the cost of `import penstock`."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"
PACKAGE = SOURCE / "penstock"
FRAMEWORKS = {"torch", "jax", "tensorflow", "paddle", "cupy", "clu", "PIL", "scipy", "cv2", "numba", "nvidia"}

# The frameworks of plugins.
PUBLIC = {"", "fn", "ops", "types", "math", "pipeline", "data_node", "tensors", "backend", "registry"}

# A part may import itself and the parts or modules listed here. Parts are the folders and files of the package.
MAY_IMPORT = {
    "core": set(),
    "graph": {"core"},
    "gpu": {"core"},
    "exec": {"core", "graph", "gpu"},
    "external": {"core", "gpu"},
    "cluster": {"core", "exec", "external", "graph"},
    "operators": {"core", "external"},
    "operators.gpu": {"core", "gpu"},  # stages for the GPU that operators bring with them: operators/<family>/gpu/
    "tensors": {"core", "gpu"},
    "registry": {"core", "graph", "gpu", "operators", "tensors"},
    "pipeline": {"core", "graph", "gpu", "exec", "external", "cluster", "tensors"},
    "fn": {"registry"},
    "ops": {"registry"},
    "types": {"core", "graph"},
    "data_node": {"graph"},
    "math": {"core", "graph", "types"},
    "external_source": {"fn", "ops"},
    "backend": {"core", "gpu", "registry", "tensors", "types"},
    "sysconfig": {"core"},
    "pickling": {"external"},
    "reducers": {"external"},
    "tfrecord": set(),
    "video": {"core", "operators", "types"},
    "internal": set(),
    "plugin_manager": {"core"},
    "auto_aug": PUBLIC | {"core", "graph", "operators"},
    "plugin": PUBLIC | {"core.constructors"},
    "experimental": PUBLIC | {"core", "graph", "exec", "gpu", "operators", "plugin"},
    "transforms": {"core"},
    "metrics": {"core", "exec", "pipeline"},
    "as_dali": {""},
    "cli": {"core", "fn", "gpu", "operators", "pipeline", "plugin.triton", "registry"},
    "__main__": {"cli"},
    "": PUBLIC
    | {
        "core",
        "graph",
        "external_source",
        "internal",
        "pickling",
        "plugin_manager",
        "reducers",
        "sysconfig",
        "tfrecord",
    },
}


def imports(path: Path) -> list[tuple[str, int]]:
    """The absolute names of the modules that a file imports, with the line numbers."""
    package = path.relative_to(SOURCE).parent.parts
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [(a.name, node.lineno) for a in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(filter(None, [base, node.module]))
            found += [
                (f"{module}.{a.name}" if node.module is None or module == "penstock" else module, node.lineno)
                for a in node.names
            ]
    return found


def part_of(module: str) -> str | None:
    """The part of the package that a module belongs to, "" for the package itself, None for others."""
    parts = module.split(".")
    if parts[0] != "penstock":
        return None
    return (
        parts[1] if len(parts) > 1 and ((PACKAGE / parts[1]).is_dir() or (PACKAGE / f"{parts[1]}.py").exists()) else ""
    )


def files() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def test_imports_point_one_way():
    wrong = []
    for path in files():
        within = path.relative_to(PACKAGE)
        here = within.parts[0].removesuffix(".py").replace("__init__", "")
        allowed = MAY_IMPORT["operators.gpu" if here == "operators" and within.parts[2:3] == ("gpu",) else here]
        for module, line in imports(path):
            there = part_of(module)
            if there is None or there == here:
                continue
            names = module.split(".")[1:]
            if not {".".join(names[: i + 1]) for i in range(len(names))} & allowed and there not in allowed:
                wrong.append(f"{path.relative_to(SOURCE)}:{line}: {here} must not import {module}")
    assert not wrong, "\n".join(wrong)


def test_frameworks_are_imported_by_their_plugin_only():
    """`plugin/pytorch` and the transforms with torchvision's names may import torch at module level; other modules only
    inside functions."""
    wrong = []
    for path in files():
        parts = path.relative_to(PACKAGE).parts
        if {"plugin", "pytorch", "torchvision"} & set(parts) or parts[0] == "transforms":
            continue
        for module, line in imports(path):
            if module.split(".")[0] in FRAMEWORKS:
                wrong.append(f"{path.relative_to(SOURCE)}:{line}: {module}")
    assert not wrong, "\n".join(wrong)


def test_no_file_is_longer_than_400_lines():
    root = SOURCE.parent
    sources = [
        p for part in ("src", "kernels", "tests", "tools", "bench", "examples") for p in (root / part).rglob("*")
    ]
    long = [
        f"{p.relative_to(root)}: {n} lines"
        for p in sources
        if p.suffix in (".py", ".h", ".cpp", ".cu", ".sh") and (n := len(p.read_text().splitlines())) > 400
    ]
    assert not long, "\n".join(long)


def run(code: str, **variables: str) -> str:
    env = {**os.environ, "PYTHONPATH": str(SOURCE), **variables}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=True).stdout


def test_import_brings_in_no_framework():
    # Beside what NumPy brings: ctypes, which imports sysconfig from Python 3.14 on.
    loaded = run("import sys, numpy; n = {*sys.modules}; import penstock; print(*{*sys.modules} - n)").split()
    assert not FRAMEWORKS & {m.split(".")[0] for m in loaded}
    assert not {"argparse", "sysconfig"} & set(loaded), "what is needed seldom is imported then"


def test_import_is_quick(tmp_path):
    """`import penstock` takes at most 0.08 s more than `import numpy`. The minimum CPU time of several runs is used, as
    other load only increases it. On a slow machine, at most a third more than NumPy is allowed."""
    timer = """import time; a = time.process_time(); import numpy
t = time.process_time(); import penstock; print(time.process_time() - t, t - a)"""
    run(timer, PYTHONPYCACHEPREFIX=str(tmp_path))  # writes the byte code, as an installation does
    times = []
    for _ in range(15):
        times.append(tuple(map(float, run(timer, PYTHONPYCACHEPREFIX=str(tmp_path)).split())))
        if min(ours for ours, _ in times) < 0.08 or min(ours / numpys for ours, numpys in times) < 1.33:
            return
    pytest.fail(f"seconds of penstock and of NumPy: {times}")
