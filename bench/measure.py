# SPDX-License-Identifier: Apache-2.0
"""Runs contenders in processes of their own, interleaved, and writes the medians with what they were measured on.

A contender is a function `f(options) -> iterator of batch sizes` that produces batches for ever; it is timed from
outside.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
Contender = Callable[[argparse.Namespace], Iterator[int]]


def arguments(description: str) -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    p.add_argument(
        "--data",
        default=os.environ.get("PENSTOCK_DATA", ""),
        help="folder with photos500/ and photos1280/, or any class folders",
    )
    p.add_argument("--threads", type=int, default=2, help="threads (processes for the PyTorch loader)")
    p.add_argument("--batch", type=int, default=64, help="batch size")
    p.add_argument("--seconds", type=float, default=3.0, help="length of one measurement")
    p.add_argument("--rounds", type=int, default=5, help="how often every contender is measured; the median counts")
    p.add_argument(
        "--only",
        default="",
        help="measure only the tasks whose name contains this (formats.py, format_scans.py, images_gpu.py: a regular "
        "expression)",
    )
    p.add_argument("--out", default="", help="result file; by default bench/results/<script>.md")
    p.add_argument("--worker", default="", help=argparse.SUPPRESS)
    return p


def _workers() -> list[Path]:
    """The folders in /proc of this process's descendants."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):  # it has ended meanwhile
            continue
        children.setdefault(parent, []).append(int(stat.parent.name))
    found, todo = [], [os.getpid()]
    while todo:
        of_one = children.get(todo.pop(), [])
        found += [Path(f"/proc/{pid}") for pid in of_one]
        todo += of_one
    return found


def _text(file: Path) -> str:
    """The content of a file in /proc; empty if its process has ended."""
    try:
        return file.read_text()
    except OSError:
        return ""


def _memory_mb() -> float:
    """Resident memory, including worker processes; shared memory is counted once."""
    if not (workers := _workers()):
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6
    rollups = [_text(folder / "smaps_rollup") for folder in (Path("/proc/self"), *workers)]
    return sum(int(line.split()[1]) for text in rollups for line in text.splitlines() if line.startswith("Pss:")) / 1e3


def _processor_s() -> float:
    """Processor time so far, including worker processes."""
    ticks = 0
    for folder in _workers():
        fields = _text(folder / "stat").rpartition(")")[2].split()
        ticks += sum(map(int, fields[11:13]))
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


def work(
    contender: Contender,
    options: argparse.Namespace,
    extra: Callable[[], dict[str, float]] = dict,
    is_warm: Callable[[], None] = lambda: None,
) -> None:
    """In a separate process: warms up, calls `is_warm`, measures, and prints a line of JSON that includes the result of
    `extra`."""
    batches = contender(options)
    next(batches)  # imports, builds and finds the data, which takes some longer than others
    warm = time.perf_counter() + min(1.0, options.seconds / 2)
    while time.perf_counter() < warm:
        next(batches)
    is_warm()
    images, cpu, start = 0, _processor_s(), time.perf_counter()
    while (now := time.perf_counter()) < start + options.seconds:
        images += next(batches)
    seconds = now - start
    rate = {"images_per_s": images / seconds, "rss_mb": _memory_mb(), "cpu_s": _processor_s() - cpu, "seconds": seconds}
    print(json.dumps(rate | extra()), flush=True)
    os._exit(0)  # rivals may take long to shut down


def measure(
    script: str, names: list[str], options: argparse.Namespace, pythons: dict[str, str] | None = None
) -> dict[str, dict[str, Any]]:
    """Medians per contender, and the `rates` of all rounds. Contenders take turns in each round, so that drift of the
    machine affects all of them. `pythons`: the interpreters of contenders that need another environment."""
    results: dict[str, list[dict[str, float]]] = {n: [] for n in names}
    failed: dict[str, str] = {}
    run_started = time.time()
    for r in range(options.rounds):
        for name in names:
            if name in failed:
                continue
            _progress(f"round {r + 1}/{options.rounds}: {name}")
            command = [(pythons or {}).get(name, sys.executable), script, "--worker", name]
            for k in ("data", "threads", "batch", "seconds"):
                command += [f"--{k}", str(getattr(options, k))]
            run = subprocess.run(command, capture_output=True, text=True, timeout=600)
            line = run.stdout.strip().splitlines()[-1] if run.stdout.strip() else ""
            try:
                results[name].append(json.loads(line))
            except ValueError:
                failed[name] = (run.stderr.strip().splitlines() or ["no output"])[-1]
    _progress("")
    out: dict[str, dict[str, Any]] = {}
    for name, rows in results.items():
        if rows:
            out[name] = {k: statistics.median(r[k] for r in rows) for k in rows[0]}
            rates = [r["images_per_s"] for r in rows]
            out[name] |= {"least": min(rates), "most": max(rates), "rates": rates, "run": run_started}
        else:
            print(f"{name}: could not run: {failed.get(name)}", file=sys.stderr)
    return out


def ratio(ours: dict[str, Any], theirs: dict[str, Any]) -> float:
    """How many times as fast: the median over the rounds, as what is measured in a round shares the machine's state; of
    different runs, the ratio of the medians."""
    if "run" not in ours or ours["run"] != theirs.get("run") or len(ours["rates"]) != len(theirs["rates"]):
        return ours["images_per_s"] / theirs["images_per_s"]
    return statistics.median(a / b for a, b in zip(ours["rates"], theirs["rates"]))


def kept(file: Path, results: dict[str, Any]) -> dict[str, Any]:
    """Adds the results of earlier runs, kept in `file`, for measurements that are made in parts."""
    all_of_them = (json.loads(file.read_text()) if file.exists() else {}) | results
    file.write_text(json.dumps(all_of_them))
    return all_of_them


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def machine() -> str:
    """A description of the machine."""
    model = next(
        (line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")),
        platform.processor(),
    )
    commit = subprocess.run(
        ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], capture_output=True, text=True
    ).stdout.strip()
    dirty = subprocess.run(
        ["git", "-C", str(ROOT), "status", "--porcelain", "-uno"], capture_output=True, text=True
    ).stdout.strip()
    return (
        f"Commit {commit or 'unknown'}{' with changes' if dirty else ''}, {model}, "
        f"{len(os.sched_getaffinity(0))} CPUs, "
        f"Python {platform.python_version()}, {platform.system()} {platform.release().split('-')[0]}."
    )


def versions(*packages: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    found = []
    for p in packages:
        try:
            found.append(f"{p} {version(p)}")
        except PackageNotFoundError:
            found.append(f"{p} not installed")
    return ", ".join(found)


def write(path: str, default: str, text: str) -> None:
    target = Path(path) if path else ROOT / "bench" / "results" / default
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)
    print(text)
    print(f"written to {target}", file=sys.stderr)


def decoded_photographs(folder: str, n: int) -> list[Any]:
    """At most n decoded photographs, from photos500/ or from anywhere in the folder."""
    import numpy as np

    sys.path.insert(0, str(ROOT / "src"))
    from penstock import fn, pipeline_def

    files = sorted(Path(folder, "photos500").rglob("*.jpg")) or sorted(Path(folder).rglob("*.jpg"))
    if not files:
        raise SystemExit(f"no photographs in {folder!r}; give --data")
    files = files[:n]

    @pipeline_def(batch_size=len(files), num_threads=2)
    def pipe() -> Any:
        return fn.decoders.image(fn.readers.file(files=[str(f) for f in files])[0])

    images = pipe().run()[0]
    return [np.array(images.at(i)) for i in range(len(files))]
