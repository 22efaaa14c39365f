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


@cache
def build() -> dict[str, str]:
    """The environment that makes penstock use the emulated device; builds it at first use."""
    sources = [Path(__file__), *sorted(HERE.glob("*.h")), *sorted(HERE.glob("*.cpp"))]
    sources += [_KERNELS / name for name in _DECLARED]
    name = hashlib.sha256(b"".join(p.read_bytes() for p in sources)).hexdigest()[:16]
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
    libraries = {
        "PENSTOCK_CUDA_DRIVER": folder / "libcuda.so",
        "PENSTOCK_NVRTC": folder / "libnvrtc.so",
        "PENSTOCK_OPTICAL_FLOW": folder / "libnvidia-opticalflow.so",
        "PENSTOCK_NVCUVID": folder / "libnvcuvid.so",
    }
    for library, source in zip(libraries.values(), ("driver.cpp", "nvrtc.cpp", "optical_flow.cpp", "nvcuvid.cpp")):
        if library.exists():
            continue
        fd, temporary = tempfile.mkstemp(dir=folder)
        os.close(fd)
        command = [
            os.environ.get("CXX", "g++"),
            "-std=c++17",
            "-O1",
            "-fPIC",
            "-shared",
            "-U_FORTIFY_SOURCE",
            "-pthread",
        ]
        command += [f"-I{_KERNELS}", f'-DSHIM="{folder / "shim.h"}"', str(HERE / source), "-o", temporary, "-ldl"]
        subprocess.run(command, check=True)
        os.replace(temporary, library)
    return {k: str(v) for k, v in libraries.items()}


def build_cufile() -> str:
    """A libcufile that reads with the emulated device's memory (see cufile.cpp); built at first use."""
    source = HERE / "cufile.cpp"
    name = hashlib.sha256(source.read_bytes()).hexdigest()[:16]
    library = Path(tempfile.gettempdir()) / f"penstock-emulator-{os.getuid()}" / f"libcufile-{name}.so"
    if not library.exists():
        library.parent.mkdir(parents=True, exist_ok=True)
        fd, temporary = tempfile.mkstemp(dir=library.parent)
        os.close(fd)
        command = [os.environ.get("CXX", "g++"), "-std=c++17", "-O1", "-fPIC", "-shared", str(source), "-o", temporary]
        subprocess.run(command, check=True)
        os.replace(temporary, library)
    return str(library)


if __name__ == "__main__":
    for key, value in build().items():
        print(f"export {key}={value}")
