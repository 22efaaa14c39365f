# SPDX-License-Identifier: Apache-2.0
"""Programs that use penstock pass `mypy --strict`, and their mistakes are found: the tutorials, and a program for each
public module, in which lines with a mistake have the expected error: `# found: call-arg`."""

import importlib.util
import inspect
import re
import typing
from collections import defaultdict

import pytest

from modules import ROOT, load
from type_checker import check, install

TUTORIALS = sorted((ROOT / "examples").glob("*.ipynb"))
PROGRAMS = sorted((ROOT / "tests" / "typed_programs").glob("*.py"))
BESIDE = ("paddle",)  # installed in an environment of its own
TYPED_BY = {"tensorflow": "tensorflow-stubs"}  # its types, which are enough, come in a package of their own


def required(path, text):
    """The modules that a program needs."""
    if path.suffix == ".py":
        named = re.findall(r"^# requires: (.*)$", text, re.MULTILINE)
        return named[0].split(", ") if named else []
    return [m for m in re.findall(r"^(?:import|from) (\w+)", text, re.MULTILINE) if m != "penstock"]


def missing(modules):
    """Those that mypy cannot find here."""
    return [m for m in modules if importlib.util.find_spec(TYPED_BY.get(m, m)) is None]


def by_line(output):
    """The errors found by mypy: {file: {line: {kinds of errors}}}."""
    errors = defaultdict(lambda: defaultdict(set))
    for line in output.splitlines():
        if match := re.match(r"(\w+)\.py:(\d+): error: .*\[([\w-]+)\]$", line):
            errors[match[1]][int(match[2])].add(match[3])
        else:
            assert ": note: " in line or line.startswith(("Found ", "Success")), f"not of the programs: {line}"
    return errors


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("mypy")
    folder = tmp_path_factory.mktemp("site")
    install(folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("framework", [*BESIDE, "others"])
def test_strict(framework, site, tmp_path):
    """What needs a framework that is installed apart is checked there, by `make frameworks`, and nothing else again."""
    wanted = {}
    program = load(ROOT / "tools" / "notebooks.py").program  # a tutorial is one script
    for path in [*TUTORIALS, *PROGRAMS]:
        text = path.read_text() if path.suffix == ".py" else program(path) + "\n"
        modules = required(path, text)
        if next((f for f in BESIDE if f in modules), "others") == framework and not missing(modules):
            (tmp_path / f"{path.stem}.py").write_text(text)
            lines = enumerate(text.splitlines(), 1)
            wanted[path.stem] = {i: {m[1]} for i, line in lines if (m := re.search(r"# found: ([\w-]+)$", line))}
    if not wanted:
        pytest.skip(f"{framework} is not installed")
    printed = check(tmp_path, site, sorted(f"{name}.py" for name in wanted))
    found = by_line(printed)
    other = {name: (dict(found[name]), wanted[name]) for name in wanted if found[name] != wanted[name]}
    assert not other, f"found and wanted: {other}\n{printed}"


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
