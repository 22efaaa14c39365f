#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the GPU tests under compute-sanitizer (memcheck and racecheck), in parallel processes.

Prints a row per test file with its result, followed by the findings of the sanitizer or pytest. Exits with 1 if there
are findings. Errors returned by the driver are not findings: tests request too much memory, missing devices and invalid
launches on purpose."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
# Files whose tests launch nothing, or deliberately hide the GPU.
NOT_INSTRUMENTED = "terminated before first instrumented API call"


def files(o) -> list[Path]:
    """Test files that use the GPU, the slowest first."""
    found = [*TESTS.glob("gpu/test_*.py"), *TESTS.glob("operators/**/test_*.py")]
    # Frameworks have their own kernels, and the compiler's test launches nothing.
    found = [f for f in found if f.name not in ("test_compile.py", "test_frameworks.py") and re.search(o.only, str(f))]
    return sorted(found, key=lambda f: (f.parent.name != "gpu", -f.stat().st_size))


def check(tool: str, file: Path, o) -> tuple[bool, str, str]:
    """Whether it is clean, a line about it, and its output."""
    command = ["compute-sanitizer", "--tool", tool, "--error-exitcode", "86", "--print-limit", "5"]
    if tool == "memcheck":
        command += ["--report-api-errors", "no"]
    command += [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "gpu", "--every", str(o.every)]
    begin = time.monotonic()
    try:
        done = subprocess.run(
            [*command, str(file)],
            env={**os.environ, "PENSTOCK_TEST_GPU": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=o.seconds,
        )
        text, code = done.stdout, done.returncode
    except subprocess.TimeoutExpired as e:
        text, code = (e.stdout or b"").decode(errors="replace"), 124
    counts = re.findall(r"^(?:=* ?)?(\d+ (?:passed|failed|skipped|deselected|error)[^=\n]*?) in ", text, re.M)
    summary = re.findall(r"=+ ((?:ERROR|RACECHECK) SUMMARY: .*)", text)
    if re.search(r"^(?:no tests ran|\d+ deselected) in", text, re.M):
        return True, "", text
    idle = NOT_INSTRUMENTED in text and counts and "failed" not in counts[-1] and "error" not in counts[-1]
    clean = code == 0 or bool(idle)
    said = "launches nothing" if idle else f"longer than {o.seconds} s" if code == 124 else "".join(summary[-1:])
    name = str(file.relative_to(TESTS))
    line = f"{tool:9} {name:48} {time.monotonic() - begin:4.0f} s  {counts[-1] if counts else '':40} {said}"
    return clean, line if clean else line + "  <- NOT CLEAN", text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", default="memcheck,racecheck", help="of compute-sanitizer")
    parser.add_argument("--only", default="", help="only files whose path matches this regular expression")
    parser.add_argument("--every", type=int, default=1, help="one test of so many")
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 2) - 2), help="processes side by side")
    parser.add_argument("--seconds", type=float, default=900, help="the longest that a file may take")
    o = parser.parse_args()
    work = [(tool, f) for tool in o.tools.split(",") for f in files(o)]
    bad = 0
    with ThreadPoolExecutor(o.jobs) as pool:
        for clean, line, text in pool.map(lambda w: check(*w, o), work):
            if line:
                print(line, flush=True)
            if not clean:
                bad += 1
                print(text[-12000:], flush=True)
    print(f"{bad} of {len(work)} not clean" if bad else f"all {len(work)} clean")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
