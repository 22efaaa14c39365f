# SPDX-License-Identifier: Apache-2.0
"""Fuzzes the scanners and parsers of data formats under AddressSanitizer.

    python tests/fuzz/fuzz_read.py [--inputs 1000000] [--seed 0] [--format FORMAT [FILE...]]

Builds fuzz_read.cpp and fuzz_frames.cpp together with the parsers, makes small files of every format, and damages them.
With FILEs and `--inputs 0` it parses just these, to repeat a crash.
"""

import io
import json
import sys
import tarfile
from collections.abc import Callable, Iterable
from pathlib import Path

import damaging
import numpy as np

ROOT = Path(__file__).parents[2]
SOURCES = "tar wds_scan webdataset json coco_scan coco mask lmdb npy npy_header caffe caffe2 table local_files url "
SOURCES += "tf_example recordio record_scan crc32c nemo_scan fits fits_tiles fits_codes fits_hcompress mds mds_scan "
SOURCES += "decompress parquet parquet_header"


def tars():
    for k, format in enumerate((tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)):
        file = io.BytesIO()
        with tarfile.open(fileobj=file, mode="w", format=format, pax_headers={"comment": "all"}) as archive:
            for name in ("a/1.jpg", "a/1.cls", "b.json", *(("n" * 120 + ".jpg", "ü.png") if k else ())):
                member = tarfile.TarInfo(name)
                member.size = len(name) * 5
                archive.addfile(member, io.BytesIO(bytes(member.size)))
        yield file.getvalue().rstrip(b"\0") + bytes(1024)


def indexes():
    yield b"v1.2 2\njpg 512 3 a.jpg cls 1536 1 a.cls\njpg 2560 1 b c.jpg\n"
    yield b"v1.1 2\njpg 512 3 cls 1536 1\njpg 2560 1\n"


def annotations():
    polygon = [10.5, 20, 100.25, 30.125, 50, 300.75, -5, 1e2]
    for counts in ([5, 10, 20, 1], "PPYo0b0O1"):
        text = {
            "info": {"a": [1, {"b": None}], "text": 'quoted " \\ \u00fc'},
            "images": [{"id": i, "width": 640, "height": 480, "file_name": f"{i}.jpg", "x": [1, 2]} for i in (3, 1)],
            "annotations": [
                {"image_id": 1, "category_id": 7, "bbox": [1, 2.5, 30, 4e1], "segmentation": [polygon, polygon[:6]]},
                {"image_id": 3, "category_id": 9, "bbox": [1, 2, 3, 4], "iscrowd": 1}
                | {"segmentation": {"size": [480, 640], "counts": counts}},
            ],
            "categories": [{"id": 7, "name": "x"}, {"id": 9}],
        }
        yield json.dumps(text).encode()
        yield json.dumps(text, indent=1, ensure_ascii=False).encode()
    yield b'{"images": ' + b"[" * 10000


def manifests():
    entry = {
        "audio_filepath": "a/ü.wav",
        "text": 'it\'s "so" \u20ac',
        "duration": 1.5,
        "offset": 0.25,
        "x": [1, {"y": None}],
    }
    yield json.dumps(entry).encode() + b"\r\n\n" + json.dumps(entry, ensure_ascii=False).encode()
    yield b'{"audio_filepath": "a", "text": "\\ud83d\\ude00"}\n' * 3 + b'{"x": ' + b"[" * 1000


def databases():
    import tempfile

    import lmdb

    for n, size in ((3, 10), (300, 20), (40, 5000)):
        with tempfile.TemporaryDirectory() as folder:
            with lmdb.open(folder, map_size=1 << 24) as env, env.begin(write=True) as txn:
                for i in range(n):
                    txn.put(b"%08d" % i, bytes([i % 256]) * size)
            yield (Path(folder) / "data.mdb").read_bytes()[: 1 << 20]


def arrays():
    for x in (np.arange(24, dtype="f4").reshape(2, 3, 4), np.asfortranarray(np.arange(30, dtype="i2").reshape(5, 6))):
        file = io.BytesIO()
        np.save(file, x)
        yield file.getvalue()
    for shape in ((), (0, 3), (1 << 60, 4), (1 << 20, 1 << 20, 1 << 20, 1 << 20), (4, 0, 1 << 62, 8)):
        text = repr({"descr": "<f8", "fortran_order": bool(len(shape) % 2), "shape": shape}).encode()
        yield b"\x93NUMPY\1\0" + len(text).to_bytes(2, "little") + text + bytes(64)


def _varint(n):
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def _field(number, value):
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def datums():
    yield _field(1, 3) + _field(2, 4) + _field(3, 5) + _field(4, bytes(60)) + _field(5, 7) + _field(7, 0)
    yield _field(4, b"encoded picture") + _field(5, 2**31 - 1) + _field(7, 1)


