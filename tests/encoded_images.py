# SPDX-License-Identifier: Apache-2.0
"""Encoded test images, and what they are to look like decoded, from Pillow and the definitions of the colour spaces."""

import io

import numpy as np
from PIL import Image, ImageOps

RGB, BGR, GRAY, YCBCR, ANY_DATA = range(5)
TOPS = {0: 255, 1: 65535, 2: 2**32 - 1, 4: 127, 5: 32767, 6: 2**31 - 1, 9: 1}
NUMPY = {0: "u1", 1: "u2", 2: "u4", 4: "i1", 5: "i2", 6: "i4", 9: "f4"}


def photograph(seed: int, h: int, w: int, mode: str = "RGB") -> Image.Image:
    """Smooth colours: JPEG would make noise of noise."""
    rng = np.random.default_rng(seed)
    small = rng.integers(0, 256, (h // 6 + 2, w // 6 + 2, 4)).astype("u1")
    return Image.fromarray(small).resize((w, h), Image.BICUBIC).convert(mode)


def encode(image: Image.Image, fmt: str, **options) -> np.ndarray:
    file = io.BytesIO()
    image.save(file, fmt, **options)
    return np.frombuffer(file.getvalue(), "u1")


def oriented(orientation: int) -> Image.Exif:
    exif = Image.Exif()
    exif[0x112] = orientation
    return exif


def jpegs() -> list[np.ndarray]:
    return [
        encode(photograph(1, 45, 67), "JPEG", quality=90, exif=oriented(6)),
        encode(photograph(2, 1, 1), "JPEG", subsampling="4:4:4"),
        encode(photograph(3, 130, 99), "JPEG", progressive=True),
        encode(photograph(4, 33, 80, "L"), "JPEG", exif=oriented(3)),
        encode(photograph(5, 64, 64), "JPEG", subsampling="4:2:2", exif=oriented(5)),
    ]


def mixed() -> list[np.ndarray]:
    """One of each other format; misnamed files need no test as there are no names."""
    return [
        encode(photograph(1, 45, 67, "RGBA"), "PNG", exif=oriented(8)),
        encode(photograph(2, 20, 30, "L"), "PNG"),
        encode(photograph(3, 31, 41).quantize(32), "PNG"),
        encode(photograph(4, 31, 41), "BMP"),
        encode(photograph(5, 31, 41), "TIFF", compression="tiff_lzw"),
        encode(photograph(6, 31, 41), "WEBP", lossless=True),
        encode(photograph(7, 31, 41), "PPM"),
        encode(photograph(8, 31, 41), "JPEG2000"),
    ]


def size(data: np.ndarray, adjust_orientation: bool = True) -> tuple[int, int]:
    image = Image.open(io.BytesIO(data.tobytes()))
    w, h = image.size
    return (w, h) if adjust_orientation and image.getexif().get(0x112, 1) >= 5 else (h, w)


def decoded(data, output_type=RGB, dtype=0, adjust_orientation=True, **_) -> np.ndarray:
    image = Image.open(io.BytesIO(data.tobytes()))
    is_jpeg = image.format == "JPEG"
    if output_type == GRAY and is_jpeg:
        image.draft("L", image.size)  # the stored luma
    if adjust_orientation:
        image = ImageOps.exif_transpose(image)
    if output_type == ANY_DATA:
        pixels = np.asarray(image.convert("RGB") if image.mode == "P" else image)
        pixels = pixels.reshape(*pixels.shape[:2], -1)
    elif output_type == GRAY and image.mode == "L":
        pixels = np.asarray(image)[..., None]
    else:
        rgb = np.asarray(image.convert("RGBA").convert("RGB") if image.mode == "P" else image.convert("RGB")).astype(
            "f8"
        )
        if output_type == GRAY:  # ITU-R BT.601
            pixels = np.floor(rgb @ (0.299, 0.587, 0.114) + 0.5)[..., None]
        elif output_type == YCBCR:  # ITU-R BT.601, studio range
            m = np.array([[65.481, 128.553, 24.966], [-37.797, -74.203, 112.0], [112.0, -93.786, -18.214]]) / 255
            pixels = np.floor(rgb @ m.T + (16, 128, 128) + 0.5)
        else:
            pixels = rgb[..., ::-1] if output_type == BGR else rgb
    stretched = pixels.astype("f8") / 255 * TOPS[int(dtype)]
    if int(dtype) != 9:
        stretched = np.floor(stretched + 0.5)
    return np.ascontiguousarray(stretched.astype(NUMPY[int(dtype)]))
