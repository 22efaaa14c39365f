# SPDX-License-Identifier: Apache-2.0
"""The first picture of animated WebP, against Pillow."""

import io

import numpy as np
import pytest
from native_decode import ANY_DATA, RGB, decode, encode, pillow
from PIL import Image

rng = np.random.default_rng(7)
A3 = rng.integers(0, 256, (41, 53, 3)).astype("u1")
A4 = rng.integers(0, 256, (41, 53, 4)).astype("u1")


def animated_webp(canvas, x, y, still):
    """An animation of one picture at (x, y) of a canvas (h, w), from a file of WebP without EXIF."""

    def chunk(name, *parts):
        body = b"".join(parts)
        return name + len(body).to_bytes(4, "little") + body + bytes(len(body) % 2)

    def three(*numbers):
        return b"".join(int(n).to_bytes(3, "little") for n in numbers)

    still = bytes(still)
    h, w = decode(np.frombuffer(still, "u1")).shape[:2]
    has_alpha = still[12:16] == b"VP8X" or still[12:16] == b"VP8L"
    picture = still[12:] if still[12:16] != b"VP8X" else still[30:]
    body = b"WEBP" + chunk(b"VP8X", bytes([2 | 16 * has_alpha, 0, 0, 0]), three(canvas[1] - 1, canvas[0] - 1))
    body += chunk(b"ANIM", bytes(6)) + chunk(b"ANMF", three(x // 2, y // 2, w - 1, h - 1, 100), b"\0", picture)
    return np.frombuffer(chunk(b"RIFF", body), "u1")


def test_first_picture_of_animated_webp():
    others = [Image.fromarray(A3[::-1]), Image.fromarray(A3[:, ::-1])]
    for image, kind in ((A3, RGB), (A4, ANY_DATA)):
        for lossless in (True, False):
            data = encode(image, "WEBP", save_all=True, append_images=others, lossless=lossless)
            with Image.open(io.BytesIO(data)) as file:
                assert file.n_frames == 3
                np.testing.assert_array_equal(
                    decode(data, kind), np.asarray(file.convert("RGB" if kind == RGB else "RGBA"))
                )
            np.testing.assert_array_equal(decode(data, RGB), pillow(data))
            if lossless and kind == RGB:
                np.testing.assert_array_equal(decode(data), image)


def test_animated_webp_whose_first_picture_is_a_part():
    h, w = A3.shape[:2]
    for still in (encode(A3, "WEBP", quality=80), encode(A4, "WEBP", lossless=True, exact=True)):
        data = animated_webp((h + 9, w + 7), 4, 6, still)
        got = decode(data)
        np.testing.assert_array_equal(got, pillow(data))
        np.testing.assert_array_equal(got[6 : 6 + h, 4 : 4 + w], decode(still))
        for place in ((8, 0), (0, 10), (1 << 24, 0)):
            with pytest.raises(ValueError, match="WebP: the first picture of the animation, .* leaves the canvas"):
                decode(animated_webp((h + 9, w + 7), *place, still))
        with pytest.raises(ValueError, match="WebP: the first picture of the animation is damaged or cut off"):
            decode(data[:60])
        with pytest.raises(ValueError, match="WebP: "):
            decode(data[:-100])
