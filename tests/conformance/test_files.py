# SPDX-License-Identifier: Apache-2.0
"""Real files through the decoders and whole pipelines, against the real DALI. Needs PENSTOCK_DATA."""

import io
import struct
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import penstock
from conformance import oracle, report
from conformance.oracle import Bound
from harness import _face
from penstock import types

OUTPUT_TYPES = (types.RGB, types.BGR, types.GRAY, types.YCbCr, types.ANY_DATA)
MEAN, STD = [123.675, 116.28, 103.53], [58.395, 57.12, 57.375]
FORMATS = (
    "bmp",
    "fuzzing",
    "jpeg",
    "jpeg2k",
    "jpeg_lossless",
    "missnamed",
    "multichannel",
    "png",
    "pnm",
    "tiff",
    "webp",
)
# Part of "file name, arguments" -> reason of a deliberate difference.
DIFFERS = {
    "refuses:jpeg_lossless/cat-3449999_640_grayscale_8bit.jpg": "lossless JPEG is beyond libjpeg-turbo 2: an error",
    "tiff/rgb_11bit.tiff": "penstock reads samples of 11 bits",
    "tiff/rgb_21bit.tiff": "penstock reads samples of 21 bits",
    "tiff/rgb_31bit.tiff": "penstock reads samples of 31 bits",
}


def colour_bound(output_type) -> Bound:
    """Exact, except for colour conversions, which may round differently."""
    return Bound(1 if output_type in (types.GRAY, types.YCbCr) else 0)


def side_of(side):
    if side == "dali":
        return oracle.dali_fn, oracle.pipeline_def, {"device_id": None}, oracle.dali_value
    return penstock.fn, penstock.pipeline_def, {}, lambda v: v


def run(side, files, graph):
    """A batch of the files' bytes through `graph(fn, encoded, value)`."""
    fn, define, options, value = side_of(side)
    data = [np.fromfile(f, "u1") for f in files]

    @define(batch_size=len(data), num_threads=2, seed=1, prefetch_queue_depth=1, **options)
    def pipe():
        out = graph(fn, fn.external_source(source=lambda i: data), value)
        return tuple(out) if isinstance(out, (tuple, list)) else (out,)

    try:
        return oracle._collect(pipe().run())
    except Exception as e:
        return oracle.Result(error=oracle._cause(e))


def decode(name="decoders.image", **kwargs):
    return lambda fn, encoded, value: _face(fn, name)(encoded, **{k: value(v) for k, v in kwargs.items()})


def check(name, files, graph, bound, text, each=False):
    """Compares files in one batch, or with `each` separately, so that an undecodable file does not hide others."""
    tally = report.tally(name)
    wrong = []
    for batch in [[f] for f in files] if each else [files[i : i + 16] for i in range(0, len(files), 16)]:
        tally.cases += len(batch)
        problem = oracle.compare(run("dali", batch, graph), run("penstock", batch, graph), bound, tally)
        if problem:
            where = f"{'/'.join(batch[0].parts[-3:])}, {text}"
            if not tally.excuse(problem, DIFFERS, where):
                wrong.append(f"{where}: {problem}")
    tally.failures += wrong
    if wrong:
        pytest.fail(f"{len(wrong)} differ:\n" + "\n".join(wrong[:40]), pytrace=False)


@pytest.fixture(scope="module")
def photos(data, is_sample) -> list[Path]:
    found = sorted(data.glob("photos500/**/*.jpg"))
    return found[::12] if is_sample else found


@pytest.fixture(scope="module")
def large(data, is_sample) -> list[Path]:
    found = sorted(data.glob("photos1280/**/*.jpg"))
    return found[::5] if is_sample else found


@pytest.mark.parametrize("output_type", OUTPUT_TYPES, ids=lambda t: t.name)
def test_photos(photos, large, output_type):
    check(
        "decoders.image",
        [*photos, *large],
        decode(output_type=output_type),
        colour_bound(output_type),
        output_type.name,
    )


@pytest.mark.parametrize("dtype", [types.FLOAT, types.INT16, types.UINT16, types.FLOAT16], ids=lambda t: t.name)
def test_types(photos, dtype):
    check("decoders.image", photos[:8], decode(dtype=dtype), Bound(0), dtype.name)


def test_fast_options(photos):
    check("decoders.image", photos[:8], decode(use_fast_idct=True), Bound(0), "use_fast_idct")
    check("decoders.image", photos[:8], decode(jpeg_fancy_upsampling=True), Bound(0), "jpeg_fancy_upsampling")


@pytest.mark.parametrize("output_type", OUTPUT_TYPES, ids=lambda t: t.name)
@pytest.mark.parametrize("format", FORMATS)
def test_formats(data, is_sample, format, output_type):
    if is_sample and output_type not in (types.RGB, types.GRAY):
        pytest.skip("not in the sample")
    files = sorted(
        f for f in (data / "formats" / format).rglob("*") if f.is_file() and f.suffix not in (".md", ".txt", ".json")
    )
    files = files[::4] if is_sample else files
    check(
        "decoders.image", files, decode(output_type=output_type), colour_bound(output_type), output_type.name, each=True
    )


