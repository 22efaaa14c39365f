# SPDX-License-Identifier: Apache-2.0
"""What the programs that damage files have in common: how they are built, with AddressSanitizer and UBSan, and run."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[2]


def arguments(description: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=180)
    parser.add_argument("--inputs", type=int, help="damaged files to try, instead of for a time")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--build-folder", type=Path, default=ROOT / "build/fuzz")
    parser.add_argument("files", nargs="*", help="files to start from instead of the built-in ones")
    return parser


def build(folder: Path, name: str, sources: Sequence[Path | str], more: Sequence[str] = ()) -> Path:
    """The program tests/fuzz/<name>.cpp together with sources: paths, or names under kernels/ without their ending."""
    folder.mkdir(parents=True, exist_ok=True)
    program, kernels = (folder / name).resolve(), ROOT / "kernels"
    paths = [ROOT / f"tests/fuzz/{name}.cpp", *(kernels / f"{s}.cpp" if isinstance(s, str) else s for s in sources)]
    flags = ["-std=c++17", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]
    flags += ["-DCLONES=", "-Wno-psabi", "-pthread", f"-I{kernels}"]
    ccache = shutil.which("ccache")
    compiler = [*([ccache] if ccache else []), os.environ.get("CXX", "g++"), *flags]
    objects = [folder.resolve() / f"{name}-{i}.o" for i in range(len(paths))]
    includes = [m for m in more if m.startswith("-I")]

    def compile_one(source: Path, to: Path) -> None:
        subprocess.run([*compiler, *includes, "-c", source, "-o", to], check=True)

    with ThreadPoolExecutor(os.cpu_count()) as threads:
        list(threads.map(compile_one, paths, objects))
    subprocess.run([*compiler, "-o", program, *objects, *more], check=True)
    return program


def run(
    program: Path,
    args: argparse.Namespace,
    name: str,
    seeds: Mapping[str, bytes],
    more: Sequence[str] = (),
    options: Mapping[str, str] | None = None,
) -> int:
    """Damages `seeds`, or the files of `args`, and more files beside them. `name` tells the runs of a folder apart."""
    folder = args.build_folder.resolve()
    files = [os.path.abspath(f) for f in args.files]
    if not files:
        (folder / name).mkdir(parents=True, exist_ok=True)
        for seed, data in seeds.items():
            (folder / name / seed).write_bytes(data)
        files = [str(folder / name / seed) for seed in seeds] + [os.path.abspath(f) for f in more]
    limit = str(args.seconds) if args.inputs is None else f"{args.inputs}x"
    sanitizers = {"ASAN_OPTIONS": "abort_on_error=1:allocator_may_return_null=1", "UBSAN_OPTIONS": "abort_on_error=1"}
    environment = {**os.environ, **sanitizers, **(options or {})}
    command = [str(program), name, limit, str(args.seed), *files]
    return subprocess.run(command, cwd=folder, env=environment, check=False).returncode
