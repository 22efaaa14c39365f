# SPDX-License-Identifier: Apache-2.0
"""Reads sequences of images from files."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ...core.dtypes import DALIImageType
from ...core.op import Arg
from ...core.source_name import SourceName
from ._file_names import folders_of_files
from ._records import Parsed, RecordReader, Records

_EXTENSIONS = ("jpg", "jpeg", "png", "bmp", "tif", "tiff", "pnm", "ppm", "pgm", "pbm", "jp2", "webp")
_MOST_PIXELS = 1 << 29  # per frame; larger ones are damaged or malicious


class Sequence(RecordReader):
    """Reads sequences of frames: images in the sub-folders of `file_root`, each of which is a stream.

    Frames of a stream are in the order of their names. A sequence begins at every `step`-th frame and has
    `sequence_length` frames, every `stride`-th; sequences that do not fit into the stream are omitted.

    The output is uint8 of shape (frames, height, width, channels), layout FHWC. A sequence with an image that can't be
    decoded, or with images of different sizes, is a bad sample (see `on_error` of the pipeline). Its source is the file
    of its first frame.

    >>> import os, tempfile
    >>> from penstock import fn, pipeline_def
    >>> root = tempfile.mkdtemp()
    >>> os.mkdir(f"{root}/stream")
    >>> for i in range(5):
    ...     _ = open(f"{root}/stream/{i}.pgm", "wb").write(b"P5 2 1 255 " + bytes([i, i]))
    >>> @pipeline_def(batch_size=2)
    ... def pipe():
    ...     return fn.readers.sequence(file_root=root, sequence_length=2, stride=2)
    >>> pipe().run()[0].at(1)[..., 0, 0].tolist()
    [[1], [3]]
    """

    module = "readers"
    deprecated = ("SequenceReader",)
    parser = "read/sequence"

    file_root = Arg(str, doc="Folder whose sub-folders are the streams.")
    sequence_length = Arg(int, doc="Frames of a sequence.")
    step = Arg(int, 1, "Distance between the first frames of consecutive sequences.")
    stride = Arg(int, 1, "Distance between consecutive frames of a sequence.")
    image_type = Arg(DALIImageType, DALIImageType.RGB, "Colour space of the output: RGB, BGR, GRAY or ANY_DATA.")

    def setup(self) -> None:
        super().setup()
        v, name = self.values, "fn.readers.sequence"
        for argument in ("sequence_length", "step", "stride"):
            if v[argument] < 1:
                raise ValueError(f"{name}: {argument} takes at least 1; got {v[argument]}")
        if v["image_type"] == DALIImageType.YCbCr:
            raise ValueError(f"{name}: image_type takes RGB, BGR, GRAY or ANY_DATA; got YCbCr")

    def parsed(self) -> tuple[Parsed, ...]:
        return (Parsed(np.dtype("u1"), (None, None, None, None), "FHWC"),)

    def parser_arguments(self) -> dict[str, Any]:
        return {"most_pixels": _MOST_PIXELS, "image_type": int(self.values["image_type"])}

    def find(self) -> Records:
        v = self.values
        root = os.path.expanduser(v["file_root"])
        names, counts = folders_of_files(root, [f"*.{e}" for e in _EXTENSIONS])
        length, step, stride = v["sequence_length"], v["step"], v["stride"]
        places = np.arange(length) * stride
        begins = np.cumsum([0, *counts])
        firsts = [b + np.arange(0, max(n - int(places[-1]), 0), step) for b, n in zip(begins.tolist(), counts)]
        first = np.concatenate([*firsts, np.zeros(0, "i8")]).astype("i8")
        if not len(first):
            raise ValueError(
                f"there are no sequences of {length} frames with stride {stride} in the {len(counts)} sub-folders of "
                f"{root}"
            )
        frame = first[:, None] + places
        return Records(names, frame, np.zeros_like(frame), np.full_like(frame, -1))

    def source_name(self, index: int) -> SourceName:
        assert self.records.object is not None
        return self.records.objects.path(int(self.records.object[index, 0]))
