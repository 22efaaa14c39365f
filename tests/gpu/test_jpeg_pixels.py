# SPDX-License-Identifier: Apache-2.0
"""The hybrid JPEG decoder gives bit for bit the same pixels as the CPU's decoder."""

import io
import os
from pathlib import Path

import numpy as np
import pytest
from jpeg_files import jpeg_file
from PIL import Image

from penstock.core import kernels
from penstock.core.batch import Batch, Spec
from penstock.gpu.session import Session
from penstock.operators.decode.gpu.jpeg_halves import decode_halves
from penstock.operators.decode.gpu.jpeg_scans import decode_scans

RGB, BGR, GRAY, YCBCR = range(4)
RNG = np.random.default_rng(3)


def decode_both(files, output_type=RGB, dtype="u1", orientation=None, windows=None, window=None, by="CPU and GPU"):
    """Samples of the CPU's decoder and of the hybrid one, None where it declined; of any `windows`, or of one (y, x,
    height, width)."""
    encoded = Batch.from_samples([np.frombuffer(f, "u1") for f in files], "")
    n, (width, height) = len(files), zip(*(Image.open(io.BytesIO(f)).size for f in files))
    turn = np.full(n, 1) if orientation is None else np.asarray(orientation)
    h, w = np.array(height), np.array(width)
    h, w = np.where(turn >= 5, w, h), np.where(turn >= 5, h, w)
    y, x = np.zeros(n, "i8"), np.zeros(n, "i8")
    if windows:
        y, x = (RNG.random(n) * h).astype("i8"), (RNG.random(n) * w).astype("i8")
        h, w = 1 + (RNG.random(n) * (h - y)).astype("i8"), 1 + (RNG.random(n) * (w - x)).astype("i8")
    if window:
        y, x, h, w = (np.full(n, v) for v in window)
    spec = Spec(np.stack([h, w, np.full(n, 1 if output_type == GRAY else 3)], 1), np.dtype(dtype), "HWC")
    kernel, pool = kernels.kernel("decode/decode"), kernels.Pool(1)
    columns = {"format": 1, "height": np.array(height), "width": np.array(width)}
    columns |= {
        "y": y,
        "x": x,
        "orientation": turn,
        "output_type": output_type,
        "scale_denom": 1,
        "fancy_upsampling": 1,
    }
    args, _ = kernel.rows(n, columns)
    want, outcome = Batch.allocate(spec), kernels.Outcome(np.zeros(n, "i4"), n, 1)
    pool.run([kernels.Step(kernel, args, [(want.rows, -1)], [(encoded.rows, -1)])], n, outcome)
    session = Session(0, None)
    with session.begin() as gpu:
        out = gpu.allocate(spec)
        if by == "GPU":
            declined, verdict = decode_scans(gpu, pool, args, encoded, out)
            declined = np.zeros(n, bool) if declined is None else declined
            if verdict is not None and (irregular := verdict.wait()) is not None:
                declined |= irregular
        else:
            declined, _ = decode_halves(gpu, pool, args, encoded, out)
        gpu.finish([out])
        got = out.download()
        gpu.stream.synchronize()
    session.close()
    cpu = [None if outcome.status[i] else want.sample(i) for i in range(n)]
    return cpu, [None if declined[i] else got.sample(i) for i in range(n)]


def check(files, declined=(), **options):
    """`declined`: the images that the GPU alone refuses."""
    for by in ("GPU", "CPU and GPU"):
        for i, (a, b) in enumerate(zip(*decode_both(files, by=by, **options))):
            if by == "GPU" and i in declined:
                assert b is None
                continue
            assert b is not None, f"{by} declined picture {i}"
            np.testing.assert_array_equal(b, a, err_msg=f"picture {i} by {by}")


