# SPDX-License-Identifier: Apache-2.0
"""Programs that are killed and resume from their last checkpoint, while their workers are killed and stopped, the disk
is slow for a while, and the cable to the workers' machine is unplugged.

A program has its pictures in files, whose disk is limited to a few reads per second by a control group; with
--network, its workers are on another machine (a network namespace). Each batch is compared with that of a pipeline that
runs without workers and without interruption: bit-equal, none missing, and made again only after the last checkpoint.
No worker survives its program. Failures and their times follow from the seed. The test fails at the first difference.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests"), str(ROOT / "tests" / "cluster"), str(ROOT / "bench")]
sys.path.append(str(Path(__file__).parent))

import soak_workers  # noqa: E402
from pipelines import exists, pictures, values, wait_until, write_pictures  # noqa: E402
from two_machines import possible, two_machines, workers_on  # noqa: E402

BLKIO = Path("/sys/fs/cgroup/blkio")
LONGEST_LIFE = {False: 20.0, True: 60.0}  # of a program, without and with Ray, which takes a while to place actors
HOW = {"random_shuffle": True, "slow": True}  # slow enough that workers are at work when they are killed
SLOW_READS = (4, 40)  # per second, of a slow disk


def digest(batch: Any) -> str:
    return hashlib.sha256(b"".join(s.tobytes() for output in values(batch) for s in output)).hexdigest()


def program(given: dict[str, Any]) -> None:
    """Makes batches until it is killed. Writes a line for each of them, and then the checkpoint behind it."""
    if given["machine"]:
        workers_on(given["machine"])
    if given["ray"]:
        import ray

        ray.init(given["ray"], log_to_driver=False, namespace="soak")
    state = Path(given["state"])
    done, checkpoint = json.loads(state.read_text()) if state.exists() else (0, None)
    pipe = pictures(given["files"], **HOW, workers=given["workers"], checkpoint=checkpoint)
    pipe.build()
    with open(given["log"], "a", buffering=1) as log:
        while True:
            made = digest(pipe.run())
            log.write(json.dumps([done, made, soak_workers.pids(pipe)]) + "\n")
            done += 1
            new = Path(given["state"] + ".new")
            new.write_text(json.dumps([done, pipe.checkpoint().decode()]))
            new.replace(state)


class SlowDisk:
    """Limits the reads of this process and its children from the disk with `folder`, for a while now and then. Files of
    the folder are dropped from the system's cache while the disk is slow."""

    def __init__(self, folder: Path, rng: random.Random):
        self.count, self._rng, self._over = 0, rng, threading.Event()
        device = os.stat(folder).st_dev
        self._device, self._files = f"{os.major(device)}:{os.minor(device)}", list(folder.iterdir())
        self._group = BLKIO / f"penstock-{os.getpid()}"
        self._group.mkdir()
        (self._group / "cgroup.procs").write_text(str(os.getpid()))
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _limit(self, reads: int) -> None:
        (self._group / "blkio.throttle.read_iops_device").write_text(f"{self._device} {reads}")

    def _run(self) -> None:
        while not self._over.wait(self._rng.uniform(1, 10)):
            self._limit(self._rng.choice(SLOW_READS))
            self.count += 1
            end = time.monotonic() + self._rng.uniform(0.5, 6)
            while time.monotonic() < end and not self._over.wait(0.05):
                for path in self._files:
                    fd = os.open(path, os.O_RDONLY)
                    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
                    os.close(fd)
            self._limit(0)

    def end(self) -> None:
        self._over.set()
        self._thread.join()
        (BLKIO / "cgroup.procs").write_text(str(os.getpid()))
        wait_until(self._has_ended, 150.0)  # a worker waits for 60 s for its program to connect

    def _has_ended(self) -> bool:
        try:
            self._group.rmdir()
        except OSError:  # processes that are about to end
            return False
        return True


@contextmanager
def slow_disk(folder: Path, rng: random.Random) -> Iterator[SlowDisk | None]:
    if not BLKIO.is_dir() or not os.access(BLKIO, os.W_OK):
        yield None
        return
    os.sync()
    disk = SlowDisk(folder, rng)
    try:
        yield disk
    finally:
        disk.end()


