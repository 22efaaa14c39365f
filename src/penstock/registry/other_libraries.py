# SPDX-License-Identifier: Apache-2.0
"""Names of operators and arguments in torchvision, torchaudio and albumentations, with the equivalents here, for
errors.

Only equivalents; differences are mentioned. The lines of code are valid: `images` are batches of images (HWC),
`encoded` of files, `boxes` of bounding boxes, and so on; `h`, `w` and other short names are numbers.
"""

from __future__ import annotations

from ..core.errors import UnexpectedArgument
from ..core.op import Operator

_SOMETIMES = "fn.random.coin_flip(probability=p)"
_GRAY = "fn.color_space_conversion(images, image_type=types.RGB, output_type=types.GRAY)"
_RANDOM_CROP = (
    "fn.crop(images, crop=[h, w], crop_pos_x=fn.random.uniform(range=[0, 1]), "
    "crop_pos_y=fn.random.uniform(range=[0, 1]))"
)
_NORMALIZE = ("fn.crop_mirror_normalize(images, mean=mean, std=std)", "mean and std are torchvision's, times 255")
_TENSOR = (
    "fn.crop_mirror_normalize(images, mean=mean, std=std)",
    "its output is CHW and float; mean=0 and std=255 give values from 0 to 1",
)
_BRIGHTNESS = ("fn.brightness(images, brightness=factor)", "")
_CONTRAST = ("fn.contrast(images, contrast=factor)", "around the middle of the range, or contrast_center")
_JITTER = (
    "fn.color_twist(images, brightness=fn.random.uniform(range=[0.6, 1.4]), "
    "contrast=fn.random.uniform(range=[0.6, 1.4]), saturation=fn.random.uniform(range=[0.6, 1.4]), "
    "hue=fn.random.uniform(range=[-36, 36]))",
    "each argument is a random number; the hue is in degrees",
)
_ROTATE = ("fn.rotate(images, angle=fn.random.uniform(range=[-10, 10]), keep_size=True)", "")
_AFFINE = (
    "fn.warp_affine(images, matrix=fn.transforms.rotation(angle=angle, center=[w / 2, h / 2]))",
    "fn.transforms makes other matrices",
)
_PERSPECTIVE = ("fn.experimental.warp_perspective(images, matrix=matrix)", "matrix is 3 x 3")
_ERASE = (
    "fn.erase(images, anchor=fn.random.uniform(range=[0, 0.8], shape=[2]), shape=[0.2, 0.2], normalized=True, "
    "axis_names='HW')",
    "",
)
_DISPLACED = (
    "fn.experimental.remap(images, map_x, map_y, pixel_origin='center')",
    "the maps say where each pixel comes from",
)
_SCALED = ("fn.cast(images, dtype=types.FLOAT) / 255", "")
_INVERT = ("fn.cast(255 - images, dtype=types.UINT8)", "")
_GAMMA = ("fn.cast(255 * (images / 255.0) ** gamma, dtype=types.UINT8)", "")
_DECODE = ("fn.decoders.image(encoded, output_type=types.RGB)", "")
_READ = ("fn.decoders.image(fn.io.file.read(paths), output_type=types.RGB)", "or with fn.readers.file")
_ARRAYS = ("fn.readers.dataset(arrays)", "docs/recipes.md shows how to open such files")
_HFLIP = ("fn.flip(images, horizontal=1)", "")
_VFLIP = ("fn.flip(images, horizontal=0, vertical=1)", "")
_NOISE = ("fn.noise.gaussian(images, mean=0.0, stddev=10.0)", "")
_QUARTERS = (
    "fn.rotate(images, angle=fn.cast(90 * fn.random.uniform(range=[0, 4], dtype=types.INT32), dtype=types.FLOAT))"
)
_FROM = "after `from penstock.auto_aug import {}`"
_OF_BATCHES = "penstock.transforms.{} does it to tensors, and draws the share"
_WITH_IF = "in a function decorated with @pipeline_def(enable_conditionals=True)"

