# SPDX-License-Identifier: Apache-2.0
"""Runs random programs of operators with odd inputs and arguments; part of `make fuzz`, under AddressSanitizer.

    python tests/fuzz/fuzz_operators.py [--seconds 180] [--first N] [--programs K] [--only crop,resize]

Each program, a function of its number, has to end with a result or with a clear error that names the operator: never
with the process, an exception from deep inside, or none at all within HANG_S. Its result has to be the same with 1 and
3 threads, for each operator in a pipeline of its own, for a second batch, for the samples in another order, and with
on_error="skip". What is found is printed once, with a line that repeats it: `--first N --programs 1` (and shows the
program).
"""

import argparse
import contextlib
import os
import queue
import re
import resource
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MOST_BYTES = 6 << 30  # beyond what is taken already
HANG_S = 60  # many times slower under AddressSanitizer than otherwise


def child(first: int, programs: int, only: str, gpu: bool) -> None:
    """Says of each program when it begins, what is found, and when it has ended."""
    import faulthandler
    import gc
    import warnings

    import numpy as np

    if gpu:
        sys.path.append(str(ROOT / "tests/emulator"))
        from build import build

        os.environ.update(build())
    import odd_sources
    from operator_checks import Judge, watch
    from operator_programs import Generator, bad

    from penstock.core import kernels

    if "asan" not in os.environ.get("LD_PRELOAD", ""):  # which says more
        faulthandler.enable()
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    watch()
    limit_memory()
    kernels.library()  # or every program would say that it is not there
    files = WORK / "files"
    files.mkdir(exist_ok=True)
    os.chdir(files)  # for operators that write some
    judge = Judge(show if programs == 1 else None, gpu)
    generator = Generator(judge.run_alone, only)
    for number in range(first, first + programs):
        print("begin", number, flush=True)
        judge.findings.clear()
        if number % 32 == 0:
            gc.collect()  # errors keep pipelines, and those threads
        if number % 16 == 15 and not only and not gpu:
            judge.failed = odd_sources.attempt(number, judge.add, programs == 1)
        else:
            judge.whole(generator.draw(number))
        if gpu and (failure := bad.device_failure()):
            judge.add("device", [], failure)
        for f in judge.findings:
            print("found", repr((f.key, f.kind, f.operator, f.text)), flush=True)
        print("end", number, int(judge.failed), flush=True)
        if gpu and failure:
            os._exit(bad.DEVICE_FAILED)


def limit_memory() -> None:
    """AddressSanitizer has a limit of its own: max_allocation_size_mb."""
    if "asan" in os.environ.get("LD_PRELOAD", ""):
        return
    with open("/proc/self/statm") as f:
        taken = int(f.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + MOST_BYTES,) * 2)


def show(program: object) -> None:
    print(f"show tries:\n{program}".replace("\n", "\nshow "), flush=True)


WORK = ROOT / "build" / "fuzz" / "operators"


def crash_text(log: str) -> str:
    """What AddressSanitizer or faulthandler says, in a line."""
    kind = re.search(r"(AddressSanitizer: [\w-]+|runtime error: .*|Fatal Python error: .*)", log)
    frames = re.findall(r"#\d+ 0x\w+ in (.*)", log)
    ours = [f for f in frames if "kernels/" in f][:2]
    return " | ".join([kind[1] if kind else log[-300:], *ours])


class Campaign:
    """Children one after the other, each until it crashes or hangs."""

    def __init__(self, a: argparse.Namespace):
        self.a, self.known = a, set()
        self.done = self.failed = 0
        self.started = time.time()

    def report(self, key: object, kind: str, operator: str, text: str, number: int) -> None:
        if key in self.known:
            return
        self.known.add(key)
        only = " --gpu" * self.a.gpu + (f" --only {self.a.only}" if self.a.only else "")
        print(f"\n{kind}: {operator}: {text}\n    repeat: --first {number} --programs 1{only}", flush=True)

    def run(self, first: int) -> int:
        """Runs a child from a program on; gives the number to go on with."""
        command = [sys.executable, __file__, "--child", "--first", str(first), "--only", self.a.only]
        command += ["--gpu"] * self.a.gpu
        command += ["--programs", str(self.a.first + self.a.programs - first)] if self.a.programs else []
        end, number, last, log = self.started + self.a.seconds, first, time.time(), WORK / "child.log"
        with (
            open(log, "w") as errors,
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
        ):
            lines: queue.SimpleQueue[str] = queue.SimpleQueue()
            reader = threading.Thread(target=lambda: [lines.put(x) for x in process.stdout], daemon=True)
            reader.start()
            while True:
                over = process.poll() is not None
                if over:
                    reader.join(5)
                while not lines.empty():
                    word, _, rest = lines.get().rstrip("\n").partition(" ")
                    if word == "begin":
                        number, last = int(rest), time.time()
                    elif word == "found":
                        self.report(*eval(rest), number)  # noqa: S307 (the repr of a tuple of strings, by the child)
                    elif word == "end":
                        self.done, self.failed = self.done + 1, self.failed + int(rest.split()[1])
                        number += 1
                    elif word == "show":
                        print(rest)
                if over or time.time() > end:
                    break
                time.sleep(0.05)
                if time.time() - last > HANG_S:
                    self.report(("hang", number), "hang", "?", f"no end after {HANG_S} s", number)
                    break
            status = process.poll()
            process.kill()
        if status:
            text = crash_text(log.read_text(errors="replace"))
            with contextlib.suppress(OSError):
                (WORK / f"crash-{number}.log").write_bytes(log.read_bytes())
            self.report(("crash", re.sub(r"\d+", "#", text)), "crash", f"status {status}", text, number)
        return number + 1 if status != 0 else number


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=180)
    parser.add_argument("--first", type=int, default=None, help="number of the first program; by default the time")
    parser.add_argument("--programs", type=int, default=0, help="how many; by default as many as there is time for")
    parser.add_argument("--only", default="", help="operators that programs begin with")
    parser.add_argument("--gpu", action="store_true", help="compare the emulated device with the CPU instead")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    a = parser.parse_args()
    a.first = int(time.time()) if a.first is None else a.first
    WORK.mkdir(parents=True, exist_ok=True)
    if a.child:
        child(a.first, a.programs or 10**9, a.only, a.gpu)
        return 0
    print(f"programs of operators for {a.seconds:g} s, from number {a.first} on", flush=True)
    campaign, at = Campaign(a), a.first
    while time.time() < campaign.started + a.seconds and (not a.programs or at < a.first + a.programs):
        at = campaign.run(at)
    rate = campaign.done / max(time.time() - campaign.started, 1)
    print(
        f"\n{campaign.done} programs ({rate:.1f}/s), {campaign.failed} of them refused, {len(campaign.known)} findings"
    )
    return 1 if campaign.known else 0


if __name__ == "__main__":
    sys.exit(main())
