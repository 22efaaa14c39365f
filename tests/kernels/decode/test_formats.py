# SPDX-License-Identifier: Apache-2.0
"""PNG, BMP, TIFF, WebP, PNM and JPEG 2000 against the pixels that were encoded, or Pillow's where the coding is
lossy."""

import struct
import time
import zlib

import numpy as np
import pytest
from native_decode import ANY_DATA, BGR, FORMATS, GRAY, RGB, YCBCR, decode, encode, peek, peek_all, pillow, turn
from PIL import Image

rng = np.random.default_rng(7)
A3 = rng.integers(0, 256, (41, 53, 3)).astype("u1")
A4 = rng.integers(0, 256, (41, 53, 4)).astype("u1")
A2 = rng.integers(0, 256, (41, 53, 2)).astype("u1")
A1 = np.ascontiguousarray(A3[..., 0])
A16 = rng.integers(0, 65536, (41, 53)).astype("u2")
BITS = A1 > 127
PALETTE = Image.fromarray(A3).quantize(16)

LOSSLESS = {
    "png rgb": (encode(A3, "PNG"), A3),
    "png rgba": (encode(A4, "PNG"), A4),
    "png la": (encode(A2, "PNG", mode="LA"), A2),
    "png gray": (encode(A1, "PNG"), A1),
    "png bits": (encode(BITS, "PNG"), BITS * np.uint8(255)),
    "png palette": (encode(PALETTE, "PNG"), np.asarray(PALETTE.convert("RGB"))),
    "png palette tRNS": (encode(PALETTE, "PNG", transparency=3), np.asarray(PALETTE.convert("RGB"))),
    "png rgb tRNS": (encode(A3, "PNG", transparency=tuple(map(int, A3[0, 0]))), A3),
    "bmp rgb": (encode(A3, "BMP"), A3),
    "bmp rgba": (encode(A4, "BMP"), A4),
    "bmp gray": (encode(A1, "BMP"), A1),
    "bmp bits": (encode(BITS, "BMP"), BITS * np.uint8(255)),
    "bmp palette": (encode(PALETTE, "BMP"), np.asarray(PALETTE.convert("RGB"))),
    "tiff rgb": (encode(A3, "TIFF"), A3),
    "tiff rgba": (encode(A4, "TIFF"), A4),
    "tiff gray": (encode(A1, "TIFF"), A1),
    "tiff bits": (encode(BITS, "TIFF"), BITS * np.uint8(255)),
    "tiff lzw": (encode(A3, "TIFF", compression="tiff_lzw"), A3),
    "tiff deflate": (encode(A3, "TIFF", compression="tiff_adobe_deflate"), A3),
    "tiff packbits": (encode(A3, "TIFF", compression="packbits"), A3),
    "tiff group4": (encode(BITS, "TIFF", compression="group4"), BITS * np.uint8(255)),
    "webp rgb": (encode(A3, "WEBP", lossless=True), A3),
    "webp rgba": (encode(A4, "WEBP", lossless=True, exact=True), A4),
    "ppm rgb": (encode(A3, "PPM"), A3),
    "ppm gray": (encode(A1, "PPM"), A1),
    "ppm bits": (encode(BITS, "PPM"), BITS * np.uint8(255)),
    "jpeg2000 rgb": (encode(A3, "JPEG2000"), A3),
    "jpeg2000 rgba": (encode(A4, "JPEG2000"), A4),
    "jpeg2000 gray": (encode(A1, "JPEG2000"), A1),
    "jpeg2000 la": (encode(A2, "JPEG2000", mode="LA"), A2),
    "jpeg2000 codestream": (encode(A3, "JPEG2000", no_jp2=True), A3),
    "jpeg2000 tiles": (encode(A3, "JPEG2000", tile_size=(16, 32)), A3),
}


def rgb_of(pixels):
    pixels = pixels.reshape(*pixels.shape[:2], -1)
    return pixels[..., :3] if pixels.shape[2] >= 3 else pixels[..., :1].repeat(3, -1)


