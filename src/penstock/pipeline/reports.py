# SPDX-License-Identifier: Apache-2.0
"""Reports about a pipeline's readers and graph."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from ..core.errors import suggest
from ..core.source import Source
from ..exec.plan import Plan

Meta = Mapping[str, int]


def metas(sources: Iterable[tuple[str, Source]]) -> dict[str, Meta]:
    """The metadata of readers, by name."""
    found = {name: op.meta() for name, op in sources}
    return {name: meta for name, meta in found.items() if meta is not None}


def meta(of: Mapping[str, Meta], name: str) -> Meta:
    if name not in of:
        raise RuntimeError(
            f"the pipeline has no reader called '{name}'; it has {sorted(of) or 'none'}.{suggest(name, of)}"
        )
    return of[name]


def write_dot(plan: Plan, path: str | os.PathLike) -> None:
    """Writes the graph of operators for Graphviz."""
    lines = [f'  n{n.number} [label="{n.op.display_name()}\\n{n.name}"];' for n in plan.nodes]
    lines += [f"  n{p.number} -> n{n.number};" for n in plan.nodes for p in n.parents()]
    with open(path, "w") as f:
        f.write("digraph pipeline {\n" + "\n".join(lines) + "\n}\n")