def odd_images() -> dict[str, bytes]:
    """Animations of WebP, and a BMP with colours beyond its palette."""
    rng, made = np.random.default_rng(0), {}
    for mode, lossless in (("RGB", True), ("RGB", False), ("RGBA", True), ("RGBA", False)):
        pictures = [Image.fromarray(rng.integers(0, 256, (20, 30, len(mode)), "u1")) for _ in range(3)]
        file = io.BytesIO()
        pictures[0].save(file, "WEBP", save_all=True, append_images=pictures[1:], lossless=lossless)
        made[f"{mode}{lossless}.webp"] = file.getvalue()
    palette = rng.integers(0, 256, (8, 4), "u1")
    head = struct.pack("<IiiHHIIiiII", 40, 8, -2, 1, 8, 0, 16, 0, 0, 8, 0) + palette.tobytes() + bytes(range(16))
    made["palette.bmp"] = b"BM" + struct.pack("<IHHI", 14 + len(head), 0, 0, 14 + 40 + 32) + head
    return made


@pytest.mark.parametrize("output_type", OUTPUT_TYPES, ids=lambda t: t.name)
def test_odd_images(tmp_path, output_type):
    files = []
    for name, content in odd_images().items():
        files.append(tmp_path / name)
        files[-1].write_bytes(content)
    graph = decode(output_type=output_type)
    check("decoders.image", files, graph, colour_bound(output_type), output_type.name, each=True)


@pytest.mark.parametrize("dtype", [types.FLOAT, types.UINT16], ids=lambda t: t.name)
def test_formats_as_types(data, is_sample, dtype):
    files = sorted(
        f for part in ("png", "tiff", "jpeg2k", "pnm") for f in (data / "formats" / part).rglob("*") if f.is_file()
    )
    files = files[:: 8 if is_sample else 1]
    check("decoders.image", files, decode(dtype=dtype, output_type=types.ANY_DATA), Bound(0), dtype.name, each=True)


@pytest.mark.parametrize(
    "kwargs",
    [
        {"crop": [100.0, 150.0]},
        {"crop": [100.0, 150.0], "crop_pos_x": 0.0, "crop_pos_y": 1.0},
        {"crop_w": 99.0, "crop_h": 77.0, "crop_pos_x": 0.33, "crop_pos_y": 0.71},
        {"crop": [100.0, 150.0], "output_type": types.GRAY},
        {"crop": [5000.0, 150.0]},
    ],
    ids=str,
)
def test_decoder_crop(photos, kwargs):
    check("decoders.image_crop", photos[:24], decode("decoders.image_crop", **kwargs), Bound(0), str(kwargs))


@pytest.mark.parametrize(
    "kwargs",
    [
        {"rel_start": [0.1, 0.2], "rel_shape": [0.5, 0.3], "axis_names": "HW"},
        {"start": [10, 33], "shape": [71, 111], "axis_names": "WH"},
        {"start": [10, 33], "end": [171, 211], "axes": [0, 1]},
        {"rel_start": [0.5], "rel_end": [0.9], "axes": [1]},
        {"start": [0, 0], "shape": [7100, 111], "axis_names": "HW"},
    ],
    ids=str,
)
def test_decoder_slice(photos, kwargs):
    check("decoders.image_slice", photos[:24], decode("decoders.image_slice", **kwargs), Bound(0), str(kwargs))


@pytest.mark.parametrize(
    "kwargs", [{}, {"adjust_orientation": False}, {"image_type": types.ANY_DATA}, {"dtype": types.INT32}], ids=str
)
def test_peek(data, photos, kwargs):
    files = [*photos[:16], *sorted(f for f in (data / "formats").rglob("*") if f.is_file())]
    check("peek_image_shape", files, decode("peek_image_shape", **kwargs), Bound(0), str(kwargs), each=True)


def val(fn, encoded, value):
    images = fn.decoders.image(encoded, output_type=value(types.RGB))
    images = fn.resize(images, resize_shorter=256)
    return fn.crop_mirror_normalize(images, crop=(224, 224), mean=MEAN, std=STD, dtype=value(types.FLOAT))


def rrc(fn, encoded, value):
    images = fn.decoders.image(encoded, output_type=value(types.RGB))
    images = fn.slice(images, rel_start=[0.13, 0.21], rel_shape=[0.61, 0.57], axis_names="HW")
    images = fn.resize(images, size=[224, 224])
    return fn.crop_mirror_normalize(images, mirror=1, mean=MEAN, std=STD, dtype=value(types.FLOAT))


def augment(fn, encoded, value):
    images = fn.decoders.image(encoded, output_type=value(types.RGB))
    images = fn.color_twist(images, brightness=1.1, contrast=0.9, saturation=1.2, hue=10.0)
    images = fn.rotate(images, angle=12.0, fill_value=0, keep_size=True)
    return fn.resize(images, size=[160, 200], interp_type=value(types.INTERP_CUBIC))


ONE_STEP = Bound(1, 8, 1.001 / min(STD))


@pytest.mark.parametrize(
    "graph, bound", [(val, ONE_STEP), (rrc, ONE_STEP), (augment, Bound(3))], ids=["val", "rrc", "augment"]
)
def test_pipelines(photos, large, graph, bound):
    check(f"pipeline {graph.__name__}", [*photos, *large], graph, bound, graph.__name__)
