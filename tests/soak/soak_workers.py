# SPDX-License-Identifier: Apache-2.0
"""Batches of workers that are killed and stopped, with a slow store, in a program that restarts repeatedly from a
checkpoint with another number of workers.

Each batch is compared with that of a pipeline without workers: bit-equal, each exactly once, in order, with the same
checkpoint. Failures and their times follow from the seed. The test fails at the first difference.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests"), str(ROOT / "tests" / "cluster"), str(ROOT / "bench")]

import numpy as np  # noqa: E402
from pipelines import SIZE, N, assert_same, exists, pictures, pool_of, values, write_pictures  # noqa: E402

from object_server import ObjectServer  # noqa: E402

SLOWEST_SECONDS = 0.2  # of the store, for a picture
MOST_WORKERS = 4
NOTHING: Mapping[str, int] = {}


class SlowStore(ObjectServer):
    """Delays requests randomly and refuses some."""

    def __init__(self, objects: dict[str, bytes], rng: random.Random):
        super().__init__(objects)
        self.fault = lambda path, number: self._wait(rng)

    @staticmethod
    def _wait(rng: random.Random) -> None:
        if rng.random() < 0.1:
            time.sleep(rng.uniform(0, SLOWEST_SECONDS))


def pids(pipe) -> list[int]:
    links = [m.link for m in list(pool_of(pipe).slots)]
    found = [getattr(link, "pid", None) or getattr(getattr(link, "_process", None), "pid", 0) for link in links if link]
    return [p for p in found if p and exists(p)]


def nobody() -> list[int]:
    return []


class Chaos:
    """Kills one of the current workers, whose pids `there` returns, about every `every` seconds, and stops one about
    every 4.5 times of that."""

    def __init__(self, seed: int, every: float):
        self.there, self.done, self._every = nobody, Counter(), every
        self._rng, self._over = random.Random(seed), threading.Event()
        self._threads = [threading.Thread(target=t, daemon=True) for t in (self._kill, self._stop)]
        for t in self._threads:
            t.start()

    def _signal(self, number: int) -> int:
        there = self.there()
        if not there:
            return 0
        pid = self._rng.choice(there)
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return 0
        self.done[signal.Signals(number).name] += 1
        return pid

    def _kill(self) -> None:
        while not self._over.wait(self._rng.uniform(0, 2 * self._every)):
            self._signal(signal.SIGKILL)

    def _stop(self) -> None:
        while not self._over.wait(self._rng.uniform(1, 8) * self._every):
            pid = self._signal(signal.SIGSTOP)
            self._over.wait(self._rng.uniform(0.1, 4))
            if pid and exists(pid):
                os.kill(pid, signal.SIGCONT)

    def end(self) -> None:
        self._over.set()
        for t in self._threads:
            t.join()


def state(checkpoint: bytes) -> dict:
    """A checkpoint without the names of files, which differ in the store."""
    found = json.loads(checkpoint)
    for source in found["sources"]:
        del source["identity"]["fingerprint"]
    return found


def run(
    folder: Path, seconds: float, seed: int, workers: str = "", every: float = 1.0, least: Mapping[str, int] = NOTHING
) -> Counter:
    """What happened, in `seconds` or until it has happened at least so often (a minute more). `workers`: "auto" for
    Ray's, else processes. AssertionError for a batch that is not what it should be."""
    rng = random.Random(seed)
    files = write_pictures(folder)
    server = SlowStore({f"p/{Path(f).name}": Path(f).read_bytes() for f in files}, random.Random(seed))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    urls = [f"{server.url}/p/{Path(f).name}" for f in files]
    how = {"random_shuffle": True, "num_shards": 1, "shard_id": 0}
    plain = pictures(files, **how)
    chaos, happened, seen, saved = Chaos(seed, every), Counter(), [], None
    end = time.monotonic() + seconds

    def is_over() -> bool:
        late, so_far = time.monotonic() - end, happened + chaos.done
        return late > 60 or (late > 0 and all(so_far[k] >= n for k, n in least.items()))

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            while not is_over():
                crewed = pictures(urls, **how, workers=workers or rng.randint(1, MOST_WORKERS), checkpoint=saved)
                crewed.build()
                chaos.there = lambda pipe=crewed: pids(pipe)
                for _ in range(rng.randint(1, 60)):
                    a, b = plain.run(), crewed.run()
                    assert_same(values(a), values(b), happened["batches"])
                    saved = crewed.checkpoint()
                    assert state(plain.checkpoint()) == state(saved)
                    seen += [int(np.asarray(x)[0]) for x in b[2]]
                    happened["batches"] += 1
                    if is_over():
                        break
                chaos.there = nobody
                crewed.close()
                happened["programs"] += 1
    finally:
        chaos.end()
        server.shutdown()
    for i in range(0, len(seen) - N + 1, N):  # each sample once in an epoch
        assert sorted(seen[i : i + N]) == list(range(N)), f"epoch {i // N}"
    return happened + chaos.done


