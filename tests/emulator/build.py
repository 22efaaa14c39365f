# SPDX-License-Identifier: Apache-2.0
"""Builds the emulated device: a driver, an NVRTC, an optical flow engine and video engines for machines without a
GPU (see driver.cpp, nvrtc.cpp, optical_flow.cpp and nvcuvid.cpp)."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent
_KERNELS = HERE.parent.parent / "kernels"
_DECLARED = ("video/cuvid.h", "video/ffmpeg.h")  # included by nvcuvid.cpp
# Of the kernels' compiler. Aliasing is the kernels' business, one host thread runs a block, and speed hardly matters.
_KERNEL_OPTIONS = "-std=c++17 -O1 -fPIC -U_FORTIFY_SOURCE -ffp-contract=off -fno-strict-aliasing -w"
_KERNEL_OPTIONS += " -fno-threadsafe-statics"
# Shared memory is static memory of templates, which the linker would share among kernels of one name ("unique").
_OPTIONS_OF_GCC = "-fno-gnu-unique -fpch-preprocess"


@cache
def build() -> dict[str, str]:
    """The environment that makes penstock use the emulated device; builds it at first use."""
    sources = [Path(__file__), *sorted(HERE.glob("*.h")), *sorted(HERE.glob("*.cpp"))]
    sources += [_KERNELS / name for name in _DECLARED]
    compiler = os.environ.get("CXX", "g++")
    is_gcc = "clang" not in compiler
    options = f"{_KERNEL_OPTIONS} {_OPTIONS_OF_GCC}" if is_gcc else _KERNEL_OPTIONS
    name = hashlib.sha256(compiler.encode() + b"".join(p.read_bytes() for p in sources)).hexdigest()[:16]
    root = os.environ.get("PENSTOCK_EMULATOR") or os.path.join(
        tempfile.gettempdir(), f"penstock-emulator-{os.getuid()}"
    )
    folder = Path(root) / name
    folder.mkdir(parents=True, exist_ok=True)
    # The library may outlive this checkout, so the sources it compiles are stored next to it.
    for header in HERE.glob("*.h"):
        copy = folder / header.name
        if not copy.exists():
            fd, temporary = tempfile.mkstemp(dir=folder)
            os.close(fd)
            os.replace(shutil.copyfile(header, temporary), copy)
    if is_gcc:
        shim = folder / "shim.h"
        _make(folder / "shim.h.gch", [compiler, *options.split(), "-x", "c++-header", str(shim)])
    libraries = {
        "PENSTOCK_CUDA_DRIVER": folder / "libcuda.so",
        "PENSTOCK_NVRTC": folder / "libnvrtc.so",
        "PENSTOCK_OPTICAL_FLOW": folder / "libnvidia-opticalflow.so",
        "PENSTOCK_NVCUVID": folder / "libnvcuvid.so",
    }
    for library, source in zip(libraries.values(), ("driver.cpp", "nvrtc.cpp", "optical_flow.cpp", "nvcuvid.cpp")):
        command = [compiler, "-std=c++17", "-O2", "-fPIC", "-shared", "-U_FORTIFY_SOURCE", "-pthread", f"-I{_KERNELS}"]
        command += [f'-DSHIM="{folder / "shim.h"}"', f'-DOPTIONS="{options}"', str(HERE / source), "-ldl"]
        _make(library, command)
    return {k: str(v) for k, v in libraries.items()}


def _make(path: Path, command: list[str]) -> None:
    """Lets a compiler make a file that is not there; other processes see all of it or nothing."""
    if path.exists():
        return
    fd, temporary = tempfile.mkstemp(dir=path.parent)
    os.close(fd)
    subprocess.run([*command, "-o", temporary], check=True)
    os.replace(temporary, path)


def build_cufile() -> str:
    """A libcufile that reads with the emulated device's memory (see cufile.cpp); built at first use."""
    source = HERE / "cufile.cpp"
    name = hashlib.sha256(source.read_bytes()).hexdigest()[:16]
    library = Path(tempfile.gettempdir()) / f"penstock-emulator-{os.getuid()}" / f"libcufile-{name}.so"
    library.parent.mkdir(parents=True, exist_ok=True)
    _make(library, [os.environ.get("CXX", "g++"), "-std=c++17", "-O1", "-fPIC", "-shared", str(source)])
    return str(library)


if __name__ == "__main__":
    for key, value in build().items():
        print(f"export {key}={value}")
