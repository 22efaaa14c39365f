# SPDX-License-Identifier: Apache-2.0
"""Pictures of the catalogue: what operators make of the photographs in examples/data, and of a sound."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import doc_boxes as boxes
import doc_sounds as sounds
import numpy as np

from penstock import fn, pipeline_def, types
from penstock.core.op import REGISTRY

PHOTOS = Path(__file__).resolve().parents[1] / "examples" / "data"
WIDTH = 320  # pixels of the photographs


@dataclass
class Shown:
    """A call of an operator: the arguments that are shown, and what it gets."""

    args: dict[str, Any] = field(default_factory=dict)
    photo: str = "animals/cat.jpg"
    draws: int = 1  # of random operators
    call: Callable[[Any, np.ndarray], Any] | None = None  # (image in the graph, its pixels), where it is no plain call
    text: str = ""  # what is written below it then
    draw: Callable[..., np.ndarray] | None = None  # what the further outputs say, into the picture
    before: Callable[[np.ndarray], np.ndarray] | None = None  # the same into the photograph


def _shown(photo: str, *calls: dict[str, Any], draws: int = 1) -> list[Shown]:
    return [Shown(args, photo, draws) for args in calls]


CAT, RACCOON, PALACE, FLOWER = "animals/cat.jpg", "animals/raccoon.jpg", "places/palace.jpg", "things/flower.jpg"
LAUNCH, COFFEE, PETALS, FACE = "places/launch.jpg", "things/coffee.jpg", "things/petals.jpg", "animals/cat_face.jpg"
ASTRONAUT, RETINA = "people/astronaut.jpg", "science/retina.jpg"
SHEAR = [0.9, 0.3, -20.0, -0.1, 0.9, 30.0]
HOMOGRAPHY = [1.1, 0.15, -30.0, 0.05, 1.05, -5.0, 0.0003, 0.0009, 1.0]


def _waves(x: Any, image: np.ndarray) -> Any:
    v, u = np.mgrid[: image.shape[0], : image.shape[1]].astype("f4")
    maps = (u + 8 * np.sin(v / 12), v + 8 * np.cos(u / 12))
    return fn.experimental.remap(x, *(types.Constant(m.astype("f4"), layout="HW") for m in maps))


def _bayer(x: Any, image: np.ndarray) -> Any:
    return fn.debayer(types.Constant(_mosaic(image), layout="HW"), blue_position=[0, 0])


def _mosaic(image: np.ndarray) -> np.ndarray:
    """The photograph as a sensor sees it whose tiles are, from their second row and column on, BGGR."""
    h, w = (n & ~1 for n in image.shape[:2])
    mosaic = image[:h, :w, 1].copy()
    mosaic[::2, ::2], mosaic[1::2, 1::2] = image[:h:2, :w:2, 0], image[1:h:2, 1:w:2, 2]
    return mosaic


def _emboss(x: Any, image: np.ndarray) -> Any:
    kernel = np.float32([[-2, -1, 0], [-1, 1, 1], [0, 1, 2]])
    return fn.filter(x, types.Constant(kernel), dtype=types.UINT8)


def _pasted(x: Any, image: np.ndarray) -> Any:
    anchors, sizes = np.int32([[0, 0], [60, 150]]), np.int32([[110, 160], [110, 150]])
    return fn.multi_paste(
        x,
        in_ids=[0, 0],
        output_size=[200, 320],
        out_anchors=types.Constant(anchors),
        shapes=types.Constant(sizes),
    )


def _boxed(call: Callable[[Any, np.ndarray], Any], text: str, draws: int = 1) -> list[Shown]:
    """A call that gives a picture and boxes, which are drawn."""
    return [Shown({}, ASTRONAUT, draws, call, text, boxes.with_boxes, boxes.with_boxes)]


def _heard(call: Callable[[Any], Any], text: str, draws: int = 1) -> Shown:
    """A call that makes a spectrogram of the sound."""

    def of_sound(x: Any, image: np.ndarray) -> Any:
        return call(types.Constant(sounds.sound(), layout="t"))

    def before(image: np.ndarray) -> np.ndarray:
        return make("spectrogram", _heard(lambda x: sounds.grey(sounds.log_mel(x)), ""))[0]

    return Shown({}, CAT, draws, of_sound, text, sounds.coloured, before)


def _augmented(module: str, **args: Any) -> Callable[[Any, np.ndarray], Any]:
    def call(x: Any, image: np.ndarray) -> Any:
        package = import_module(f"penstock.auto_aug.{module.removesuffix('_wide')}")
        return getattr(package, module)(x, **args)

    return call


PICTURES: dict[str, list[Shown]] = {
    "_auto_aug.augment": [
        Shown(photo=CAT, draws=4, call=_augmented("auto_augment"), text="auto_augment.auto_augment(image)"),
        Shown(photo=CAT, draws=4, call=_augmented("rand_augment", n=2, m=12), text="rand_augment(image, n=2, m=12)"),
        Shown(photo=CAT, draws=4, call=_augmented("trivial_augment_wide"), text="trivial_augment_wide(image)"),
    ],
    "brightness": _shown(COFFEE, {"brightness": 1.5}, {"brightness": 0.5}, {"brightness_shift": 0.2}),
    "brightness_contrast": _shown(COFFEE, {"brightness": 1.3, "contrast": 0.6}, {"brightness": 0.8, "contrast": 1.6}),
    "contrast": _shown(COFFEE, {"contrast": 0.5}, {"contrast": 1.8}),
    "color_space_conversion": _shown(
        FLOWER,
        {"image_type": types.RGB, "output_type": types.GRAY},
        {"image_type": types.RGB, "output_type": types.BGR},
        {"image_type": types.RGB, "output_type": types.YCbCr},
    ),
    "color_twist": _shown(FLOWER, {"hue": 60, "saturation": 1.4}, {"brightness": 1.2, "contrast": 0.7, "hue": -40}),
    "hsv": _shown(FLOWER, {"hue": 120}, {"saturation": 0.3, "value": 1.2}),
    "hue": _shown(FLOWER, {"hue": 60}, {"hue": 180}),
    "saturation": _shown(FLOWER, {"saturation": 0}, {"saturation": 2.5}),
    "crop": _shown(CAT, {"crop": (160, 160)}, {"crop": (160, 160), "crop_pos_x": 1, "crop_pos_y": 0}),
    "crop_mirror_normalize": _shown(
        CAT, {"crop": (200, 200), "mirror": 1, "mean": [124, 116, 104], "std": [58, 57, 57]}
    ),
    "flip": _shown(CAT, {"horizontal": 1}, {"horizontal": 0, "vertical": 1}),
    "pad": _shown(
        CAT, {"axis_names": "HW", "shape": (260, 360), "fill_value": 128}, {"axis_names": "HW", "align": 128}
    ),
    "slice": _shown(CAT, {"rel_start": (0.1, 0.4), "rel_end": (0.8, 1.0), "axis_names": "HW"}),
    "resize": _shown(
        PALACE,
        {"size": (120, 320)},
        {"resize_shorter": 120},
        {"size": (24, 36), "interp_type": types.INTERP_TRIANGULAR},
        {"roi_start": (0.1, 0.3), "roi_end": (0.6, 0.8), "roi_relative": True, "size": (200, 300)},
    ),
    "resize_crop_mirror": _shown(PALACE, {"resize_shorter": 200, "crop": (180, 180), "mirror": 1}),
    "tensor_resize": _shown(PALACE, {"sizes": [100, 320], "axes": [0, 1]}),
    "random_resized_crop": _shown(CAT, {"size": (200, 200), "random_area": (0.1, 0.8)}, draws=4),
    "rotate": _shown(PALACE, {"angle": 20, "fill_value": 0}, {"angle": 20, "keep_size": True}),
    "warp_affine": _shown(PALACE, {"matrix": SHEAR, "fill_value": 0}, {"matrix": SHEAR}),
    "experimental.warp_perspective": _shown(PALACE, {"matrix": HOMOGRAPHY, "fill_value": 0}),
    "experimental.resize": _shown(PALACE, {"size": (120, 320)}),
    "experimental.remap": [Shown(photo=RACCOON, call=_waves, text="remap(image, u, v), maps in waves")],
    "transpose": _shown(CAT, {"perm": (1, 0, 2)}),
    "sphere": _shown(ASTRONAUT, {}),
    "water": _shown(RACCOON, {}, {"ampl_x": 4, "ampl_y": 4, "freq_x": 0.1, "freq_y": 0.1}),
    "jitter": _shown(RACCOON, {"nDegree": 8}),
    "grid_mask": _shown(CAT, {"tile": 60, "ratio": 0.5}, {"tile": 80, "ratio": 0.4, "angle": 0.5}),
    "erase": _shown(CAT, {"anchor": (30, 60, 90, 180), "shape": (50, 80, 70, 90), "axis_names": "HW"}),
    "paste": _shown(CAT, {"ratio": 1.6, "fill_value": (70, 110, 160), "paste_x": 0.2, "paste_y": 0.7}),
    "multi_paste": [Shown(photo=CAT, call=_pasted, text="multi_paste(image, in_ids=[0, 0], ...)")],
    "gaussian_blur": _shown(RACCOON, {"sigma": 5}, {"sigma": 1.5}),
    "laplacian": _shown(RACCOON, {"window_size": 5, "dtype": types.FLOAT}),
    "filter": [Shown(photo=RACCOON, call=_emboss, text="filter(image, kernel), which embosses")],
    "experimental.median_blur": _shown(RACCOON, {"window_size": 7}),
    "experimental.dilate": _shown(RACCOON, {"mask_size": 7}),
    "experimental.erode": _shown(RACCOON, {"mask_size": 7}),
    "clahe": _shown(
        LAUNCH, {"clip_limit": 2.0, "tiles_x": 8, "tiles_y": 8}, {"clip_limit": 8.0, "tiles_x": 4, "tiles_y": 4}
    ),
    "equalize": _shown(LAUNCH, {}),
    "debayer": [Shown(photo=PETALS, call=_bayer, text="debayer(mosaic, blue_position=[0, 0])",
                      before=lambda image: as_picture(_mosaic(image), "HW"))],
    "jpeg_compression_distortion": _shown(FACE, {"quality": 4}, {"quality": 20}),
    "lookup_table": _shown(
        LAUNCH, {"keys": list(range(256)), "values": [255 - i for i in range(256)], "dtype": types.UINT8}
    ),
    "noise.gaussian": _shown(FACE, {"stddev": 30}),
    "noise.shot": _shown(FACE, {"factor": 30}),
    "noise.salt_and_pepper": _shown(FACE, {"prob": 0.1}),
    "normalize": _shown(RETINA, {"axes": (0, 1)}),
    "bb_flip": _boxed(boxes.flipped, "flip(image), bb_flip(boxes, ltrb=True)"),
    "bbox_rotate": _boxed(boxes.rotated, "rotate(image, angle=15, ...), bbox_rotate(boxes, angle=15, ...)"),
    "bbox_paste": _boxed(boxes.pasted, "paste(image, ratio=1.5, ...), bbox_paste(boxes, ratio=1.5, ...)"),
    "random_bbox_crop": _boxed(boxes.cropped, "random_bbox_crop(boxes, ...), slice(image, begin, size)", 4),
    "ssd_random_crop": _boxed(boxes.ssd_cropped, "ssd_random_crop(image, boxes, labels)", 4),
    "coord_flip": [
        Shown({}, ASTRONAUT, 1, boxes.points_flipped, "flip(image), coord_flip(points)", boxes.with_points,
              boxes.with_points)
    ],
    "coord_transform": [
        Shown({}, ASTRONAUT, 1, boxes.points_moved, "warp_affine(image, matrix), coord_transform(points, MT=matrix)",
              boxes.with_pixels, boxes.with_points)
    ],
    **{
        f"transforms.{name}": [Shown(photo=PALACE, call=boxes.transformed(name, **args), text=text)]
        for name, args, text in (
            ("rotation", {"angle": 20.0}, "warp_affine(image, transforms.rotation(angle=20))"),
            ("scale", {"scale": [0.5, 0.8]}, "warp_affine(image, transforms.scale(scale=[0.5, 0.8]))"),
            ("shear", {"shear": [0.3, 0.0]}, "warp_affine(image, transforms.shear(shear=[0.3, 0]))"),
            ("translation", {"offset": [60, 30]}, "warp_affine(image, transforms.translation(offset=[60, 30]))"),
            ("crop", {"from_end": [320, 240], "to_start": [60, 60], "to_end": [220, 180]},
             "warp_affine(image, transforms.crop(from_end=..., to_start=..., to_end=...))"),
        )
    },
    "transforms.combine": [
        Shown(photo=PALACE, call=boxes.combined, text="warp_affine(image, transforms.combine(rotation, scale))")
    ],
    "segmentation.random_mask_pixel": [
        Shown({}, FLOWER, 4, boxes.mask_pixel, "segmentation.random_mask_pixel(mask, foreground=1)", boxes.with_pixels,
              boxes.with_mask)
    ],
    "segmentation.random_object_bbox": [
        Shown({}, FLOWER, 2, boxes.object_box, "segmentation.random_object_bbox(mask, ...)",
              lambda image, box: boxes.with_boxes(image, box[None]), boxes.with_mask)
    ],
    "segmentation.select_masks": [
        Shown({}, ASTRONAUT, 1, boxes.masks_selected, "segmentation.select_masks([0, 2], polygons, vertices)",
              boxes.with_polygons, boxes.with_polygons)
    ],
    "roi_random_crop": [
        Shown({}, ASTRONAUT, 4, boxes.around_roi, "slice(image, roi_random_crop(...), size)", None, boxes.with_roi)
    ],
    "random_crop_generator": [
        Shown({}, PALACE, 4, boxes.window, "slice(image, *random_crop_generator(shape, random_area=[0.2, 0.6]))")
    ],
    "decoders.image_crop": [
        Shown(photo=PALACE, call=boxes.decoded("image_crop", crop=(200, 200)), text="image_crop(jpeg, crop=(200, 200))")
    ],
    "decoders.image_slice": [
        Shown(photo=PALACE, call=boxes.decoded("image_slice", rel_start=[0.1, 0.3], rel_end=[0.6, 0.8], axes=[0, 1]),
              text="image_slice(jpeg, rel_start=[0.1, 0.3], rel_end=[0.6, 0.8], axes=[0, 1])")
    ],
    "decoders.image_random_crop": [
        Shown(photo=PALACE, draws=4, call=boxes.decoded("image_random_crop", random_area=[0.1, 0.5]),
              text="image_random_crop(jpeg, random_area=[0.1, 0.5])")
    ],
    **{name: [_heard(*shown)] for name, shown in sounds.SOUNDS.items()},
}  # fmt: skip


def photograph(name: str) -> np.ndarray:
    """RGB (height, WIDTH, 3), uint8."""

    @pipeline_def(batch_size=1, num_threads=1)
    def load() -> Any:
        data = fn.external_source(lambda: [np.fromfile(PHOTOS / name, "u1")], batch=True)
        return fn.resize(fn.decoders.image(data), resize_x=WIDTH)

    return np.array(load().run()[0].at(0))


def make(name: str, shown: Shown) -> list[np.ndarray]:
    """What the operator makes of the photograph, `draws` times."""
    image = photograph(shown.photo)

    @pipeline_def(batch_size=shown.draws, num_threads=1, seed=5)
    def define() -> Any:
        x = types.Constant(image, layout="HWC")
        if shown.call is not None:
            return shown.call(x, image)
        call: Any = fn
        for part in name.split("."):
            call = getattr(call, part)
        return call(x, **shown.args)

    out, *drawn = define().run()
    made = [as_picture(np.asarray(out.at(i)), out.layout() or "HWC") for i in range(shown.draws)]
    if shown.draw is not None:
        made = [shown.draw(m, *(np.asarray(d.at(i)) for d in drawn)) for i, m in enumerate(made)]
    return made


def as_picture(x: np.ndarray, layout: str) -> np.ndarray:
    """RGB, uint8. Of floats the least and the largest hundredth are black and white."""
    if "C" in layout and layout[-1] != "C":
        x = np.moveaxis(x, layout.index("C"), -1)
    if x.ndim == 2:
        x = x[..., None]
    if x.dtype != np.uint8:
        low, high = np.percentile(x, (1, 99))
        x = np.rint(np.clip((x - low) / max(high - low, 1e-9), 0, 1) * 255).astype(np.uint8)
    return np.ascontiguousarray(np.broadcast_to(x[..., :3], (*x.shape[:2], 3)))


def png(image: np.ndarray) -> bytes:
    """An RGB picture (HWC, uint8) as a file."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    h, w, _ = image.shape
    lines = np.zeros((h, 1 + 3 * w), np.uint8)
    lines[0, 0], lines[1:, 0] = 1, 4  # each line predicted from what is left of it and above: Paeth
    pixels = image.astype(np.int16)
    left, above, corner = (np.zeros_like(pixels) for _ in range(3))
    left[:, 1:], above[1:], corner[1:, 1:] = pixels[:, :-1], pixels[:-1], pixels[:-1, :-1]
    guess = left + above - corner
    a, b, c = (abs(guess - near) for near in (left, above, corner))
    near = np.where((a <= b) & (a <= c), left, np.where(b <= c, above, corner))
    near[0] = left[0]
    lines[:, 1:] = (pixels - near).astype(np.uint8).reshape(h, -1)
    header = struct.pack(">IIBBBBB", w, h, 8, 2, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines.tobytes(), 6)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def caption(name: str, shown: Shown) -> str:
    """The call as it is written."""
    if shown.text:
        return f"`{shown.text}`"
    values = {k: f"types.{v.name}" if hasattr(v, "name") else repr(v) for k, v in shown.args.items()}
    values = {k: v if len(v) < 60 else "[...]" for k, v in values.items()}
    return f"`{name.split('.')[-1]}({', '.join(['image', *(f'{k}={v}' for k, v in values.items())])})`"


def known(name: str) -> list[Shown]:
    """What is shown of an operator; nothing if there is none of that name (yet)."""
    return PICTURES.get(name, []) if name in REGISTRY else []
