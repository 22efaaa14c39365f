# SPDX-License-Identifier: Apache-2.0
"""Every operator against DALI's: 64 photographs that are decoded already, several applications in one graph.

Both libraries live in a process each and take turns, case by case. The inputs are fed once and repeated without a copy,
so that the operator is measured and not the feeding; nothing is subtracted. `--device gpu`: 256 photographs on the GPU.
Cases "of little pictures, never the same sizes" are fed anew for every batch, in both libraries.
`--against TREE`: against another checkout of penstock, with its library built, in DALI's place.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import pickle
import select
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import gpu_time
import measure
import numpy as np
from operator_cases import CASES, KINDS, Case, shuffled

ROOT = Path(__file__).parents[1]
CLAIMS = {"cpu": (1.0, 2.0), "gpu": (0.9, 1.3)}  # the smallest ratio of a case, and of the median
CLAIMS_AGAINST_A_TREE = (0.97, 1.0)
TIME_LIMIT = 60.0  # seconds for one step of a case
WARM_UP, WARM_UP_FRESH = 16, 64  # batches before the measurement; for sizes that are never repeated
WARM_UP_SECONDS = {"cpu": 2.0, "gpu": 0.5}  # after the second batch


class Absent(Exception):
    """A library lacks the operator, or has none for this device."""


# In the process of a library ------------------------------------------------------------------------------------------


def libraries(options: argparse.Namespace) -> tuple[str, str]:
    return "penstock", "the other tree" if options.against else "DALI"


def times_of(c: Case, options: argparse.Namespace) -> int:
    """On the CPU, one application to photographs takes long enough; on the GPU, even several take little time compared
    to the pipeline's work per batch."""
    return options.times or ((1 if c.times <= 4 else c.times) if options.device == "cpu" else min(4 * c.times, 16))


class Library:
    def __init__(self, name: str, options: argparse.Namespace):
        CASES[:] = [dataclasses.replace(c, times=times_of(c, options)) for c in CASES]
        self.name, self.options, self.gpu = name, options, options.device == "gpu"
        if name == "DALI":
            from nvidia.dali import fn, ops, pipeline_def, types

            self.known = {"cpu": ops.cpu_ops() | ops.mixed_ops(), "gpu": ops.gpu_ops()}[options.device]
        else:
            sys.path.insert(0, str((ROOT if name == "penstock" else Path(options.against)) / "src"))
            from penstock import fn, pipeline_def, types
            from penstock.core.op import REGISTRY

            self.registry = REGISTRY
        self.fn, self.types, self.pipeline_def = fn, types, pipeline_def
        with open(options.photos, "rb") as f:
            photos = pickle.load(f)
        self.photos = [photos[i % len(photos)] for i in range(options.batch)]
        self.cache: dict[str, list[np.ndarray]] = {}
        self.pipe: Any = None
        self.copy_speed = 0.0
        self.synchronize = gpu_time.synchronize() if self.gpu else lambda: None

    def inputs(self, kind: str) -> list[np.ndarray]:
        if kind not in self.cache:
            if len(self.cache) > 6:
                self.cache.clear()
            self.cache[kind] = KINDS[kind][1](self.photos)
        return self.cache[kind]

    def check(self, c: Case) -> None:
        device = self.options.device
        if self.name != "DALI":
            cls = self.registry.get(c.name.removeprefix("experimental.")) or self.registry.get(c.name)
            if cls is None:
                raise Absent("not there")
            if device not in cls.devices:
                raise Absent(f"no {device.upper()} form")
        elif c.call is None:
            *modules, last = c.name.split(".")
            name = ".".join([*modules, "".join(w.capitalize() for w in last.split("_"))]).lower()
            if name not in {k.replace("__", ".").lower() for k in self.known}:
                raise Absent(f"no {device.upper()} form")

    def build(self, c: Case) -> None:
        """Makes the pipeline of a case and runs it until it is warm."""
        self.check(c)
        fn, types, feeds = self.fn, self.types, {}

        def fed(kind: str, device: str) -> Any:
            if c.fresh:
                layout = KINDS[kind][0]
                return fn.external_source(source=shuffled(self.inputs(kind)), device=device, layout=layout)
            feeds[f"input{len(feeds)}"] = kind
            layout = KINDS[kind][0]
            return fn.external_source(
                name=f"input{len(feeds) - 1}",
                repeat_last=True,
                no_copy=True,
                device=device,
                **({"layout": layout} if layout else {}),
            )

        def value(v: Any) -> Any:
            if isinstance(v, str) and v in KINDS:
                return fed(v, "cpu")
            return getattr(types, v.removeprefix("types.")) if isinstance(v, str) and v.startswith("types.") else v

        @self.pipeline_def(
            batch_size=self.options.batch,
            num_threads=self.options.threads,
            device_id=0 if self.gpu else None,
            seed=1,
            enable_conditionals=c.conditionals,
        )
        def define() -> Any:
            on = ["gpu" if self.gpu and i not in c.host else "cpu" for i in range(len(c.inputs))]
            inputs = [fed(kind, d) for kind, d in zip(c.inputs, on)]
            args = {k: value(v) for k, v in c.args.items()}
            if self.gpu and not inputs:
                args["device"] = "gpu"
            out: list[Any] = []
            for i in range(c.times):
                if c.call is not None:
                    made = c.call(fn, types, inputs, i)
                else:
                    function: Any = fn
                    for part in c.name.split("."):
                        function = getattr(function, part)
                    # `preserve` keeps DALI from merging the applications.
                    made = function(*inputs, preserve=True, **args)
                out += made if isinstance(made, (tuple, list)) else [made]
            return tuple(out)

        self.pipe = define()
        self.pipe.build()
        for name, kind in feeds.items():
            self.pipe.feed_input(name, self.inputs(kind))
        begin = 0.0
        for k in range(WARM_UP_FRESH if c.fresh else WARM_UP):
            self.pipe.run()
            if k == 1:  # kernels are compiled now
                begin = time.perf_counter()
            elif k > 1 and not c.fresh and time.perf_counter() > begin + WARM_UP_SECONDS[self.options.device]:
                break

    def time(self, c: Case, seconds: float) -> dict[str, float]:
        """Microseconds per application to a batch: wall time and processor time."""
        self.pipe.run()
        self.synchronize()
        n, cpu, begin = 0, time.process_time(), time.perf_counter()
        while n < 2 or time.perf_counter() < begin + seconds:
            self.pipe.run()
            n += 1
        self.synchronize()
        wall, cpu = time.perf_counter() - begin, time.process_time() - cpu
        _settle()
        reply = {"wall": wall / n / c.times * 1e6, "cpu": cpu / n / c.times * 1e6}
        return reply | self.gpu_time(c) if self.gpu and self.name == "penstock" else reply

    def gpu_time(self, c: Case) -> dict[str, float]:
        """GPU microseconds per application, and its rate of bytes read and written as a share of a plain copy's."""
        device = self.pipe._plan.session.device
        self.copy_speed = self.copy_speed or gpu_time.copy_speed(device)
        us = gpu_time.of_a_batch(self.pipe) / c.times
        kinds = [k for i, k in enumerate(c.inputs) if i not in c.host]
        read = sum(x.nbytes for kind in kinds for x in self.inputs(kind))
        written = gpu_time.bytes_of_outputs(self.pipe.run()) / c.times
        return {"gpu": us, "share": (read + written) / us / self.copy_speed if us else 0.0}