@contextmanager
def killing(seed: int, every: float, log: Path) -> Iterator[soak_workers.Chaos]:
    chaos = soak_workers.Chaos(seed, every)
    chaos.there = lambda: workers_now(log)
    try:
        yield chaos
    finally:
        chaos.end()


class Expected:
    """The digests of batches of a pipeline without workers, which is never interrupted."""

    def __init__(self, files: list[str]):
        self._pipe, self._made = pictures(files, **HOW), []

    def digest(self, i: int) -> str:
        while len(self._made) <= i:
            self._made.append(digest(self._pipe.run()))
        return self._made[i]


def written(log: Path) -> list[Any]:
    """Number, digest and workers of each batch so far."""
    return [json.loads(line) for line in log.read_text().splitlines(keepends=True) if line.endswith("\n")]


def workers_now(log: Path) -> list[int]:
    lines = written(log)
    return [p for p in lines[-1][2] if exists(p)] if lines else []


def run(folder: Path, seconds: float, seed: int, machines: Any = None, ray: str = "", every: float = 1.0) -> Counter:
    """What happened. AssertionError for a batch that is not what it should be."""
    rng, happened = random.Random(seed), Counter()
    (folder / "pictures").mkdir()
    files = write_pictures(folder / "pictures")
    expected, log, state = Expected(files), folder / "log", folder / "state"
    end, at = time.monotonic() + seconds, 0
    log.write_text("")
    with slow_disk(folder / "pictures", random.Random(seed)) as disk, killing(seed, every, log) as chaos:
        while time.monotonic() < end:
            log.write_text("")
            given = {
                "files": files,
                "log": str(log),
                "state": str(state),
                "machine": machines.worker if machines else "",
                "ray": ray,
                "workers": "auto" if ray else rng.randint(1, soak_workers.MOST_WORKERS),
            }
            command = [sys.executable, __file__, "--program", json.dumps(given)]
            if machines:
                command = machines.command(machines.trainer, *command)
            with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as trainer:
                try:
                    life = time.monotonic() + rng.uniform(0.5, LONGEST_LIFE[bool(ray)])
                    while time.monotonic() < life and trainer.poll() is None:
                        time.sleep(rng.uniform(0.1, 6) if machines else 0.1)
                        if machines and rng.random() < 0.3:
                            machines.cable("down")
                            time.sleep(rng.uniform(0.1, 8))
                            machines.cable("up")
                            happened["unplugged"] += 1
                finally:
                    died = trainer.poll() is not None
                    trainer.kill()
                assert not died, f"the program ended by itself:\n{trainer.stderr.read()[-3000:]}"
            made = written(log)
            for number, (i, found, _) in enumerate(made, at):
                assert (i, found) == (number, expected.digest(number)), f"batch {number} differs"
            workers = {pid for _, _, pids in made for pid in pids}
            wait_until(lambda there=workers: not any(map(exists, there)))
            happened += Counter(programs=1, batches=len(made))
            at = json.loads(state.read_text())[0] if state.exists() else 0
        happened["slow disk"] = disk.count if disk is not None else 0
    return happened + chaos.done


def main() -> None:
    p = soak_workers.arguments(__doc__)
    p.add_argument("--network", action="store_true", help="workers are on another machine, a network namespace")
    p.add_argument("--program", help=argparse.SUPPRESS)
    o = p.parse_args()
    if o.program:
        return program(json.loads(o.program))
    if o.network and not possible():
        sys.exit("needs root, ip and tc")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        machines = stack.enter_context(two_machines()) if o.network else None
        address = soak_workers.start_ray() if o.ray else ""
        where = "actors of Ray" if o.ray else "workers on another machine" if o.network else "processes"
        what = f"programs that are killed, {where}"
        happened = stack.enter_context(soak_workers.counted(what, o.out, o.seconds, o.seed))
        happened.update(run(folder, o.seconds, o.seed, machines, address, o.every))


if __name__ == "__main__":
    main()