@pytest.mark.parametrize("name", LOSSLESS)
def test_lossless(name):
    data, pixels = LOSSLESS[name]
    info = peek(data)
    as_stored = pixels.reshape(*pixels.shape[:2], -1)
    rgb = rgb_of(pixels).astype("f8")
    assert info["format"] == FORMATS[name.split()[0].upper()]
    assert (info["height"], info["width"], info["channels"]) == as_stored.shape
    np.testing.assert_array_equal(decode(data, ANY_DATA), as_stored)
    np.testing.assert_array_equal(decode(data, RGB), rgb)
    np.testing.assert_array_equal(decode(data, BGR), rgb[..., ::-1])
    assert np.abs(decode(data, GRAY)[..., 0] - rgb @ (0.299, 0.587, 0.114)).max() <= 0.502
    m = np.array([[65.481, 128.553, 24.966], [-37.797, -74.203, 112.0], [112.0, -93.786, -18.214]]) / 255
    assert np.abs(decode(data, YCBCR) - (rgb @ m.T + (16, 128, 128))).max() <= 0.502
    np.testing.assert_array_equal(decode(data, RGB, window=(5, 9, 20, 31)), rgb[5:25, 9:40])
    np.testing.assert_array_equal(decode(data, RGB, dtype="u2"), rgb * 257)
    np.testing.assert_allclose(decode(data, RGB, dtype="f4"), rgb / 255, atol=1e-6)


SIXTEEN = {
    "png": encode(Image.fromarray(A16), "PNG"),
    "tiff": encode(Image.fromarray(A16), "TIFF"),
    "ppm": b"P5 53 41 65535\n" + A16.astype(">u2").tobytes(),
    "ppm text": b"P2 53 41 65535\n" + " ".join(map(str, A16.ravel())).encode(),
    "jpeg2000": encode(Image.fromarray(A16), "JPEG2000"),
}


