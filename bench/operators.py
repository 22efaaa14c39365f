# SPDX-License-Identifier: Apache-2.0
"""Every operator against DALI's: 64 photographs that are decoded already, several applications in one graph.

Both libraries live in a process each and take turns, case by case. The inputs are fed once and repeated without a copy,
so that the operator is measured and not the feeding; nothing is subtracted. `--device gpu`: 256 photographs on the GPU.
Cases "of little pictures, never the same sizes" are fed anew for every batch, in both libraries.
`--against TREE`: against another checkout of penstock, with its library built, in DALI's place.
"""

from __future__ import annotations

import argparse
import json
import pickle
import select
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import gpu_time
import measure
from operator_cases import CASES, KINDS, Case
from operator_library import WARM_UP, WARM_UP_FRESH, WARM_UP_SECONDS, serve

ROOT = Path(__file__).parents[1]
CLAIMS = {"cpu": (1.0, 2.0), "gpu": (0.9, 1.3)}  # the smallest ratio of a case, and of the median
CLAIMS_AGAINST_A_TREE = (0.97, 1.0)
TIME_LIMIT = 60.0  # seconds for one step of a case


def libraries(options: argparse.Namespace) -> tuple[str, str]:
    return "penstock", "the other tree" if options.against else "DALI"


class Process:
    """A library's process, restarted after a crash."""

    def __init__(self, name: str, options: argparse.Namespace):
        self.name = name
        self.command = [sys.executable, __file__, "--worker", name]
        for k in ("threads", "batch", "seconds", "device", "photos", "times", "against"):
            self.command += [f"--{k}", str(getattr(options, k))]
        self.errors = None if options.verbose else subprocess.DEVNULL
        self.process: subprocess.Popen[bytes] | None = None

    def ask(self, what: str, case: int) -> dict[str, Any]:
        if self.process is None:
            pipe = subprocess.PIPE
            self.process = subprocess.Popen(self.command, stdin=pipe, stdout=pipe, stderr=self.errors, bufsize=0)
            if "ready" not in (reply := self._reply()):
                return reply
        self.process.stdin.write(json.dumps([what, case]).encode() + b"\n")
        return self._reply()

    def _reply(self) -> dict[str, Any]:
        ready, _, _ = select.select([self.process.stdout], [], [], TIME_LIMIT)
        line = self.process.stdout.readline() if ready else b""
        if line:
            return json.loads(line)
        self.close()
        return {"failed": "crashed" if ready else f"took longer than {TIME_LIMIT:g} s"}

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


def is_open(answers: dict[str, Any] | None, options: argparse.Namespace) -> bool:
    """Whether a case must be measured, given the kept results."""
    if answers is None:
        return True
    ours, theirs = (answers[n] for n in libraries(options))
    if options.by in ours and options.by in theirs:
        return ratio_of(ours, theirs, options.by) < options.again
    return options.again > 0 and ("failed" in ours or "failed" in theirs)


def ratio_of(ours: dict[str, Any], theirs: dict[str, Any], by: str) -> float:
    """The median ratio of pairs of processes."""
    pairs = zip(ours.get("runs", [ours]), theirs.get("runs", [theirs]))
    return statistics.median(b[by] / max(a[by], 1e-3) for a, b in pairs)


def with_earlier(before: dict[str, Any] | None, now: dict[str, Any]) -> dict[str, Any]:
    """The medians of all measurements of a case, each by another pair of processes: where their memory and their
    threads happen to be makes a difference of up to a third."""
    if before is None or not all("wall" in a for answers in (before, now) for a in answers.values()):
        return now
    joined: dict[str, Any] = {}
    for name, answer in now.items():
        runs = [*before[name].pop("runs", [before[name]]), answer]
        joined[name] = {k: statistics.median(r[k] for r in runs) for k in answer} | {"runs": runs}
    return joined


