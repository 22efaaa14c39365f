# SPDX-License-Identifier: Apache-2.0
"""Reports about a pipeline's readers and graph."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from ..core.errors import of_argument, suggest
from ..core.source import Source
from ..core.storage import why_missing
from ..exec.plan import Plan
from ..graph.node import Node

Meta = Mapping[str, int]


def not_opened(node: Node, error: Exception) -> Exception:
    """The exception to raise for one of a source that finds its data."""
    text = node.describe(f"{error}{why_missing(error)}" if isinstance(error, OSError) else str(error))
    # Errors of arguments are also RuntimeErrors, as in DALI.
    return of_argument(error, text) if isinstance(error, (ValueError, TypeError)) else RuntimeError(text)


def metas(sources: Iterable[tuple[Node, Source]]) -> dict[str, Meta]:
    """The metadata of readers, by name. With `lazy_init`, finds their data."""
    found = {}
    for node, op in sources:
        try:
            found[node.name] = op.meta()
        except (ValueError, OSError, RuntimeError, TypeError) as e:
            raise not_opened(node, e) from None
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
