# SPDX-License-Identifier: Apache-2.0
"""Compiles CUDA C++ at run time with NVRTC, through ctypes. Results are cached in memory and in the user's cache folder
(XDG_CACHE_HOME/penstock), under a hash of everything they depend on."""

from __future__ import annotations

import ctypes
import glob
import hashlib
import os
import re
import site
import sys
import threading
from functools import cache

from ..core import kernels
from ..core.digest import SHIPPED, digest
from ..core.errors import InternalError
from ..core.new_files import replacing
from .driver import newest_toolkit

OPTIONS = ("--std=c++17", "--fmad=false", "--extra-device-vectorization", "--device-as-default-execution-space")
_INSTALL = "install it by `pip install penstock[cuda13]` (for drivers of CUDA 12: `pip install penstock[cuda12]`)"
_lock = threading.Lock()
_compiled: dict[tuple[str, str], bytes] = {}


class CompilerMissing(ImportError):
    """NVRTC, the compiler of the GPU's kernels, is not installed."""


def _candidates() -> list[str]:
    """Candidate paths of NVRTC: PENSTOCK_NVRTC, NVIDIA's wheels, a CUDA toolkit, the loader's path; newest first."""
    if given := os.environ.get("PENSTOCK_NVRTC"):
        return [given]
    found: list[str] = []
    folders = dict.fromkeys([*site.getsitepackages(), site.getusersitepackages(), *sys.path])
    for folder in folders:
        for pattern in ("nvidia/cu*/lib/libnvrtc.so.*", "nvidia/cuda_nvrtc/lib/libnvrtc.so.*"):
            found += sorted(glob.glob(os.path.join(folder, pattern)), reverse=True)
    for home in (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"):
        if home:
            found += sorted(glob.glob(os.path.join(home, "lib64", "libnvrtc.so.*")), reverse=True)
    found = [f for f in found if "alt" not in os.path.basename(f)]
    return [*found, "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"]


@cache
def library() -> ctypes.CDLL:
    """NVRTC. Raises CompilerMissing."""
    newest, too_new = newest_toolkit(), 0
    for path in _candidates():
        try:
            lib = ctypes.CDLL(path)
        except OSError:
            continue
        major, minor = ctypes.c_int(), ctypes.c_int()
        if newest is not None and lib.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)) == 0:
            if major.value > newest:  # drivers load code of their own CUDA version and older ones
                too_new = major.value
                continue
        lib.nvrtcGetErrorString.restype = ctypes.c_char_p
        return lib
    if too_new:
        raise CompilerMissing(
            f"the NVRTC that was found is of CUDA {too_new}, whose code the driver, of CUDA {newest}, can't load: "
            f"`pip install penstock[cuda{newest}]`, or update the driver"
        )
    raise CompilerMissing(f"GPU operators need NVRTC, CUDA's compiler, which was not found; {_INSTALL}")


