# SPDX-License-Identifier: Apache-2.0
"""LZ4 blocks by the definition of the format (lz4_Block_format.md of github.com/lz4/lz4): written by sequences, and
read byte by byte."""

import numpy as np


def _length(n):
    """The bytes after the token for a length n >= 15."""
    n -= 15
    return bytes([255] * (n // 255) + [n % 255])


def sequence(literals, offset=None, match=0):
    """Some literals, then `match` >= 4 bytes of those `offset` bytes ago; without an offset the last sequence."""
    literals = bytes(literals)
    n, more = len(literals), match - 4 if offset is not None else 0
    block = bytes([min(n, 15) << 4 | min(more, 15)]) + (_length(n) if n >= 15 else b"") + literals
    if offset is None:
        return block
    return block + int(offset).to_bytes(2, "little") + (_length(more) if more >= 15 else b"")


def encode(data, shortest=4, reach=65535):
    """A block of `data` (bytes): at each position the last match of four bytes, if it has at least `shortest` bytes and
    is within `reach`."""
    data, block, begin, i, seen = bytes(data), b"", 0, 0, {}
    while i < len(data):
        key = data[i : i + 4]
        at = seen.get(key, -1)
        seen[key] = i
        if at < 0 or i - at > reach or len(key) < 4:
            i += 1
            continue
        n = 4
        while i + n < len(data) and data[at + n] == data[i + n]:
            n += 1
        if n < shortest:
            i += 1
            continue
        block += sequence(data[begin:i], i - at, n)
        begin = i = i + n
    return block + sequence(data[begin:])


def decode(block, room=1 << 30):
    """The data. Raises ValueError for a damaged block, or if it has more than `room` bytes."""
    block, made, at = bytes(block), bytearray(), 0

    def take(n):
        nonlocal at
        if at + n > len(block):
            raise ValueError("cut")
        at += n
        return block[at - n : at]

    def length(n):
        if n == 15:
            more = 255
            while more == 255:
                more = take(1)[0]
                n += more
        return n

    while True:
        token = take(1)[0]
        made += take(length(token >> 4))
        if len(made) > room:
            raise ValueError("more than there is room for")
        if at == len(block):
            return bytes(made)
        offset = int.from_bytes(take(2), "little")
        n = length(token & 15) + 4
        if not 0 < offset <= len(made):
            raise ValueError("offset")
        if len(made) + n > room:
            raise ValueError("more than there is room for")
        for _ in range(n):
            made.append(made[-offset])


def as_array(block):
    return np.frombuffer(bytes(block), "u1")


def typical(rng, n, kind):
    """n bytes: noise, runs, few values, text that repeats from far away, or zeros."""
    if kind == "noise":
        return rng.integers(0, 256, n, "u1").tobytes()
    if kind == "runs":
        lengths = rng.integers(1, 400, n + 1)
        values = rng.integers(0, 256, n + 1, "u1")
        return np.repeat(values, lengths)[:n].tobytes()
    if kind == "few":
        return rng.integers(0, 3, n, "u1").tobytes()
    if kind == "far":
        words = [rng.integers(0, 256, int(k), "u1") for k in rng.integers(5, 200, 40)]
        picked = [words[i] for i in rng.integers(0, 40, n // 5 + 1)]
        return np.concatenate(picked)[:n].tobytes()
    return bytes(n)


KINDS = ("noise", "runs", "few", "far", "zeros")
