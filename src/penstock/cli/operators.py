# SPDX-License-Identifier: Apache-2.0
"""The operators as text, for the terminal."""

from __future__ import annotations

import re
import textwrap


def show(name: str = "") -> str:
    """One operator's signature and text, or a line for each whose name contains `name`; "" if there is none."""
    from ..core.op import REGISTRY
    from ..registry import absent, signatures

    only = name.removeprefix("fn.")
    if only in _names():
        call = re.sub(r"<(\w+\.\w+): -?\d+>", r"\1", f"fn.{only}{signatures.of_function(REGISTRY[only])}")
        wrapped = "\n".join(textwrap.wrap(call, 100, subsequent_indent="    ", break_on_hyphens=False))
        return f"{wrapped}\n\n{signatures.docstring(REGISTRY[only])}"
    families: dict[str, list[str]] = {}
    for known in _names():
        if only in known:
            cls = REGISTRY[known]
            line = f"  {known:<32} {'/'.join(cls.devices):<10} {signatures.summary(cls)}"
            families.setdefault(cls.__module__.split(".")[-2], []).append(line)
    parts = [f"{family}\n" + "\n".join(lines) for family, lines in families.items()]
    if missing := [known for known in sorted(absent.INSTEAD) if only in known]:
        text = f"operators of DALI that are not implemented yet: {', '.join(missing)}"
        parts.append("\n".join(textwrap.wrap(text, 120, break_on_hyphens=False)))
    return "\n".join(parts)


def nearest(name: str) -> str:
    """' Did you mean ...?' with the operator of the nearest name, or nothing."""
    from ..core.errors import suggest

    return suggest(name.removeprefix("fn."), _names())


def _names() -> list[str]:
    from .. import fn  # noqa: F401  fills the registry
    from ..core.op import REGISTRY

    return sorted(known for known in REGISTRY if not known.startswith("_"))
