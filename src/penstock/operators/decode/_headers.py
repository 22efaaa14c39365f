# SPDX-License-Identifier: Apache-2.0
"""What the headers of a batch of encoded images say, read natively in one call."""

from __future__ import annotations

from functools import cache

import numpy as np

from ...core import kernels
from ...core.batch import Batch
from ...core.dtypes import DALIImageType
from ...core.errors import SampleErrors

JPEG = 1


@cache
def _info_type() -> np.dtype:
    return kernels.read_struct(kernels.read_header("decode/image.h"), "ImageInfo")[0]


def read_headers(batch: Batch | None) -> np.ndarray:
    """(n,) records of format, height, width, channels, depth (bits) and EXIF orientation. SampleErrors names what is no
    image."""
    assert batch is not None
    spec = batch.spec
    if spec.ndim != 1 or spec.dtype != np.uint8:
        raise ValueError(
            f"an encoded image is a vector of bytes (uint8, 1 dimension); got {spec.dtype.name} with {spec.ndim} "
            "dimensions"
        )
    rows = np.ascontiguousarray(batch.rows)
    info = np.zeros(spec.n, _info_type())
    errors = np.zeros(spec.n, f"S{kernels.ERROR_SIZE}")
    if kernels.library().peek_images(rows.ctypes.data, spec.n, info.ctypes.data, errors.ctypes.data):
        SampleErrors.where(info["format"] == 0, lambda i: bytes(errors[i]).decode("utf-8", "replace"))
    return info


def oriented_size(info: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(n,) heights and widths as they are after the EXIF orientation is applied: 5 to 8 exchange the axes."""
    turned = info["orientation"] >= 5
    height, width = info["height"].astype("i8"), info["width"].astype("i8")
    return np.where(turned, width, height), np.where(turned, height, width)


def channels_of(info: np.ndarray, image_type: DALIImageType) -> np.ndarray:
    """(n,) channels of images decoded to a colour space."""
    if image_type == DALIImageType.ANY_DATA:
        return info["channels"].astype("i8")
    return np.full(len(info), 1 if image_type == DALIImageType.GRAY else 3, "i8")
