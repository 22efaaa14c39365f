# SPDX-License-Identifier: Apache-2.0
"""Writes baseline JPEG files (ITU-T T.81) directly from coefficients, with any sampling factors, tables and values."""

import numpy as np


def zigzag() -> np.ndarray:
    """Natural indices in the order of the scan (figure A.6)."""
    places = [(y, x) for y in range(8) for x in range(8)]
    places.sort(key=lambda p: (p[0] + p[1], p[1] if (p[0] + p[1]) % 2 == 0 else p[0]))
    return np.array([8 * y + x for y, x in places])


def canonical(counts, symbols):
    """Symbol -> (code, length) of the table that DHT describes (annex C)."""
    codes, code, place = {}, 0, 0
    for length, n in enumerate(counts, 1):
        for _ in range(n):
            codes[symbols[place]] = (code, length)
            code, place = code + 1, place + 1
        code <<= 1
    return codes


DC_SYMBOLS = list(range(12))
AC_SYMBOLS = [0, 0xF0, *(run << 4 | size for size in range(1, 11) for run in range(16))]


def tables(kind, rng):
    """((counts, symbols) of DC, of AC). "even": codes of equal length; "long": one of each short length, the rest 16
    bits."""

    def table(symbols):
        symbols = list(symbols)
        if kind == "shuffled":
            rng.shuffle(symbols)
        n, counts = len(symbols), [0] * 16
        if kind == "even":
            counts[3 if n < 15 else 7] = n
        else:
            short = min(8, n - 1)
            counts[:short] = [1] * short
            counts[15] = n - short
        return counts, symbols

    return table(DC_SYMBOLS), table(AC_SYMBOLS)


class Writer:
    def __init__(self):
        self.bits: list[str] = []

    def put(self, value, n):
        if n:
            self.bits.append(f"{value:0{n}b}")

    def number(self, value):
        size = abs(int(value)).bit_length()
        return size, int(value) if value > 0 else int(value) + (1 << size) - 1

    def block(self, coefficients, last_dc, dc_codes, ac_codes, order):
        values = coefficients[order].astype(int)
        first, last = int(values[0]), 0
        size, bits = self.number(first - last_dc)
        self.put(*dc_codes[size])
        self.put(bits, size)
        for k in (np.flatnonzero(values[1:]) + 1).tolist():
            run, last = k - last - 1, k
            while run > 15:
                self.put(*ac_codes[0xF0])
                run -= 16
            size, bits = self.number(values[k])
            self.put(*ac_codes[run << 4 | size])
            self.put(bits, size)
        if last < 63:
            self.put(*ac_codes[0])
        return first

    def flush(self):
        text = "".join(self.bits)
        text += "1" * (-len(text) % 8)
        self.bits = []
        return int(text or "0", 2).to_bytes(len(text) // 8, "big").replace(b"\xff", b"\xff\0")


def coefficient_jpeg(rng, height, width, factors, block, quantisers, restart=0, kind="even") -> bytes:
    """`factors`: (h, v) per component; `block(component)` gives 64 coefficients in rows; `quantisers`: (64,) each."""
    order, (dc, ac) = zigzag(), tables(kind, rng)
    dc_codes, ac_codes = canonical(*dc), canonical(*ac)
    n, most_h, most_v = len(factors), max(h for h, _ in factors), max(v for _, v in factors)
    out = bytearray(b"\xff\xd8")
    for c in range(n):
        out += b"\xff\xdb\0\x43" + bytes([c]) + bytes(int(q) for q in np.asarray(quantisers[c])[order])
    out += b"\xff\xc0" + (8 + 3 * n).to_bytes(2, "big") + b"\x08"
    out += height.to_bytes(2, "big") + width.to_bytes(2, "big") + bytes([n])
    out += b"".join(bytes([c + 1, h << 4 | v, c]) for c, (h, v) in enumerate(factors))
    for cls, (counts, symbols) in ((0, dc), (0x10, ac)):
        out += b"\xff\xc4" + (19 + len(symbols)).to_bytes(2, "big") + bytes([cls, *counts, *symbols])
    if restart:
        out += b"\xff\xdd\0\4" + restart.to_bytes(2, "big")
    out += b"\xff\xda" + (6 + 2 * n).to_bytes(2, "big") + bytes([n]) + b"".join(bytes([c + 1, 0]) for c in range(n))
    out += b"\0\x3f\0"
    per_mcu = [h * v for h, v in factors] if n > 1 else [1]
    step_x, step_y = (8 * most_h, 8 * most_v) if n > 1 else (8, 8)
    mcus = -(-width // step_x) * -(-height // step_y)
    writer, last = Writer(), [0] * n
    for mcu in range(mcus):
        if restart and mcu and mcu % restart == 0:
            out += writer.flush() + bytes([0xFF, 0xD0 + (mcu // restart - 1) % 8])
            last = [0] * n
        for c in range(n):
            for _ in range(per_mcu[c]):
                last[c] = writer.block(block(c), last[c], dc_codes, ac_codes, order)
    return bytes(out) + writer.flush() + b"\xff\xd9"
