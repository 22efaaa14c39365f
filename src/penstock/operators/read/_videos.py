# SPDX-License-Identifier: Apache-2.0
"""The files of video readers: indices, frame times, and ranges of file lists."""

from __future__ import annotations

import os
import warnings
import weakref
from typing import Any

import numpy as np

from ...core import kernels, storage
from ...core.kernels import library
from ...core.rows import address
from ._file_names import FileNames, lines_of, scan
from ._kept_tables import kept
from ._scanning import progress

ROUNDINGS = {  # of a range's first frame, and of its end (exclusive)
    "start_down_end_up": ("down", "up"),
    "start_up_end_down": ("up", "down"),
    "all_up": ("up", "up"),
    "all_down": ("down", "down"),
}
_VIDEOS = ("mp4", "mov", "m4v", "mkv", "webm", "avi", "ts", "mts", "m2ts", "mpg", "mpeg", "vob")
_THREADS = 4  # for reading indices
_AT_ONCE = 256  # files between reports of progress


class Videos:
    """The indices of a data set's videos, read when the pipeline is built, or from the user's cache if the files have
    not changed. Unreadable videos have 0 frames and a reason in `errors`."""

    def __init__(self, names: FileNames):
        self.names, n = names, len(names)
        self._info, self._texts = np.zeros((n, 3), "i8"), np.zeros((n, kernels.ERROR_SIZE), "u1")
        self.handle = library().video_files_open(n)
        self._close = weakref.finalize(self, library().video_files_close, self.handle)
        self._close.atexit = False  # native threads may use it until the process exits
        self._is_known = False
        try:
            packed = kept("videos 3", names.full_paths(), self._scanned)["indices"]
            if not self._is_known and not self._unpack(packed):
                self._scan()
        except OSError:  # some files have no size or time of change
            self._scan()
        self.frames = self._info[:, 0]
        self.errors = {
            int(i): self._texts[i].tobytes().partition(b"\0")[0].decode("utf-8", "replace")
            for i in np.flatnonzero(self.frames == 0)
        }

    def _scan(self) -> None:
        self._is_known, n = True, len(self.names)
        with storage.scanning(self.names.has_urls), progress("videos", n) as done:
            for first in range(0, n, _AT_ONCE):
                library().video_files_scan(
                    *(self.handle, self.names.root_address, self.names.text_address, self.names.begins_address),
                    *(first, min(first + _AT_ONCE, n), _THREADS, address(self._info), address(self._texts)),
                )
                done(min(first + _AT_ONCE, n))

    def _scanned(self) -> dict[str, np.ndarray]:
        self._scan()
        indices = np.zeros(library().video_files_pack(self.handle, 0), "u1")
        library().video_files_pack(self.handle, address(indices))
        return {"indices": indices}

    def _unpack(self, packed: np.ndarray) -> bool:
        return library().video_files_unpack(
            self.handle, address(packed), packed.size, address(self._info), address(self._texts)
        )

    def __len__(self) -> int:
        return len(self.frames)

    def times(self, first: int = 0, end: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Presentation times in seconds of the frames of files `first` to `end` (default: all), concatenated, and the
        start of each file."""
        end = len(self) if end is None else end
        begins = np.cumsum(np.append(0, self.frames[first:end]))
        times = np.zeros(int(begins[-1]), "f8")
        library().video_times(self.handle, first, end, address(times))
        return times, begins[:-1]

    def times_of(self, file: int) -> np.ndarray:
        """Presentation times (frames,) of a file's frames, in seconds."""
        return self.times(file, file + 1)[0]

    def spans(self, file: np.ndarray, frames: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Offsets (n,) and lengths (n,) in bytes of the data needed for `frames` (n, count) of `file` (n,)."""
        offset, length = np.zeros(len(file), "i8"), np.zeros(len(file), "i8")
        library().video_spans(
            *(self.handle, address(file), address(frames), len(file), frames.shape[1]),
            *(address(offset), address(length)),
        )
        return offset, length


Ranges = list[tuple[str, ...]]  # by file: start and end in its line of the file list, if given


def find_files(who: str, v: dict[str, Any]) -> tuple[FileNames, np.ndarray | None, Ranges | None]:
    """The files, their labels (or None), and their ranges from a file list (or None)."""
    given = [k for k in ("filenames", "file_root", "file_list") if v[k]]
    if len(given) != 1:
        raise ValueError(f"{who}: one of 'filenames', 'file_root' and 'file_list' is needed; got {given or 'none'}")
    if v["labels"] is not None and not v["filenames"]:
        raise ValueError(f"{who}: 'labels' can be used only together with 'filenames'")
    if v["filenames"]:
        names = FileNames("", [[os.fsencode(os.path.expanduser(f)) for f in v["filenames"]]])
        labels = v["labels"]
        if labels is not None and len(labels) != len(names):
            raise ValueError(f"{who}: {len(labels)} labels for {len(names)} files; each file needs one")
        return names, None if labels is None else np.array(labels, "i4"), None
    if v["file_root"]:
        root = os.path.expanduser(v["file_root"])
        names, labels, folders = scan(root, None, [f"*.{e}" for e in _VIDEOS], False)
        if not len(names):
            kinds = ", ".join(f"*.{e}" for e in _VIDEOS)
            raise ValueError(f"{who}: no videos ({kinds}) in the {len(folders)} sub-folders of {root}")
        return names, labels, None
    return _listed(who, os.path.expanduser(v["file_list"]))


def _listed(who: str, path: str) -> tuple[FileNames, np.ndarray, Ranges]:
    names, labels, ranges = [], [], []
    for number, line in enumerate(lines_of(path), 1):
        words = os.fsdecode(line).split()
        if not words:
            continue
        try:
            label = int(words[1])
            bounds = [float(w) for w in words[2:]]
            if len(words) > 4 or not 0 <= label < 2**31 or not np.isfinite(bounds).all():
                raise ValueError
        except (IndexError, ValueError):
            raise ValueError(
                f"{who}: line {number} of the file list {path} must be a path, an integer label (0 or more) and, if "
                f"wanted, the range's start and end; got {line.strip()!r}"
            ) from None
        if len(bounds) == 2 and bounds[0] == bounds[1]:
            warnings.warn(
                f"{who}: line {number} of the file list {path} is left out, as its range is empty: {line.strip()!r}",
                stacklevel=2,
            )
            continue
        names.append(os.fsencode(words[0]))
        labels.append(label)
        ranges.append(tuple(words[2:]))
    if not names:
        raise ValueError(f"{who}: the file list {path} has no entries")
    return FileNames(storage.folder_of(path), [names]), np.array(labels, "i4"), ranges


def range_in_frames(words: tuple[str, ...], n: int, times: Any, rounding: str) -> tuple[int, int]:
    """First frame and end (exclusive) of a range of a video of n frames. `times()` returns the frames' times; None if
    the range is in frame numbers."""
    if not words:
        return 0, n
    if times is None:
        start, end = (int(float(w)) for w in (*words, str(n))[:2])
        return max(start + n if start < 0 else start, 0), min(end + n if end < 0 else end, n)
    seconds, shown = [float(w) for w in words], times()
    found = []
    for second, side in zip(seconds, ROUNDINGS[rounding]):
        # Frame times are only as exact as the file's clock.
        up = int(np.searchsorted(shown, second - 1e-6))
        exact = up < n and abs(shown[up] - second) <= 1e-6
        found.append(up if side == "up" or exact else max(up - 1, 0))
    return found[0], found[1] if len(found) == 2 else n
