# SPDX-License-Identifier: Apache-2.0
"""Programs that use penstock pass `mypy --strict`, and their mistakes are found: the tutorials, and a program for each
public module, in which lines with a mistake have the expected error: `# found: call-arg`."""

import importlib.util
import inspect
import os
import re
import shutil
import subprocess
import sys
import typing
from collections import defaultdict

import pytest

from modules import ROOT, load

TUTORIALS = sorted((ROOT / "examples").glob("*.ipynb"))
PROGRAMS = sorted((ROOT / "tests" / "typed_programs").glob("*.py"))
TYPED_BY = {"tensorflow": "tensorflow-stubs"}  # its types, which are enough, come in a package of their own


def missing(path, text):
    """The required modules that mypy cannot find here."""
    if path.suffix == ".py":
        named = re.findall(r"^# requires: (.*)$", text, re.MULTILINE)
        modules = named[0].split(", ") if named else []
    else:
        modules = re.findall(r"^(?:import|from) (\w+)", text, re.MULTILINE)
    names = [TYPED_BY.get(m, m) for m in modules if m != "penstock"]
    return [n for n in names if importlib.util.find_spec(n) is None]


def by_line(output):
    """The errors found by mypy: {file: {line: {kinds of errors}}}."""
    errors = defaultdict(lambda: defaultdict(set))
    for line in output.splitlines():
        if match := re.match(r"(\w+)\.py:(\d+): error: .*\[([\w-]+)\]$", line):
            errors[match[1]][int(match[2])].add(match[3])
        else:
            assert ": note: " in line or line.startswith(("Found ", "Success")), f"not of the programs: {line}"
    return errors


@pytest.mark.slow
def test_strict(tmp_path):
    pytest.importorskip("mypy")
    folder, site, wanted = tmp_path / "programs", tmp_path / "site", {}
    folder.mkdir()
    program = load(ROOT / "tools" / "notebooks.py").program  # a tutorial is one script
    for path in [*TUTORIALS, *PROGRAMS]:
        text = path.read_text() if path.suffix == ".py" else program(path) + "\n"
        if not missing(path, text):
            (folder / f"{path.stem}.py").write_text(text)
            lines = enumerate(text.splitlines(), 1)
            wanted[path.stem] = {i: {m[1]} for i, line in lines if (m := re.search(r"# found: ([\w-]+)$", line))}
    # penstock as installed, with the stubs of the current version.
    leave = shutil.ignore_patterns("*.so", "*.pyi", "__pycache__")
    shutil.copytree(ROOT / "src" / "penstock", site / "penstock", ignore=leave)
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    subprocess.run([sys.executable, ROOT / "tools" / "stubs.py", site / "penstock"], check=True, env=env)
    env = {**os.environ, "PYTHONPATH": str(site), "HOME": str(tmp_path), "MYPY_CACHE_DIR": os.devnull}
    files = sorted(f"{name}.py" for name in wanted)
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", *files]  # no configuration from anywhere
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    assert not done.stderr, done.stderr
    found = by_line(done.stdout)
    other = {name: (dict(found[name]), wanted[name]) for name in wanted if found[name] != wanted[name]}
    assert not other, f"found and wanted: {other}\n{done.stdout}"


def test_each_program_has_mistakes():
    for path in PROGRAMS:
        assert path.read_text().count("# found: ") > 3, path


def test_arguments_that_are_handed_on():
    """Arguments of pipelines and of functions in the graph are repeated for type checkers."""
    from penstock.pipeline import Pipeline
    from penstock.pipeline.arguments import PipelineArguments

    parameters = [p for p in inspect.signature(Pipeline).parameters.values() if p.name != "self"]
    assert {p.name: p.annotation for p in parameters} == {
        k: v.__forward_arg__ for k, v in PipelineArguments.__annotations__.items()
    }
    from penstock import fn
    from penstock.plugin.function_arguments import FunctionArguments

    taken = inspect.signature(fn.python_function).parameters.keys() - {"function"}
    assert typing.get_type_hints(FunctionArguments).keys() <= taken


def test_arguments_of_iterators():
    """Arguments that iterators pass to their base class have the same names, defaults and order there."""
    from penstock.plugin.base_iterator import DaliIterator
    from penstock.plugin.classification import Classification

    def of(cls):
        return {p.name: p.default for p in inspect.signature(cls).parameters.values()}

    base = of(DaliIterator)
    assert list(of(Classification).items()) == [(k, v) for k, v in base.items() if k != "output_map"]
    pytorch = pytest.importorskip("penstock.plugin.pytorch")
    ragged = of(pytorch.DALIRaggedIterator)
    own = {k: ragged.pop(k) for k in ("output_types", "padding_value", "pad_to_multiple_of")}
    assert own == {"output_types": None, "padding_value": 0, "pad_to_multiple_of": 1}
    assert list(ragged.items()) == list(base.items())
    clu = pytest.importorskip("penstock.plugin.jax.clu")
    assert of(clu.DALIGenericPeekableIterator) == of(clu.DALIGenericIterator)