NAMES: dict[str, tuple[str, str]] = {
    # torchvision.transforms: sizes and regions
    "center_crop": ("fn.crop(images, crop=[h, w])", "which takes the middle by default"),
    "random_crop": (_RANDOM_CROP, ""),
    "five_crop": ("fn.crop(images, crop=[h, w], crop_pos_x=0.0, crop_pos_y=1.0)", "once for each of the corners"),
    "resized_crop": ("fn.resize(images, roi_start=[top, left], roi_end=[top + h, left + w], size=[h, w])", ""),
    "pad_if_needed": ("fn.crop(images, crop=[h, w], out_of_bounds_policy='pad')", "which cuts what is larger"),
    "random_sized_crop": ("fn.random_resized_crop(images, size=[h, w])", ""),
    "longest_max_size": ("fn.resize(images, resize_longer=size)", ""),
    "smallest_max_size": ("fn.resize(images, resize_shorter=size)", ""),
    # mirrors, rotations and other geometry
    "horizontal_flip": _HFLIP,
    "hflip": _HFLIP,
    "fliplr": _HFLIP,
    "vertical_flip": _VFLIP,
    "vflip": _VFLIP,
    "flipud": _VFLIP,
    "random_horizontal_flip": ("fn.flip(images, horizontal=fn.random.coin_flip(probability=0.5))", ""),
    "random_vertical_flip": ("fn.flip(images, horizontal=0, vertical=fn.random.coin_flip(probability=0.5))", ""),
    "random_rotation": _ROTATE,
    "random_rotate": _ROTATE,
    "safe_rotate": _ROTATE,
    "random_rotate90": (_QUARTERS, ""),
    "rot90": ("fn.rotate(images, angle=90.0)", ""),
    "affine": _AFFINE,
    "random_affine": _AFFINE,
    "shift_scale_rotate": _AFFINE,
    "perspective": _PERSPECTIVE,
    "random_perspective": _PERSPECTIVE,
    "elastic": _DISPLACED,
    "elastic_transform": _DISPLACED,
    "grid_distortion": _DISPLACED,
    "optical_distortion": _DISPLACED,
    "permute_channels": ("fn.transpose(images, perm=[2, 0, 1])", "which orders axes; fn.stack orders channels"),
    "permute": ("fn.transpose(images, perm=[2, 0, 1])", ""),
    # colours
    "adjust_brightness": _BRIGHTNESS,
    "random_brightness": _BRIGHTNESS,
    "adjust_contrast": _CONTRAST,
    "random_contrast": _CONTRAST,
    "adjust_saturation": ("fn.saturation(images, saturation=factor)", ""),
    "adjust_hue": ("fn.hue(images, hue=degrees)", "in degrees: torchvision's factor, times 360"),
    "adjust_gamma": _GAMMA,
    "random_gamma": _GAMMA,
    "color_jitter": _JITTER,
    "random_photometric_distort": _JITTER,
    "random_brightness_contrast": ("fn.brightness_contrast(images, brightness=factor, contrast=factor)", ""),
    "hue_saturation_value": ("fn.hsv(images, hue=degrees, saturation=factor, value=factor)", "the hue is in degrees"),
    "grayscale": (_GRAY, "which has one channel"),
    "to_grayscale": (_GRAY, "which has one channel"),
    "to_gray": (_GRAY, "which has one channel"),
    "rgb_to_grayscale": (_GRAY, "which has one channel"),
    "grayscale_to_rgb": ("fn.color_space_conversion(images, image_type=types.GRAY, output_type=types.RGB)", ""),
    "invert": _INVERT,
    "invert_img": _INVERT,
    "posterize": (
        "augmentations.posterize(images, magnitude_bin=3, num_magnitude_bins=11)",
        _FROM.format("augmentations"),
    ),
    "solarize": (
        "augmentations.solarize(images, magnitude_bin=3, num_magnitude_bins=11)",
        _FROM.format("augmentations"),
    ),
    "auto_contrast": ("augmentations.auto_contrast(images)", _FROM.format("augmentations")),
    "adjust_sharpness": (
        "augmentations.sharpness(images, magnitude_bin=3, num_magnitude_bins=11)",
        _FROM.format("augmentations"),
    ),
    # noise, blur, erased regions
    "gaussian_noise": _NOISE,
    "gauss_noise": _NOISE,
    "blur": ("fn.gaussian_blur(images, window_size=5)", "or fn.filter with a kernel of equal numbers"),
    "motion_blur": ("fn.filter(images, kernel)", "kernel is the motion, with a sum of 1"),
    "random_erasing": _ERASE,
    "coarse_dropout": _ERASE,
    "cutout": _ERASE,
    "grid_dropout": ("fn.grid_mask(images, tile=16, ratio=0.5)", ""),
    "image_compression": ("fn.jpeg_compression_distortion(images, quality=quality)", ""),
    "jpeg_compression": ("fn.jpeg_compression_distortion(images, quality=quality)", ""),
    "jpeg": ("fn.jpeg_compression_distortion(images, quality=quality)", ""),
    # types and values
    "to_tensor": _TENSOR,
    "to_tensor_v2": ("fn.transpose(images, perm=[2, 0, 1])", "its output is CHW; fn.crop_mirror_normalize does more"),
    "normalize_image": _NORMALIZE,
    "normalize_mean": _NORMALIZE,
    "convert_image_dtype": _SCALED,
    "to_float": _SCALED,
    "to_dtype": ("fn.cast(images, dtype=types.FLOAT)", "which keeps the values; / 255 scales them"),
    "from_float": ("fn.cast(255 * images, dtype=types.UINT8)", ""),
    "to_pil_image": ("Image.fromarray(outputs[0].at(0))", "outputs = pipe.run(), with images on the CPU"),
    "to_image_pil": ("Image.fromarray(outputs[0].at(0))", "outputs = pipe.run(), with images on the CPU"),
    "clip": ("math.clamp(images, 0, 255)", "after `from penstock import math`"),
    # policies
    "auto_augment": ("auto_augment.auto_augment(images)", _FROM.format("auto_augment")),
    "rand_augment": ("rand_augment.rand_augment(images, n=2, m=9)", _FROM.format("rand_augment")),
    "trivial_augment_wide": ("trivial_augment.trivial_augment_wide(images)", _FROM.format("trivial_augment")),
    "random_apply": (
        "images = fn.gaussian_blur(images, sigma=1.5) if on else images",
        f"on = fn.random.coin_flip(), {_WITH_IF}",
    ),
    "one_of": (
        "images = fn.gaussian_blur(images, sigma=1.5) if on else fn.rotate(images, angle=angle)",
        f"on = fn.random.coin_flip(), {_WITH_IF}",
    ),
    "random_choice": (
        "images = fn.gaussian_blur(images, sigma=1.5) if on else fn.rotate(images, angle=angle)",
        f"on = fn.random.coin_flip(), {_WITH_IF}",
    ),
    # batches: of images with one shape
    "mixup": (
        "fn.cast(0.7 * images + 0.3 * fn.permute_batch(images, indices=fn.batch_permutation(seed=1)), "
        "dtype=types.UINT8)",
        f"and the labels with the same seed; {_OF_BATCHES.format('MixUp')}",
    ),
    "cutmix": (
        "fn.erase(images, **window) + (other - fn.erase(other, **window))",
        "other = fn.permute_batch(images, indices=fn.batch_permutation()), and window = dict(anchor=[top, left], "
        f"shape=[h, w], axis_names='HW'); {_OF_BATCHES.format('CutMix')}",
    ),
    # files, boxes
    "decode_image": _DECODE,
    "decode_jpeg": _DECODE,
    "decode_png": _DECODE,
    "imdecode": _DECODE,
    "imread": _READ,
    "read_image": _READ,
    "read_file": ("fn.io.file.read(paths)", "or fn.readers.file"),
    "image_folder": ("fn.readers.file(file_root=folder)", "which gives encoded files and labels"),
    "csv": ("fn.readers.file(files=files, labels=labels)", "docs/recipes.md shows how to read more columns"),
    "hdf5": _ARRAYS,
    "zarr": _ARRAYS,
    "tensor_dataset": ("fn.readers.dataset((arrays, labels))", ""),
    "from_tensor_slices": ("fn.readers.dataset((arrays, labels))", ""),
    "data_loader": ("fn.readers.dataset(arrays, shuffle='global')", "for any data set with len() and [i]"),
    "horizontal_flip_bounding_boxes": ("fn.bb_flip(boxes, ltrb=True, horizontal=1)", "boxes go from 0 to 1"),
    "random_iou_crop": ("fn.random_bbox_crop(boxes, bbox_layout='xyXY')", "boxes go from 0 to 1"),
    # torchaudio
    "resample": ("fn.audio_resample(audio, in_rate=48000, out_rate=16000)", ""),
    "amplitude_to_db": ("fn.to_decibels(audio, multiplier=10.0)", "multiplier=20.0 for magnitudes"),
    "mel_spectrogram": ("fn.mel_filter_bank(fn.spectrogram(audio, nfft=512), sample_rate=16000, nfilter=80)", ""),
    "mel_scale": ("fn.mel_filter_bank(spectra, sample_rate=16000, nfilter=80)", ""),
    "preemphasis": ("fn.preemphasis_filter(audio, preemph_coeff=0.97)", ""),
}
_BY_LETTERS = {name.replace("_", ""): name for name in NAMES}