@pytest.mark.parametrize("name", SIXTEEN)
def test_sixteen_bits(name):
    data = SIXTEEN[name]
    assert peek(data)["depth"] == 16
    np.testing.assert_array_equal(decode(data, ANY_DATA, dtype="u2")[..., 0], A16)
    np.testing.assert_array_equal(decode(data, RGB, dtype="u2")[..., 1], A16)
    assert np.abs(decode(data, GRAY)[..., 0] - A16 / 257).max() <= 0.5001
    assert np.abs(decode(data, GRAY, dtype="i2")[..., 0] - A16 * (32767 / 65535)).max() <= 0.51
    np.testing.assert_allclose(decode(data, GRAY, dtype="f4")[..., 0], A16 / 65535, atol=1e-6)


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png(colour, depth, rows, interlace=0, h=None, w=None, extra=b""):
    header = struct.pack(">IIBBBBB", w, h, depth, colour, 0, 0, interlace)
    body = zlib.compress(b"".join(b"\0" + r for r in rows))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + extra + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def test_png_rgba_of_16_bits_and_low_grey_depths():
    pixels = rng.integers(0, 65536, (5, 7, 4)).astype("u2")
    data = png(6, 16, [r.astype(">u2").tobytes() for r in pixels], h=5, w=7)
    np.testing.assert_array_equal(decode(data, ANY_DATA, dtype="u2"), pixels)
    for depth in (1, 2, 4):
        values = rng.integers(0, 1 << depth, (6, 16))
        bits = (values[..., None] >> np.arange(depth - 1, -1, -1) & 1).reshape(6, -1).astype("u1")
        data = png(0, depth, [np.packbits(r).tobytes() for r in bits], h=6, w=16)
        np.testing.assert_array_equal(decode(data, ANY_DATA)[..., 0], values * (255 // ((1 << depth) - 1)))


def test_png_interlaced():
    passes = ((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1))
    rows = [r.tobytes() for y, x, dy, dx in passes for r in A3[y::dy, x::dx]]
    data = png(2, 8, rows, interlace=1, h=41, w=53)
    np.testing.assert_array_equal(pillow(data), A3)
    np.testing.assert_array_equal(decode(data), A3)


def test_damaged_png_is_an_error():
    data = bytearray(LOSSLESS["png rgb"][0])
    data[-20] ^= 1
    with pytest.raises(ValueError, match="PNG: "):
        decode(bytes(data))
    with pytest.raises(ValueError, match="PNG: the file ends before its pixels do"):
        decode(LOSSLESS["png rgb"][0][:3000])


def test_png_texts_are_not_unpacked():
    """Which takes libpng as long as zlib, and has had errors (CVE-2026-46675)."""
    text = zlib.compress(bytes(7_900_000), 9)  # libpng refuses 8 million bytes
    long = chunk(b"zTXt", b"Comment\0\0" + text) * 20
    data = png(2, 8, [r.tobytes() for r in A3], h=41, w=53, extra=long)
    begin = time.process_time()
    np.testing.assert_array_equal(decode(data), A3)
    middle = time.process_time()
    for _ in range(20):
        zlib.decompress(text)
    assert middle - begin < (time.process_time() - middle) / 4


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("fmt", ("PNG", "WEBP", "TIFF"))
def test_orientation(fmt, orientation):
    exif = Image.Exif()
    exif[0x112] = orientation
    options = {
        "PNG": {"exif": exif},
        "WEBP": {"exif": exif, "lossless": True},
        "TIFF": {"tiffinfo": {0x112: orientation}},
    }
    data = encode(A3, fmt, **options[fmt])
    assert peek(data)["orientation"] == orientation
    np.testing.assert_array_equal(decode(data, oriented=False), A3)
    np.testing.assert_array_equal(decode(data), turn(A3, orientation))
    np.testing.assert_array_equal(decode(data, window=(2, 3, 30, 20)), turn(A3, orientation)[2:32, 3:23])


def tiff(tags, pixels, big=False):
    """A little-endian TIFF with one strip (or the given tags) and `pixels` after the directory."""
    entries = b""
    tags = dict(tags)
    head = 16 if big else 8
    size = head + (8 if big else 2) + len(tags) * (20 if big else 12) + (8 if big else 4)
    tail = b""
    for tag, values in sorted(tags.items()):
        values = [
            size + len(tail) if v == "pixels" else v
            for v in (values if isinstance(values, (list, tuple)) else [values])
        ]
        kind = 4 if any(v > 65535 for v in values) or tag in (273, 279, 324, 325) else 3
        body = struct.pack(f"<{len(values)}{'HI'[kind - 3]}", *values)
        room = 8 if big else 4
        if len(body) > room:
            where, tail = size + len(tail), tail + body
            body = struct.pack("<Q" if big else "<I", where)
        entries += struct.pack("<HHQ" if big else "<HHI", tag, kind, len(values)) + body.ljust(room, b"\0")
    header = struct.pack("<2sHHHQ", b"II", 43, 8, 0, 16) if big else struct.pack("<2sHI", b"II", 42, 8)
    n = struct.pack("<Q" if big else "<H", len(tags))
    return header + n + entries + b"\0" * (8 if big else 4) + tail + pixels, size + len(tail)


def tiff_with_offset(tags, pixels, offset_tags, big=False):
    """Places the pixels: `offset_tags` maps a tag to the offsets, relative to the pixels."""
    _, at = tiff({**tags, **offset_tags}, b"", big)
    return tiff({**tags, **{t: [at + o for o in os] for t, os in offset_tags.items()}}, pixels, big)[0]


def basic_tags(h, w, bits, samples, photometric, **more):
    return {256: w, 257: h, 258: [bits] * samples, 259: 1, 262: photometric, 277: samples, **more}


@pytest.mark.parametrize("big", (False, True))
@pytest.mark.parametrize("bits", (1, 2, 3, 4, 5, 7, 8, 10, 11, 12, 13, 16, 21, 24, 31, 32))
def test_tiff_bit_depths(bits, big):
    values = rng.integers(0, 1 << bits, (5, 9, 3))
    if bits in (16, 32):
        packed = values.astype(f"<u{bits // 8}").tobytes()
    else:
        b = (values.reshape(5, 27)[..., None] >> np.arange(bits - 1, -1, -1) & 1).reshape(5, -1).astype("u1")
        packed = b"".join(np.packbits(r).tobytes() for r in b)
    data = tiff_with_offset(basic_tags(5, 9, bits, 3, 2, **{}) | {278: 5, 279: len(packed)}, packed, {273: [0]}, big)
    want = values / ((1 << bits) - 1)
    np.testing.assert_allclose(decode(data, dtype="f4"), want, atol=2e-5 if bits > 8 else 1 / 510 + 1e-6)
    assert np.abs(decode(data, dtype="u2") - want * 65535).max() <= (0.51 if bits > 8 else 128.51)


def test_tiff_planar_tiled_and_inverted():
    tags = basic_tags(41, 53, 8, 3, 2)
    planes = b"".join(A3[..., c].tobytes() for c in range(3))
    size = 41 * 53
    data = tiff_with_offset(tags | {278: 41, 279: [size] * 3, 284: 2}, planes, {273: [0, size, 2 * size]})
    np.testing.assert_array_equal(decode(data), A3)
    padded = np.zeros((48, 64, 3), "u1")
    padded[:41, :53] = A3
    tiles = b"".join(padded[y : y + 16, x : x + 32].tobytes() for y in range(0, 48, 16) for x in range(0, 64, 32))
    data = tiff_with_offset(tags | {322: 32, 323: 16, 325: [1536] * 6}, tiles, {324: [1536 * i for i in range(6)]})
    np.testing.assert_array_equal(decode(data), A3)
    data = tiff_with_offset(
        basic_tags(41, 53, 8, 1, 0) | {278: 10, 279: [530, 530, 530, 530, 53]},
        A1.tobytes(),
        {273: [0, 530, 1060, 1590, 2120]},
    )
    np.testing.assert_array_equal(decode(data, ANY_DATA)[..., 0], 255 - A1)


def test_tiff_palette_float_jpeg_and_cmyk():
    indices = np.asarray(PALETTE)
    colours = rng.integers(0, 65536, (3, 256))
    data = tiff_with_offset(
        basic_tags(41, 53, 8, 1, 3) | {278: 41, 279: 41 * 53, 320: colours.ravel().tolist()},
        indices.tobytes(),
        {273: [0]},
    )
    np.testing.assert_array_equal(decode(data, ANY_DATA, dtype="u2"), colours.T[indices])
    values = rng.random((41, 53)).astype("f4")
    data = encode(Image.fromarray(values), "TIFF")
    np.testing.assert_array_equal(decode(data, ANY_DATA, dtype="f4")[..., 0], values)
    assert np.abs(decode(data, GRAY)[..., 0] - values * 255).max() <= 0.501
    data = encode(A3, "TIFF", compression="jpeg")
    assert np.abs(decode(data).astype(int) - pillow(data)).max() <= 1
    data = encode(A4, "TIFF", mode="CMYK")
    want = (255.0 - A4[..., :3]) * (255 - A4[..., 3:]) / 255
    assert np.abs(decode(data) - want).max() <= 1


def test_tiff_truncated_is_an_error():
    data = LOSSLESS["tiff lzw"][0]
    for n in range(0, len(data) - 1, 97):
        with pytest.raises(ValueError):
            decode(data[:n])


@pytest.mark.parametrize(
    ("text", "want"),
    (
        (b"P1 3 2\n101\n0 1 0\n", [[0, 255, 0], [255, 0, 255]]),
        (b"P1#c\n3#c\n2 101010 ", [[0, 255, 0], [255, 0, 255]]),
        (b"P4 3 2\n\xa0\x40", [[0, 255, 0], [255, 0, 255]]),
        (b"P2\n# a comment\n3 1\n255\n1 30 255", [[1, 30, 255]]),
        (b"P2 3 1 15 1 7 15", [[17, 119, 255]]),
        (b"P5 3 1 15\n\1\7\x0f", [[17, 119, 255]]),
    ),
)
def test_pnm(text, want):
    np.testing.assert_array_equal(decode(text, ANY_DATA)[..., 0], want)
    np.testing.assert_array_equal(decode(text), np.array(want)[..., None].repeat(3, -1))


def test_pnm_truncated():
    with pytest.raises(ValueError, match="truncated: 2 x 2 pixels need at least 23 bytes, the file has 15"):
        decode(b"P6 2 2 255\nabcd")
    with pytest.raises(ValueError, match="truncated"):
        decode(b"P3 2 2 255\n" + b"1 2 3 4 5 6 7")


def bmp(bits, compression, width, height, body, masks=(), palette=b"", header=40):
    at = 14 + header + len(palette) + (4 * len(masks) if header == 40 else 0)
    info = struct.pack(
        "<IiiHHIIiiII", header, width, height, 1, bits, compression, len(body), 0, 0, len(palette) // 4, 0
    )
    info += struct.pack(f"<{len(masks)}I", *masks)
    return b"BM" + struct.pack("<IHHI", at + len(body), 0, 0, at) + info.ljust(header, b"\0") + palette + body


def test_bmp_kinds():
    px = rng.integers(0, 256, (2, 3, 4)).astype("u1")
    bgr = px[..., 2::-1]
    np.testing.assert_array_equal(decode(bmp(32, 0, 3, 2, px[::-1].tobytes())), bgr)
    np.testing.assert_array_equal(decode(bmp(32, 0, 3, -2, px.tobytes())), bgr)
    masks = (0xFF0000, 0xFF00, 0xFF, 0xFF000000)
    np.testing.assert_array_equal(
        decode(bmp(32, 3, 3, -2, px.tobytes(), masks, header=108), ANY_DATA), np.dstack([bgr, px[..., 3]])
    )
    words = rng.integers(0, 65536, (1, 4)).astype("<u2")
    got = decode(bmp(16, 3, 4, 1, words.tobytes(), (0xF800, 0x7E0, 0x1F)))
    want = np.stack([(words >> 11) / 31, (words >> 5 & 63) / 63, (words & 31) / 31], -1) * 255
    assert np.abs(got - want).max() <= 0.501
    got = decode(bmp(16, 0, 4, 1, words.tobytes()))
    want = np.stack([(words >> 10 & 31) / 31, (words >> 5 & 31) / 31, (words & 31) / 31], -1) * 255
    assert np.abs(got - want).max() <= 0.501


def test_bmp_run_lengths():
    palette = bytes(range(64))
    colours = np.frombuffer(palette, "u1").reshape(16, 4)[:, 2::-1]
    body = bytes([3, 1, 0, 3, 4, 5, 6, 0, 0, 0, 2, 7, 0, 2, 2, 0, 2, 8, 0, 0, 0, 1])
    want = np.array([[7, 7, 0, 0, 8, 8], [1, 1, 1, 4, 5, 6]])
    np.testing.assert_array_equal(decode(bmp(8, 1, 6, 2, body, palette=palette)), colours[want])
    body = bytes([3, 0x12, 0, 3, 0x45, 0x60, 0, 0, 6, 0x77, 0, 1])
    want = np.array([[7] * 6, [1, 2, 1, 4, 5, 6]])
    np.testing.assert_array_equal(decode(bmp(4, 2, 6, 2, body, palette=palette)), colours[want])
    with pytest.raises(ValueError, match="BMP: a run leaves the image"):
        decode(bmp(8, 1, 6, 2, bytes([200, 1, 0, 1]), palette=palette))
    got = decode(bmp(8, 0, 4, 1, bytes([15, 16, 255, 1]), palette=palette))  # colours beyond the palette are black
    np.testing.assert_array_equal(got[0], [colours[15], [0] * 3, [0] * 3, colours[1]])


def test_lossy_webp_and_jpeg2000_have_pillows_pixels():
    for data in (
        encode(A3, "WEBP", quality=80),
        encode(A3, "JPEG2000", quality_mode="rates", quality_layers=[20], irreversible=True),
    ):
        np.testing.assert_array_equal(decode(data), pillow(data))


@pytest.mark.parametrize(
    ("data", "reason"),
    (
        (b"", "empty file"),
        (b"a", "not an image that can be decoded .*1 bytes that begin with 61"),
        (b"<html>\n404", r'10 bytes that begin with 3c 68 74 6d 6c 3e 0a 34 30 34 \("<html>.404"\), a web page$'),
        (b"<!DOCTYPE html>\n", r'16 bytes .*\("<!DOCTYPE ht"\), a web page$'),
        (b"version https://git-lfs.github.com/spec/v1\n", r"\), a Git LFS pointer: run `git lfs pull`$"),
        (b"\x1f\x8b\x08" + bytes(20), r'\("............"\), compressed by gzip$'),
        (b"\0\0\0\x1cftypavif" + bytes(20), r'32 bytes that begin with .* 66 \("....ftypavif"\)$'),
        (b"GIF89a" + bytes(20), r'not an image that can be decoded .*\("GIF89a......"\)$'),
        (b"\xff\xd8\xff\xe0\0\x10", "truncated"),
        (b"\xff\xd8\xff\xd9", "JPEG: the file ends before its frame header"),
        (LOSSLESS["png rgb"][0][:20], "truncated: the header goes on past the end of the 20 bytes"),
        (b"BM" + bytes(60), "BMP: a header of 0 bytes"),
        (b"II*\0\xff\xff\xff\x7f", "truncated"),
        (b"RIFF\x40\0\0\0WEBPVP8 \x34\0\0\0", "WebP: truncated"),
        (b"P6 0 5 255\n", "PNM: height 5 and width 0 are not a size"),
        (b"P5 10000000000 5 255\n", "PNM: height 5 and width 10000000000 are not a size"),
        (b"P5 4294967297 1 255\n00000", "PNM: height 1 and width 4294967297 are not a size"),
        (b"P5 2 2 4294967551\n0000", "PNM: the largest value is 4294967551, not 1..65535"),
        (b"P5 99999999999999999999 5 255\n", "PNM: the number at byte 3 has more than 18 digits"),
        (b"\xff\x4f\xff\x51" + bytes(4), "truncated"),
    ),
)
def test_bad_headers(data, reason):
    with pytest.raises(ValueError, match=reason):
        peek(data)


def test_window_outside_is_refused():
    data = LOSSLESS["png rgb"][0]
    for window in ((-1, 0, 5, 5), (0, 50, 5, 5), (2**62, 0, 5, 5)):
        with pytest.raises(ValueError, match="reaches out of the image"):
            decode(data, window=window)


def test_least_bytes_is_a_lower_bound():
    flat = np.zeros((3000, 4000), "u1")
    files = [data for data, _ in LOSSLESS.values()] + [*SIXTEEN.values(), b"P1 3 2 101010", b"P2 1 1 9 3"]
    files += [encode(flat, "JPEG", progressive=p, optimize=True, quality=q) for p in (False, True) for q in (1, 100)]
    files += [encode(Image.fromarray(flat > 1), "PNG", compress_level=9), encode(flat, "PNG", compress_level=9)]
    files.append(encode(np.zeros((3000, 4000, 3), "u1"), "JPEG", progressive=True, optimize=True, subsampling="4:2:0"))
    info, errors = peek_all(files)
    assert not any(errors)
    for i, data in zip(info, files):
        assert i["least_bytes"] <= len(data)
    assert (info["least_bytes"][-7:] > 0).all()
