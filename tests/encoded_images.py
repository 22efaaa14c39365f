# SPDX-License-Identifier: Apache-2.0
"""Encoded test images, and their expected pixels, from Pillow and the definitions of the colour spaces."""

import io

import numpy as np
from PIL import Image, ImageOps

RGB, BGR, GRAY, YCBCR, ANY_DATA = range(5)
TOPS = {0: 255, 1: 65535, 2: 2**32 - 1, 4: 127, 5: 32767, 6: 2**31 - 1, 9: 1}
NUMPY = {0: "u1", 1: "u2", 2: "u4", 4: "i1", 5: "i2", 6: "i4", 9: "f4"}


def photograph(seed: int, h: int, w: int, mode: str = "RGB") -> Image.Image:
    """Smooth colours, as JPEG distorts noise too much."""
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
    """One image of each other format. Misnamed files need no test, as there are no names."""
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


def lossless_jpeg(
    pixels: np.ndarray, bits: int = 8, predictor: int = 1, shift: int = 0, restart_rows: int = 0
) -> np.ndarray:
    """Lossless JPEG (ITU-T T.81, annex H) of (H, W) or (H, W, 3) samples. All 17 difference sizes have 5-bit codes."""
    x = pixels.reshape(*pixels.shape[:2], -1).astype("i8") >> shift
    h, w, n = x.shape
    out = bytearray(b"\xff\xd8\xff\xc3")
    out += (8 + 3 * n).to_bytes(2, "big") + bytes([bits, *h.to_bytes(2, "big"), *w.to_bytes(2, "big"), n])
    out += b"".join(bytes([c + 1, 0x11, 0]) for c in range(n))
    out += b"\xff\xc4" + (19 + 17).to_bytes(2, "big") + bytes([0, 0, 0, 0, 0, 17, *[0] * 11, *range(17)])
    if restart_rows:
        out += b"\xff\xdd\0\4" + (restart_rows * w).to_bytes(2, "big")
    out += b"\xff\xda" + (6 + 2 * n).to_bytes(2, "big") + bytes([n, *sum(([c + 1, 0] for c in range(n)), [])])
    out += bytes([predictor, 0, shift])

    def flush(text: str) -> bytes:
        text += "1" * (-len(text) % 8)
        return int(text or "0", 2).to_bytes(len(text) // 8, "big").replace(b"\xff", b"\xff\0")

    text, restarts = "", 0
    for y in range(h):
        fresh = y == 0
        if restart_rows and y and y % restart_rows == 0:
            out += flush(text) + bytes([0xFF, 0xD0 + restarts % 8])
            text, restarts, fresh = "", restarts + 1, True
        for i in range(w):
            for c in range(n):
                left, above = x[y, i - 1, c], x[y - 1, i, c]
                corner = x[y - 1, i - 1, c]
                if fresh:
                    guess = left if i else 1 << (bits - shift - 1)
                elif i == 0:
                    guess = above
                else:
                    guess = (
                        left, above, corner, left + above - corner, left + ((above - corner) >> 1),
                        above + ((left - corner) >> 1), (left + above) >> 1,
                    )[predictor - 1]  # fmt: skip
                d = int(x[y, i, c] - guess) & 0xFFFF
                d -= (d > 32768) << 16
                size = abs(d).bit_length()
                text += f"{size:05b}"
                if 0 < size < 16:
                    text += f"{d if d > 0 else d + (1 << size) - 1:0{size}b}"
    return np.frombuffer(bytes(out) + flush(text) + b"\xff\xd9", "u1")
