# SPDX-License-Identifier: Apache-2.0
"""HTML report of a pipeline: times, graph, plan, images of samples, and bad samples.

It has no external resources and no scripts, so it can be sent and opened anywhere.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..exec import report
from ..exec.plan import Plan
from ..exec.scheduling.statistics import Statistics
from ..exec.timeline import Span, spans

if TYPE_CHECKING:
    from .pipeline import Pipeline

_MOST_SPANS = 5000  # in the timeline; browsers get slow with more
_MOST_ERRORS = 100
_WIDTH_PX = 1100
_ROW_PX, _LABEL_PX, _CHARACTER_PX = 18, 170, 7.2
_STYLE = """
:root { color-scheme: light dark; --line: #8886; --box: #8882; }
body { font: 15px/1.45 system-ui, sans-serif; max-width: 1140px; margin: 2em auto; padding: 0 1em; }
h2 { margin-top: 1.8em; font-size: 1.15em; }
table { border-collapse: collapse; }
td, th { padding: .15em .8em; text-align: right; border-bottom: 1px solid var(--line); }
td:first-child, th:first-child, td:last-child { text-align: left; } pre, .scroll { overflow-x: auto; }
pre { background: var(--box); padding: .8em; } svg text { fill: currentColor; font: 12px ui-monospace, monospace; }
"""


def write(pipe: Pipeline, path: str | os.PathLike, outputs: Sequence[Any]) -> None:
    """Implements `Pipeline.report`."""
    plan, statistics = pipe._built(), pipe._runner.statistics
    table = report.table(plan, statistics, pipe._runner.threads)
    parts = [
        f"<h1>{_escaped(pipe._graph.name)}</h1>",
        f"<p><strong>{_escaped(table['limit'])}</strong></p>",
        f"<p>{_escaped(_totals(pipe, table))}</p>",
        _section("Time of the operators", _operators(table)),
        _section("The last batches", _timeline(plan, statistics)),
        _section("Outputs", "".join(_pictures(output) for output in outputs)),
        _section("Bad samples", _errors(pipe)),
        _section("Graph", _graph(plan)),
        _section("Plan", f"<pre>{_escaped(pipe.explain())}</pre>"),
    ]
    head = f"<meta charset=utf-8><title>{_escaped(pipe._graph.name)}</title><style>{_STYLE}</style>"
    # File names are bytes, and may not be UTF-8: escaped, as where Python prints them.
    with open(path, "w", encoding="utf-8", errors="backslashreplace") as f:
        f.write(f"<!doctype html><html lang=en><head>{head}</head><body>{''.join(parts)}</body></html>\n")


def short(pipe: Pipeline) -> str:
    """For notebooks: the graph, and the table of times once batches were made."""
    plan = pipe._plan
    if plan is None:
        return f"<pre>{_escaped(repr(pipe))}</pre>"
    text = ""
    if pipe._runner.statistics.batches:
        table = report.table(plan, pipe._runner.statistics, pipe._runner.threads)
        text = f"<p>{_escaped(table['limit'])}</p>{_operators(table)}"
    return f"<div><code>{_escaped(pipe._graph.name)}</code>{_graph(plan)}{text}</div>"


def _escaped(text: str) -> str:
    """As `html.escape`, whose module is slow to import."""
    for character, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;")):
        text = text.replace(character, entity)
    return text


def _section(title: str, body: str) -> str:
    return f"<h2>{title}</h2><div class=scroll>{body}</div>" if body else ""


def _totals(pipe: Pipeline, table: report.Table) -> str:
    return (
        f"{table['samples']:,} samples in {table['batches']:,} batches of at most {pipe.max_batch_size}, "
        f"{table['samples_per_s']:,.0f} samples/s; {pipe.num_threads} threads, busy {table['threads_busy']:.0%}; "
        f"the consumer waited {table['waited_share']:.0%} of {table['seconds']:.1f} s; "
        f"memory {table['memory_mb']:,.0f} MB; seed {pipe.seed}"
    )


def _operators(table: report.Table) -> str:
    titles = ("operator", "ms/sample", "Python ms/batch", "loading ms/batch", "share", "")
    rows = ["<tr>" + "".join(f"<th>{t}</th>" for t in titles) + "</tr>"]
    for name, o in table["operators"].items():
        times = (f"{o[key]:.3f}" for key in ("ms_per_sample", "python_ms_per_batch", "load_ms_per_batch"))
        bar = f'<span style="display:inline-block;width:{o["share"] * 12:.2f}em;background:#48c;height:.7em"></span>'
        cells = (_escaped(name), *times, f"{o['share']:.1%}", bar)
        rows.append("<tr>" + "".join(f"<td>{c}</td>" for c in cells) + "</tr>")
    return f"<table>{''.join(rows)}</table>"


def _colours(names: Sequence[str]) -> dict[str, str]:
    """Distinct hues, in steps of the golden angle."""
    return {name: f"hsl({round(i * 137.508) % 360} 60% 52%)" for i, name in enumerate(names)}


def _timeline(plan: Plan, statistics: Statistics) -> str:
    """One row per thread. The tooltip of a bar names the work."""
    shown = _last_iterations(list(spans(plan, statistics)))
    if not shown:
        return ""
    begin, end = min(s.begin for s in shown), max(s.end for s in shown)
    scale = (_WIDTH_PX - _LABEL_PX) / max(end - begin, 1)
    tracks = {track: i for i, track in enumerate(sorted({s.track for s in shown}))}
    colours = _colours([n.op.fn_name for n in plan.nodes])
    lines = [f'<text x="0" y="{(i + 0.75) * _ROW_PX}">{_escaped(track)}</text>' for track, i in tracks.items()]
    for s in shown:
        x, width = _LABEL_PX + (s.begin - begin) * scale, max((s.end - s.begin) * scale, 0.4)
        text = f"{s.name}, {(s.end - s.begin) / 1e6:.3f} ms, " + ", ".join(f"{k} {v}" for k, v in s.of.items())
        lines.append(
            f'<rect x="{x:.2f}" y="{tracks[s.track] * _ROW_PX + 2}" width="{width:.2f}" height="{_ROW_PX - 4}" '
            f'fill="{colours.get(s.name, "#888")}"><title>{_escaped(text)}</title></rect>'
        )
    legend = " ".join(
        f'<span style="color:{colour}">&#9632;</span> {_escaped(name)}'
        for name, colour in colours.items()
        if any(s.name == name for s in shown)
    )
    height = len(tracks) * _ROW_PX
    drawn = f'<svg width="{_WIDTH_PX}" height="{height}" role=img>{"".join(lines)}</svg>'
    return f"<p>{(end - begin) / 1e6:.1f} ms. {legend}</p>{drawn}"


def _last_iterations(found: list[Span]) -> list[Span]:
    """The spans of the last iterations, as many as can be drawn, at least one iteration."""
    kept: list[Span] = []
    for iteration in sorted({s.of["iteration"] for s in found}, reverse=True):
        more = [s for s in found if s.of["iteration"] == iteration]
        if kept and len(kept) + len(more) > _MOST_SPANS:
            break
        kept += more
    return kept


def _pictures(output: Any) -> str:
    drawn = output._repr_html_() if hasattr(output, "_repr_html_") else None
    return drawn or f"<pre>{_escaped(str(output))}</pre>"


def _errors(pipe: Pipeline) -> str:
    errors = pipe.errors()
    if not errors:
        return ""
    rows = ["<tr><th>source</th><th>operator</th><th>iteration</th><th>sample</th><th>reason</th></tr>"]
    for e in errors[-_MOST_ERRORS:]:
        cells = (e.source, e.operator, str(e.iteration), str(e.sample), e.reason)
        rows.append("<tr>" + "".join(f"<td>{_escaped(c)}</td>" for c in cells) + "</tr>")
    more = f"<p>the last {_MOST_ERRORS} of {len(errors)}</p>" if len(errors) > _MOST_ERRORS else ""
    return f"{more}<table>{''.join(rows)}</table>"


def _levels(plan: Plan) -> dict[int, int]:
    """The column of each operator; one without inputs is placed just before its first consumer."""
    level: dict[int, int] = {}
    for node in plan.nodes:
        level[node.number] = 1 + max((level[p.number] for p in node.parents()), default=-1)
    for node in plan.nodes:
        consumers = [level[n.number] for n in plan.nodes if node in n.parents()]
        if consumers and not node.parents():
            level[node.number] = min(consumers) - 1
    return level


def _graph(plan: Plan) -> str:
    """The operators from left to right, after their inputs; those on the GPU are green."""
    level = _levels(plan)
    columns: dict[int, list[Any]] = {}
    for node in plan.nodes:
        columns.setdefault(level[node.number], []).append(node)
    place: dict[int, tuple[float, float, float]] = {}
    x = 1.0
    for i in sorted(columns):
        width = max(len(report.title(n)) for n in columns[i]) * _CHARACTER_PX + 16
        for row, node in enumerate(columns[i]):
            place[node.number] = x, row * 34 + 1, width
        x += width + 44
    drawn = []
    for node in plan.nodes:
        left, top, width = place[node.number]
        for parent in node.parents():
            px, py, pw = place[parent.number]
            drawn.append(f'<path d="M{px + pw:.0f} {py + 12:.0f} C{px + pw + 30:.0f} {py + 12:.0f} {left - 30:.0f} '
                         f'{top + 12:.0f} {left:.0f} {top + 12:.0f}" fill="none" stroke="#888"/>')  # fmt: skip
        colour = "hsl(90 60% 45% / .35)" if node.device != "cpu" else "hsl(210 60% 50% / .25)"
        drawn.append(
            f'<rect x="{left:.0f}" y="{top:.0f}" width="{width:.0f}" height="24" rx="4" fill="{colour}" stroke="#888"/>'
            f'<text x="{left + 8:.0f}" y="{top + 16:.0f}" font-size="12" font-family="monospace" fill="currentColor">'
            f"{_escaped(report.title(node))}</text>"
        )
    height = max(len(c) for c in columns.values()) * 34
    return f'<svg width="{x:.0f}" height="{height}" role=img>{"".join(drawn)}</svg>'
