# SPDX-License-Identifier: Apache-2.0
"""Parameters have DALI's order, names and defaults: all classes, methods and functions of the public modules, except
for operators, which tests/test_schema.py compares."""

import importlib
import inspect
import json
import re
import runpy
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FACE = json.loads((ROOT / "tests" / "reference" / "face.json").read_text())["modules"]
OPERATORS = ("nvidia.dali.fn", "nvidia.dali.ops", "nvidia.dali.experimental.dynamic.ops")
# Deliberate differences: pattern of the name, reason.
DIFFERS = {
    r"experimental\.dynamic\.readers\.(MXNet|TFRecord)": "index_path may be left out: the file is scanned",
    r"(pipeline|data_node)\.DataNode": "nodes are made by operators, never by hand",
    r"plugin\.pytorch\.experimental\.proxy\.DALIOutputSampleRef": "made by the proxy, never by hand",
    r"(pipeline\.)?Pipeline\.save_graph_to_dot_file|experimental\.dynamic\.imread|plugin\.numba\.fn\.numba_function"
    r"|plugin\.pytorch\.fn\.torch_python_function": "what is only named goes through **kwargs",
}  # fmt: skip
KEYWORD, POSITIONAL = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD


# Loaded by path, as importing penstock.as_dali would replace DALI by penstock.
target = runpy.run_path(str(ROOT / "src" / "penstock" / "as_dali" / "finder.py"))["target"]


def told(default):
    """A default in a form that is comparable between the libraries."""
    if isinstance(default, type):
        return f"class {default.__name__}"
    if hasattr(default, "name") and hasattr(default, "value"):  # a member of an enumeration
        return f"{type(default).__name__}.{default.name}"
    return "a mark" if type(default) is object else repr(default)


def parameters(function):
    """Positional parameters as (name, default), keyword-only ones, and whether any others are accepted."""
    given = [p for p in inspect.signature(function).parameters.values() if p.name != "self"]
    of = lambda *kinds: [(p.name, told(p.default)) for p in given if p.kind in kinds]
    any_other = any(p.kind is p.VAR_KEYWORD for p in given)
    return of(POSITIONAL, inspect.Parameter.POSITIONAL_ONLY), of(KEYWORD), any_other


def difference(theirs, ours):
    """Differences in their parameters; "" if none. We may have additional ones at the end."""
    (positional, named, _), (my_positional, my_named, any_other) = parameters(theirs), parameters(ours)
    if my_positional[: len(positional)] != positional:
        return f"{my_positional}, DALI {positional}"
    have = dict(my_positional) | dict(my_named)
    wrong = {n: d for n, d in named if n not in have or d not in (have[n], "a mark")}
    return f"{ {n: have.get(n) for n in wrong} }, DALI {wrong}" if wrong and not any_other else ""


def callables(module, facts):
    """The public functions, classes and methods of one of DALI's modules, each with ours."""
    theirs, ours = importlib.import_module(module), importlib.import_module(target(module))
    short = module.removeprefix("nvidia.dali").lstrip(".")
    for name, fact in facts.items():
        if fact["kind"] not in ("class", "function") or not hasattr(ours, name):
            continue  # missing ones are listed in test_face.py
        a, b = getattr(theirs, name), getattr(ours, name)
        full = f"{short}.{name}".lstrip(".")
        yield full, a, b
        for member in fact.get("members", ()):
            x, y = (inspect.getattr_static(c, member, None) for c in (a, b))
            if isinstance(x, property) or isinstance(y, property) or y is None:
                continue
            yield f"{full}.{member}", getattr(a, member), getattr(b, member)


def compared(module):
    found, n = {}, 0
    for name, theirs, ours in callables(module, FACE[module]):
        try:
            inspect.signature(theirs)
        except Exception:  # native functions have no signature
            continue
        n += 1
        differs = difference(theirs, ours)
        if differs:
            found[name] = differs
    return n, found


def test_arguments():
    n, wrong, used = 0, {}, set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for module in FACE:
            if module.startswith(OPERATORS):
                continue
            try:
                compared_here, found = compared(module)
            except ImportError:  # a framework that is not installed
                continue
            n += compared_here
            for name, text in found.items():
                reasons = [p for p in DIFFERS if re.fullmatch(p, name)]
                used.update(reasons)
                if not reasons:
                    wrong[name] = text
    assert not wrong, "\n".join(f"{k}: {v}" for k, v in wrong.items())
    assert n > 300 and used >= {p for p in DIFFERS if "plugin" not in p}, (n, set(DIFFERS) - used)


@pytest.mark.parametrize(
    "ours",
    [
        lambda a, c, b=1: 0,
        lambda a, b=2, c=3: 0,
        lambda a, b=1: 0,
        lambda a, *, b=1, c=3: 0,
    ],
)
def test_the_comparison_sees_what_differs(ours):
    def theirs(a, b=1, *, c=3):
        pass

    assert difference(theirs, ours) and not difference(theirs, theirs)
    assert not difference(theirs, lambda a, b=1, c=3, d=4: 0)
