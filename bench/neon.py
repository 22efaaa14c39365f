# SPDX-License-Identifier: Apache-2.0
"""Instructions per pixel of the loops in NEON and of those in AVX2, counted by QEMU."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import measure

sys.path.insert(0, str(measure.ROOT / "tests"))

from arm_loops import ARM, X86, Target, build, names, run  # noqa: E402

WANTED = 1.5


def compiled_plugin(folder: Path) -> Path:
    to = folder / "count_instructions.so"
    source = measure.ROOT / "bench" / "native" / "count_instructions.c"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", source, "-o", to], check=True)
    return to


def per_pixel(program: Path, target: Target, name: str, plugin: Path) -> tuple[float, str]:
    """Instructions per pixel in the second and third round, and a digest of the output."""
    counts = []
    for rounds in (1, 3):
        pixels, digest, printed = run(program, target, name, rounds, "-plugin", str(plugin))
        counts.append(int(re.search(r"instructions (\d+)", printed)[1]))
    return (counts[1] - counts[0]) / 2 / pixels, digest


def main() -> None:
    p = measure.arguments(__doc__)
    o = p.parse_args()
    missing = ARM.missing() + X86.missing()
    if missing:
        print(f"bench/neon.py needs {', '.join(missing)}: apt-get install qemu-user g++-aarch64-linux-gnu g++")
        return
    lines = [
        "# Loops in NEON and in AVX2",
        "",
        measure.machine(),
        f"Instructions per pixel that is made, counted by QEMU's user mode, {qemu_version()}. A NEON register has",
        "128 bits, one of AVX2 256. The bytes that come out were compared. On x86-64 AVX-512 is left out.",
        "A gather of eight values counts as one instruction. Written by `bench/neon.py`.",
        "",
        f"| loop | AVX2 | NEON | NEON / AVX2 (at most {WANTED}) | |",
        "|---|---|---|---|---|",
    ]
    with tempfile.TemporaryDirectory() as folder:
        plugin = compiled_plugin(Path(folder))
        arm = build(ARM, Path(folder, "arm"))
        x86 = build(X86, Path(folder, "x86"))
        for name in names(arm, ARM):
            if o.only in name:
                (a, bytes_a), (b, bytes_b) = per_pixel(x86, X86, name, plugin), per_pixel(arm, ARM, name, plugin)
                if bytes_a != bytes_b:
                    sys.exit(f"{name}: the bytes differ")
                lines.append(f"| {name} | {a:.2f} | {b:.2f} | {b / a:.2f} | {'more' if b > WANTED * a else ''} |")
    measure.write(o.out, "neon.md", "\n".join(lines) + "\n")


def qemu_version() -> str:
    told = subprocess.run(["qemu-aarch64", "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return "version " + re.search(r"version ([\d.]+)", told)[1]


if __name__ == "__main__":
    main()
