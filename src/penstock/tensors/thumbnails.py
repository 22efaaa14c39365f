# SPDX-License-Identifier: Apache-2.0
"""Batches of images as HTML, for notebooks. PNG is encoded here with zlib, so no further package is required."""

from __future__ import annotations

import base64
import html
import struct
import zlib
from collections.abc import Sequence

import numpy as np

_LARGEST_PX = 128
_MOST = 32


def png(image: np.ndarray) -> bytes:
    """A PNG file of an image (H, W, 1) or (H, W, 3) of uint8."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    height, width, channels = image.shape
    header = struct.pack(">IIBBBBB", width, height, 8, 2 if channels == 3 else 0, 0, 0, 0)
    rows = np.concatenate([np.zeros((height, 1), "u1"), image.reshape(height, -1)], axis=1)  # filter 0 before each row
    pixels = zlib.compress(rows.tobytes(), 1)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def as_image(sample: np.ndarray, layout: str) -> np.ndarray | None:
    """A thumbnail (H, W, 1 or 3), uint8; None if the sample is not an image. Values of other types are scaled to the
    full range."""
    layout = layout or {3: "HWC"}.get(sample.ndim, "")
    if layout[:1] in ("F", "D") and sample.ndim == 4 and sample.size:
        sample, layout = sample[0], layout[1:]
    if len(layout) != sample.ndim or set(layout) not in ({"H", "W"}, {"H", "W", "C"}) or not sample.size:
        return None
    image = np.transpose(sample, [layout.index(c) for c in "HWC" if c in layout])
    image = image.reshape(*image.shape[:2], -1)
    if image.shape[2] not in (1, 3, 4):
        return None
    step = -(-max(image.shape[:2]) // _LARGEST_PX)
    image = image[::step, ::step, :3]
    if image.dtype != np.uint8:
        image = image.astype("f4")
        finite = image[np.isfinite(image)]
        low, high = (finite.min(), finite.max()) if finite.size else (0, 1)
        image = np.nan_to_num((image - low) / max(high - low, 1e-30) * 255).clip(0, 255).astype("u1")
    return np.ascontiguousarray(image)


def grid(title: str, samples: Sequence[np.ndarray], layout: str, sources: Sequence[str]) -> str | None:
    """HTML with the first samples as images, or None if they are not images."""
    cells = []
    for i, sample in enumerate(samples[:_MOST]):
        image = as_image(sample, layout)
        if image is None:
            return None
        data = base64.b64encode(png(image)).decode()
        text = html.escape(
            f"{i}: {'x'.join(map(str, sample.shape))} {sources[i] if sources else ''}".strip(), quote=True
        )
        cells.append(
            f'<img src="data:image/png;base64,{data}" title="{text}" style="margin:2px;image-rendering:pixelated">'
        )
    if not cells:
        return None
    more = f"<div>and {len(samples) - _MOST} more</div>" if len(samples) > _MOST else ""
    return f"<div><div><code>{html.escape(title)}</code></div>{''.join(cells)}{more}</div>"
