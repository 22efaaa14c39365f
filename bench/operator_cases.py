# SPDX-License-Identifier: Apache-2.0
"""What bench/operators.py measures: one table of operators, inputs and arguments.

An argument that is the name of a kind of input ("angles") is data, one value per sample; "types.X" is that enumeration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np
from compressed import blocks


@dataclass(frozen=True)
class Case:
    """An operator that is applied `times` times to the same inputs in one graph. Cheap ones are repeated, so that the
    overhead of the pipeline is small."""

    name: str
    inputs: tuple[str, ...]
    args: dict[str, Any] = field(default_factory=dict)
    note: str = ""  # distinguishes the cases of an operator
    times: int = 4
    host: tuple[int, ...] = ()  # inputs that stay on the CPU when the operator runs on the GPU
    call: Callable[..., Any] | None = None  # (fn, types, inputs, index of the application), if not a plain call
    conditionals: bool = False  # DALI's form needs conditional execution
    fresh: bool = False  # every batch has its samples in a new order, so its sizes are never repeated

    @property
    def title(self) -> str:
        return f"{self.name} {self.note}".strip()


def case(name: str, *inputs: str, note: str = "", times: int = 0, host: tuple[int, ...] = (), **args: Any) -> Case:
    call, conditionals, fresh = args.pop("call", None), args.pop("conditionals", False), args.pop("fresh", False)
    small = all(kind in SMALL for kind in inputs)
    return Case(name, inputs, args, note, times or (16 if small else 4), host, call, conditionals, fresh)


# Kinds of inputs -----------------------------------------------------------------------------------------------------

Samples = list[np.ndarray]


def _like(photos: Samples, dtype: str, shape: Callable[[int, int], tuple[int, ...]], high: float) -> Samples:
    rng = np.random.default_rng(5)
    return [(rng.random(shape(*p.shape[:2]), "f4") * high).astype(dtype) for p in photos]


def _draw(photos: Samples, draw: Callable[[np.random.Generator], Any]) -> Samples:
    rng = np.random.default_rng(6)
    return [np.asarray(draw(rng)) for _ in photos]


def _boxes(rng: np.random.Generator) -> np.ndarray:
    corner, size = rng.uniform(0, 0.6, (16, 2)), rng.uniform(0.1, 0.4, (16, 2))
    return np.hstack([corner, corner + size]).astype("f4")


def _masks(photos: Samples) -> Samples:
    """Numbered discs on a background of 0."""
    rng, out = np.random.default_rng(7), []
    for p in photos:
        h, w = p.shape[:2]
        y, x = np.ogrid[:h, :w]
        m = np.zeros((h, w, 1), "i4")
        for k in range(1, 9):
            cy, cx, r = rng.uniform(0, h), rng.uniform(0, w), rng.uniform(10, 60)
            m[(y - cy) ** 2 + (x - cx) ** 2 < r * r] = k % 4 + 1
        out.append(m)
    return out


def _maps(photos: Samples, axis: int) -> Samples:
    rng = np.random.default_rng(8)
    grids = (np.meshgrid(*map(np.arange, p.shape[1::-1]))[axis] for p in photos)
    return [(g + rng.normal(0, 2, g.shape)).astype("f4") for g in grids]


KINDS: dict[str, tuple[str, Callable[[Samples], Samples]]] = {
    "photo": ("HWC", lambda p: p),
    "small photo": ("HWC", lambda p: [x[:224, :224].copy() for x in map(_at_least_224, p)]),
    "little photo": ("HWC", lambda p: _little(p)),
    "float photo": ("HWC", lambda p: [(x / np.float32(255)).astype("f4") for x in p]),
    "planes": ("CHW", lambda p: [np.ascontiguousarray(x.transpose(2, 0, 1), "f4") for x in p]),
    "gray": ("HWC", lambda p: [x[..., 1:2].copy() for x in p]),
    "mosaic": ("HW", lambda p: [x[: x.shape[0] & ~1, : x.shape[1] & ~1, 1].copy() for x in p]),
    "video": ("FHWC", lambda p: [np.stack([x[:160, :160]] * 8) for x in map(_at_least_224, p)]),
    "masks": ("HWC", _masks),
    "map x": ("HW", lambda p: _maps(p, 0)),
    "map y": ("HW", lambda p: _maps(p, 1)),
    "shorts": ("HWC", lambda p: _like(p, "i2", lambda h, w: (h, w, 3), 30000)),
    "files": ("", lambda p: [_jpeg(x) for x in p]),
    "boxes": ("", lambda p: _draw(p, _boxes)),
    "labels": ("", lambda p: _draw(p, lambda r: r.integers(0, 80, 16, "i4"))),
    "points": ("", lambda p: _draw(p, lambda r: r.random((1000, 2), "f4"))),
    "vector": ("", lambda p: _draw(p, lambda r: r.random(1000, "f4"))),
    "matrix": ("", lambda p: _draw(p, lambda r: r.random((2, 3), "f4"))),
    "anchor": ("", lambda p: _draw(p, lambda r: r.uniform(0, 0.2, 2).astype("f4"))),
    "extent": ("", lambda p: _draw(p, lambda r: r.uniform(0.5, 0.7, 2).astype("f4"))),
    "shape": ("", lambda p: [np.array(x.shape, "i8") for x in p]),
    "extents to paste": ("", lambda p: [np.array([[150, 150]] * 2, "i4")] * len(p)),
    "places to paste": ("", lambda p: [np.array([[0, 0], [150, 90]], "i4")] * len(p)),
    "number": ("", lambda p: _draw(p, lambda r: np.float32(r.random()))),
    "angles": ("", lambda p: _draw(p, lambda r: np.float32(r.uniform(-30, 30)))),
    "coins": ("", lambda p: _draw(p, lambda r: np.int32(r.integers(0, 2)))),
    "block": ("", lambda p: [b for b, _ in blocks(p)]),
    "size": ("", lambda p: [np.array(x.shape[:2], "i4") for x in p]),
    "strips": ("", lambda p: [b for b, _ in blocks(p, 8)]),
    "size of strips": ("", lambda p: [np.array([8, x.shape[1]], "i4") for x in p]),
    "bytes of strips": ("", lambda p: [n for _, n in blocks(p, 8)]),
    "numbers of samples": ("", lambda p: [np.int32(i) for i in np.random.default_rng(9).permutation(len(p))]),
    "filter": ("", lambda p: [np.full((5, 5), 1 / 25, "f4")] * len(p)),
    "polygons": ("", lambda p: [np.array([[i % 8, i * 12, i * 12 + 12] for i in range(8)], "i4")] * len(p)),
    "vertices": ("", lambda p: _draw(p, lambda r: r.random((96, 2), "f4"))),
    "mask numbers": ("", lambda p: _draw(p, lambda r: r.permutation(8)[:4].astype("i4"))),
    "signal": ("t", lambda p: _draw(p, lambda r: r.normal(0, 0.3, 48000).astype("f4"))),
    "spectrum": ("ft", lambda p: _draw(p, lambda r: r.random((257, 188), "f4"))),
}
SMALL = "boxes labels points vector matrix anchor extent shape number angles coins filter polygons vertices".split() + [
    "mask numbers",
    "numbers of samples",
]


def _little(photos: Samples) -> Samples:
    """Crops of 24 to 64 pixels: the host's work per operator dominates."""
    rng = np.random.default_rng(10)
    return [np.ascontiguousarray(x[: rng.integers(24, 65), : rng.integers(24, 65)]) for x in photos]


