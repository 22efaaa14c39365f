# SPDX-License-Identifier: Apache-2.0
"""`penstock doctor`: reports what is available, what is missing, and advice."""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from ..core import kernels
from ..core.storage import without_secrets
from ..pipeline.settings import available_cpus
from . import urls

_FRAMEWORKS = ("numpy", "torch", "jax", "clu", "tensorflow", "paddlepaddle", "cupy-cuda13x", "cupy-cuda12x")
_GOOD, _BAD = "ok     ", "missing"


class _Report:
    def __init__(self) -> None:
        self.parts: dict[str, list[tuple[str, str, bool]]] = {}  # by title: name, result, whether it is good
        self.advice: list[str] = []

    def part(self, title: str) -> None:
        self.parts[title] = []

    def say(self, name: str, what: str, good: bool = True) -> None:
        list(self.parts.values())[-1].append((name, what, good))

    def try_(self, name: str, ask: Callable[[], str], advice: str = "") -> bool:
        """Calls `ask`. An exception becomes part of the report."""
        try:
            self.say(name, ask())
            return True
        except Exception as e:
            self.say(name, str(e).split("\n")[0], False)
            if advice:
                self.advice.append(advice)
            return False


def examine(url: str | None = None) -> str:
    """The report as text. With a `url`, includes whether it can be read."""
    r = _examine(url)
    lines: list[str] = []
    for title, found in r.parts.items():
        lines += ["", title]
        lines += [f"  {_GOOD if good else _BAD}  {name:<22} {what}" for name, what, good in found]
    lines += ["", "What follows"]
    lines += [f"  * {line}" for line in r.advice or ["Nothing is missing."]]
    return "\n".join(lines[1:])


def examine_for_programs(url: str | None = None) -> dict[str, Any]:
    """The same for programs: {"version", "parts": {title: [{"name", "ok", "what"}]}, "advice"}."""
    r = _examine(url)
    parts = {
        title: [{"name": name, "ok": good, "what": what} for name, what, good in found]
        for title, found in r.parts.items()
    }
    return {"version": sys.modules["penstock"].__version__, "parts": parts, "advice": r.advice}


def codec_versions() -> list[str]:
    """The codecs in the native library with their versions: "libpng 1.6.58"."""
    return ctypes.string_at(kernels.library().codec_versions()).decode().splitlines()


def _examine(url: str | None) -> _Report:
    r = _Report()
    r.part("penstock")
    r.say("Python", f"{platform.python_version()}, {'no GIL' if not _has_gil() else 'with GIL'}, {sys.executable}")
    r.try_(
        "native library",
        lambda: f"built from the kernels beside it ({kernels.library().digest()[:16]})",
    )
    r.try_("codecs", lambda: ", ".join(codec_versions()))
    r.part("CPU")
    r.say("processor", f"{_processor()}; {available_cpus()} of {os.cpu_count()} CPUs for this process")
    r.say("instruction sets", _instruction_sets())
    r.say("image formats", "JPEG, PNG, BMP, TIFF, WebP, PNM, JPEG 2000")
    _video(r)
    _gpu(r)
    r.part("Data by URL")
    r.try_(
        "obstore",
        lambda: version("obstore"),
        "To read from s3://, gs://, az:// and http://: pip install 'penstock[remote]'.",
    )
    if url is not None:
        r.try_(without_secrets(url), lambda: urls.speed(url))
    r.part("Libraries that take batches")
    for name in _FRAMEWORKS:
        try:
            r.say(name, version(name))
        except PackageNotFoundError:
            pass
    return r


def _video(r: _Report) -> None:
    from ..operators.decode import _ffmpeg

    def found() -> str:
        place, version = _ffmpeg.open_ffmpeg()
        return f"libavcodec {'.'.join(map(str, version))} of {place}"

    if not r.try_("FFmpeg", found, "Video is decoded by FFmpeg's libraries: pip install penstock[video]"):
        return
    codecs = _ffmpeg.codecs()
    lacking = [name for name, is_there in codecs.items() if not is_there]
    there = ", ".join(name for name, is_there in codecs.items() if is_there)
    r.say("video codecs", there + (f"; without {', '.join(lacking)}" if lacking else ""), not lacking)
    if lacking:
        r.advice.append(f"This FFmpeg can't decode {', '.join(lacking)}; for others set PENSTOCK_FFMPEG, or take av's.")


def _gpu(r: _Report) -> None:
    r.part("GPU")
    from ..gpu import compile, cufile, driver, nvdec, nvjpeg, optical_flow

    if not r.try_("driver", lambda: f"supports CUDA {driver.driver_version()}"):
        r.advice.append(
            "Pipelines run on the CPU: leave `device` out and pass device_id=None. For the GPU, an NVIDIA driver for "
            "CUDA 12.0 or newer is needed."
        )
        return
    if driver.device_count() == 0:
        r.say("GPUs", "the driver knows none", False)
        r.advice.append("Pipelines run on the CPU only.")
        return
    install = f"pip install penstock[cuda{min(driver.newest_toolkit() or 13, 13)}]"
    for i in range(driver.device_count()):
        r.try_(f"GPU {i}", lambda i=i: _describe(driver.Device.get(i)))  # type: ignore[misc]
    r.try_("NVRTC", lambda: ".".join(map(str, compile.version())), f"The GPU's kernels need NVRTC: {install}")
    if r.try_(
        "nvJPEG", nvjpeg.version, f"Kernels decode all JPEG, none the GPU's engine, until nvJPEG is there: {install}"
    ):

        def engine() -> str:
            device = driver.Device.get(0)
            with device:
                nvjpeg.HardwareDecoder(device).close()
            return "takes baseline JPEG where training leaves it the time"

        r.try_("JPEG engine of GPU 0", engine, "JPEG is decoded by kernels; this GPU has no engine for it.")

    def flow() -> str:
        device = driver.Device.get(0)
        with device:
            engine = optical_flow.Engine(device)
            try:
                return f"for fn.optical_flow; grids of {', '.join(map(str, engine.grids()[0]))} pixels"
            finally:
                engine.close()

    def files() -> str:
        try:
            return f"fn.readers.numpy reads {cufile.about(driver.Device.get(0))}"
        except cufile.NotAllowed as e:
            return f"by the CPU, copied from pinned memory; no GPUDirect Storage: {e}"

    r.try_("files to the GPU", files)

    def videos() -> str:
        kinds = nvdec.decodes(driver.Device.get(0))
        return f"decode {', '.join(kinds)}; {max(kinds.values())} side by side" if kinds else "decode nothing of use"

    r.try_("video engines of GPU 0", videos, "The CPU decodes all videos; the line above says why.")
    r.try_("flow engine of GPU 0", flow, "fn.optical_flow can't be used; the line above says why.")


def _describe(device) -> str:
    with device:
        free = device.free_memory()
    major, minor = device.capability
    memory = f"{device.total_memory >> 20} MiB, {free >> 20} MiB of it free"
    return f"{device.name}, compute capability {major}.{minor}, {memory}"


def _has_gil() -> bool:
    return getattr(sys, "_is_gil_enabled", lambda: True)()


def _processor() -> str:
    try:
        with open("/proc/cpuinfo") as f:
            return next(line.split(":")[1].strip() for line in f if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _instruction_sets() -> str:
    try:
        with open("/proc/cpuinfo") as f:
            flags = next((line.split() for line in f if line.startswith(("flags", "Features"))), [])
    except OSError:
        return platform.machine()
    found = [name for name in ("avx2", "avx512f", "avx512_vbmi", "asimd", "sve") if name in flags]
    return f"{platform.machine()} {' '.join(found) or 'baseline'}"
