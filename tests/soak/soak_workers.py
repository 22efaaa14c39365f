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
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests"), str(ROOT / "tests" / "cluster"), str(ROOT / "bench")]

import numpy as np  # noqa: E402
from pipelines import SIZE, N, assert_same, exists, pictures, pool_of, values, write_pictures  # noqa: E402

from object_server import ObjectServer  # noqa: E402

SLOWEST_SECONDS = 0.2  # of the store, for a picture
MOST_WORKERS = 4


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
    """Kills one of the current workers, whose pids `there` returns, every `every` seconds, and sometimes stops one."""

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
        while not self._over.wait(self._every):
            self._signal(signal.SIGKILL)

    def _stop(self) -> None:
        while not self._over.wait(self._rng.uniform(1, 8)):
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


def run(folder: Path, seconds: float, seed: int, workers: str = "", every: float = 1.0) -> Counter:
    """What happened. `workers`: "auto" for Ray's, else processes. AssertionError for a batch that is not what it should
    be."""
    rng = random.Random(seed)
    files = write_pictures(folder)
    server = SlowStore({f"p/{Path(f).name}": Path(f).read_bytes() for f in files}, random.Random(seed))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    urls = [f"{server.url}/p/{Path(f).name}" for f in files]
    how = {"random_shuffle": True, "num_shards": 1, "shard_id": 0}
    plain = pictures(files, **how)
    chaos, happened, seen, saved = Chaos(seed, every), Counter(), [], None
    end = time.monotonic() + seconds
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            while time.monotonic() < end:
                crewed = pictures(urls, **how, workers=workers or rng.randint(1, MOST_WORKERS), checkpoint=saved)
                crewed.build()
                chaos.there = lambda pipe=crewed: pids(pipe)
                for _ in range(rng.randint(1, 120)):
                    a, b = plain.run(), crewed.run()
                    assert_same(values(a), values(b), happened["batches"])
                    saved = crewed.checkpoint()
                    assert state(plain.checkpoint()) == state(saved)
                    seen += [int(np.asarray(x)[0]) for x in b[2]]
                    happened["batches"] += 1
                    if time.monotonic() > end:
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


def write(path: Path, row: str) -> None:
    """Adds a row to the page of results."""
    import measure

    head = (
        f"# Workers that are killed\n\n{__doc__.strip()}\nWritten by `tests/soak/soak_workers.py` and "
        "`soak_restarts.py`.\n\n"
    )
    known = path.read_text() if path.exists() else head
    path.write_text(f"{known}- {row}. {measure.machine()}\n")


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    p.add_argument("--seconds", type=float, default=300)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--ray", action="store_true", help="workers are actors of Ray")
    p.add_argument("--out", help="a file for the result")
    o = p.parse_args()
    if o.ray:
        import ray

        paths = os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests" / "cluster")])
        env = {"env_vars": {"PYTHONPATH": paths}}
        ray.init(num_cpus=3, include_dashboard=False, log_to_driver=False, runtime_env=env)
    with tempfile.TemporaryDirectory() as folder:
        happened = run(Path(folder), o.seconds, o.seed, "auto" if o.ray else "")
    batches = happened["batches"]
    row = (
        f"{'actors of Ray' if o.ray else 'processes'}, {o.seconds:g} s, seed {o.seed}: {batches:,} batches of {SIZE} "
        f"({batches * SIZE // N:,} epochs) in {happened['programs']:,} programs, each going on from the last one's "
        f"checkpoint; {happened['SIGKILL']:,} workers killed, {happened['SIGSTOP']:,} stopped for a while: all "
        "bit-equal, in order, each sample once in an epoch"
    )
    print(row)
    if o.out:
        write(Path(o.out), row)


if __name__ == "__main__":
    main()