def tensors():
    image = _field(2, 4) + _field(6, b"encoded picture")
    raw = b"".join(_field(1, n) for n in (2, 3, 4)) + _field(2, 3) + _field(5, bytes(24))
    ints, floats = _field(2, 2) + _field(4, bytes([1, 5, 3])), _field(2, 1) + _field(3, np.float32([1, 2, 3]).tobytes())
    box, longs = _field(2, 2) + _field(4, bytes([1, 2, 3, 4])), _field(2, 10) + _field(10, 1 << 40)
    for parts in (
        (image, _field(2, 2) + _field(4, 3)),
        (raw, ints, floats, longs, box),
        (floats,),
        (ints, floats, box),
    ):
        yield b"".join(_field(1, p) for p in parts)


def tf_examples():
    sys.path.insert(0, str(ROOT / "tests/operators/read"))
    import tfrecord_files as tf

    values = {"i": tf.integers(1, -5, 1 << 40), "f": tf.floats(1, 2.5, 3, 4), "s": tf.strings(b"abc", b"", b"defg")}
    yield tf.record(tf.example(values))
    yield tf.record(tf.example({n: v + v for n, v in values.items()}))
    loose = {"i": tf.integers(1, 2, packed=False), "f": tf.floats(1, 2, packed=False), "s": tf.strings(b"x" * 300)}
    yield tf.record(tf.example(loose) + tf.example({"s": tf.integers(), "i": b""}))
    yield tf.record(b"") + tf.record(tf.example(values))


def recordio():
    def part(kind, data):
        head = (0xCED7230A).to_bytes(4, "little") + (kind << 29 | len(data)).to_bytes(4, "little")
        return head + data + bytes(-len(data) % 4)

    header = bytes(4) + np.float32([7]).tobytes() + bytes(16)
    yield part(0, header + b"encoded picture")
    yield part(0, b"\2" + header[1:] + np.float32([1, 2]).tobytes() + b"picture")
    yield part(1, header + b"pict") + part(2, b"") + part(2, b"u") + part(3, b"re")
    yield part(0, header) * 3


def fits_files():
    def hdu(dtype, bitpix, shape, *cards, first="SIMPLE  =                    T"):
        axes = [f"NAXIS{i:<3}= {n:>20}" for i, n in enumerate(shape[::-1], 1)]
        cards = [first, f"BITPIX  = {bitpix:>20}", f"NAXIS   = {len(shape):>20}", *axes, *cards, "END"]
        header = "".join(c.ljust(80) for c in cards).encode()
        data = np.arange(np.prod(shape, dtype=int) if shape else 0).astype(dtype).tobytes()
        return header + b" " * (-len(header) % 2880) + data + bytes(-len(data) % 2880)

    image, table = "XTENSION= 'IMAGE   '", "XTENSION= 'BINTABLE'"
    for dtype, bitpix in ((">i2", 16), (">i4", 32), (">i8", 64), (">f4", -32), (">f8", -64), ("u1", 8)):
        scaled = ("BSCALE  =                0.5D0 / x", "BZERO   =               -3.25"), (f"BZERO   = {2**15:>20}",)
        for cards in ((), *scaled):
            yield hdu(dtype, bitpix, (2, 3)) + hdu(dtype, bitpix, (3, 2, 4), *cards, first=image)
    yield (
        hdu("u1", 8, ())
        + hdu("u1", 8, (2, 8), "PCOUNT  = 5", "GCOUNT  = 1", first=table)
        + hdu("u1", 8, (4,), first=image)
    )
    yield from fits_tiles()
    yield hdu("u1", 8, (0, 2**62)) + hdu("u1", 8, (2, 0), f"PCOUNT  = {2**63 - 1}", first=image)


def mds_samples():
    def u32(*numbers):
        return np.array(numbers, "u4").tobytes()

    columns = b"bytes", b"\x22\x08\2\1" + np.float32([1, 2]).tobytes(), b"\x12\x05\3\0" + bytes(6)
    columns += (u32(2, 1, 3) + b"RGB" + bytes(6),)
    sample = u32(*map(len, columns)) + b"".join(columns) + u32(7)
    yield sample
    yield u32(0, 1, 0, 13 + 8) + b"\x42" + u32(1, 8, 1) + b"L" + bytes(8) + u32(7)
    yield u32(3, 20, 20, 20 + len(sample), 20 + len(sample)) + sample


def fits_tiles():
    """Compressed images, as far as astropy is there."""
    try:
        from astropy.io import fits
    except ImportError:
        print("without astropy: no compressed FITS images")
        return
    rng = np.random.default_rng(0)
    image = rng.normal(1000, 9, (9, 20))
    kinds = [
        (code, dtype) for code in ("RICE_1", "GZIP_1", "GZIP_2", "NOCOMPRESS") for dtype in ("u1", "i2", "i4", "f4")
    ]
    kinds += [("HCOMPRESS_1", dtype) for dtype in ("u1", "i2", "i4", "f4")]
    for code, dtype in [*kinds, ("PLIO_1", "i2"), ("RICE_1", "f8")]:
        data = (image / 8 if dtype == "u1" else image).astype(dtype)
        for k, tile in enumerate(((5, 8), (9, 20)) if code == "HCOMPRESS_1" else ((4, 7), (1, 20))):
            file = io.BytesIO()
            options = {"quantize_method": 1, "hcomp_scale": 4 * k, "hcomp_smooth": k}
            packed = fits.CompImageHDU(data, compression_type=code, tile_shape=tile, **options)
            fits.HDUList([fits.PrimaryHDU(), packed]).writeto(file)
            yield file.getvalue()


