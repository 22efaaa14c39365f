# SPDX-License-Identifier: Apache-2.0
"""Signatures and docstrings of operators, from their classes. Imported on demand: help(), stubs, documentation."""

from __future__ import annotations

import inspect
import re
import textwrap
from enum import Enum

from ..core.op import Arg, Layout, Operator, PerFrame

_SCALARS = {float: "float", int: "int", bool: "bool", str: "str", Layout: "str", object: "Any"}
_CALL = ("device", "name")  # arguments of every call


def summary(cls: type[Operator]) -> str:
    """The first sentence of the operator's docstring."""
    paragraph = " ".join(inspect.cleandoc(cls.__doc__ or "").split("\n\n")[0].split())
    return re.split(r"(?<=[.:]) (?=[A-Z])", paragraph)[0].rstrip(".:")


def type_text(arg: Arg, scalar_of_data: bool = True) -> str:
    """The type of an argument as an annotation: "Sequence[float] | float | DataNode | None"."""
    if arg.type is object:
        return "Any"
    scalar = _SCALARS.get(arg.type) or arg.type.__name__
    parts = [scalar]
    if arg.vector:
        element = f"{scalar} | DataNode" if arg.tensor and scalar_of_data else scalar
        parts.insert(0, f"Sequence[{element}]")
    if arg.tensor and scalar_of_data:
        parts.append("DataNode")
    if not arg.required:
        parts.append("None")
    return " | ".join(parts)


def default_text(arg: Arg) -> str:
    """The default as Python source."""
    d = arg.default
    if isinstance(d, Enum):
        return f"{type(d).__name__}.{d.name}"
    if isinstance(d, (list, tuple)):
        return repr([round(v, 6) if isinstance(v, float) else v for v in d])
    if isinstance(d, str):
        return repr(str(d))
    return repr(d)


def arguments(cls: type[Operator]) -> list[Arg]:
    """Keyword arguments in the order of the documentation: required ones first, deprecated and hidden ones last."""
    args = [a for n, a in cls.schema.items() if n != "name"]
    return sorted(args, key=lambda a: (not a.required, bool(a.deprecated), a.hidden, a.name == "preserve", a.name))


def input_names(cls: type[Operator]) -> list[tuple[str, bool]]:
    """Names of the inputs and whether each is required."""
    lo, hi = cls.inputs
    return [("input" if hi == 1 else f"input_{i}", i < lo) for i in range(hi)]


def _inputs(cls: type[Operator]) -> list[inspect.Parameter]:
    kind = inspect.Parameter.POSITIONAL_ONLY
    empty = inspect.Parameter.empty
    return [inspect.Parameter(n, kind, default=empty if needed else None) for n, needed in input_names(cls)]


def _keywords(cls: type[Operator], of_call: bool = False) -> list[inspect.Parameter]:
    kind, empty = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.empty
    args = [a for a in arguments(cls) if a.tensor or not of_call and a.name not in cls.positional]
    out = (
        []
        if of_call
        else [
            inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=cls.schema[n].default)
            for n in cls.positional
        ]
    )
    out += [inspect.Parameter(a.name, kind, default=empty if a.required and not of_call else a.default) for a in args]
    return out + [inspect.Parameter(n, kind, default=None) for n in _CALL if not (of_call and n == "device")]


def of_function(cls: type[Operator]) -> inspect.Signature:
    """fn.resize(input, /, *, size=None, ...)"""
    return inspect.Signature([*_inputs(cls), *_keywords(cls)])


def of_class(cls: type[Operator]) -> inspect.Signature:
    """ops.Resize(*, size=None, ...)"""
    return inspect.Signature(_keywords(cls))


def of_call(cls: type[Operator]) -> inspect.Signature:
    """ops.Resize(...)(input, /, *, size=None, ...), with the arguments that may be data."""
    self = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    return inspect.Signature([self, *_inputs(cls), *_keywords(cls, of_call=True)])


def remark(arg: Arg) -> str:
    """Description of an argument: its text with further remarks."""
    parts = [arg.doc.rstrip(".") + "."] if arg.doc else []
    if isinstance(arg, PerFrame):
        parts.append("May differ per sample and per frame.")
    elif arg.tensor:
        parts.append("May differ per sample.")
    if arg.deprecated:
        parts.append(f"Deprecated: {arg.deprecated}.")
    if arg.hidden and not re.search("no effect", " ".join(parts), re.IGNORECASE):
        parts.append("Has no effect.")
    return " ".join(parts)


def returns(cls: type[Operator]) -> str:
    """The default result type of a call. (For type checkers, a DataNode can be unpacked, for calls with arguments that
    add outputs.)"""
    if cls.n_outputs is Operator.n_outputs:
        return "DataNode"
    op = object.__new__(cls)
    op.given = frozenset()
    op.values = {n: None if a.required else a.default for n, a in cls.schema.items()}
    if op.output_names() is not None:
        return "dict[str, DataNode]"
    n = op.n_outputs()
    return "DataNode" if n == 1 else "list[DataNode]"


def docstring(cls: type[Operator], warning: str = "") -> str:
    """The operator's docstring with its inputs, layouts and the table of its arguments."""
    lines = [f"Deprecated: {warning}.\n"] if warning else []
    lines += [inspect.cleandoc(cls.__doc__ or ""), "", "Parameters", "----------"]
    layouts = f" with the layout {', '.join(cls.layouts)}" if cls.layouts else ""
    for i, (name, needed) in enumerate(input_names(cls)):
        lines += [f"{name} : DataNode{'' if needed else ', optional'}", f"    Input{layouts if i == 0 else ''}."]
    for arg in arguments(cls):
        default = "" if arg.required else ", optional" if arg.default is None else f", default {default_text(arg)}"
        lines.append(f"{arg.name} : {type_text(arg).removesuffix(' | None')}{default}")
        lines += textwrap.wrap(remark(arg), 100, initial_indent="    ", subsequent_indent="    ")
    places = [f'"{d}"' for d in cls.devices]
    where = " or ".join(places) + (". By default that of the inputs." if len(places) > 1 else ".")
    lines += ["device : str, optional", f"    Device to run on: {where}"]
    lines += ["name : str, optional", "    Name of the operator in the graph."]
    return "\n".join(lines) + "\n"
