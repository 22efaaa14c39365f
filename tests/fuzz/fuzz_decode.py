# SPDX-License-Identifier: Apache-2.0
"""Fuzzes the image decoders under AddressSanitizer.

    python tests/fuzz/fuzz_decode.py [--seconds 180] [--seed 0] [FILE...]

Builds fuzz_decode.cpp together with the decoders, makes small files of every format with Pillow (and takes those of
$PENSTOCK_DATA/formats that are small), and damages them until the time is up. With FILEs and `--seconds 0` it
decodes just these, to repeat a crash.
"""

import glob
import io
import os
import sys
from pathlib import Path

import damaging
import numpy as np
from PIL import Image

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from encoded_images import lossless_jpeg  # noqa: E402


def seeds() -> dict[str, bytes]:
    rng = np.random.default_rng(0)
    small = Image.fromarray(rng.integers(0, 256, (6, 8, 4), "u1"))
    rgba = small.resize((45, 37), Image.BICUBIC)
    rgb, gray, bits, palette = (
        rgba.convert("RGB"),
        rgba.convert("L"),
        rgba.convert("1"),
        rgba.convert("RGB").quantize(16),
    )
    deep = Image.fromarray(np.asarray(gray).astype("u2") * 257)
    exif = Image.Exif()
    exif[0x112] = 6
    made: dict[str, bytes] = {}

    def add(name, image, fmt, **options):
        file = io.BytesIO()
        image.save(file, fmt, **options)
        made[name] = file.getvalue()

    for i, sampling in enumerate(("4:4:4", "4:2:2", "4:2:0", "4:1:1")):
        add(f"jpeg{i}", rgb, "JPEG", subsampling=sampling, exif=exif if i % 2 else Image.Exif())
        add(f"jpeg{i}p", rgb, "JPEG", subsampling=sampling, progressive=True)
    add("jpeg_gray", gray, "JPEG")
    add("jpeg_restart", rgb, "JPEG", restart_marker_rows=1)
    add("jpeg_cmyk", rgb.convert("CMYK"), "JPEG")
    for name, image in (
        ("rgba", rgba),
        ("rgb", rgb),
        ("gray", gray),
        ("bits", bits),
        ("palette", palette),
        ("deep", deep),
    ):
        add(f"png_{name}", image, "PNG", exif=exif)
        add(f"tiff_{name}", image, "TIFF")
        if name != "deep":
            add(f"bmp_{name}", image, "BMP")
        if name not in ("rgba", "palette"):
            add(f"pnm_{name}", image, "PPM")
        if name not in ("bits", "palette"):
            add(f"jp2_{name}", image, "JPEG2000")
    add("png_trns", palette, "PNG", transparency=3)
    add("j2k", rgb, "JPEG2000", no_jp2=True, tile_size=(16, 16))
    add("jp2_lossy", rgb, "JPEG2000", quality_mode="rates", quality_layers=[20, 10], irreversible=True)
    for c in ("tiff_lzw", "tiff_adobe_deflate", "packbits", "jpeg"):
        add(f"tiff_{c}", rgb, "TIFF", compression=c)
    add("tiff_group4", bits, "TIFF", compression="group4")
    add("tiff_cmyk", rgb.convert("CMYK"), "TIFF")
    add("tiff_lab", rgb.convert("RGB"), "TIFF", tiffinfo={0x112: 5})
    add("webp", rgb, "WEBP", exif=exif)
    add("webp_alpha", rgba, "WEBP")
    add("webp_lossless", rgba, "WEBP", lossless=True)
    pixels = np.asarray(rgb)
    made["jpeg_lossless"] = lossless_jpeg(pixels[:20, :30], 8, 7, restart_rows=4).tobytes()
    made["jpeg_lossless_deep"] = lossless_jpeg(pixels[:20, :30, 0] * 200, 16, 4).tobytes()
    made["pnm_text"] = b"P3 # text\n4 3 255\n" + b" 12 255 7" * 12
    made["pnm_text_bits"] = b"P1 4 3\n" + b"1010 0101 1111"
    made["bmp_rle"] = (
        b"BM\x60\0\0\0\0\0\0\0\x4a\0\0\0\x28\0\0\0\6\0\0\0\2\0\0\0\1\0\x08\0\1\0\0\0\x16\0\0\0"
        + bytes(8)
        + b"\5\0\0\0\0\0\0\0"
        + bytes(range(20))
        + bytes([3, 1, 0, 3, 4, 3, 2, 0, 0, 0, 2, 2, 0, 2, 2, 0, 2, 3, 0, 0, 0, 1])
    )
    return made


def decoders() -> tuple[list[Path | str], list[str]]:
    """The sources of all decoders of pictures, and the flags that they need."""
    kernels = ROOT / "kernels"
    # The first launches GPU kernels; the other names the versions of all libraries and would need each of them.
    others = {kernels / "decode/jpeg_batch.cpp", kernels / "decode/codec_versions.cpp"}
    found = {*kernels.glob("decode/*.cpp")} - others
    openjpeg = sorted(glob.glob("/usr/include/openjpeg-*") + glob.glob("/usr/local/include/openjpeg-*"))
    libraries = ["-ljpeg", "-lpng", "-ltiff", "-lwebp", "-lopenjp2"]
    return [*sorted(found), "core/native_time", "color/interleave"], [*(f"-I{d}" for d in openjpeg), *libraries]


def main() -> int:
    args = damaging.arguments(__doc__).parse_args()
    program = damaging.build(args.build_folder, "fuzz_decode", *decoders())
    data = os.environ.get("PENSTOCK_DATA")
    more = glob.glob(f"{data}/formats/**/*.*", recursive=True) if data else []
    return damaging.run(program, args, "images", seeds(), [f for f in more if os.path.getsize(f) < 50_000])


if __name__ == "__main__":
    sys.exit(main())
