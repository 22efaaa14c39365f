# SPDX-License-Identifier: Apache-2.0
"""Finds FFmpeg's libraries, which decode video and the sound of MP4 and AAC files, and opens them once per process.

They are not part of penstock. The first of these that can be opened is used: the folder that the environment variable
PENSTOCK_FFMPEG names, the package `av` (`pip install penstock[video]`), the system's libraries.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator

from ...core import kernels

# Major versions of libavcodec with the corresponding libavutil, newest first.
_MAJORS = ((63, 61), (62, 60), (61, 59), (60, 58), (59, 57), (58, 56))
_opening = threading.Lock()
_opened: list[tuple[str, int]] = []  # origin, version of libavcodec


def open_ffmpeg() -> tuple[str, tuple[int, int, int]]:
    """The origin of the libraries, and the version of libavcodec. Raises ImportError if there are none."""
    with _opening:
        if not _opened:
            _opened.append(_open())
        place, version = _opened[0]
    return place, (version >> 16, version >> 8 & 255, version & 255)


def codecs() -> dict[str, bool]:
    """The supported video codecs, by FFmpeg's decoder names, and whether this FFmpeg has the decoder."""
    open_ffmpeg()
    found: dict[str, bool] = {}
    name = ctypes.create_string_buffer(16)
    while (is_there := kernels.library().ffmpeg_decodes(len(found), name)) >= 0:
        found[name.value.decode()] = bool(is_there)
    return found


def _open() -> tuple[str, int]:
    tried = []
    for place, util, codec in _candidates():
        error = ctypes.create_string_buffer(kernels.ERROR_SIZE)
        version = kernels.library().ffmpeg_open(os.fsencode(util), os.fsencode(codec), error)
        if version:
            return place, version
        tried.append(f"{place}: {error.value.decode('utf-8', 'replace')}")
    named = os.environ.get("PENSTOCK_FFMPEG")
    if named and not tried:
        raise ImportError(f"PENSTOCK_FFMPEG={named} holds no libavcodec and libavutil")
    raise ImportError(
        "decoding this needs FFmpeg's libraries: pip install penstock[video], or install FFmpeg on the system "
        "(Debian, Ubuntu: apt-get install ffmpeg), or set PENSTOCK_FFMPEG to the folder of libavcodec and libavutil"
        + "".join(f"\n  tried {t}" for t in tried)
    )


def _candidates() -> Iterator[tuple[str, str, str]]:
    """Candidates in order: origin, paths of libavutil and libavcodec."""
    named = os.environ.get("PENSTOCK_FFMPEG")
    if named:
        yield from _in_folder(named, named)
        return
    import importlib.util  # imported here to keep `import penstock` fast

    package = importlib.util.find_spec("av")
    if package is not None and package.origin:
        yield from _in_folder(
            "the package av", os.path.join(os.path.dirname(os.path.dirname(package.origin)), "av.libs")
        )
    for codec, util in _MAJORS:
        yield "the system", f"libavutil.so.{util}", f"libavcodec.so.{codec}"


def _in_folder(place: str, folder: str) -> Iterator[tuple[str, str, str]]:
    import glob  # imported here to keep `import penstock` fast

    util, codec = (sorted(glob.glob(os.path.join(folder, f"{name}*.so*"))) for name in ("libavutil", "libavcodec"))
    if util and codec:
        yield place, util[-1], codec[-1]
