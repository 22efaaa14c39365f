# SPDX-License-Identifier: Apache-2.0
"""The operators as text, for the terminal."""

from __future__ import annotations


def show(name: str = "") -> str:
    """One operator's signature and text, or a line for each whose name contains `name`; "" if there is none."""
    from . import (
        fn,  # noqa: F401  (fills the registry)
        signatures,
    )
    from .core.op import REGISTRY

    only = name.removeprefix("fn.")
    if only in REGISTRY:
        return f"fn.{only}{signatures.of_function(REGISTRY[only])}\n\n{signatures.docstring(REGISTRY[only])}"
    families: dict[str, list[str]] = {}
    for known, cls in sorted(REGISTRY.items()):
        if only in known and not known.startswith("_"):
            line = f"  {known:<32} {'/'.join(cls.devices):<10} {signatures.summary(cls)}"
            families.setdefault(cls.__module__.split(".")[-2], []).append(line)
    return "\n".join(f"{family}\n" + "\n".join(lines) for family, lines in families.items())
