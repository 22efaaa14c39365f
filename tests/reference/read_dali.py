# SPDX-License-Identifier: Apache-2.0
"""Writes operators.json, next to this file: facts from the schemas of all public operators of the installed DALI.

Names, types, defaults and flags only; none of DALI's text. `python tests/reference/read_dali.py`, with DALI installed.
"""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

PATH = Path(__file__).with_name("operators.json")
# Deprecated in favour of operators with different behaviour, so these are not aliases.
_OF_THEIR_OWN = ("SSDRandomCrop",)


def facts(name: str) -> dict[str, Any]:
    """The facts of an operator's schema."""
    from nvidia.dali import backend

    s = backend.GetSchema(name)
    arguments = {}
    for arg in sorted(s.GetArgumentNames()):
        about: dict[str, Any] = {"type": s.GetArgumentType(arg).name}
        if not s.IsArgumentOptional(arg):
            about["required"] = True
        elif s.HasArgumentDefaultValue(arg):
            about["default"] = _literal(s.GetArgumentDefaultValueString(arg))
        if s.IsTensorArgument(arg):
            about["per"] = "frame" if s.ArgSupportsPerFrameInput(arg) else "sample"
        if s.IsDeprecatedArg(arg):
            about["deprecated"] = s.DeprecatedArgInfo(arg)["renamed_to"] or "removed"
        arguments[arg] = about
    n = s.MaxNumInput()
    return {
        "module": list(s.ModulePath()),
        "class": s.OperatorName(),
        "devices": sorted(s.GetSupportedBackends()),
        "inputs": [s.MinNumInput(), n],
        "layouts": [str(layout) for layout in s.GetSupportedLayouts(0)] if n else [],
        "aliases": sorted(o for o in _names() if _current(o) == name != o),
        "arguments": arguments,
    }


def _names() -> list[str]:
    from nvidia.dali import backend

    return sorted({*backend.RegisteredCPUOps(), *backend.RegisteredMixedOps(), *backend.RegisteredGPUOps()})


def _current(name: str) -> str:
    """The name that replaced a deprecated one."""
    from nvidia.dali import backend

    return name if name in _OF_THEIR_OWN else backend.GetSchema(name).DeprecatedInFavorOf() or name


def _is_public(name: str) -> bool:
    return not name.startswith("_") and "___" not in name and _current(name) == name


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def text() -> str:
    """The file's content, one line per argument."""
    blocks = []
    for name in filter(_is_public, _names()):
        about = facts(name)
        arguments = about.pop("arguments")
        head = ",\n  ".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in about.items())
        lines = ",\n   ".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in arguments.items())
        blocks.append(f'"{name}": {{\n  {head},\n  "arguments": {{\n   {lines}}}}}')
    return "{\n" + ",\n".join(blocks) + "\n}\n"


if __name__ == "__main__":
    PATH.write_text(text())