def shuffled(samples: Samples) -> Iterator[Samples]:
    """The samples in a new order each time."""
    rng = np.random.default_rng(11)
    while True:
        yield [samples[i] for i in rng.permutation(len(samples))]


def _at_least_224(x: np.ndarray) -> np.ndarray:
    return np.pad(x, [(0, max(0, 224 - x.shape[0])), (0, max(0, 224 - x.shape[1])), (0, 0)], "edge")


def _jpeg(x: np.ndarray) -> np.ndarray:
    import io

    from PIL import Image

    out = io.BytesIO()
    Image.fromarray(x).save(out, "JPEG", quality=90)
    return np.frombuffer(out.getvalue(), "u1")


def _auto_aug(fn: Any) -> Any:
    """The auto_aug module of the library of `fn`."""
    root = fn.__name__.removesuffix(".fn") + ".auto_aug."
    names = ("auto_augment", "rand_augment", "trivial_augment")
    return SimpleNamespace(**{name: import_module(root + name) for name in names})


# The table -----------------------------------------------------------------------------------------------------------

MEAN, STD = [124.0, 116.0, 104.0], [58.0, 57.0, 57.0]
F32, F16, U8 = "types.FLOAT", "types.FLOAT16", "types.UINT8"
CUBIC, NEAREST, TRIANGULAR = "types.INTERP_CUBIC", "types.INTERP_NN", "types.INTERP_TRIANGULAR"
CROP = {"crop": [224.0, 224.0], "mean": MEAN, "std": STD}
ANCHORS = np.random.default_rng(4).uniform(0, 0.5, (1000, 2)).repeat(2, 0).reshape(-1, 4) + [0, 0, 0.2, 0.2]
SHAPE = {"shape": [100_000]}  # of random numbers

