# SPDX-License-Identifier: Apache-2.0
"""Operators that are not there, and what does their work: those of DALI, for errors and `penstock ops`, and what
torchvision and albumentations call theirs, for errors."""

from __future__ import annotations

import re

from ..core.op import snake_case

INSTEAD: dict[str, str] = {}  # operators of DALI that are not there, such as "readers.video": none at present
FORMER: dict[str, str] = {}  # their former names, such as "video_reader"

_CROP = "fn.crop(images, crop=[h, w], crop_pos_x=fn.random.uniform(range=[0, 1]), crop_pos_y=...)"
_NORMALIZE = (
    "fn.crop_mirror_normalize(images, mean=[...], std=[...]), whose mean and std count in steps of the pixels: "
    "torchvision's, times 255, for uint8"
)
OTHERS = {
    "to_tensor": f"{_NORMALIZE}; its output is CHW and float",
    "random_crop": _CROP,
    "center_crop": "fn.crop(images, crop=[h, w]), which takes the middle by default",
    "normalize_image": _NORMALIZE,
    "horizontal_flip": "fn.flip(images, horizontal=1)",
    "vertical_flip": "fn.flip(images, horizontal=0, vertical=1)",
    "hflip": "fn.flip(images, horizontal=1)",
    "vflip": "fn.flip(images, horizontal=0, vertical=1)",
    "random_horizontal_flip": "fn.flip(images, horizontal=fn.random.coin_flip(probability=0.5))",
    "random_vertical_flip": "fn.flip(images, horizontal=0, vertical=fn.random.coin_flip(probability=0.5))",
    "random_rotation": "fn.rotate(images, angle=fn.random.uniform(range=[-10, 10]), keep_size=True)",
    "random_erasing": "fn.erase(images, anchor=..., shape=..., normalized=True), with numbers of fn.random",
    "color_jitter": "fn.color_twist(images, brightness=..., contrast=..., saturation=..., hue=...), by fn.random",
    "grayscale": "fn.color_space_conversion(images, image_type=types.RGB, output_type=types.GRAY)",
    "to_grayscale": "fn.color_space_conversion(images, image_type=types.RGB, output_type=types.GRAY)",
    "affine": "fn.warp_affine(images, matrix=...), whose matrix fn.transforms makes",
    "convert_image_dtype": "fn.cast(images / 255, dtype=types.FLOAT)",
    "coarse_dropout": "fn.erase(images, anchor=..., shape=...)",
    "cutout": "fn.erase(images, anchor=..., shape=...)",
    "resized_crop": "fn.slice(images, start, shape, axis_names='HW') and fn.resize(images, size=[h, w])",
    "gaussian_noise": "fn.noise.gaussian(images, mean=0.0, stddev=...)",
    "gauss_noise": "fn.noise.gaussian(images, mean=0.0, stddev=...)",
    "motion_blur": "fn.experimental.filter(images, kernel), with a kernel of the motion",
    "shift_scale_rotate": "fn.warp_affine(images, matrix=...), whose matrix fn.transforms makes",
    "random_affine": "fn.warp_affine(images, matrix=...), whose matrix fn.transforms makes",
    "random_perspective": "fn.experimental.warp_perspective(images, matrix=...)",
    "perspective": "fn.experimental.warp_perspective(images, matrix=...)",
    "elastic_transform": "fn.experimental.remap(images, map_x, map_y)",
    "random_brightness_contrast": "fn.brightness_contrast(images, brightness=..., contrast=...), by fn.random",
    "adjust_brightness": "fn.brightness(images, brightness=...)",
    "adjust_contrast": "fn.contrast(images, contrast=...)",
    "adjust_saturation": "fn.saturation(images, saturation=...)",
    "adjust_hue": "fn.hue(images, hue=...), in degrees",
    "hue_saturation_value": "fn.hsv(images, hue=..., saturation=..., value=...), with the hue in degrees",
    "image_compression": "fn.jpeg_compression_distortion(images, quality=...)",
    "to_gray": "fn.color_space_conversion(images, image_type=types.RGB, output_type=types.GRAY)",
    "to_dtype": "fn.cast(images, dtype=...)",
    "five_crop": "fn.crop(images, crop=[h, w], crop_pos_x=..., crop_pos_y=...), once for each",
    "decode_image": "fn.decoders.image(encoded)",
    "decode_jpeg": "fn.decoders.image(encoded)",
    "imread": "fn.readers.file(file_root=...) and fn.decoders.image(encoded)",
    "read_image": "fn.readers.file(file_root=...) and fn.decoders.image(encoded)",
    "posterize": "penstock.auto_aug.augmentations.posterize",
    "solarize": "penstock.auto_aug.augmentations.solarize",
    "auto_contrast": "penstock.auto_aug.augmentations.auto_contrast",
}


def explain(place: str, name: str) -> str:
    """A sentence on operator or module `name` of module `place` ("readers", or "" for fn itself); "" if neither DALI
    nor a library that is known here has one of that name."""
    dotted = f"{place}.{name}".lstrip(".")
    # As in fn, as in ops; TFRecord is tfrecord, and TFRecordReader tfrecord_reader.
    for wanted in (dotted, snake_case(dotted), dotted.lower(), re.sub("_?reader$", "_reader", dotted.lower())):
        known = FORMER.get(wanted, wanted)
        if known in INSTEAD:
            return f"DALI's fn.{known} is not there yet: {INSTEAD[known]}."
        within = [known for known in INSTEAD if known.startswith(wanted + ".")]
        if within:
            are = "is" if len(within) == 1 else "are"
            return f"DALI's fn.{', fn.'.join(within)} {are} not there yet: {INSTEAD[within[0]]}."
    other = OTHERS.get(snake_case(dotted))
    return f"Here it is {other}." if other else ""
