# SPDX-License-Identifier: Apache-2.0
"""Writes docs/scaling.md and its chart: a model of trainers, workers, network and store, with constants measured by
bench/workers.py, and a simulation of 1,000 workers and 256 trainers with failures: python bench/scaling.py

It measures nothing itself, so it may run anywhere and gives the same page again.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np

ROOT = Path(__file__).parents[1]
BATCH, SIDE = 64, 224
TRAINERS, WORKERS, HOURS = 256, 1000, 2.0
# Assumptions, as others choose these values. MB are 1e6 bytes.
WORKER_CPUS = 8
LINK_GBIT, LINK_USED = 10.0, 0.9  # of a trainer's machine; the share that batches can use
JPEG_BYTES = 110_000  # about the mean of ImageNet
STORE_MB_S = 100_000.0  # of one store for all workers
STEP_MS = 20.0  # per training step
AWAY_S = 60.0  # until a worker runs elsewhere after its machine failed
JOIN_S = 3.0  # until a worker runs again after only its process died
WINDOW = 3  # minimum of batches requested ahead from each worker
TICK_S = 0.05


# Hours between two failures, number of workers that fail together, and a description.
FAILURES = (
    (24.0, 1, "each worker dies once a day"),
    (24.0, 8, "each machine of 8 workers dies once a day"),
    (2.0, 8, "each machine of 8 workers is taken away every 2 hours"),
)


class Rates(NamedTuple):
    """Of bench/results/workers.md: images/s of one process and of workers, on `cpus` CPUs, by task."""

    one: dict[str, float]
    workers: dict[str, float]
    cpus: int


def measured() -> Rates:
    text = (ROOT / "bench" / "results" / "workers.md").read_text()
    one, workers = {}, {}
    for task, a, b in re.findall(r"^\| (\w+) \| (\d+) \([^)]*\) \| (\d+) \(", text, re.M):
        one[task], workers[task] = float(a), float(b)
    cpus = re.search(r"(\d+) CPUs", text)
    assert cpus and {"val", "crop", "read"} <= one.keys(), "bench/results/workers.md has another form"
    return Rates(one, workers, int(cpus[1]))


def arrived() -> str:
    """Images/s that arrived over a network of LINK_GBIT, in bench/results/network.md."""
    text = (ROOT / "bench" / "results" / "network.md").read_text()
    found = re.search(rf"^\| {LINK_GBIT:g} \| batches \|.* \| ([\d,]+) \| \d+ ?% \|$", text, re.M)
    assert found, "bench/results/network.md has another form"
    return found[1]


class Costs(NamedTuple):
    """CPU seconds per image: to make it (uint8), and to transfer it from a worker to the trainer, on both sides."""

    make: float
    hand: float


def costs(r: Rates) -> Costs:
    # Reading alone is cheap, so the time that workers add to it is the cost of the transfer.
    return Costs(r.cpus / r.one["crop"], r.cpus / r.workers["read"] - r.cpus / r.one["read"])


def predicted(r: Rates, task: str) -> float:
    """Predicted images/s of workers on the same CPUs: the time in one process plus the transfer."""
    return r.cpus / (r.cpus / r.one[task] + costs(r).hand)


def limits(c: Costs, trainers: int, workers: int, image_bytes: int) -> dict[str, float]:
    """The limit of each resource in images/s of all trainers together."""
    return {
        "CPUs of the workers": workers * WORKER_CPUS / (c.make + c.hand),
        "one thread of each trainer": trainers / c.hand,
        "network of the trainers": trainers * LINK_GBIT * 1e9 / 8 * LINK_USED / image_bytes,
        "store": STORE_MB_S * 1e6 / JPEG_BYTES,
        "the training itself": trainers * BATCH / (STEP_MS / 1e3),
    }


def crews(trainers: int, workers: int) -> np.ndarray:
    """Number of workers of each trainer, as even as possible: a worker works for one pipeline."""
    return workers // trainers + (np.arange(trainers) < workers % trainers)


def simulate(
    per_worker: float, need: float, mtbf_h: float, together: int, seed: int = 1, trainers: int = TRAINERS
) -> dict[str, float]:
    """Simulates trainers that step together, each with its own workers, which die at random, `together` of them on one
    machine. A trainer consumes what its workers have made ahead, at most its window; the batches of a dead worker are
    made again. Rates are images/s of a worker, and of a trainer that never waits."""
    rng = np.random.default_rng(seed)
    size = crews(trainers, WORKERS * trainers // TRAINERS)
    whose = np.repeat(np.arange(trainers), size)
    rng.shuffle(whose)  # machines have workers of several trainers
    n, machines = len(whose), -(-len(whose) // together)
    on = np.arange(n) // together
    window = (size * WINDOW + 1) * BATCH
    stock, back = window.astype(float), np.zeros(n)
    ticks, steps, deaths, lowest = int(HOURS * 3600 / TICK_S), 0.0, 0, n
    chance = TICK_S / (mtbf_h * 3600)
    fell = rng.poisson(chance * machines, ticks)
    capacity = np.bincount(whose, minlength=trainers) * per_worker
    gone: set[int] = set()
    for t in range(ticks):
        now = t * TICK_S
        if fell[t] or gone:
            for m in rng.integers(0, machines, fell[t]):
                died = np.flatnonzero(on == m)
                back[died] = now + (AWAY_S if together > 1 else JOIN_S)
                np.subtract.at(stock, whose[died], WINDOW * BATCH)  # made again
                gone |= set(died.tolist())
                deaths += len(died)
            gone = {i for i in gone if back[i] > now}
            alive = back <= now
            capacity = np.bincount(whose[alive], minlength=trainers) * per_worker
            lowest = min(lowest, int(alive.sum()))
        stock += capacity * TICK_S
        step = min(need * TICK_S, max(float(stock.min()), 0.0))  # the slowest trainer's
        stock = np.minimum(stock - step, window)
        steps += step
    return {"share": steps / (need * TICK_S * ticks), "deaths": deaths, "lowest": lowest}


# The page -------------------------------------------------------------------------------------------------------------


def table(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(r) + " |" for r in [head, ["---"] * len(head), *rows])


def chart(rows: list[tuple[str, dict[str, float]]]) -> str:
    """A bar chart of the share of the training's speed that remains, by the number of spare workers."""
    parts, y = [], 24
    for title, bars in rows:
        parts.append(f'<text x="24" y="{y + 10}" font-weight="bold">{title}</text>')
        y += 24
        for label, share in bars.items():
            width = 560 * share
            parts.append(f'<text x="200" y="{y + 17}" text-anchor="end">{label}</text>')
            parts.append(f'<rect x="210" y="{y}" width="{width:.1f}" height="24" rx="3" fill="#2186eb" />')
            parts.append(f'<text x="{218 + width:.1f}" y="{y + 17}">{100 * share:.1f} %</text>')
            y += 32
        y += 12
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 860 {y}"',
        '  font-family="Helvetica, Arial, sans-serif" font-size="14" fill="#1f2933">',
        "<title>Speed of 256 trainers with workers that fail, against trainers that never wait</title>",
        f'<rect x="0.5" y="0.5" width="859" height="{y - 1}" rx="12" fill="#ffffff" stroke="#d9e2ec" />',
    ]
    return "\n".join([*head, *parts, "</svg>", ""])


