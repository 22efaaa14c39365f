# SPDX-License-Identifier: Apache-2.0
"""Reads images from FITS files."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtypes import DALIDataType
from ...core.op import Arg
from ._files_of_folder import FilesOfFolder
from ._records import Parsed, Records


class Fits(FilesOfFolder):
    """Reads images from FITS files.

    The files are given in one of three ways: `file_root` alone is a folder, which is searched with its sub-folders for
    files that match `file_filter`; `files` is a list; `file_list` is a text file with one path per line.

    There is one output for each of `hdu_indices`, with the type and shape of the image. Axes are reversed: the first
    axis in FITS, which varies fastest, is the last one here. If BSCALE and BZERO are given, values are
    `BSCALE * stored + BZERO`. Their type is the smallest integer type that holds all of them if the values are only
    shifted by an integer (as unsigned ones are), otherwise float for up to 16 bits and double for more, as in CFITSIO
    and DALI. BLANK is ignored. All images of a batch must have the same type and number of dimensions.

    Images with tile compression are decompressed, including quantised floats: RICE_1, GZIP_1, GZIP_2, PLIO_1,
    HCOMPRESS_1 and NOCOMPRESS. Tables and damaged files are bad samples (see `on_error` of the pipeline). With
    device="gpu", the CPU reads the images, and they are copied to the GPU.

    >>> import os, tempfile
    >>> from penstock import fn, pipeline_def
    >>> path = os.path.join(tempfile.mkdtemp(), "a.fits")
    >>> cards = "SIMPLE  = T", "BITPIX  = 8", "NAXIS   = 2", "NAXIS1  = 3"
    >>> cards += "NAXIS2  = 2", "END"
    >>> header = "".join(card.ljust(80) for card in cards).ljust(2880)
    >>> _ = open(path, "wb").write(header.encode() + bytes(range(6)))
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return fn.experimental.readers.fits(files=[path], hdu_indices=[1])
    >>> pipe().run()[0].at(0).tolist()
    [[0, 1, 2], [3, 4, 5]]
    """

    module = "experimental.readers"
    devices = ("cpu", "gpu")
    parser = "read/fits"

    file_filter = Arg(str, "*.fits", "Glob pattern of the files to read from `file_root`.")
    hdu_indices = Arg([int], [2], "HDUs to read, counted from 1 (the primary HDU). By default the one after it.")
    dtypes = Arg([DALIDataType], None, "Required types of the outputs. By default any; outputs have the images' types.")

    def setup(self) -> None:
        super().setup()
        v, name = self.values, "fn.experimental.readers.fits"
        hdus = v["hdu_indices"]
        if not hdus or min(hdus) < 1:
            raise ValueError(f"{name}: hdu_indices takes numbers of HDUs, the first of which is 1; got {hdus}")
        if v["dtypes"] is not None and len(v["dtypes"]) != len(hdus):
            raise ValueError(f"{name}: {len(v['dtypes'])} dtypes for {len(hdus)} hdu_indices; give one for each")

    def n_outputs(self) -> int:
        return len(self.values["hdu_indices"])

    def parsed(self) -> tuple[Parsed, ...]:
        return (Parsed(None, None),) * self.n_outputs()

    def parser_arguments(self) -> dict[str, Any]:
        v = self.values
        types = [-1] * self.n_outputs() if v["dtypes"] is None else [int(t) for t in v["dtypes"]]
        return {
            "hdus": np.array([v["hdu_indices"]], "i8"),
            "dtypes": np.array([types], "i8"),
            "n_outputs": self.n_outputs(),
        }

    def find(self) -> Records:
        return Records(self.find_files())
