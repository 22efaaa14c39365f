# SPDX-License-Identifier: Apache-2.0
"""tests/arm/loops.cpp, the loops with code for an instruction set, compiled for x86-64 and for 64-bit ARM."""

from __future__ import annotations

import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = (
    *("decode/idct.cpp", "decode/idct_avx2.cpp", "decode/idct_neon.cpp", "decode/jpeg_level.cpp"),
    *("decode/upsample.cpp", "decode/ycc.cpp", "color/color_space.cpp", "color/interleave.cpp"),
    *("geometry/crop_mirror_normalize.cpp", "geometry/warp.cpp"),
    *(f"resample/{name}.cpp" for name in ("exact", "exact_avx2", "fixed_point", "fixed_point_avx2", "float_point")),
    *(f"resample/{name}.cpp" for name in ("fixed_point_avx512", "fixed_point_neon", "resample", "taps")),
)
# As in CMakeLists.txt.
FLAGS = (
    "-std=c++17 -O3 -DNDEBUG -ffp-contract=off -fno-math-errno -fno-trapping-math -Wall -Wextra -Wno-parentheses "
    "-fvisibility=hidden"
).split()


@dataclass(frozen=True)
class Target:
    name: str
    compiler: str
    emulator: tuple[str, ...]  # emulates a processor with at most 256-bit vectors on x86-64

    def missing(self) -> list[str]:
        return [program for program in (self.compiler, self.emulator[0]) if not shutil.which(program)]


X86 = Target("x86-64, AVX2", "x86_64-linux-gnu-g++", ("qemu-x86_64", "-cpu", "max"))
ARM = Target("ARM, NEON", "aarch64-linux-gnu-g++", ("qemu-aarch64",))


def build(target: Target, folder: Path, flags: list[str] = FLAGS) -> Path:
    """Compiles and links the program."""
    folder.mkdir(parents=True, exist_ok=True)
    compiler = [*filter(shutil.which, ["ccache"]), target.compiler]
    sources = [ROOT / "kernels" / name for name in SOURCES] + [ROOT / "tests" / "arm" / "loops.cpp"]

    def one(source: Path) -> Path:
        to = folder / f"{source.stem}.o"
        subprocess.run([*compiler, *flags, "-I", ROOT / "kernels", "-c", source, "-o", to], check=True)
        return to

    with ThreadPoolExecutor(2) as pool:
        objects = list(pool.map(one, sources))
    program = folder / "loops"
    subprocess.run([target.compiler, "-static", *objects, "-o", program, "-pthread"], check=True)
    return program


def names(program: Path, target: Target) -> list[str]:
    return subprocess.run(
        [*target.emulator, program], stdout=subprocess.PIPE, text=True, check=True
    ).stdout.splitlines()


def run(program: Path, target: Target, name: str, rounds: int = 1, *options: str) -> tuple[int, str, str]:
    """The pixels of a round, a sum over the bytes that came out, and what the emulator printed."""
    command = [*target.emulator, *options, program, name, str(rounds)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    pixels, digest = done.stdout.split()
    return int(pixels), digest, done.stderr