def main() -> None:
    r = measured()
    c = costs(r)
    pixels = SIDE * SIDE * 3
    check = [
        [t, f"{predicted(r, t):,.0f}", f"{r.workers[t]:,.0f}", f"{100 * (predicted(r, t) / r.workers[t] - 1):+.0f} %"]
        for t in ("val", "crop")
    ]
    per_worker = WORKER_CPUS / (c.make + c.hand)
    sizes = []
    for trainers in (1, 8, 64, 256, 1024):
        workers = WORKERS * trainers // TRAINERS
        row = [f"{trainers:,}", f"{workers:,}"]
        for image in (pixels, 4 * pixels):
            found = limits(c, trainers, workers, image)
            name = min(found, key=lambda k: found[k])
            row.append(f"{found[name]:,.0f}: {name}")
        sizes.append(row)
    each = [
        [name, f"{a:,.0f}", f"{b:,.0f}"]
        for (name, a), b in zip(
            limits(c, TRAINERS, WORKERS, pixels).items(), limits(c, TRAINERS, WORKERS, 4 * pixels).values()
        )
    ]
    smallest = int(crews(TRAINERS, WORKERS).min())
    failures, bars = [], []
    for mtbf, together, what in FAILURES:
        shown: dict[str, float] = {}
        for spare in (0.0, 0.1, 0.25, 0.5):
            found = simulate(per_worker, smallest * per_worker / (1 + spare), mtbf, together)
            shown[f"{100 * spare:.0f} % to spare"] = found["share"]
            failures.append(
                [what, f"{100 * spare:.0f} %", f"{100 * found['share']:.1f} %", f"{found['deaths']:.0f}"]
                + [f"{found['lowest']:,.0f}"]
            )
        bars.append((what[0].upper() + what[1:], shown))
    checked = table(["task", "model, images/s", "measured, images/s", "difference"], check)
    least = table(["trainers", "workers", "uint8", "float32"], sizes)
    alone = table(["resource", "images/s, uint8", "images/s, float32"], each)
    head = ["failures", "to spare", "speed, of trainers that never wait", "workers that died", "fewest alive"]
    failed = table(head, failures)
    kb, link, used = pixels / 1e3, LINK_GBIT, 100 * LINK_USED
    text = f"""# How far it scales

What to expect of `workers="auto"` ([More CPUs](workers.md)) on more machines than anybody has measured it on: a model
with measured costs, checked where it can be, and a simulation of {WORKERS:,} workers for {TRAINERS} trainers.
`bench/scaling.py` computes every number on this page from `bench/results/workers.md` and from the assumptions below.
**None of the large sizes has been run.**

## The model

An image costs {1e6 * c.make:.0f} microseconds of one CPU to read, decode, resize and crop, and {1e6 * c.hand:.0f} to
hand over from a worker to the trainer, both sides together. Both are measured on two CPUs, between processes of one
machine; the second is what workers add where nothing else is done. The model says that these add up. For tasks that
were measured with and without workers:

{checked}

Assumed:

| | |
|---|---|
| a worker | {WORKER_CPUS} CPUs, each as fast as those measured |
| what is sent | {SIDE}x{SIDE} pixels of uint8, {kb:.0f} KB ([why](workers.md#what-is-sent)); float32: four times |
| network of a trainer | {link:.0f} Gbit/s, of which {used:.0f} % are used |
| store | {STORE_MB_S / 1e3:.0f} GB/s for all, files of {JPEG_BYTES / 1e3:.0f} KB |
| training | batches of {BATCH} in {STEP_MS:.0f} ms; trainers wait for each other at each step |
| a worker that dies | works again after {JOIN_S:.0f} s; after {AWAY_S:.0f} s if its machine is gone |

## What limits at which size

The least of what CPUs, network, store and training let through, for all trainers together, in images/s. There are
{WORKERS / TRAINERS:.1f} workers for each trainer:

{least}

For {TRAINERS} trainers and {WORKERS:,} workers, each resource by itself:

{alone}

Workers and networks grow with the trainers; the store does not, so it is what limits at last. Then a cache on the
workers' disks (`cache=`) helps, and more workers don't. No machine sees all batches: each trainer keeps the order of
its own.

## With failures

{TRAINERS} trainers that step together, for {HOURS:.0f} hours. A worker works for one trainer, so crews have {smallest}
or {smallest + 1} workers, and the smallest crew decides. "To spare" is how much faster that is than the training where
nothing fails. Batches that a dead worker had are made again.

{failed}

![Speed with failures](images/scaling.svg)

No batch is lost or changed by a failure; this is about time only. A machine has workers of several crews, so its loss
is a worker or two less for each of them: where crews are as small as here, that is a large part of one, and spare
workers pay. The time until a lost machine is replaced counts as much as how often one is lost.

## What the model leaves out

Switches between the trainers' links and the workers, which have to carry the sum; delays of the network, which the
batches on their way hide while there are enough of them; what it costs to send between machines, which is taken to be
what it costs between processes (over a simulated network of {LINK_GBIT:g} Gbit/s, with both ends on two cores,
[{arrived()} images/s](../bench/results/network.md) arrived, as many as fit into it); what Ray itself needs to place
{WORKERS:,} actors; and that CPUs with many busy cores are slower than two.
"""
    (ROOT / "docs" / "scaling.md").write_text(text)
    (ROOT / "docs" / "images" / "scaling.svg").write_text(chart(bars))
    print(text)


if __name__ == "__main__":
    main()
