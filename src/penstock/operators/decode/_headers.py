# SPDX-License-Identifier: Apache-2.0
"""Reads the headers of a batch of encoded images, in one native call."""

from __future__ import annotations

from functools import cache

import numpy as np

from ...core import kernels
from ...core.batch import Batch
from ...core.dtypes import DALIImageType
from ...core.errors import SampleErrors
from ...core.rows import allocate
from ...core.tracing import IMMEDIATE, Native

JPEG = 1
_BYTE, _INT64 = np.dtype("u1"), np.dtype("i8")
_BYTES = (_BYTE, np.dtype("i1"))


@cache
def _info_type() -> np.dtype:
    return kernels.read_struct(kernels.read_header("decode/image.h"), "ImageInfo")[0]


def read_headers(
    batch: Batch | None,
    image_type: DALIImageType,
    oriented: bool = True,
    max_pixels: int = -1,
    native: Native = IMMEDIATE,
) -> tuple[np.ndarray, np.ndarray]:
    """Records (n,) of format, height, width, channels, depth (bits) and EXIF orientation, and the shapes (n, 3) of the
    images decoded to `image_type`: height, width, channels; after rotation by the orientation if `oriented`.

    Raises SampleErrors for samples that are not images and, with `max_pixels`, for larger and definitely truncated
    images."""
    assert batch is not None
    spec = batch.spec
    if spec.ndim < 1 or spec.dtype not in _BYTES:
        raise ValueError(
            f"an encoded image is an array of bytes (uint8 or int8); got {spec.dtype.name} with {spec.ndim} dimensions"
        )
    n = spec.n
    (info, at_info), (shape, at_shape) = native.allocate(n, _info_type()), native.allocate((n, 3), _INT64)
    channels = 0 if image_type == DALIImageType.ANY_DATA else 1 if image_type == DALIImageType.GRAY else 3

    def read(errors: int | None) -> int:
        return native.call(
            "plan_images", batch.rows_address, n, max_pixels, oriented, channels, at_info, at_shape, errors
        )

    if read(None):
        texts, at = allocate((n, kernels.ERROR_SIZE), _BYTE)
        read(at)
        SampleErrors.where(info["format"] == 0, lambda i: texts[i].tobytes().split(b"\0")[0].decode("utf-8", "replace"))
    return info, shape
