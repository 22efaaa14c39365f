# SPDX-License-Identifier: Apache-2.0
"""What the headers of a batch of encoded images say, read natively in one call."""

from __future__ import annotations

from functools import cache

import numpy as np

from ...core import kernels
from ...core.batch import Batch
from ...core.dtypes import DALIImageType
from ...core.errors import SampleErrors
from ...core.rows import address

JPEG = 1
_BYTE = np.dtype("u1")


@cache
def _info_type() -> np.dtype:
    return kernels.read_struct(kernels.read_header("decode/image.h"), "ImageInfo")[0]


def read_headers(
    batch: Batch | None, image_type: DALIImageType, oriented: bool = True, max_pixels: int = -1
) -> tuple[np.ndarray, np.ndarray]:
    """(n,) records of format, height, width, channels, depth (bits) and EXIF orientation, and the (n, 3) shapes of the
    images decoded to a colour space: height, width, channels, turned as the orientation says if `oriented`.

    SampleErrors names what is no image and, if `max_pixels` are given, what has more of them or is certainly
    truncated."""
    assert batch is not None
    spec = batch.spec
    if spec.ndim != 1 or spec.dtype != _BYTE:
        raise ValueError(
            f"an encoded image is a vector of bytes (uint8, 1 dimension); got {spec.dtype.name} with {spec.ndim} "
            "dimensions"
        )
    n, rows = spec.n, np.ascontiguousarray(batch.rows)
    info, shape, errors = np.empty(n, _info_type()), np.empty((n, 3), "i8"), np.empty(n, f"S{kernels.ERROR_SIZE}")
    channels = 0 if image_type == DALIImageType.ANY_DATA else 1 if image_type == DALIImageType.GRAY else 3
    if kernels.library().plan_images(
        *(address(rows), n, min(max_pixels, 2**63 - 1), oriented, channels),
        *(address(info), address(shape), address(errors)),
    ):
        text = errors.view("u1").reshape(n, kernels.ERROR_SIZE)
        SampleErrors.where(info["format"] == 0, lambda i: text[i].tobytes().split(b"\0")[0].decode("utf-8", "replace"))
    return info, shape
