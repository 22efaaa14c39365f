# SPDX-License-Identifier: Apache-2.0
"""Videos outside of pipelines: any frame of a file as a NumPy array.

>>> import penstock.video
>>> video = penstock.video.open("examples/clips/clock.mp4")
>>> len(video), video.fps, video.duration, video.codec
(12, 12.0, 1.0, 'h264')
>>> video[0].shape, video[-1].shape, video[2:8:3].shape
((48, 64, 3), (48, 64, 3), (2, 48, 64, 3))
"""

from __future__ import annotations

import ctypes
import math
import operator
import os
import weakref
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from .core import kernels, storage
from .core.kernels import library
from .core.memory import Buffer, view
from .core.rows import address
from .operators.decode._ffmpeg import open_ffmpeg
from .types import DALIImageType

__all__ = ["Colours", "Video", "open"]
_CODEC_BYTES, _FORMAT_BYTES = 16, 32
_MATRICES = {0: "rgb", 1: "bt709", 4: "fcc", 5: "bt601", 6: "bt601", 7: "smpte240m", 9: "bt2020", 10: "bt2020"}
_RANGES = {1: "limited", 2: "full"}
_SITINGS = {1: "left", 2: "centre", 3: "top left"}


class Colours(NamedTuple):
    """The colour properties that a stream declares; None if not declared. `Video` then assumes BT.601, limited
    range."""

    format: str  # FFmpeg's name of the pixel format, such as "yuv420p"
    matrix: str | None  # "bt601", "bt709", "bt2020", "fcc", "smpte240m" or "rgb"
    range: str | None  # "limited" or "full"
    chroma: str | None  # where chroma lies: "left", "centre" or "top left"


def open(path: str | os.PathLike[str], image_type: DALIImageType = DALIImageType.RGB) -> Video:
    """Opens a file (or URL): see `Video`. `image_type` is RGB, or YCbCr for the stream's own colours in 8 bits.

    Raises ValueError if it is not a supported video, OSError if there is no such file, ImportError without FFmpeg.
    """
    return Video(path, image_type)