SAMPLINGS = {
    "gray": ((1, 1),),
    "gray 2x2": ((2, 2),),
    "444": ((1, 1),) * 3,
    "422": ((2, 1), (1, 1), (1, 1)),
    "420": ((2, 2), (1, 1), (1, 1)),
    "440": ((1, 2), (1, 1), (1, 1)),
    "411": ((4, 1), (1, 1), (1, 1)),
    "410": ((4, 2), (1, 1), (1, 1)),
    "luma is smaller": ((1, 1), (2, 2), (1, 2)),
    "mixed": ((2, 2), (2, 1), (1, 2)),
}


@pytest.mark.parametrize("name", SAMPLINGS)
def test_samplings_and_sizes(name):
    sizes = [(1, 1), (2, 3), (5, 4), (8, 8), (17, 9), (16, 33), (40, 31), (37, 40)]
    files = [jpeg_file(RNG, h, w, SAMPLINGS[name], restart=i % 3) for i, (h, w) in enumerate(sizes)]
    check(files, declined=[i for i in range(len(sizes)) if i % 3])


@pytest.mark.parametrize("output_type", (RGB, BGR, GRAY, YCBCR))
@pytest.mark.parametrize("adobe", (None, 0, 1))
def test_colours(output_type, adobe):
    files = [jpeg_file(RNG, 21, 30, SAMPLINGS[s], adobe=adobe) for s in ("444", "420")]
    check([*files, jpeg_file(RNG, 21, 30)], output_type=output_type)


@pytest.mark.parametrize("name", ("444", "422", "420"))
@pytest.mark.parametrize("windows", (False, True))
def test_wide_rows(name, windows):
    """Rows of several strips of a warp, at all alignments."""
    sizes = [(5, 1100), (3, 513), (9, 259), (4, 770), (2, 1025)]
    files = [jpeg_file(RNG, h, w, SAMPLINGS[name]) for h, w in sizes]
    for output_type in (RGB, BGR):
        check(files, windows=windows, output_type=output_type)


@pytest.mark.parametrize("name", ("422", "420", "440"))
def test_orientations_and_windows(name):
    files = [jpeg_file(RNG, 50, 70, SAMPLINGS[name])] * 24
    check(files, orientation=np.arange(24) % 8 + 1)
    check(files, orientation=np.arange(24) % 8 + 1, windows=True)


@pytest.mark.parametrize("dtype", ("i1", "u2", "i2", "u4", "i4", "f4"))
@pytest.mark.parametrize("output_type", (RGB, YCBCR))
def test_types(dtype, output_type):
    check([jpeg_file(RNG, 11, 19, SAMPLINGS["420"])], dtype=dtype, output_type=output_type)


def test_large_coefficients():
    """Values that take two words, and pixels that are clipped."""
    check([jpeg_file(RNG, 40, 40, SAMPLINGS["420"], density=d, largest=1000, quantiser=1) for d in (1, 3)])
    check([jpeg_file(RNG, 40, 40, SAMPLINGS["420"], density=50, largest=100, quantiser=1)])


