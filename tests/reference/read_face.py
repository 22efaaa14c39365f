# SPDX-License-Identifier: Apache-2.0
"""Writes face.json: the public names in the modules of the real, installed DALI.

Names and parameters only; none of DALI's text. `python tests/reference/read_face.py`, with DALI installed. With names
of modules, `read_face.py nvidia.dali.plugin.paddle`, it replaces these only, as not all frameworks may be at one place.
"""

import enum
import importlib
import inspect
import json
import pkgutil
import sys
import types
import warnings
from pathlib import Path

import nvidia.dali

OPERATORS = ("nvidia.dali.fn", "nvidia.dali.ops", "nvidia.dali.experimental.dynamic.ops")  # in operators.json
ROOT = "nvidia.dali"


def is_public(name: str) -> bool:
    return not any(part.startswith("_") for part in name.split("."))


def home_of(value) -> str:
    """The name of a value's module. Some values have the module itself instead of its name."""
    home = getattr(value, "__module__", "") or ""
    return str(getattr(home, "__name__", home))


def parameters(function) -> list[str] | None:
    """Names of parameters, with * and ** before variadic ones; None if unknown."""
    try:
        found = inspect.signature(function).parameters.values()
    except Exception:  # some types compare badly
        return None
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return [stars.get(p.kind, "") + p.name for p in found if p.name != "self"]


def described(value) -> dict:
    if isinstance(value, type) and hasattr(value, "__members__"):
        found = {n: getattr(m, "value", m) for n, m in value.__members__.items() if is_public(n)}
        return {"kind": "enumeration", "members": {n: v if isinstance(v, int) else None for n, v in found.items()}}
    if isinstance(value, type):
        members = sorted({n for c in value.__mro__ if home_of(c).startswith(ROOT) for n in vars(c) if is_public(n)})
        return {"kind": "class", "parameters": parameters(value), "members": members}
    if callable(value):
        return {"kind": "function", "parameters": parameters(value)}
    return {"kind": "value"}


def is_import(value, module: str) -> bool:
    """Whether a module only imports the value for its own use: the value is defined in another public module, outside
    this one."""
    home = home_of(value)
    return home != module and is_public(home) and not home.startswith((module + ".", ROOT + ".backend_impl"))


def belongs(value) -> bool:
    """Whether a name of a module belongs to it or to DALI, and is not an external import."""
    if isinstance(value, types.ModuleType):
        return False
    if isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType)):
        return home_of(value).startswith(ROOT)
    return isinstance(value, (int, float, str, enum.Enum)) or type(value).__module__.startswith(ROOT)


def modules() -> tuple[list[str], dict[str, str]]:
    """All modules, and the reasons why some cannot be imported."""
    names, missing = [ROOT], {}

    def failed(name):
        missing[name] = type(sys.exc_info()[1]).__name__

    for found in pkgutil.walk_packages(nvidia.dali.__path__, ROOT + ".", onerror=failed):
        if is_public(found.name) and ".libdali" not in found.name:
            names.append(found.name)
    names += [n for n in sys.modules if n.startswith(ROOT + ".") and is_public(n)]
    return sorted(set(names)), missing


def without_its_operator() -> None:
    """Makes DALI's plugin for TensorFlow importable without its operator, which is compiled at installation."""
    operator = types.ModuleType("nvidia.dali_tf_plugin")
    operator.dali_tf_plugin = types.SimpleNamespace(
        load_dali_tf_plugin=lambda: types.SimpleNamespace(dali=types.SimpleNamespace(__doc__=""))
    )
    sys.modules[operator.__name__] = operator


def main(wanted: list[str]) -> None:
    warnings.simplefilter("ignore")
    without_its_operator()
    face, (names, missing) = {}, (wanted, {}) if wanted else modules()
    path = Path(__file__).with_name("face.json")
    if wanted:
        before = json.loads(path.read_text())
        face, missing = before["modules"], {k: v for k, v in before["missing"].items() if k not in wanted}
    for name in names:
        try:
            module = importlib.import_module(name)
        except Exception as e:
            missing[name] = type(e).__name__
            continue
        if name.startswith(OPERATORS):
            face[name] = {n: {"kind": "operator"} for n in vars(module) if is_public(n) and belongs(vars(module)[n])}
            continue
        own = {n: v for n, v in vars(module).items() if is_public(n) and belongs(v) and not is_import(v, name)}
        face[name] = {n: described(v) for n, v in sorted(own.items())}
    lines = []
    for module, names in sorted(face.items()):
        within = ",\n".join(f"  {json.dumps(n)}: {json.dumps(d)}" for n, d in names.items())
        lines.append(f" {json.dumps(module)}: {{\n{within}}}")
    text = '{"modules": {\n' + ",\n".join(lines) + f'}},\n"missing": {json.dumps(missing)}}}\n'
    path.write_text(text)


if __name__ == "__main__":
    main(sys.argv[1:])