class Video:
    """The frames of a video, in presentation order, uint8 of shape (height, width, 3).

    `video[i]` is a frame, `video[start:stop:step]` and `video[[3, 1, 1]]` are frames (n, height, width, 3). Frames are
    exact for any frame rate and position of key frames, and are decoded on request. Iterating is the fastest way to get
    all frames. Frames are not rotated: `rotation` is the angle by which players rotate them.

    >>> import penstock.video
    >>> video = penstock.video.open("examples/clips/clock.mp4")
    >>> video.times[[0, 3, 6]].tolist(), video.key_frames.tolist()
    ([0.0, 0.25, 0.5], [0, 5, 10])
    >>> video.played_at(0.25).shape, video.played_in(0.5, 1.0).shape
    ((48, 64, 3), (6, 48, 64, 3))
    >>> video.evenly(3).shape, video.random_clips(2, length=4, seed=0).shape, video[video.key_frames].shape
    ((3, 48, 64, 3), (2, 4, 48, 64, 3), (3, 48, 64, 3))
    >>> sum(1 for frame in video)
    12
    """

    path: str
    codec: str  # FFmpeg's name of it: "h264", "hevc", "vp9", "av1", ...
    height: int
    width: int
    rotation: int  # degrees counterclockwise: 0, 90, 180 or 270

    def __init__(self, path: str | os.PathLike[str], image_type: DALIImageType = DALIImageType.RGB):
        if image_type not in (DALIImageType.RGB, DALIImageType.YCbCr):
            raise ValueError(f"image_type takes RGB or YCbCr; got {image_type!r}")
        open_ffmpeg()
        self.path, self._as_ycbcr = os.fspath(path), int(image_type == DALIImageType.YCbCr)
        storage.version(self.path)  # raises OSError if the file does not exist
        info, codec, error = np.zeros(4, "i8"), ctypes.create_string_buffer(_CODEC_BYTES), _error()
        with storage.scanning(storage.is_url(self.path)):
            handle = library().video_open(os.fsencode(self.path), address(info), codec, error)
        if not handle:
            raise ValueError(f"{storage.without_secrets(self.path)}: {_text(error)}")
        self._opened: _Handle | None = _Handle(handle)
        self._n, self.height, self.width, self.rotation = info.tolist()
        self.codec = codec.value.decode()
        self.times, is_key = np.zeros(self._n), np.zeros(self._n, "?")  # presentation times in seconds
        library().video_timeline(handle, address(self.times), address(is_key))
        self.key_frames = np.flatnonzero(is_key)  # frames that can be decoded without others
        self.times.flags.writeable = self.key_frames.flags.writeable = False

    def __len__(self) -> int:
        return self._n

    @property
    def fps(self) -> float:
        """Frames per second, on average; 0 for a single frame."""
        lasts = float(self.times[-1] - self.times[0])
        return round((self._n - 1) / lasts, 9) if lasts > 0 else 0.0

    @property
    def duration(self) -> float:
        """Seconds from the first frame to the end of the last, which is assumed to last as long as the others."""
        return round(self._n / self.fps, 9) if self.fps else 0.0

    @cached_property
    def colours(self) -> Colours:
        """Decodes the first frame, as not all containers say it."""
        numbers, name, error = np.zeros(3, "i8"), ctypes.create_string_buffer(_FORMAT_BYTES), _error()
        if not library().video_colours(self._handle.value, address(numbers), name, error):
            raise self._failure(error)
        matrix, range, siting = numbers.tolist()
        return Colours(name.value.decode(), _MATRICES.get(matrix), _RANGES.get(range), _SITINGS.get(siting))

    def __getitem__(self, which: Any) -> np.ndarray:
        if isinstance(which, slice):
            return self._frames(np.arange(*which.indices(self._n)))
        if np.ndim(which) == 0:
            i = operator.index(which)
            if not -self._n <= i < self._n:
                raise IndexError(f"frame {i} of a video of {self._n} frames")
            return self._frames(np.array([i % self._n]))[0]
        numbers = np.asarray(which)
        if (
            numbers.dtype == bool
            or (numbers.size and not np.issubdtype(numbers.dtype, np.integer))
            or numbers.ndim != 1
        ):
            raise TypeError("frames are selected by an integer, a slice or a list of integers")
        bad = (numbers < -self._n) | (numbers >= self._n)
        if bad.any():
            raise IndexError(f"frame {numbers[bad][0]} of a video of {self._n} frames")
        return self._frames(numbers.astype("i8") % self._n)

    def played_at(self, seconds: float | Sequence[float] | np.ndarray) -> np.ndarray:
        """Returns the frame shown at a time (height, width, 3), or those shown at several times (n, height, width, 3).
        Raises ValueError for a time before the first frame or after the end."""
        at = np.asarray(seconds, "f8")
        end = float(self.times[0]) + self.duration
        bad = ~((at >= self.times[0]) & ((at < end) | (at <= self.times[-1])))
        if bad.any():
            raise ValueError(f"{np.extract(bad, at)[0]:g} s is outside of the video, {self.times[0]:g} to {end:g} s")
        # Times are only as exact as the file's clock.
        return self[np.maximum(np.searchsorted(self.times, at + 1e-6, "right") - 1, 0)]

    def played_in(self, start: float, stop: float) -> np.ndarray:
        """Returns the frames (n, height, width, 3) shown in a range of time: from the one shown at `start` to the last
        that begins before `stop`."""
        if not start <= stop:
            raise ValueError(f"a time from {start:g} to {stop:g} s")
        first = max(int(np.searchsorted(self.times, start + 1e-6, "right")) - 1, 0)
        end = int(np.searchsorted(self.times, stop - 1e-6))
        return self[first : max(end, first)]

    def evenly(self, n: int) -> np.ndarray:
        """Returns `n` frames (n, height, width, 3) at equal distances, from the first to the last; a single one is the
        first. Same as `uniform_sample` of `fn.experimental.readers.video`."""
        if n < 1:
            raise ValueError(f"evenly takes at least 1 frame; got {n}")
        return self[np.floor(np.linspace(0, self._n - 1, n) + 0.5).astype("i8")]

    def random_clips(self, n: int, length: int, stride: int = 1, seed: int | None = None) -> np.ndarray:
        """Returns `n` clips (n, length, height, width, 3) of `length` frames, `stride` apart, at random positions.
        Clips with the same beginning are decoded once. The same `seed` gives the same clips. Raises ValueError if the
        video is too short."""
        if min(n, length, stride) < 1:
            raise ValueError(f"n, length and stride take at least 1; got {n}, {length} and {stride}")
        span = (length - 1) * stride + 1
        if span > self._n:
            raise ValueError(f"a clip of {span} frames from a video of {self._n}; take a smaller length or stride")
        starts = np.random.default_rng(seed).integers(0, self._n - span + 1, n)
        numbers = starts[:, None] + np.arange(length) * stride
        return self[numbers.ravel()].reshape(n, length, self.height, self.width, 3)

    def __iter__(self) -> Iterator[np.ndarray]:
        """Iterates over the frames. Two threads decode ahead, with at most about 100 MB of pictures (or 8 of them, if
        these take more)."""
        handle, error = self._handle, _error()
        stream, process = library().video_stream_open(handle.value, 0), os.getpid()
        try:
            for i in range(self._n):
                if process != os.getpid():  # a fork, which leaves the stream's threads behind
                    stream, process = library().video_stream_open(handle.value, i), os.getpid()
                frame = _pixels((self.height, self.width, 3))
                if not library().video_stream_read(stream, 1, self._as_ycbcr, address(frame), error):
                    raise self._failure(error)
                yield frame
        finally:
            library().video_stream_close(stream)
            del handle  # keeps the video open until here

    def close(self) -> None:
        """Closes the file. The video can't be used afterwards."""
        self._opened = None

    def __enter__(self) -> Video:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return (
            f"<penstock.video.Video {storage.without_secrets(self.path)!r}: {self._n} frames of "
            f"{self.height} x {self.width}, {self.fps:g} fps, {self.codec}>"
        )

    @property
    def _handle(self) -> _Handle:
        if self._opened is None:
            raise ValueError(f"the video {storage.without_secrets(self.path)} is closed")
        return self._opened

    def _frames(self, numbers: np.ndarray) -> np.ndarray:
        once, back = np.unique(numbers, return_inverse=True)
        once, error = np.ascontiguousarray(once, "i4"), _error()
        frames = _pixels((len(once), self.height, self.width, 3))
        handle = self._handle
        if library().video_read(handle.value, address(once), len(once), self._as_ycbcr, address(frames), error) < 0:
            raise self._failure(error)
        return frames if np.array_equal(numbers, once) else frames[back]

    def _failure(self, error: ctypes.Array) -> ValueError:
        return ValueError(f"{storage.without_secrets(self.path)}: {_text(error)}")


class _Handle:
    """Owns a native OpenedVideo."""

    def __init__(self, value: int):
        self.value = value
        weakref.finalize(self, library().video_close, value).atexit = False


def _pixels(shape: tuple[int, ...]) -> np.ndarray:
    """An array in pool memory, as new memory is expensive: the system clears each page."""
    memory = Buffer(math.prod(shape))
    return view(memory.address, shape, np.dtype("u1"), memory)


def _error() -> ctypes.Array:
    return ctypes.create_string_buffer(kernels.ERROR_SIZE)


def _text(error: ctypes.Array) -> str:
    return error.value.decode("utf-8", "replace")