def compare(cases: list[int], options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """The answers of each library by the title of the case: medians, or the reason of a failure."""
    kept = Path(options.keep) if options.keep else None
    results: dict[str, dict[str, Any]] = json.loads(kept.read_text()) if kept and kept.exists() else {}
    todo = [number for number in cases if is_open(results.get(CASES[number].title), options)] * options.pairs
    workers: dict[str, Process] = {}
    for k, number in enumerate(todo):
        measure._progress(f"{k + 1}/{len(todo)}: {CASES[number].title}")
        if k % (len(todo) // options.pairs) == 0:
            for w in workers.values():
                w.close()
            workers = {name: Process(name, options) for name in libraries(options)}
        answers = {name: w.ask("build", number) for name, w in workers.items()}
        rounds: dict[str, list[dict[str, float]]] = {name: [] for name in libraries(options)}
        for _ in range(0 if any(answers.values()) else options.rounds):
            for name, w in workers.items():
                if not answers[name]:
                    reply = w.ask("time", number)
                    if "wall" in reply:
                        rounds[name].append(reply)
                    else:
                        answers[name] = reply
        for name, w in workers.items():
            w.ask("drop", number)
            if rounds[name] and not answers[name]:
                answers[name] = {k: statistics.median(r[k] for r in rounds[name]) for k in rounds[name][0]}
        results[CASES[number].title] = with_earlier(results.get(CASES[number].title), answers)
        if kept:
            kept.write_text(json.dumps(results, indent=1))
    for w in workers.values():
        w.close()
    measure._progress("")
    return results


# The report -----------------------------------------------------------------------------------------------------------


def speed(us: float, c: Case, options: argparse.Namespace) -> str:
    """Pictures per second, or microseconds per batch if the samples are not pictures."""
    if c.inputs and KINDS[c.inputs[0]][0]:
        return f"{options.batch / us * 1e6:,.0f}/s"
    return f"{us:,.1f} us"


def report(results: dict[str, dict[str, Any]], options: argparse.Namespace) -> str:
    by, rows, without, cases = options.by, [], [], {c.title: c for c in CASES}
    more = " our GPU us a batch | of a copy's speed |" if options.device == "gpu" else ""
    for title, answers in results.items():
        ours, theirs = (answers[n] for n in libraries(options))
        if title not in cases:  # kept from a run with an older table
            continue
        if "wall" in ours and "wall" in theirs:
            rows.append((ratio_of(ours, theirs, by), cases[title], ours, theirs))
        else:
            why = [f"{n}: {r.get('absent') or r.get('failed')}" for n, r in answers.items() if r]
            without.append((title, "; ".join(why)))
    rows.sort(key=lambda r: -r[0])
    most = max((len(ours.get("runs", [ours])) for _, _, ours, _ in rows), default=1)
    least, middle = CLAIMS_AGAINST_A_TREE if options.against else CLAIMS[options.device]
    rival = libraries(options)[1]
    lines = [
        f"# Every operator against {rival}'s, on the {options.device.upper()}",
        "",
        measure.machine(),
        f"Batches of {options.batch} photographs decoded before, {options.threads} threads; time of one application to "
        f"a batch, of several in one graph; medians of {options.rounds} interleaved runs of {options.seconds:g} s"
        f"{f', and of up to {most} pairs of processes' * (most > 1)}. "
        f"{measure.versions('nvidia-dali-cuda130', 'numpy')}. "
        f"Ratio of {'the times by the clock' if by == 'wall' else 'processor times'}. "
        f"Before them {WARM_UP} batches, or as many as {WARM_UP_SECONDS[options.device]:g} s allow, and "
        f"{WARM_UP_FRESH} where sizes never come again. "
        f"{options.note}{' ' if options.note else ''}Written by `bench/operators.py`.",
        *([gpu_time.NOTE] if more else []),
        "",
    ]
    if rows:
        ratios = [r[0] for r in rows]
        median, losses = statistics.median(ratios), sum(r < least for r in ratios)
        lines += [
            "| claim | measured | at least | |",
            "|---|---|---|---|",
            f"| the median ratio | {median:.2f} | {middle} | {'reached' if median >= middle else '**missed**'} |",
            f"| the least ratio | {min(ratios):.2f} | {least} | "
            f"{f'**missed** by {losses} of {len(rows)}' if losses else 'reached'} |",
            "",
            f"| operator | penstock | {rival} | ratio | CPU us a batch: penstock | {rival} |{more} |",
            f"|---|---:|---:|---:|---:|---:|{'---:|---:|' * bool(more)}---|",
        ]
    for ratio, c, ours, theirs in rows:
        lines.append(
            f"| {c.title} | {speed(ours['wall'], c, options)} | {speed(theirs['wall'], c, options)} | {ratio:.2f} | "
            f"{ours['cpu']:,.0f} | {theirs['cpu']:,.0f} |"
            + (f" {ours['gpu']:,.1f} | {ours['share']:.0%} |" if ours.get("gpu") else " | |" if more else "")
            + f" {'**slower**' if ratio < least else ''} |"
        )
    if without:
        lines += ["", "Not compared:", "", "| operator | why |", "|---|---|", *(f"| {t} | {w} |" for t, w in without)]
    return "\n".join(lines) + "\n"


def main() -> None:
    p = measure.arguments(__doc__ or "")
    p.set_defaults(seconds=None, rounds=None, batch=None)
    p.add_argument("--device", choices=("cpu", "gpu"), default="cpu", help="where both run")
    p.add_argument("--by", choices=("wall", "cpu"), default="wall", help="which time the ratio is of")
    p.add_argument("-k", dest="only", help="the same as --only")
    p.add_argument("--keep", default="", help="file for results; the cases in it aren't measured again")
    p.add_argument(
        "--again",
        type=float,
        default=0.0,
        help="measures cases in the --keep file again whose ratio is below this, and those that failed; the results "
        "are the medians of all measurements",
    )
    p.add_argument("--pairs", type=int, default=1, help="pairs of processes that measure each case")
    p.add_argument("--note", default="", help="a sentence for the report, about the machine")
    p.add_argument("--times", type=int, default=0, help="applications in one graph, for all cases")
    p.add_argument("--verbose", action="store_true", help="show what the libraries print")
    p.add_argument("--against", default="", help="a checkout of penstock to compare with, instead of DALI")
    p.add_argument("--photos", default="", help=argparse.SUPPRESS)
    o = p.parse_args()
    gpu = o.device == "gpu"
    o.batch, o.seconds, o.rounds = o.batch or (256 if gpu else 64), o.seconds or (0.1 if gpu else 0.3), o.rounds or 3
    if o.worker:
        return serve(o)
    o.data = o.data or str(ROOT / "examples" / "data")
    cases = [i for i, c in enumerate(CASES) if o.only in c.title]
    with tempfile.TemporaryDirectory() as folder:
        o.photos = f"{folder}/photographs"
        with open(o.photos, "wb") as f:
            pickle.dump(measure.decoded_photographs(o.data, o.batch), f)
        results = compare(cases, o)
    measure.write(o.out, "operators_gpu.md" if gpu else "operators.md", report(results, o))


if __name__ == "__main__":
    main()