@pytest.mark.parametrize("optimize", (False, True))
def test_codes_of_all_lengths(optimize):
    """Custom tables with codes of 1 to 16 bits, blocks of one or two bits, and a scan of several rounds."""
    y, x = np.mgrid[:200, :300]
    smooth = np.stack([y, x, (x + y) // 2], 2).astype("u1")
    noisy = RNG.integers(0, 256, (200, 300, 3)).astype("u1")
    half = np.where((x < 150)[..., None], smooth, noisy).astype("u1")
    images = [(np.full_like(smooth, 77), 50), (smooth, 30), (half, 90), (half, 100), (noisy[:64], 1)]
    files = [encode(i, quality=q, subsampling=s, optimize=optimize) for i, q in images for s in (0, 1, 2)]
    files.append(encode(RNG.integers(0, 256, (420, 640, 3)).astype("u1"), quality=100, subsampling=0))
    assert len(files[-1]) > 1 << 19
    check(files)
    check(files, windows=True)


def test_damage_behind_the_window():
    """Rows below the window are not read."""
    image = RNG.integers(0, 256, (96, 64, 3)).astype("u1")
    data = bytearray(encode(image, quality=90))
    data[-30:-2] = b"\xff\x00" * 14
    encoded = [bytes(data)]
    for by in ("GPU", "CPU and GPU"):
        cpu, gpu = decode_both(encoded, by=by)
        assert cpu[0] is None and gpu[0] is None, f"{by}: the whole picture is damaged"
        cpu, gpu = decode_both(encoded, by=by, window=(8, 4, 40, 50))
        np.testing.assert_array_equal(gpu[0], cpu[0], err_msg=by)
    np.testing.assert_array_equal(cpu[0], np.asarray(Image.open(io.BytesIO(encode(image, quality=90))))[8:48, 4:54])


@pytest.mark.parametrize("rows", (1, 17, 48, 95, 130, 192))
@pytest.mark.parametrize("is_top_noisy", (False, True))
def test_windows_of_uneven_pictures(rows, is_top_noisy):
    """Where the bits of the needed rows end is estimated from their share of the picture: too early if most detail is
    in them, and too late if most is below."""
    noisy = RNG.integers(0, 256, (192, 320, 3)).astype("u1")
    noisy[96:] = 128
    image = noisy if is_top_noisy else noisy[::-1].copy()
    files = [encode(image, quality=q, subsampling=s) for q in (60, 95) for s in (0, 2)]
    for y in {0, min(40, rows - 1)}:
        cpu, gpu = decode_both(files, by="GPU", window=(y, 3, rows - y, 300))
        for a, b in zip(cpu, gpu, strict=True):
            np.testing.assert_array_equal(b, a)


def encode(image, **options):
    out = io.BytesIO()
    Image.fromarray(image).save(out, "JPEG", **options)
    return out.getvalue()


@pytest.mark.parametrize("by", ("GPU", "CPU and GPU"))
def test_what_is_not_plain_is_declined(by):
    """The other images of the batch are decoded."""
    image = RNG.integers(0, 256, (40, 50, 3)).astype("u1")
    plain = encode(image)
    damaged = bytearray(plain)
    damaged[-100] ^= 0xFF
    damaged[-99] = 0xFF
    cmyk = io.BytesIO()
    Image.new("CMYK", (20, 30)).save(cmyk, "JPEG")
    files = [plain, encode(image, progressive=True), plain[:-500], bytes(damaged), cmyk.getvalue(), plain]
    cpu, gpu = decode_both(files, by=by)
    assert [x is None for x in gpu] == [False, True, True, True, True, False]
    np.testing.assert_array_equal(gpu[0], cpu[0])
    np.testing.assert_array_equal(gpu[5], cpu[5])


def data_files():
    root = os.environ.get("PENSTOCK_DATA")
    return sorted(Path(root).rglob("*.jp*g")) if root else []


@pytest.mark.skipif(not data_files(), reason="PENSTOCK_DATA is not set")
@pytest.mark.parametrize("by", ("GPU", "CPU and GPU"))
def test_real_files(by):
    """Images accepted by the hybrid decoder have the CPU's pixels; it accepts all plain photographs."""
    files = data_files()
    taken = 0
    for begin in range(0, len(files), 32):
        contents = []
        for f in files[begin : begin + 32]:
            data = f.read_bytes()
            if data[:2] == b"\xff\xd8" and len(data) > 200 and len(data) < 400_000:
                try:
                    Image.open(io.BytesIO(data))
                except OSError:
                    continue
                contents.append(data)
        if not contents:
            continue
        for i, (a, b) in enumerate(zip(*decode_both(contents, by=by))):
            if b is not None:
                taken += 1
                assert a is not None
                np.testing.assert_array_equal(b, a, err_msg=f"picture {i} after {files[begin]}")
    assert taken > 0.8 * sum("photos" in str(f) for f in files)