def parquet_columns():
    """The pages of columns, behind what the file says of these: codec, width, definition level and rows."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        print("without pyarrow: no Parquet columns")
        return
    n = 60
    numbers = pa.array([i // 7 if i % 5 else None for i in range(n)], pa.int64())
    words = pa.array([b"%d" % i * (i % 9) if i % 4 else None for i in range(n)])
    files = pa.array([{"bytes": b"%d" % (i % 3) * 9 if i % 6 else None, "path": None} for i in range(n)])
    table = pa.table({"number": numbers, "word": words, "file": files, "four": pa.array([b"four"] * n, pa.binary(4))})
    for k, codec in enumerate(("none", "snappy", "zstd")):
        for encoding in ("dictionary", "PLAIN", "DELTA_LENGTH_BYTE_ARRAY"):
            for version in ("1.0", "2.0"):
                options = {
                    "compression": codec,
                    "data_page_version": version,
                    "data_page_size": 100,
                    "write_batch_size": 9,
                }
                options["use_dictionary"] = encoding == "dictionary"
                if encoding[:5] == "DELTA":
                    options["column_encoding"] = {"word": encoding, "file.bytes": encoding}
                file = io.BytesIO()
                pq.write_table(table, file, **options)
                about = pq.read_metadata(file)
                for i, width in enumerate((8, 0, 0, 0, 4)):
                    c = about.row_group(0).column(i)
                    begin = min(x for x in (c.dictionary_page_offset, c.data_page_offset) if x)
                    level = about.schema.column(i).max_definition_level
                    head = bytes([k, width, level]) + n.to_bytes(2, "little")
                    yield head + file.getvalue()[begin : begin + c.total_compressed_size]


def snappy_blocks():
    """Behind their size when unpacked."""
    yield b"\x05\0\x05\x10hello"
    yield b"\x14\0\x14\x08abc\x1d\x03\x16\x01\0"  # copies that overlap, of both short forms
    yield b"\x46\0\x46\xf0\x3b" + bytes(range(60)) + b"\x27\x3c\0\0\0"
    yield b"\0\2\x80\4\0x" + b"\xfe\1\0" * 7 + b"\xfa\1\0"


SEEDS = {
    "tar": tars,
    "wds_index": indexes,
    "coco": annotations,
    "nemo": manifests,
    "lmdb": databases,
    "npy": arrays,
    "caffe": datums,
    "caffe2": tensors,
    "tfrecord": tf_examples,
    "recordio": recordio,
    "fits": fits_files,
    "mds": mds_samples,
    "parquet": parquet_columns,
    "snappy": snappy_blocks,
}


def read_program(folder: Path) -> Path:
    names = [f"read/{name}" for name in SOURCES.split()] + ["core/native_time", "core/memory", "core/python"]
    return damaging.build(folder, "fuzz_read", names, ["-lzstd", "-lz"])


def frames() -> dict[str, Callable[[], Iterable[bytes]]]:
    """Those formats whose samples are pictures or videos, if there is what makes these."""
    try:
        import fuzz_decode
        import fuzz_video
    except ImportError as e:
        print(f"without {e.name}: neither sequence nor video_clip")
        return {}
    # Small pictures: most of the time would go into decoding.
    small = lambda: (data for data in fuzz_decode.seeds().values() if len(data) < 20_000)
    return {"sequence": small, "video_clip": lambda: fuzz_video.seeds().values()}


def frames_program(folder: Path) -> Path:
    import fuzz_decode
    import fuzz_video

    sources, flags = fuzz_decode.decoders()
    names = [
        "read/sequence",
        "read/frames",
        "read/video_clip",
        "read/local_files",
        "read/url",
        "core/memory",
        "core/python",
    ]
    return damaging.build(folder, "fuzz_frames", [*sources, *fuzz_video.SOURCES, *names], flags)


def main() -> int:
    in_frames = frames()
    seeds = SEEDS | in_frames
    parser = damaging.arguments(__doc__)
    parser.set_defaults(inputs=1_000_000)  # of each format
    parser.add_argument("--format", choices=list(seeds), help="only this one; with files, which it is needed for")
    args = parser.parse_args()
    formats = [args.format] if args.format else list(seeds)
    programs = {}
    for program, its in ((read_program, SEEDS), (frames_program, in_frames)):
        wanted = [f for f in formats if f in its]
        programs |= dict.fromkeys(wanted, program(args.build_folder)) if wanted else {}
    for format, program in programs.items():
        files = {str(i): data for i, data in enumerate(seeds[format]())}
        if code := damaging.run(program, args, format, files):
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main())
