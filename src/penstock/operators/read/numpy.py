# SPDX-License-Identifier: Apache-2.0
"""Reads arrays from .npy files, or regions of them."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ...core.batch import Batch
from ...core.op import Arg, Arguments, PerSample
from ...core.rows import MAX_DIMS
from ._files_of_folder import FilesOfFolder
from ._records import Parsed, Records

_STARTS, _ENDS = ("roi_start", "rel_roi_start"), ("roi_end", "rel_roi_end", "roi_shape", "rel_roi_shape")
_OUTSIDE = ("error", "pad", "trim_to_shape")
# Bytes read first; the header then determines the region's position. No .npy file is smaller.
_HEAD = 64


class Numpy(FilesOfFolder):
    """Reads arrays from .npy files.

    The files are given in one of three ways: `file_root` alone is a folder, which is searched with its sub-folders for
    files that match `file_filter`; `files` is a list; `file_list` is a text file with one path per line.

    The output has the type and shape of the array, and no layout. Files must have version 1 to 3 and contain numbers or
    booleans in the byte order of this machine, in C or Fortran order; all arrays of a batch must have the same type and
    number of dimensions. For a region of interest, only the bytes from its first to its last element in the file are
    read. A file that is damaged, or that does not contain the region, is a bad sample (see `on_error` of the pipeline).

    If the region is data, such as random numbers, each sample has its own; an empty vector means the whole array. Such
    samples can't be read ahead, only when their regions are known.

    With device="gpu", arrays and regions that are stored as they are returned are read with GPUDirect Storage, without
    passing through host memory, if the machine supports it (`penstock doctor` reports whether it does, and if not,
    why). Others are read by the CPU and copied to the GPU.

    >>> import os, tempfile
    >>> import numpy as np
    >>> from penstock import fn, pipeline_def
    >>> path = os.path.join(tempfile.mkdtemp(), "a.npy")
    >>> np.save(path, np.arange(12).reshape(3, 4))
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return fn.readers.numpy(files=[path], roi_start=[1, 2], rel_roi_shape=[0.34, 0.5])
    >>> pipe().run()[0].at(0).tolist()
    [[6, 7]]
    """

    module = "readers"
    devices = ("cpu", "gpu")
    deprecated = ("NumpyReader",)
    parser = "read/npy"
    gpu_files: Any = None  # reads into GPU memory without a copy in host memory

    file_filter = Arg(str, "*.npy", "Glob pattern of the files to read from `file_root`.")
    roi_start = PerSample([int], None, "Start of the region, in elements.", ragged=True)
    rel_roi_start = PerSample([float], None, "Start of the region; 1.0 is the end of the array.", ragged=True)
    roi_end = PerSample([int], None, "End of the region in elements, exclusive.", ragged=True)
    rel_roi_end = PerSample([float], None, "End of the region; 1.0 is the end of the array.", ragged=True)
    roi_shape = PerSample([int], None, "Shape of the region, in elements.", ragged=True)
    rel_roi_shape = PerSample([float], None, "Shape of the region; 1.0 is that of the array.", ragged=True)
    roi_axes = Arg([int], [], "Axes of the region, in the order of the values. By default all.")
    out_of_bounds_policy = Arg(
        str,
        "error",
        'What happens if the region extends beyond the array: "error" raises an error, "pad" fills with `fill_value`, '
        '"trim_to_shape" cuts the region.',
    )
    fill_value = Arg(float, 0.0, 'Value beyond the array, for "pad".')
    use_o_direct = Arg(bool, False, "Whether to bypass the system's cache, for data read once. Not with a region.")
    cache_header_information = Arg(
        bool, False, "Accepted for compatibility; headers are read with the data.", hidden=True
    )
    register_buffers = Arg(bool, True, "Accepted for compatibility; no buffers have to be registered.", hidden=True)

    def setup(self) -> None:
        super().setup()
        v, name = self.values, "fn.readers.numpy"
        given = self.given
        for group in (_STARTS, _ENDS):
            if len(given.intersection(group)) > 1:
                several = ", ".join(n for n in group if n in given)
                raise ValueError(f"{name}: give one of {', '.join(group)}; got {several}")
        v["out_of_bounds_policy"] = v["out_of_bounds_policy"].lower()
        if v["out_of_bounds_policy"] not in _OUTSIDE:
            raise ValueError(
                f"{name}: out_of_bounds_policy takes 'error', 'pad' or 'trim_to_shape'; "
                f"got {v['out_of_bounds_policy']!r}"
            )
        # For arguments that are data, the number of values is known only in the batch.
        self.named = [n for n in (*_STARTS, *_ENDS) if n in given and (v[n] is None or v[n])]
        counts, n_axes = {len(v[n]) for n in self.named if v[n] is not None}, len(v["roi_axes"])
        if (
            len((counts | {n_axes or 1}) - {1}) > 1
            or (n_axes == 1 and counts - {1})
            or max(counts, default=0) > MAX_DIMS
        ):
            lengths = ", ".join(f"{n} has {len(v[n] or ())}" for n in (*self.named, "roi_axes") if v[n] is not None)
            raise ValueError(f"{name}: the arguments of the region need one value for each axis; {lengths}")
        if n_axes > MAX_DIMS:
            raise ValueError(f"{name}: roi_axes has {n_axes} axes, arrays have at most {MAX_DIMS}")
        if self.named and v["use_o_direct"]:
            raise ValueError(f"{name}: 'use_o_direct' reads whole files, and can't be used with {self.named[0]}")

    def n_outputs(self) -> int:
        return 1

    def found(self) -> int:
        self.gpu_files = self.gpu.files() if 0 in self.uploaded else None
        return super().found()

    def parsed(self) -> tuple[Parsed, ...]:
        where = Parsed(np.dtype("i8"), (1,))  # position in the file, if the GPU reads it from there
        return (Parsed(None, None), *([where] * self._stays))

    @property
    def _stays(self) -> bool:
        """Whether arrays are read separately from their headers."""
        return self.gpu_files is not None

    def finish(self, index: np.ndarray, batches: tuple[Batch, ...]) -> tuple[Batch, ...]:
        if self.gpu_files is None:
            return batches
        paths = [os.fsencode(self.records.objects.full_path(i)) for i in index.tolist()]
        return (self.gpu_files.read(batches[0], paths, batches[1].array().ravel()),)

    def parser_arguments(self) -> dict[str, Any]:
        known = {n: np.array([self.values[n] or []]) for n in self.named}
        return self._region(1, known, {n: np.array([x.shape[1]]) for n, x in known.items()})

    def parser_arguments_by(self, a: Arguments) -> dict[str, Any]:
        return self._region(a.n, {n: getattr(a, n) for n in self.named}, {n: a.lengths(n) for n in self.named})

    def _region(self, rows: int, values: dict[str, np.ndarray], lengths: dict[str, np.ndarray]) -> dict[str, Any]:
        """The parser's arguments. `values` (rows, k), of which `lengths` (rows,) are used; one row per sample, or one
        for all."""
        v = self.values
        axes = np.zeros((1, MAX_DIMS), "i4")
        axes[:, : len(v["roi_axes"])] = v["roi_axes"]
        fields = {
            "has_window": int(bool(self.named) or self._stays),
            "n_rows": rows,
            "n_axes": len(v["roi_axes"]),
            "outside": _OUTSIDE.index(v["out_of_bounds_policy"]),
            "fill_value": v["fill_value"],
            "stays": int(self._stays),
            "axes": axes,
        }
        for end, names in (("start", _STARTS), ("end", _ENDS)):
            kind, name = next(((k, n) for k, n in enumerate(names, 1) if n in values), (0, ""))
            count = lengths[name] if name else np.zeros(rows, "i4")
            if count.max(initial=0) > MAX_DIMS:
                raise ValueError(f"{name} has {count.max()} values, arrays have at most {MAX_DIMS} axes")
            absolute, relative = np.zeros((1, rows, MAX_DIMS), "i4"), np.zeros((1, rows, MAX_DIMS), "f4")
            if name:
                column = values[name]
                (relative if name.startswith("rel_") else absolute)[0, :, : column.shape[1]] = column
            fields |= {
                f"{end}_is": kind,
                f"{end}_count": count[None].astype("i4"),
                end: relative,
                f"{end}_at": absolute,
            }
        return fields

    def find(self) -> Records:
        names = self.find_files()
        if names.has_urls:
            self.gpu_files = None
        if not self.named and not self._stays:
            return Records(names)
        n = len(names)
        return Records(names, np.arange(n), np.zeros(n, "i8"), np.full(n, _HEAD), gap=0)
