# SPDX-License-Identifier: Apache-2.0
"""Calls the native decoders as the executor does, on bytes that end where their memory ends and with guards around the
pixels."""

import io

import numpy as np
from PIL import Image

from penstock.core import kernels

INFO, _ = kernels.read_struct(kernels.read_header("decode/image.h"), "ImageInfo")
FORMATS = {"JPEG": 1, "PNG": 2, "BMP": 3, "TIFF": 4, "WEBP": 5, "PPM": 6, "JPEG2000": 7}
RGB, BGR, GRAY, YCBCR, ANY_DATA = range(5)
DTYPES = {"u1": 0, "u2": 1, "u4": 2, "i1": 4, "i2": 5, "i4": 6, "f4": 9}
GUARD = 0xA5
_pools = {}


def pool(n=1):
    if n not in _pools:
        _pools[n] = kernels.Pool(n)
    return _pools[n]


def exact(data):
    """A copy in memory of exactly its size, so that AddressSanitizer sees reads past the end."""
    return np.array(np.frombuffer(data, "u1"), copy=True)


def packed(arrays, dtype=0):
    rows = np.zeros(len(arrays), kernels.TENSOR)
    for row, a in zip(rows, arrays):
        row["data"], row["ndim"], row["dtype"] = a.ctypes.data, a.ndim, dtype
        row["shape"][: a.ndim] = a.shape
    return rows


def peek_all(datas):
    """Structured array of headers, and the list of reasons ("" if readable)."""
    arrays = [exact(d) for d in datas]
    rows, info, errors = packed(arrays), np.zeros(len(arrays), INFO), np.zeros(len(arrays), f"S{kernels.ERROR_SIZE}")
    shape, plan_images = np.zeros((len(arrays), 3), "i8"), kernels.library().plan_images
    failed = plan_images(
        *(rows.ctypes.data, len(arrays), -1, True, 0, info.ctypes.data, shape.ctypes.data, errors.ctypes.data)
    )
    assert failed == (info["format"] == 0).sum()
    return info, [e.decode() for e in errors]


def peek(data):
    info, errors = peek_all([data])
    if errors[0]:
        raise ValueError(errors[0])
    return info[0]


def extent(info, scale=1, oriented=True):
    h, w = -(-int(info["height"]) // scale), -(-int(info["width"]) // scale)
    return (w, h) if oriented and info["orientation"] >= 5 else (h, w)


def decode(data, output_type=RGB, window=None, dtype="u1", scale=1, oriented=True, info=None, threads=1, **fields):
    """The decoded window (y, x, height, width) of one image. Raises ValueError with the decoder's reason."""
    info = peek(data) if info is None else info
    h, w = extent(info, scale, oriented)
    y, x, height, width = window or (0, 0, h, w)
    channels = {GRAY: 1, ANY_DATA: int(info["channels"])}.get(output_type, 3)
    guard = 64
    n = height * width * channels * np.dtype(dtype).itemsize
    memory = np.full(n + 2 * guard, GUARD, "u1")
    out = memory[guard : guard + n].view(dtype).reshape(height, width, channels)
    encoded = exact(data)
    kernel = kernels.kernel("decode/decode")
    columns = dict(format=info["format"], height=info["height"], width=info["width"], y=y, x=x, output_type=output_type)
    columns.update(
        orientation=info["orientation"] if oriented else 1, scale_denom=scale, fancy_upsampling=1, fast_idct=0
    )
    args, alive = kernel.rows(1, {**columns, **fields})
    outcome = kernels.Outcome(np.zeros(1, "i4"), 1, 1)
    step = kernels.Step(kernel, args, [(packed([out], DTYPES[dtype]), -1)], [(packed([encoded]), -1)])
    pool(threads).run([step], 1, outcome)
    assert (memory[:guard] == GUARD).all() and (memory[guard + n :] == GUARD).all(), "wrote outside of the output"
    assert bytes(encoded) == bytes(data), "changed its input"
    if outcome.status[0]:
        raise ValueError(outcome.reason(0))
    return out


def encode(pixels, fmt, mode=None, **options):
    image = pixels if isinstance(pixels, Image.Image) else Image.fromarray(pixels, mode)
    file = io.BytesIO()
    image.save(file, fmt, **options)
    return file.getvalue()


def pillow(data, mode="RGB"):
    return np.asarray(Image.open(io.BytesIO(data)).convert(mode))


def smooth(rng, h, w, c=3):
    """Similar to a photograph, as JPEG distorts noise too much."""
    small = rng.integers(0, 256, (h // 5 + 2, w // 5 + 2, c)).astype("u1")
    planes = [np.asarray(Image.fromarray(small[..., i]).resize((w, h), Image.BICUBIC)) for i in range(c)]
    return np.stack(planes, -1) if c > 1 else planes[0]


def turn(pixels, orientation):
    """Rotates as a viewer that supports EXIF (Exif 2.3, tag 0x0112: position of the stored row 0 and column 0)."""
    x = pixels
    return {
        1: lambda: x,
        2: lambda: x[:, ::-1],
        3: lambda: x[::-1, ::-1],
        4: lambda: x[::-1],
        5: lambda: x.swapaxes(0, 1),
        6: lambda: np.rot90(x, -1),
        7: lambda: x[::-1, ::-1].swapaxes(0, 1),
        8: lambda: np.rot90(x, 1),
    }[orientation]()