CASES = [
    # colour
    case("brightness", "photo", brightness=1.2),
    case("brightness", "photo", brightness=1.2, dtype=F32, note="to float", times=2),
    case("brightness", "float photo", brightness=1.2, note="of float", times=2),
    case("brightness_contrast", "photo", brightness=1.2, contrast=0.8),
    case("contrast", "photo", contrast=1.3),
    case("color_space_conversion", "photo", image_type="types.RGB", output_type="types.BGR", note="RGB > BGR"),
    case("color_space_conversion", "photo", image_type="types.RGB", output_type="types.GRAY", note="RGB > gray"),
    case("color_space_conversion", "photo", image_type="types.RGB", output_type="types.YCbCr", note="RGB > YCbCr"),
    case("color_space_conversion", "gray", image_type="types.GRAY", output_type="types.RGB", note="gray > RGB"),
    case("color_twist", "photo", brightness=1.1, contrast=0.9, saturation=1.2, hue=20.0),
    case("hsv", "photo", hue=30.0, saturation=1.2, value=0.9),
    case("hue", "photo", hue=30.0),
    case("saturation", "photo", saturation=1.4),
    # geometry
    case("crop", "photo", crop=[224.0, 224.0]),
    case("crop_mirror_normalize", "photo", **CROP, mirror="coins"),
    case("crop_mirror_normalize", "photo", **CROP, dtype=F16, note="to float16"),
    case("crop_mirror_normalize", "photo", mean=MEAN, std=STD, output_layout="HWC", note="whole, HWC", times=2),
    case("flip", "photo", horizontal=1),
    case("flip", "photo", horizontal=0, vertical=1, note="vertical"),
    case("flip", "float photo", horizontal=1, note="of float", times=2),
    case("pad", "photo", axes=[0, 1], align=[128], fill_value=7.0),
    case("slice", "photo", rel_start=[0.1, 0.1], rel_shape=[0.7, 0.7], axes=[0, 1]),
    case("slice", "photo", "anchor", "extent", host=(1, 2), axes=[0, 1], note="at data"),
    case("resize", "photo", size=[224, 224]),
    case("resize", "photo", size=[224, 224], interp_type=CUBIC, note="cubic"),
    case("resize", "photo", size=[224, 224], interp_type=NEAREST, antialias=False, note="nearest"),
    case("resize", "photo", size=[224, 224], antialias=False, note="linear, no antialias"),
    case("resize", "photo", resize_shorter=512.0, note="to a larger size", times=2),
    case("resize", "photo", size=[224, 224], dtype=F32, note="to float"),
    case("resize_crop_mirror", "photo", resize_shorter=256.0, crop=[224.0, 224.0], mirror="coins"),
    case("random_resized_crop", "photo", size=[224, 224]),
    case("tensor_resize", "photo", sizes=[224, 224], axes=[0, 1]),
    case("rotate", "photo", angle="angles", keep_size=True, fill_value=0.0),
    case("rotate", "photo", angle=10.0, interp_type=NEAREST, note="nearest"),
    case("warp_affine", "photo", matrix=[0.9, 0.2, 5.0, -0.2, 0.9, 20.0], fill_value=0.0),
    case("warp_affine", "photo", matrix=[0.9, 0.2, 5.0, -0.2, 0.9, 20.0], size=[224.0, 224.0], note="to 224x224"),
    case("experimental.warp_perspective", "photo", matrix=[0.9, 0.1, 5.0, -0.1, 0.9, 9.0, 0.0002, 0.0001, 1.0]),
    case("experimental.remap", "photo", "map x", "map y", times=2),
    case("coord_flip", "points", layout="xy"),
    case("coord_transform", "points", M=[0.9, 0.1, -0.1, 0.9], T=[1.0, 2.0]),
    case("coord_transform", "points", MT="matrix", note="by data"),
    case("transforms.translation", offset=[3.0, 4.0], times=16),
    case("transforms.rotation", angle="angles", center=[5.0, 5.0], times=16),
    case("transforms.scale", scale=[2.0, 0.5], times=16),
    case("transforms.shear", shear=[0.1, 0.2], times=16),
    case("transforms.crop", from_start=[0.1, 0.1], from_end=[0.9, 0.9], times=16),
    case("transforms.combine", "matrix", "matrix", times=16),
    case("sphere", "photo"),
    case("water", "photo"),
    case("jitter", "photo"),
    case("grid_mask", "photo", tile=64, ratio=0.5, angle=0.3),
    case("erase", "photo", anchor=[20.0, 30.0, 150.0, 200.0], shape=[80.0, 80.0, 90.0, 60.0], fill_value=[9.0]),
    case("paste", "photo", ratio=1.3, fill_value=[10, 20, 30], paste_x=0.3),
    case(
        "multi_paste",
        "photo",
        in_ids=[0, 1],
        output_size=[400, 500],
        shapes="extents to paste",
        out_anchors="places to paste",
    ),
    case("bbox_paste", "boxes", ratio=1.3, paste_x=0.3, paste_y=0.4),
    # Plans of repeated batches are cached; these batches are never repeated.
    *(
        case(name, "little photo", note="of little pictures, never the same sizes", fresh=True, times=16, **args)
        for name, args in (
            ("copy", {}),
            ("brightness", {"brightness": 1.2}),
            ("hue", {"hue": 30.0}),
            ("flip", {"horizontal": 1}),
            ("crop", {"crop": [20.0, 20.0]}),
            ("crop_mirror_normalize", {"crop": [20.0, 20.0], "mean": MEAN, "std": STD}),
            ("resize", {"size": [20, 20]}),
            ("random_resized_crop", {"size": [20, 20]}),
            ("warp_affine", {"matrix": [0.9, 0.2, 5.0, -0.2, 0.9, 20.0], "size": [20.0, 20.0]}),
            ("rotate", {"angle": 10.0, "fill_value": 0.0}),
            ("slice", {"rel_start": [0.1, 0.1], "rel_shape": [0.7, 0.7], "axes": [0, 1]}),
            ("resize_crop_mirror", {"resize_shorter": 24.0, "crop": [20.0, 20.0]}),
            ("normalize", {"axes": [0, 1]}),
            ("paste", {"ratio": 1.3, "fill_value": [10, 20, 30]}),
            ("erase", {"anchor": [2.0, 3.0], "shape": [8.0, 8.0], "fill_value": [9.0]}),
            ("pad", {"axes": [0, 1], "align": [32], "fill_value": 7.0}),
            ("transpose", {"perm": [2, 0, 1]}),
            ("reductions.sum", {"axes": [0, 1]}),
            ("gaussian_blur", {"sigma": 1.0}),
        )
    ),
    # filters
    case("gaussian_blur", "photo", sigma=1.5),
    case("gaussian_blur", "photo", sigma=5.0, note="sigma 5", times=1),
    case("gaussian_blur", "float photo", sigma=1.5, note="of float", times=1),
    case("laplacian", "photo", window_size=5),
    case("filter", "photo", "filter", note="5x5", times=1),
    case("experimental.median_blur", "photo", window_size=[3, 3]),
    case("experimental.dilate", "photo", mask_size=[3, 3]),
    case("experimental.erode", "photo", mask_size=[3, 3]),
    case("clahe", "photo", tiles_x=8, tiles_y=8, clip_limit=2.0),
    case("equalize", "photo"),
    case("debayer", "mosaic", blue_position=[0, 0]),
    case("jpeg_compression_distortion", "photo", quality=40, times=1),
    case("lookup_table", "photo", keys=list(range(256)), values=[float(255 - i) for i in range(256)], dtype=U8),
    case(
        "lookup_table", "photo", keys=list(range(256)), values=[i / 255 for i in range(256)], note="to float", times=2
    ),
    case("noise.gaussian", "photo", stddev=20.0, times=1),
    case("noise.shot", "photo", factor=20.0, times=1),
    case("noise.salt_and_pepper", "photo", prob=0.1, times=1),
    case("optical_flow", "video", times=1),
    # boxes and masks
    case("bb_flip", "boxes", ltrb=True),
    case("bbox_rotate", "boxes", angle="angles", input_shape=[400, 500]),
    case("box_encoder", "boxes", "labels", anchors=ANCHORS.ravel().tolist(), times=1),
    case("random_bbox_crop", "boxes", "labels", thresholds=[0.1, 0.5, 0.9], scaling=[0.3, 1.0], bbox_layout="xyXY"),
    case("ssd_random_crop", "photo", "boxes", "labels", times=2),
    case(
        "roi_random_crop", crop_shape=[224, 224], in_shape=[400, 500], roi_start=[50, 60], roi_end=[200, 260], times=16
    ),
    case("random_crop_generator", "shape"),
    case("segmentation.random_mask_pixel", "masks", foreground=1),
    case("segmentation.random_object_bbox", "masks"),
    case("segmentation.select_masks", "mask numbers", "polygons", "vertices", times=16),
    # tensors
    case("arithmetic", "photo", note="x * 0.5 + 3", call=lambda fn, types, x, i: x[0] * 0.5 + float(3 + i), times=2),
    case("arithmetic", "photo", "photo", note="x + y in uint8", call=lambda fn, types, x, i: x[0] + (x[1] + i)),
    case(
        "arithmetic",
        "float photo",
        "number",
        host=(),
        note="x * scalar of the sample",
        times=2,
        call=lambda fn, types, x, i: x[0] * (x[1] + float(i)),
    ),
    case("cast", "photo", dtype=F32, times=2),
    case("cast", "float photo", dtype=U8, note="float > uint8"),
    case("cast", "photo", dtype=F16, note="to float16"),
    case("cast_like", "photo", "vector", times=2),
    case("copy", "photo"),
    case("constant", fdata=[1.0, 2.0, 3.0], shape=[3], times=16),
    case("cat", "photo", "photo", axis=0, times=2),
    case("cat", "photo", "photo", axis=2, note="along channels", times=2),
    case("stack", "photo", "photo", axis=0, times=2),
    case("stack", "vector", "vector", axis=0, note="of vectors"),
    case("shapes", "photo", times=16),
    case("squeeze", "gray", axes=[2]),
    case("expand_dims", "photo", axes=[0]),
    case("reshape", "photo", shape=[-1]),
    case("reinterpret", "shorts", dtype="types.UINT16"),
    case("transpose", "photo", perm=[2, 0, 1]),
    case("transpose", "planes", perm=[1, 2, 0], note="CHW > HWC, float", times=2),
    case("normalize", "photo", axes=[0, 1], times=1),
    case("normalize", "photo", note="by given moments", mean=110.0, stddev=60.0, times=2),
    case("normalize", "float photo", batch=True, axes=[0, 1], note="over the batch", times=1),
    case("one_hot", "labels", num_classes=80),
    case("full", "number", shape=[1000]),
    case("full_like", "vector", "number"),
    case("zeros", shape=[1000], times=16),
    case("ones", shape=[1000], times=16),
    case("zeros_like", "photo"),
    case("ones_like", "photo"),
    case("get_property", "photo", key="layout", times=16),
    case("element_extract", "video", element_map=[0, 3, 6], times=2),
    case("sequence_rearrange", "video", new_order=[7, 6, 5, 4, 3, 2, 1, 0], times=2),
    case("per_frame", "vector", replace=True),
    case("permute_batch", "photo", indices="numbers of samples"),
    case("batch_permutation", times=16),
    case("subscript", "photo", note="x[8:-8, ::, :]", call=lambda fn, types, x, i: x[0][8 : -8 - i, :, :]),
    case("peek_image_shape", "files", times=16),
    # decompression: maps of a few classes, each as one block, or as a block per strip of 8 rows
    case("decoders.inflate", "block", shape="size", note="a block each", times=2),
    case("decoders.inflate", "strips", shape="size of strips", chunk_sizes="bytes of strips", note="strips", times=2),
    # random numbers
    case("random.uniform", **SHAPE),
    case("random.uniform", note="one a sample", times=16),
    case("random.normal", **SHAPE),
    case("random.normal", note="one a sample", times=16),
    case("random.coin_flip", **SHAPE),
    case("random.coin_flip", note="one a sample", times=16),
    case("random.beta", **SHAPE, alpha=2.0, beta=3.0),
    case("random.choice", **SHAPE, note="of 10", call=lambda fn, _, x, i: fn.random.choice(10, shape=[100_000 + i])),
    case("random.choice", note="of 10, one a sample", times=16, call=lambda fn, *_: fn.random.choice(10, p=[0.1] * 10)),
    # reductions
    *(
        case(f"reductions.{r}", "photo", note=note, **axes)
        for r in ("sum", "mean", "mean_square", "rms", "min", "max")
        for note, axes in (("", {}), ("of the pixels", {"axes": [0, 1]}))
    ),
    *(case(f"reductions.{r}", "photo", "number", axes=[0, 1, 2]) for r in ("std_dev", "variance")),
    case("reductions.mean", "float photo", axes=[0, 1], note="of float"),
    case("reductions.sum", "planes", axes=[1, 2], note="of planes"),
    # automatic augmentation, at the size of training
    *(
        case("_auto_aug.augment", "small photo", note=note, call=call, times=1, conditionals=True)
        for note, call in (
            ("auto_augment", lambda fn, types, x, i: _auto_aug(fn).auto_augment.auto_augment(x[0], shape=[224, 224])),
            ("rand_augment", lambda fn, types, x, i: _auto_aug(fn).rand_augment.rand_augment(x[0], n=2, m=9)),
            ("trivial_augment", lambda fn, types, x, i: _auto_aug(fn).trivial_augment.trivial_augment_wide(x[0])),
        )
    ),
    case("spectrogram", "signal", nfft=512, window_length=400, window_step=160),
    case("mel_filter_bank", "spectrum", sample_rate=16000.0, nfilter=80),
    case("mfcc", "spectrum", n_mfcc=40),
    case("to_decibels", "spectrum"),
    case("preemphasis_filter", "signal"),
    case("nonsilent_region", "signal"),
    case("audio_resample", "signal", scale=0.5),
    case("power_spectrum", "signal", times=1),
]

# Operators without a case above, and the reason.
ELSEWHERE = {
    "decoders.": "bench/images_cpu.py and bench/images_gpu.py measure decoding",
    "experimental.inputs.": "decodes video from memory",
    **dict.fromkeys(("experimental.readers.", "_video."), "reads and decodes video"),
    "audio.": "DALI has no such operators",
    "peek_audio": "reads headers; bench/audio.py measures decoding",
    **dict.fromkeys(("readers.", "mix"), "bench/images_cpu.py and bench/formats.py measure reading"),
    "_conditional.": "bench/conditionals.py measures conditionals",
    "external_source": "bench/external_source.py measures sources",
    "python_function": "calls what the user gives",
    "dl_tensor_python_function": "calls what the user gives",
    "io.file.read": "reads from the disk's cache",
    "dump_image": "writes files",
}
