# SPDX-License-Identifier: Apache-2.0
"""TFRecord files and tf.Examples, written from their definitions."""

import struct
from functools import lru_cache

import numpy as np


def varint(n: int) -> bytes:
    n &= 2**64 - 1
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes([*out, n])


def field(number: int, data: bytes) -> bytes:
    """A length-delimited field."""
    return varint(number << 3 | 2) + varint(len(data)) + data


def strings(*values: bytes) -> bytes:
    return field(1, b"".join(field(1, v) for v in values))


def floats(*values: float, packed=True) -> bytes:
    data = [np.float32(v).tobytes() for v in values]
    return field(2, field(1, b"".join(data)) if packed else b"".join(varint(1 << 3 | 5) + d for d in data))


def integers(*values: int, packed=True) -> bytes:
    data = [varint(v) for v in values]
    return field(3, field(1, b"".join(data)) if packed else b"".join(varint(1 << 3) + d for d in data))


def entry(name: str, feature: bytes) -> bytes:
    return field(1, field(1, name.encode()) + field(2, feature))


def example(features: dict[str, bytes]) -> bytes:
    return field(1, b"".join(entry(n, f) for n, f in features.items()))


@lru_cache(maxsize=256)  # many tests write the same records, and this takes a millisecond per kB
def crc32c(data: bytes) -> int:
    """Bitwise, with the reflected polynomial 0x1edc6f41."""
    c = 0xFFFFFFFF
    for byte in data:
        c ^= byte
        for _ in range(8):
            c = c >> 1 ^ (0x82F63B78 if c & 1 else 0)
    return c ^ 0xFFFFFFFF


def masked(data: bytes) -> bytes:
    c = crc32c(data)
    return struct.pack("<I", ((c >> 15 | c << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def record(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + masked(length) + data + masked(data)


def write(path, examples: list[bytes], index=None) -> str:
    """Writes a file, and its index to `index` if given."""
    at, lines, content = 0, [], []
    for e in examples:
        content.append(record(e))
        lines.append(f"{at} {len(content[-1])}\n")
        at += len(content[-1])
    path.write_bytes(b"".join(content))
    if index is not None:
        index.write_text("".join(lines))
    return str(path)