def _settle() -> None:
    """Waits until the batches made ahead are done, so that they don't disturb the other library's measurement."""
    used, limit = -1.0, time.perf_counter() + 5
    while (now := time.process_time()) - used > 1e-3 and time.perf_counter() < limit:
        used = now
        time.sleep(0.01)


def serve(options: argparse.Namespace) -> None:
    """Answers requests, each a line of JSON: [request, index of the case]."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # output of libraries must not mix with answers
    library = Library(options.worker, options)
    print(json.dumps({"ready": True}), file=answers, flush=True)
    for line in sys.stdin:
        what, number = json.loads(line)
        reply: dict[str, Any] = {}
        try:
            if what == "build":
                library.build(CASES[number])
            elif what == "time":
                reply = library.time(CASES[number], options.seconds)
            else:
                library.pipe = None
        except Absent as e:
            reply = {"absent": str(e)}
        except Exception as e:
            lines = [t for t in str(e).splitlines() if t.strip()] or [type(e).__name__]
            reply = {"failed": next((t for t in lines if "Error" in t and len(t) > 30), lines[0]).strip()[:200]}
            library.pipe = None
            print(f"{CASES[number].title}: {options.worker}: {e}", file=sys.stderr)
        print(json.dumps(reply), file=answers, flush=True)
    os._exit(0)


# The measurement ------------------------------------------------------------------------------------------------------


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
        return theirs[options.by] < options.again * ours[options.by]
    return options.again > 0 and ("failed" in ours or "failed" in theirs)


def compare(cases: list[int], options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """The answers of each library by the title of the case: medians, or the reason of a failure."""
    workers = {name: Process(name, options) for name in libraries(options)}
    kept = Path(options.keep) if options.keep else None
    results: dict[str, dict[str, Any]] = json.loads(kept.read_text()) if kept and kept.exists() else {}
    todo = [number for number in cases if is_open(results.get(CASES[number].title), options)]
    for k, number in enumerate(todo):
        measure._progress(f"{k + 1}/{len(todo)}: {CASES[number].title}")
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
        results[CASES[number].title] = answers
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
            rows.append((theirs[by] / max(ours[by], 1e-3), cases[title], ours, theirs))
        else:
            why = [f"{n}: {r.get('absent') or r.get('failed')}" for n, r in answers.items() if r]
            without.append((title, "; ".join(why)))
    rows.sort(key=lambda r: -r[0])
    least, middle = CLAIMS_AGAINST_A_TREE if options.against else CLAIMS[options.device]
    rival = libraries(options)[1]
    lines = [
        f"# Every operator against {rival}'s, on the {options.device.upper()}",
        "",
        measure.machine(),
        f"Batches of {options.batch} photographs decoded before, {options.threads} threads; time of one application to "
        f"a batch, of several in one graph; medians of {options.rounds} interleaved runs of {options.seconds:g} s. "
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
        help="measures cases in the --keep file again whose ratio is below this, and those that failed",
    )
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
