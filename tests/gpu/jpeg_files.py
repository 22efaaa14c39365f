# SPDX-License-Identifier: Apache-2.0
"""Baseline JPEG files of random coefficients, with any sampling factors."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image

_ZIGZAG = sorted(range(64), key=lambda i: (i // 8 + i % 8, (i // 8 if (i // 8 + i % 8) % 2 else i % 8)))


def _segments(data: bytes):
    at = 2
    while data[at + 1] != 0xDA:
        length = int.from_bytes(data[at + 2 : at + 4], "big")
        yield data[at + 1], data[at + 4 : at + 2 + length]
        at += 2 + length


def _standard_tables() -> dict[int, tuple[bytes, dict[int, tuple[int, int]]]]:
    """Huffman tables 0x00 (DC), 0x10 (AC) of a file of Pillow's: the segment's body, and the code and length of each
    symbol."""
    out = io.BytesIO()
    Image.new("RGB", (8, 8)).save(out, "JPEG")
    tables = {}
    for marker, body in _segments(out.getvalue()):
        while marker == 0xC4 and body:
            counts, n = body[1:17], sum(body[1:17])
            symbols, codes, code = iter(body[17 : 17 + n]), {}, 0
            for length, count in enumerate(counts, 1):
                for _ in range(count):
                    codes[next(symbols)] = code, length
                    code += 1
                code <<= 1
            tables[body[0]] = body[: 17 + n], codes
            body = body[17 + n :]
    return tables


_TABLES = _standard_tables()


class _Bits:
    def __init__(self):
        self.text = []

    def put(self, value: int, n: int) -> None:
        if n:
            self.text.append(format(value, f"0{n}b"))

    def number(self, value: int, codes: dict, run: int = 0) -> None:
        size = abs(value).bit_length()
        self.put(*codes[run << 4 | size])
        self.put(value if value >= 0 else value + (1 << size) - 1, size)

    def take(self) -> bytes:
        text = "".join(self.text)
        text += "1" * (-len(text) % 8)
        self.text = []
        raw = bytes(int(text[i : i + 8], 2) for i in range(0, len(text), 8))
        return raw.replace(b"\xff", b"\xff\x00")


def jpeg_file(
    rng, height, width, sampling=((1, 1),), density=8, largest=40, restart=0, adobe=None, quantiser=12
) -> bytes:
    """`sampling`: (h, v) of each component. `density`: AC coefficients of a block, roughly. `adobe`: the transform its
    marker tells of. `quantiser`: the largest."""
    h_max, v_max = (max(s[d] for s in sampling) for d in (0, 1))
    dc, ac = _TABLES[0x00][1], _TABLES[0x10][1]
    bits, scan, last = _Bits(), [], [0] * len(sampling)
    inside = [(h, v) if len(sampling) > 1 else (1, 1) for h, v in sampling]
    if len(sampling) > 1:
        n_mcus = -(-width // (8 * h_max)) * -(-height // (8 * v_max))
    else:
        n_mcus = -(-width // 8) * -(-height // 8)
    for mcu in range(n_mcus):
        if restart and mcu and mcu % restart == 0:
            scan.append(bits.take() + bytes([0xFF, 0xD0 + (mcu // restart - 1) % 8]))
            last = [0] * len(sampling)
        for c, (h, v) in enumerate(inside):
            for _ in range(h * v):
                value = int(rng.integers(-60, 60))
                bits.number(value - last[c], dc)
                last[c] = value
                block = np.where(rng.random(64) < density / 64, rng.integers(-largest, largest + 1, 64), 0)
                block[63] = largest if rng.random() < 0.2 else 0
                run = 0
                for k in range(1, 64):
                    if block[k] == 0:
                        run += 1
                        continue
                    while run > 15:
                        bits.put(*ac[0xF0])
                        run -= 16
                    bits.number(int(block[k]), ac, run)
                    run = 0
                if run:
                    bits.put(*ac[0])
    scan.append(bits.take())

    def segment(marker: int, body: bytes) -> bytes:
        return bytes([0xFF, marker]) + (len(body) + 2).to_bytes(2, "big") + body

    n = len(sampling)
    out = b"\xff\xd8"
    if adobe is not None:
        out += segment(0xEE, b"Adobe\0\x64\0\0\0\0" + bytes([adobe]))
    table = rng.integers(1, quantiser + 1, 64).astype("u1").tobytes()
    out += segment(0xDB, b"\0" + table)
    parts = b"".join(bytes([i + 1, h << 4 | v, 0]) for i, (h, v) in enumerate(sampling))
    out += segment(0xC0, b"\x08" + height.to_bytes(2, "big") + width.to_bytes(2, "big") + bytes([n]) + parts)
    out += segment(0xC4, _TABLES[0x00][0]) + segment(0xC4, _TABLES[0x10][0])
    if restart:
        out += segment(0xDD, restart.to_bytes(2, "big"))
    out += segment(0xDA, bytes([n]) + b"".join(bytes([i + 1, 0]) for i in range(n)) + b"\0\x3f\0")
    return out + b"".join(scan) + b"\xff\xd9"
