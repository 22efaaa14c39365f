# SPDX-License-Identifier: Apache-2.0
"""Writes docs/conformance.md from the results of the comparison."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field
from pathlib import Path

from conformance.oracle import Tally

TALLIES: dict[str, Tally] = {}
PATH = Path(__file__).parents[2] / "docs" / "conformance.md"
PARTS = Path(__file__).parents[2] / "build" / "conformance"  # results of parts of a run


@dataclass
class Arguments:
    """How the arguments of a DALI operator are compared: the number compared by the operator's cases and by separate
    programs; and the reasons or places of the others, by name."""

    cases: int = 0
    programs: int = 0
    n_elsewhere: int = 0
    elsewhere: dict[str, str] = field(default_factory=dict)

    def add(self, other: Arguments) -> None:
        self.cases += other.cases
        self.programs += other.programs
        self.n_elsewhere += other.n_elsewhere
        self.elsewhere |= other.elsewhere


ARGUMENTS: dict[str, Arguments] = {}


def arguments(name: str) -> Arguments:
    return ARGUMENTS.setdefault(name, Arguments())


def all_parts(i: int, n: int) -> bool:
    """Stores the results of part i of n. If all n are complete, adds them up, deletes them and returns True."""
    if n == 1:
        return True
    PARTS.mkdir(parents=True, exist_ok=True)
    (PARTS / f"{i}-of-{n}").write_bytes(pickle.dumps((TALLIES, ARGUMENTS)))
    kept = [PARTS / f"{k}-of-{n}" for k in range(1, n + 1)]
    if not all(path.exists() for path in kept):
        return False
    TALLIES.clear()
    ARGUMENTS.clear()
    for path in kept:
        tallies, args = pickle.loads(path.read_bytes())
        for name, t in tallies.items():
            tally(name).add(t)
        for name, a in args.items():
            arguments(name).add(a)
        path.unlink()
    return True


def of_arguments() -> list[str]:
    """The section on the arguments of all operators."""
    if not ARGUMENTS:
        return []
    lines = [
        "",
        "## Arguments",
        "",
        "How many arguments of each operator of DALI the comparison gives: in the cases above, and in a program of",
        "their own (`tests/conformance/test_every_argument.py`); and where the others are tested.",
        "",
        "| operator of DALI | in cases | in programs | elsewhere |",
        "|---|---:|---:|---|",
    ]
    total = [0, 0, 0]
    for name, a in sorted(ARGUMENTS.items()):
        rest = a.n_elsewhere or len(a.elsewhere)
        where = "; ".join(why if k == "*" else f"{k}: {why}" for k, why in a.elsewhere.items())
        lines.append(f"| {name} | {a.cases or '–'} | {a.programs or '–'} | {f'{rest}: {where}' if rest else '–'} |")
        total = [t + n for t, n in zip(total, (a.cases, a.programs, rest))]
    return [*lines, f"| **{sum(total)} in all** | {total[0]} | {total[1]} | {total[2]} |"]


def tally(name: str) -> Tally:
    return TALLIES.setdefault(name, Tally())


def _equal(t: Tally) -> str:
    if not t.values:
        return "–"
    share = 100 * t.equal / t.values
    return "100 %" if t.equal == t.values else f"{min(share, 99.99):.2f} %"


def text(dali_version: str, machine: str) -> str:
    """The document."""
    lines = [
        "# Conformance with DALI",
        "",
        f"Written by `make conformance`: every case runs in the real DALI {dali_version} (CPU backend) and in",
        "penstock, and shapes, types, layouts, values and errors are compared. Cases are those of each operator's test",
        "and a systematic grid over types, layouts and arguments, as constants and per sample, on ragged batches with",
        "single-pixel and odd samples. Integers of 8 and 16 bits differ by steps, floats and wide integers that are",
        "computed in float32 by a share of the largest value; *equal* is the share of the integers that agree;",
        "*both raise* counts cases that both refuse.",
        "",
        f"Machine: {machine}.",
        "",
        "| operator | cases | both raise | integers off by | floats off by | equal | on purpose | disagreements |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name, t in sorted(TALLIES.items()):
        steps, floats = f"{t.steps:g}", f"{t.relative:.1e}" if t.relative else "0"
        deliberate = sum(map(len, t.deliberate.values()))
        lines.append(
            f"| {name} | {t.cases} | {t.both_raise} | {steps} | {floats} | {_equal(t)} "
            f"| {deliberate or '–'} | {len(t.failures) or '–'} |"
        )
    reasons = [(name, r, shares) for name, t in sorted(TALLIES.items()) for r, shares in sorted(t.deliberate.items())]
    if reasons:
        lines += [
            "",
            "## Other than DALI on purpose",
            "",
            "| operator | cases | equal values | why |",
            "|---|---:|---:|---|",
        ]
        for name, reason, shares in reasons:
            values = [s for s in shares if s is not None]
            equal = f"{100 * sum(values) / len(values):.0f} %" if values else "one raises"
            lines.append(f"| {name} | {len(shares)} | {equal} | {reason} |")
    lines += of_arguments()
    notes = [(name, text, n) for name, t in sorted(TALLIES.items()) for text, n in sorted(t.notes.items())]
    if notes:
        lines += ["", "## Notes", "", "| operator | cases | |", "|---|---:|---|"]
        lines += [f"| {name} | {n} | {text} |" for name, text, n in notes]
    failures = [(name, f) for name, t in sorted(TALLIES.items()) for f in t.failures]
    if failures:
        lines += ["", "## Disagreements", ""]
        lines += [f"- `{name}` {f}" for name, f in failures[:1000]]
        if len(failures) > 1000:
            lines.append(f"- and {len(failures) - 1000} more")
    return "\n".join(lines) + "\n"
