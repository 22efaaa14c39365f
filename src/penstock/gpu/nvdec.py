# SPDX-License-Identifier: Apache-2.0
"""The video decoding engines of NVIDIA GPUs (NVDEC), through the library that comes with the driver.

Functions needed for every picture are called by native threads (kernels/video/decode_on_gpu.cpp), which get their
addresses from here.
"""

from __future__ import annotations

import ctypes
import os
import weakref
from functools import cache

import numpy as np

from ..core import kernels
from ..core.batch import Batch
from .batch import DeviceBatch
from .driver import CudaError, Device
from .session import GpuPass, Session
from .stream import Event, Stream

# In the order of `cuvid::Functions` in kernels/video/cuvid.h.
_FUNCTIONS = (
    "cuvidGetDecoderCaps",
    "cuvidCreateDecoder",
    "cuvidDestroyDecoder",
    "cuvidReconfigureDecoder",
    "cuvidDecodePicture",
    "cuvidGetDecodeStatus",
    "cuvidMapVideoFrame64",
    "cuvidUnmapVideoFrame64",
    "cuvidCreateVideoParser",
    "cuvidParseVideoData",
    "cuvidDestroyVideoParser",
)
# CUVIDDECODECAPS
_CAPS = np.dtype(
    [("codec", "i4"), ("chroma", "i4"), ("bits_minus_8", "u4"), ("zero", "u4", 3), ("supported", "u1")]
    + [("engines", "u1"), ("surfaces", "u2"), ("max_width", "u4"), ("max_height", "u4"), ("more", "u4", 13)]
)
_KINDS = (  # cudaVideoCodec, bits; all 4:2:0
    *(("H.264", 4, 8), ("HEVC", 8, 8), ("HEVC 10 bit", 8, 10)),
    *(("VP8", 9, 8), ("VP9", 10, 8), ("VP9 10 bit", 10, 10)),
)
_420 = 1
# System folders where containers have it, even if the loader does not search them.
_FOLDERS = ("", "/usr/local/nvidia/lib64/", "/usr/lib/x86_64-linux-gnu/", "/usr/lib64/", "/usr/lib/aarch64-linux-gnu/")
_LANES_OF_AN_ENGINE, _MOST_LANES = 2, 16  # concurrent decoders
_SOURCE = '#include "video/frame_pixels.cu"\n'
_KERNEL = "video/decode_on_gpu"
_P, _I = ctypes.c_void_p, ctypes.c_int


class EngineMissing(CudaError):
    """The driver's library or the engine is missing."""


@cache
def library() -> ctypes.CDLL:
    """The driver's library; EngineMissing if there is none."""
    given, why = os.environ.get("PENSTOCK_NVCUVID"), ""
    for path in [given] if given else [f + "libnvcuvid.so.1" for f in _FOLDERS]:
        try:
            lib = ctypes.CDLL(path)
            for name in _FUNCTIONS:
                getattr(lib, name).restype = _I
            return lib
        except (OSError, AttributeError) as e:
            why = why or str(e)
    raise EngineMissing(
        f"the driver's library for its video engines was not found ({why}); it is part of NVIDIA's driver: in "
        "containers it is mounted if NVIDIA_DRIVER_CAPABILITIES has 'video' or 'all'"
    )


def decodes(device: Device) -> dict[str, int]:
    """Number of engines by kind of video, for those that can be decoded; EngineMissing if there is no library."""
    lib, found = library(), {}
    with device:
        for name, codec, bits in _KINDS:
            caps = np.zeros(1, _CAPS)
            caps["codec"], caps["chroma"], caps["bits_minus_8"] = codec, _420, bits - 8
            if not lib.cuvidGetDecoderCaps(_P(caps.ctypes.data)) and caps["supported"][0]:
                found[name] = max(int(caps["engines"][0]), 1)
    return found


class VideoEngines:
    """The video engines of one pipeline: decoders, created as needed and kept, and the threads that feed them, which
    mostly sleep. EngineMissing if no video can be decoded."""

    def __init__(self, session: Session):
        device = session.device
        engines = max(decodes(device).values(), default=0)
        if not engines:
            raise EngineMissing(f"{device.name} has no video engine that is used (H.264, HEVC, VP8, VP9)")
        lanes = min(_LANES_OF_AN_ENGINE * engines, _MOST_LANES)
        table = (_P * len(_FUNCTIONS))(*(ctypes.cast(getattr(library(), name), _P).value for name in _FUNCTIONS))
        self._pool = kernels.Pool(lanes)
        with device:
            streams, events = [Stream(device) for _ in range(lanes)], [Event(device) for _ in range(lanes)]
        handles = ((_P * lanes)(*(x.handle for x in of)) for of in (streams, events))
        self._handle = kernels.library().video_engines_open(table, device._context, lanes, *handles)
        self._functions = [session.function(_SOURCE, f"frame_pixels_{bits}", 0) for bits in (8, 16)]
        self.n_decoded = 0
        self._end = weakref.finalize(self, _end, device, self._handle, self._pool, streams, events)
        self._end.atexit = False

    def decode(self, gpu: GpuPass, columns: dict, files: Batch, out: DeviceBatch) -> np.ndarray:
        """Decodes frames of encoded videos to `out`; later work of the batch's stream waits for it. Returns a mask (n,)
        of the videos that were not decoded; their output is undefined."""
        n = out.spec.n
        kernel = kernels.kernel(_KERNEL)
        free = gpu.stream.mark()
        batch = np.array([self._handle, gpu.stream.handle, free.handle, *self._functions], "i8")
        args, alive = kernel.rows(n, {**columns, "batch": np.full(n, batch.ctypes.data, "i8")})
        outcome = kernels.Outcome(np.zeros(n, "i4"), n, 1)
        self._pool.run([kernels.Step(kernel, args, [(out.rows, -1)], [(files.rows, -1)])], n, outcome)
        gpu.stream.asked()
        del alive
        refused = outcome.status != 0
        self.n_decoded += n - int(refused.sum())
        self.why_not = outcome.reason(int(np.flatnonzero(refused)[0])) if refused.any() else ""
        return refused

    def counts(self) -> tuple[int, int]:
        """Number of decoders created, and of changes to another size."""
        counts = (ctypes.c_int64 * 2)()
        kernels.library().video_engines_counts(self._handle, counts)
        return counts[0], counts[1]

    def close(self) -> None:
        """Closes threads and decoders. Call when the GPU is done."""
        self._end()


def _end(device: Device, handle: int, pool: kernels.Pool, streams: list[Stream], events: list[Event]) -> None:
    pool.close()
    with device:
        kernels.library().video_engines_close(handle)
    streams.clear()
    events.clear()