COLUMNS = ("runs", "failed", "seconds", "batches", "programs", "SIGKILL", "SIGSTOP", "slow disk", "unplugged")
TITLES = ("runs", "failed", "seconds", "batches", "programs", "workers killed", "stopped", "disk slow", "unplugged")


@contextmanager
def counted(what: str, out: str | None, seconds: float, seed: int) -> Iterator[Counter]:
    """Prints what happened, and adds it to the page of results, also if the run fails."""
    happened = Counter(runs=1, seconds=int(seconds), failed=1)
    try:
        yield happened
        happened["failed"] = 0
    finally:
        print(f"{what}, seed {seed}: {dict(happened)}", flush=True)
        if out:
            write(Path(out), what, seed, happened)


def write(path: Path, what: str, seed: int, happened: Counter) -> None:
    """Adds a run to the page of results, which has the sums of all runs of the same kind."""
    import measure
    import soak_restarts

    rows: dict[str, tuple[str, list[int]]] = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        cells = [c.strip() for c in line.split("|")[1:-1]]
        if len(cells) == len(COLUMNS) + 2 and cells[1][:1].isdigit():
            rows[cells[0]] = cells[1], [int(c.replace(",", "")) for c in cells[2:]]
    seeds, known = rows.get(what, ("", [0] * len(COLUMNS)))
    rows[what] = f"{seeds}, {seed}".lstrip(", "), [a + happened[k] for a, k in zip(known, COLUMNS)]
    lines = [f"| {name} | {seeds} | {' | '.join(f'{x:,}' for x in sums)} |" for name, (seeds, sums) in rows.items()]
    path.write_text(f"""# Workers that are killed

{__doc__.strip()} Written by `tests/soak/soak_workers.py`.

"Programs that are killed": {soak_restarts.__doc__.strip()[:1].lower()}{soak_restarts.__doc__.strip()[1:]}
Written by `tests/soak/soak_restarts.py`.

Batches have {SIZE} pictures, an epoch {N}. Sums of all runs of a kind; a run that fails is listed, too.

| what | seeds | {" | ".join(TITLES)} |
|---|---|{"---|" * len(TITLES)}
{chr(10).join(lines)}

{measure.machine()}
""")


def arguments(description: str) -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    p.add_argument("--seconds", type=float, default=300)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--every", type=float, default=1.0, help="seconds between two workers that are killed, on average")
    p.add_argument("--ray", action="store_true", help="workers are actors of Ray")
    p.add_argument("--out", help="a file for the result")
    return p


def start_ray() -> str:
    """Starts a cluster on this machine. Returns its address."""
    import ray

    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests" / "cluster")])
    env = {"env_vars": {"PYTHONPATH": paths}}
    started = ray.init(num_cpus=3, include_dashboard=False, log_to_driver=False, runtime_env=env)
    return started.address_info["gcs_address"]


def main() -> None:
    o = arguments(__doc__).parse_args()
    if o.ray:
        start_ray()
    what = "actors of Ray" if o.ray else "processes"
    with tempfile.TemporaryDirectory() as folder, counted(what, o.out, o.seconds, o.seed) as happened:
        happened.update(run(Path(folder), o.seconds, o.seed, "auto" if o.ray else "", o.every))


if __name__ == "__main__":
    main()
