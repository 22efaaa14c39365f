# SPDX-License-Identifier: Apache-2.0
"""Writes images to files, for debugging."""

from __future__ import annotations

import numpy as np

from ...core.batch import Batch
from ...core.errors import SampleErrors
from ...core.new_files import replacing
from ...core.op import Arg, Arguments, Layout, Operator


class DumpImage(Operator):
    """Writes each image of a batch to a file in the working folder, for debugging, and returns the images unchanged.

    Images are uint8 of shape (height, width, channels) with 3 channels or 1. Sample i is written to `i-suffix-0.ppm` in
    the text form of PPM (PGM if it is grey); the next batch overwrites the files. Like any operator, it is removed if
    its output is not used, unless `preserve=True` is given.

    >>> import os, tempfile
    >>> import numpy as np
    >>> from penstock import fn, pipeline_def, types
    >>> before = os.getcwd()
    >>> os.chdir(tempfile.mkdtemp())
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return fn.dump_image(types.Constant(np.uint8([[[1, 2, 3]]])), suffix="in")
    >>> _ = pipe().run()
    >>> open("0-in-0.ppm").read().split()
    ['P3', '1', '1', '255', '1', '2', '3']
    >>> os.chdir(before)
    """

    devices = ("cpu", "gpu")  # the CPU writes them
    by_frame = False
    in_order = True  # batches write to the same files
    suffix = Arg(str, "", "Part of the file names.")
    input_layout = Arg(Layout, "HWC", "Layout of the images. Only HWC is supported.")

    def setup(self) -> None:
        if "\0" in self.values["suffix"]:
            raise ValueError(
                f"{self.display_name()}: no file's name has a zero byte; suffix is {self.values['suffix']!r}"
            )
        if self.values["input_layout"] != "HWC":
            raise ValueError(
                f"{self.display_name()}: input_layout is HWC; got '{self.values['input_layout']}': fn.transpose first"
            )

    def run(self, a: Arguments, x: Batch) -> Batch:
        s = x.spec
        if s.ndim != 3 or s.layout not in ("", "HWC"):
            raise ValueError(f"images have the layout HWC; got {s.layout or 'no layout'} and {s.ndim} dimensions")
        if s.dtype != np.uint8:
            raise ValueError(f"images are of type uint8; got {s.dtype.name}: fn.cast first")
        SampleErrors.where(
            ~np.isin(s.shape[:, 2], (1, 3)),
            lambda i: f"images have 1 or 3 channels; got shape {s.shape[i].tolist()}",
        )
        SampleErrors.where(
            (s.shape == 0).any(axis=1), lambda i: f"an image without pixels can't be written: {s.shape[i].tolist()}"
        )
        for i in range(a.n):
            self._write(f"{i}-{self.values['suffix']}-0.ppm", x.sample(i))
        return x

    def _write(self, path: str, image: np.ndarray) -> None:
        h, w, c = image.shape
        rows = ("".join(f"{v} " for v in row) for row in image.reshape(h, w * c).tolist())
        with replacing(path, "w") as f:
            f.write(f"P{3 if c == 3 else 2}\n{w} {h}\n255\n" + "\n".join(rows) + "\n")