@cache
def version() -> tuple[int, int]:
    """The version of NVRTC."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    _check(library().nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)), "asking for NVRTC's version")
    return major.value, minor.value


@cache
def _architectures() -> list[int]:
    """The architectures that NVRTC supports: 90 stands for sm_90."""
    count = ctypes.c_int()
    _check(library().nvrtcGetNumSupportedArchs(ctypes.byref(count)), "asking for the architectures of NVRTC")
    numbers = (ctypes.c_int * count.value)()
    _check(library().nvrtcGetSupportedArchs(numbers), "asking for the architectures of NVRTC")
    return sorted(numbers)


@cache
def _digest(folder: str) -> str:
    return digest(folder, SHIPPED)


def _sources(text: str) -> list[str]:
    """The digests of the folders with files that a text includes; they may include other files of penstock."""
    included = re.findall(r'^#include "(.*)"', text, re.M)
    others = [f for f in kernels.folders()[1:] if any(os.path.exists(os.path.join(f, i)) for i in included)]
    return [_digest(f) for f in (kernels.ROOT, *others)]


def _target(arch: str) -> str:
    """The target for "sm_90": machine code; or, for a GPU newer than NVRTC, PTX, which the driver compiles."""
    number, known = int(arch.removeprefix("sm_")), _architectures()
    if number in known:
        return f"sm_{number}"
    below = [k for k in known if k <= number]
    if not below:
        raise RuntimeError(
            f"this GPU ({arch}) is too old for NVRTC {version()[0]}.{version()[1]}, which knows sm_{known[0]} and "
            f"newer; "
            "`pip install penstock[cuda12]` brings one that may know it"
        )
    return f"compute_{below[-1]}"


def _folder() -> str:
    root = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(root, "penstock")


def compile(source: str, entry: str, arch: str) -> bytes:
    """Compiles CUDA C++ for an architecture such as "sm_90"; returns the image, ready to be loaded by the driver.

    `entry` names it in errors. The text may include files below kernels/. Raises CompilerMissing without NVRTC, and
    InternalError with the compiler's messages if it does not compile.
    """
    with _lock:
        image = _compiled.get((source, arch))
        if image is None:
            image = _compiled[source, arch] = _load_or_compile(source, entry, arch)
        return image


def _load_or_compile(source: str, entry: str, arch: str) -> bytes:
    target = _target(arch)
    key = repr((source, _sources(source), OPTIONS, version(), target, os.environ.get("PENSTOCK_NVRTC")))
    path = os.path.join(_folder(), hashlib.sha256(key.encode()).hexdigest()[:32] + ".kernel")
    if image := _kept(path):
        return image
    image = _compile(source, entry, target)
    try:
        _keep(path, image)
    except OSError:  # a read-only or full home: the next process compiles again
        pass
    return image


def _kept(path: str) -> bytes | None:
    """The image in a cache file; None if the file is missing or incomplete."""
    try:
        with open(path, "rb") as f:
            sum, image = f.read(32), f.read()
    except OSError:
        return None
    return image if hashlib.sha256(image).digest() == sum else None


def _keep(path: str, image: bytes) -> None:
    """Several processes may do so at once."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with replacing(path) as f:
        f.write(hashlib.sha256(image).digest() + image)


def _compile(source: str, entry: str, target: str) -> bytes:
    lib, program = library(), ctypes.c_void_p()
    options = [f"--gpu-architecture={target}", *(f"--include-path={f}" for f in kernels.folders()), *OPTIONS]
    _check(
        lib.nvrtcCreateProgram(ctypes.byref(program), source.encode(), f"{entry}.cu".encode(), 0, None, None),
        "giving a kernel to NVRTC",
    )
    try:
        packed = (ctypes.c_char_p * len(options))(*(o.encode() for o in options))
        code = lib.nvrtcCompileProgram(program, len(options), packed)
        if code:
            size = ctypes.c_size_t()
            lib.nvrtcGetProgramLogSize(program, ctypes.byref(size))
            log = ctypes.create_string_buffer(size.value or 1)
            lib.nvrtcGetProgramLog(program, log)
            raise InternalError(
                f"the kernel {entry} does not compile ({lib.nvrtcGetErrorString(code).decode()}):\n"
                f"{log.value.decode(errors='replace')}\n{source}"
            )
        kind = "CUBIN" if target.startswith("sm_") else "PTX"
        size = ctypes.c_size_t()
        _check(getattr(lib, f"nvrtcGet{kind}Size")(program, ctypes.byref(size)), "fetching a compiled kernel")
        image = ctypes.create_string_buffer(size.value)
        _check(getattr(lib, f"nvrtcGet{kind}")(program, image), "fetching a compiled kernel")
        return image.raw
    finally:
        lib.nvrtcDestroyProgram(ctypes.byref(program))


def _check(code: int, doing: str) -> None:
    if code:
        raise InternalError(f"{doing}: {library().nvrtcGetErrorString(code).decode()}")