_RESAMPLED = {"interpolation": "interp_type=types.INTERP_LINEAR", "resample": "interp_type=types.INTERP_LINEAR"}
_FILLED = {"fill": "fill_value=0", "cval": "fill_value=0"}
_REGION = {"scale": "random_area=[0.08, 1.0]", "ratio": "random_aspect_ratio=[3 / 4, 4 / 3]"}
_REDUCED = {"axis": "axes=[0]", "dim": "axes=[0]", "keepdim": "keep_dims=True", "keepdims": "keep_dims=True"}
_JOINED = {"dim": "axis=0"}
_SHAPED = {"size": "shape=[n]"}
_COLORED = "output_type=types.RGB"
_READS = {
    "root": "file_root=folder",
    "batch_size": "batch_size=8 of the pipeline",
    "num_workers": "num_threads=4 of the pipeline",
}

ARGUMENTS: dict[str, dict[str, str]] = {
    "resize": {**_RESAMPLED, "width": "resize_x=w", "height": "resize_y=h"},
    "random_resized_crop": {**_RESAMPLED, **_REGION, "width": "size=[h, w]", "height": "size=[h, w]"},
    "decoders.image_random_crop": dict(_REGION),
    "crop": {
        "size": "crop=[h, w]",
        "height": "crop_h=h",
        "width": "crop_w=w",
        "fill": "fill_values=0",
        "padding": "out_of_bounds_policy='pad'",
    },
    "crop_mirror_normalize": {"size": "crop=[h, w]", "stddev": "std=std", "flip": "mirror=1"},
    "normalize": {"std": "stddev=58.0", "dim": "axes=[0]", "axis": "axes=[0]", "eps": "epsilon=1e-5"},
    "rotate": {
        **_RESAMPLED,
        **_FILLED,
        "degrees": "angle=fn.random.uniform(range=[-10, 10])",
        "limit": "angle=fn.random.uniform(range=[-10, 10])",
        "expand": "keep_size=True, the contrary",
    },
    "flip": {"p": f"horizontal={_SOMETIMES}"},
    "warp_affine": {**_RESAMPLED, **_FILLED},
    "experimental.warp_perspective": {**_RESAMPLED, **_FILLED},
    "experimental.remap": {"interpolation": "interp=types.INTERP_LINEAR"},
    "pad": {**_FILLED, "value": "fill_value=0"},
    "erase": {**_FILLED, "value": "fill_value=0", "p": f"shape=[h, w] * {_SOMETIMES}"},
    "gaussian_blur": {"kernel_size": "window_size=5", "blur_limit": "window_size=5"},
    "experimental.median_blur": {"kernel_size": "window_size=[3, 3]", "blur_limit": "window_size=[3, 3]"},
    "brightness": {"brightness_factor": "brightness=factor", "factor": "brightness=factor"},
    "contrast": {"contrast_factor": "contrast=factor", "factor": "contrast=factor"},
    "saturation": {"saturation_factor": "saturation=factor", "factor": "saturation=factor"},
    "hue": {"hue_factor": "hue=degrees, torchvision's times 360"},
    "noise.gaussian": {"sigma": "stddev=10.0", "std": "stddev=10.0"},
    "noise.salt_and_pepper": {"p": "prob=0.05", "amount": "prob=0.05"},
    "clahe": {"tile_grid_size": "tiles_x=8, tiles_y=8"},
    "cast": {"type": "dtype=types.FLOAT"},
    "decoders.image": dict.fromkeys(("mode", "color_mode"), _COLORED),
    "readers.file": _READS,
    "random.uniform": {
        **_SHAPED,
        **dict.fromkeys(("low", "high", "min", "max", "minval", "maxval"), "range=[low, high]"),
    },
    "random.normal": {**_SHAPED, "loc": "mean=0.0", "std": "stddev=1.0", "scale": "stddev=1.0", "sigma": "stddev=1.0"},
    "random.coin_flip": {**_SHAPED, "p": "probability=p", "prob": "probability=p"},
    "random.choice": dict(_SHAPED),
    "cat": dict(_JOINED),
    "stack": dict(_JOINED),
    "one_hot": {**_JOINED, "depth": "num_classes=n"},
    "squeeze": {"dim": "axes=[0]", "axis": "axes=[0]"},
    "expand_dims": {"dim": "axes=[0]", "axis": "axes=[0]"},
    "transpose": {"dims": "perm=[2, 0, 1]", "axes": "perm=[2, 0, 1]"},
    "reshape": {"size": "shape=[n]", "newshape": "shape=[n]"},
    "spectrogram": {"n_fft": "nfft=512", "hop_length": "window_step=256", "win_length": "window_length=512"},
    "mel_filter_bank": {"n_mels": "nfilter=80", "f_min": "freq_low=0.0", "f_max": "freq_high=8000.0"}
    | {"fmin": "freq_low=0.0", "fmax": "freq_high=8000.0", "sr": "sample_rate=16000"},
    "audio_resample": {"orig_freq": "in_rate=48000", "new_freq": "out_rate=16000"}
    | {"orig_sr": "in_rate=48000", "target_sr": "out_rate=16000"},
    "to_decibels": {"amin": "cutoff_db=-100.0", "top_db": "cutoff_db=-80.0", "ref": "reference=1.0"},
    **{f"reductions.{r}": _REDUCED for r in ("max", "mean", "mean_square", "min", "rms", "std_dev", "sum", "variance")},
}


def of_name(name: str) -> str:
    """A sentence with the equivalent of another library's `name`; "" if none is known."""
    known = _BY_LETTERS.get(name.removeprefix("readers.").replace("_", "").lower())
    if known is None:
        return ""
    code, remark = NAMES[known]
    return f"Here it is {code}{'; ' * bool(remark)}{remark}."


def of_argument(operator: str, name: str) -> str:
    """A sentence with the equivalent of an argument `name` of fn.`operator`; "" if none is known."""
    known = ARGUMENTS.get(operator, {}).get(name)
    return f"Here it is {known}." if known else ""


def explained(cls: type[Operator], kwargs: dict, error: UnexpectedArgument) -> UnexpectedArgument:
    """Adds the equivalent to the error of a call with another library's argument."""
    first, _, where = str(error).partition("\n")
    for name in kwargs:
        if name not in cls.schema and f"argument '{name}'" in first and (told := of_argument(cls.fn_name, name)):
            told = f"{cls.display_name()}() got an unexpected argument '{name}'. {told}"
            return UnexpectedArgument(f"{told}\n{where}" if where else told)
    return error
