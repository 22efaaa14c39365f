# SPDX-License-Identifier: Apache-2.0
"""Calls of operators, by name, that programs plan for images of sizes that never repeat. `f` feeds the result of a
function for each iteration, and `coins` etc. are such functions."""

import struct

import numpy as np

from penstock import fn, types

N = 5


def images(seed, dtype="u1", ndim=2, channels=3, lo=6, hi=12):
    r = np.random.default_rng(seed)
    shape = [(*r.integers(lo, hi, ndim), *([channels] if channels else [])) for _ in range(N)]
    return [(r.random(s) * 250).astype(dtype) for s in shape]


def floats(seed):
    return images(seed, "f4")


def volumes(seed):
    return images(seed, ndim=3, lo=3, hi=6)


def clips(seed):
    return images(seed, ndim=3, lo=3, hi=6)


def columns(seed, low=0.0, high=1.0, shape=()):
    return list(np.random.default_rng(seed).uniform(low, high, (N, *shape)).astype("f4"))


def angles(seed):
    return columns(seed, -90, 90)


def pairs(seed):
    return columns(seed, 0.1, 0.4, (2,))


def sizes(seed):
    return [s.astype("i4") for s in columns(seed, 2, 5, (2,))]


def widths(seed):
    return columns(seed, 2, 5)


def coins(seed):
    return list(np.random.default_rng(seed).integers(0, 2, N).astype("i4"))


def affine(seed):
    return [np.float32([[1.1, 0.2, 1], [-0.1, 0.9, 2]]) + s for s in columns(seed, 0, 0.1, (2, 3))]


def homography(seed):
    return [np.float32([[1.1, 0.2, 1], [-0.1, 0.9, 2], [0.01, 0, 1]]) + 0.1 * s for s in columns(seed, 0, 0.1, (3, 3))]


def kernels(seed):
    return columns(seed, -1, 1, (3, 3))


def maps(seed):
    return columns(seed, -1, 9, (5, 7))


def points(seed):
    return ragged(seed, 2)


def boxes(seed):
    return ragged(seed, 4)


def ragged(seed, k):
    r = np.random.default_rng(seed)
    return [r.uniform(-1, 2, (m, k)).astype("f4") for m in r.integers(0, 9, N)]


def inside(seed, k=2):
    """Boxes inside the image."""
    r = np.random.default_rng(seed)
    return [np.sort(r.random((m, 2, k)), axis=1).reshape(m, 2 * k).astype("f4") for m in r.integers(0, 9, N)]


def cuboids(seed):
    return inside(seed, 3)


def of_boxes(seed):
    """As many labels as there are boxes."""
    return [np.arange(len(x), dtype="i4") for x in inside(seed)]


def signals(seed):
    r = np.random.default_rng(seed)
    return [r.standard_normal(n).astype("f4") for n in r.integers(20, 90, N)]


def rates(seed):
    return columns(seed, 8000, 48000)


def canvases(seed):
    return [s.astype("i4") for s in columns(seed, 50, 300, (2,))]


def labels(seed):
    r = np.random.default_rng(seed)
    return [r.integers(-1, 5, m).astype("i4") for m in r.integers(1, 9, N)]


def of_three(seed):
    """Shapes to which vectors of three numbers broadcast."""
    return [np.int32([h, 3]) for h in np.random.default_rng(seed).integers(1, 9, N)]


def extents(seed):
    return [s.astype("i4") for s in columns(seed, 1, 6, (3,))]


def mosaics(seed):
    r = np.random.default_rng(seed)
    return [r.integers(0, 255, (2 * h, 2 * w, 1), "u1") for h, w in r.integers(2, 7, (N, 2))]


WARPED = {
    "warp_affine": lambda f: fn.warp_affine(f(images), matrix=[0.9, 0.2, 1, -0.2, 0.9, 2], size=(5, 4)),
    "warp_affine, the input's size": lambda f: fn.warp_affine(f(images), matrix=[0.9, 0.2, 1, -0.2, 0.9, 2]),
    "warp_affine by data": lambda f: fn.warp_affine(f(floats), matrix=f(affine, side=True), fill_value=3.0),
    "warp_affine by an input": lambda f: fn.warp_affine(f(images), f(affine, side=True), inverse_map=False),
    "warp_affine of volumes": lambda f: fn.warp_affine(
        f(volumes, "DHWC"), matrix=[1, 0.1, 0, 1, 0, 1, 0.2, 0, 0, 0.1, 1, -1], inverse_map=False, fill_value=2
    ),
    "rotate": lambda f: fn.rotate(f(images), angle=33.0, fill_value=1.0),
    "rotate by data": lambda f: fn.rotate(f(images), angle=f(angles, side=True)),
    "rotate, size kept": lambda f: fn.rotate(f(images), angle=f(angles, side=True), keep_size=True, dtype=types.FLOAT),
    "rotate to a size": lambda f: fn.rotate(f(images), angle=f(angles, side=True), size=f(sizes, side=True)),
    "rotate of volumes": lambda f: fn.rotate(f(volumes, "DHWC"), angle=f(angles, side=True), axis=(1, 2, 3)),
    "warp_perspective": lambda f: fn.experimental.warp_perspective(
        f(images), matrix=[1.1, 0.2, 1, -0.1, 0.9, 2, 0.01, 0, 1], size=(5, 4)
    ),
    "warp_perspective by data": lambda f: fn.experimental.warp_perspective(
        f(images), f(homography, side=True), inverse_map=False, pixel_origin="center", fill_value=[1.0, 2.0, 3.0]
    ),
    "remap": lambda f: fn.experimental.remap(f(images), f(maps, "HW"), f(maps, "HW")),
    "sphere": lambda f: fn.sphere(f(images)),
    "water": lambda f: fn.water(f(images), ampl_x=2.0),
    "rotate and more": lambda f: fn.crop_mirror_normalize(
        fn.rotate(f(images), angle=f(angles, side=True), size=(8, 8)), crop=(4, 5), mean=[1.0, 2.0, 3.0], std=[2.0]
    ),
    "rotate, cropped": lambda f: fn.crop(fn.rotate(f(images), angle=f(angles, side=True)), crop=(4, 5)),
}

MOVED = {
    "slice": lambda f: fn.slice(f(images), start=[1, 2], shape=[3, 4], axes=[1, 0]),
    "slice, relative": lambda f: fn.slice(f(images), rel_start=[0.1, 0.3], rel_shape=[0.5, 0.4]),
    "slice by data": lambda f: fn.slice(f(images), rel_start=f(pairs, side=True), rel_end=(0.9, 1.0)),
    "slice by inputs": lambda f: fn.slice(f(images), f(pairs, side=True), f(pairs, side=True)),
    "slice, padded": lambda f: fn.slice(
        f(images),
        start=[-1, 2],
        end=[9, 13],
        out_of_bounds_policy="pad",
        fill_values=[1.0, 2.0, 3.0],
        dtype=types.FLOAT,
    ),
    "slice, trimmed": lambda f: fn.slice(
        f(images), start=[2], shape=[7], axes=[0], out_of_bounds_policy="trim_to_shape"
    ),
    "slice, mirrored": lambda f: fn.slice(f(images), start=[-2, -2], end=[9, 9], out_of_bounds_policy="reflect_101"),
    "slice behind resize": lambda f: fn.slice(
        fn.resize(f(images), resize_shorter=9.0), rel_start=[0.2, 0.1], shape=[4, 4]
    ),
    "resize_crop_mirror": lambda f: fn.resize_crop_mirror(
        f(images), resize_shorter=8.0, crop=(5, 4), mirror=f(coins, side=True)
    ),
    "resize_crop_mirror by data": lambda f: fn.resize_crop_mirror(
        f(images), size=f(sizes, side=True), crop_w=f(widths, side=True), crop_h=3.0, crop_pos_x=f(columns, side=True)
    ),
    "resize_crop_mirror, as fast_resize_crop_mirror": lambda f: fn.resize_crop_mirror(
        f(images), resize_x=9, resize_y=8, crop=(5, 4), antialias=False
    ),
    "pad": lambda f: fn.pad(f(images), fill_value=3.0),
    "pad, aligned": lambda f: fn.pad(f(images), axis_names="HW", align=[4, 5], fill_value=f(columns, side=True)),
    "pad, to a shape": lambda f: fn.pad(f(images), axes=[0, 1], shape=[20, 21]),
    "paste": lambda f: fn.paste(f(images), ratio=1.4, fill_value=[1, 2, 3], paste_x=0.3),
    "paste by data": lambda f: fn.paste(
        f(images), ratio=f(lambda k: columns(k, 1, 2), side=True), fill_value=7, paste_y=f(columns, side=True)
    ),
    "erase": lambda f: fn.erase(f(images), anchor=[1.0, 1.0, 3.0, 2.0], shape=[2.0, 3.0, 2.0, 2.0], fill_value=[9.0]),
    "erase by data": lambda f: fn.erase(
        f(images),
        anchor=f(pairs, side=True),
        shape=f(pairs, side=True),
        normalized=True,
        axis_names="HW",
        fill_value=[1.0, 2.0, 3.0],
        centered_anchor=True,
    ),
    "transpose": lambda f: fn.transpose(f(images), perm=[2, 0, 1]),
    "transpose of floats": lambda f: fn.transpose(f(floats), perm=[1, 0, 2]),
    "cat": lambda f: (x := f(images), fn.cat(x, fn.flip(x), axis=0))[1:],
    "cat by name": lambda f: (x := f(images), fn.cat(x, x, x, axis_name="W"))[1:],
    "stack": lambda f: (x := f(images), fn.stack(x, x, axis_name="F"))[1:],
    "crop, borders": lambda f: fn.crop(f(images), crop=(13, 14), out_of_bounds_policy="edge"),
    "crop, a colour outside": lambda f: fn.crop(
        f(images), crop=(13, 14), out_of_bounds_policy="pad", fill_values=[1.0, 2.0, 3.0]
    ),
    "cast_like": lambda f: fn.cast_like(f(images), f(floats)),
}

COMPUTED = {
    "normalize": lambda f: fn.normalize(f(images)),
    "normalize, channels": lambda f: fn.normalize(f(images), axis_names="HW", scale=2.0, dtype=types.FLOAT),
    "normalize, rows": lambda f: fn.normalize(f(images), axes=[1]),
    "normalize by numbers": lambda f: fn.normalize(
        f(images), mean=100.0, stddev=f(lambda k: columns(k, 1, 2), side=True)
    ),
    "sum": lambda f: fn.reductions.sum(f(images), axes=[0, 1]),
    "sum of all": lambda f: fn.reductions.sum(f(images)),
    "mean": lambda f: fn.reductions.mean(f(images), axis_names="HW", keep_dims=True),
    "mean of channels": lambda f: fn.reductions.mean(f(images), axes=[2]),
    "max": lambda f: fn.reductions.max(f(images), axes=[0]),
    "min": lambda f: fn.reductions.min(f(floats)),
    "rms": lambda f: fn.reductions.rms(f(images), axes=[0, 1]),
    "std_dev": lambda f: (x := f(images), fn.reductions.std_dev(x, fn.reductions.mean(x)))[1:],
    "arithmetic": lambda f: f(images) * 0.5 + 3.0,
    "of two images": lambda f: (x := f(images), x + fn.flip(x))[1:],
    "of an image and a number": lambda f: f(floats) * f(columns, side=True),
    "lookup_table": lambda f: fn.lookup_table(f(images), keys=[1, 2, 3], values=[5.0, 6.0, 7.0], dtype=types.UINT8),
    "color_space_conversion": lambda f: fn.color_space_conversion(
        f(images), image_type=types.RGB, output_type=types.GRAY
    ),
    "grid_mask": lambda f: fn.grid_mask(f(images), tile=4, ratio=0.5, angle=0.3),
    "gaussian_blur": lambda f: fn.gaussian_blur(f(images), sigma=1.0),
    "gaussian_blur by a window": lambda f: fn.gaussian_blur(f(images), window_size=[3, 5], dtype=types.FLOAT),
    "subscript": lambda f: f(images)[1:, ::-2, 0],
    "subscript by data": lambda f: f(images)[f(coins, side=True) :, :4],
    "variance": lambda f: (x := f(images), fn.reductions.variance(x, fn.reductions.mean(x, axes=[0, 1]), axes=[0, 1]))[
        1:
    ],
    "mean_square": lambda f: fn.reductions.mean_square(f(images)),
    "filter": lambda f: fn.filter(f(images), f(kernels)),
    "filter, valid": lambda f: fn.filter(f(images), f(kernels), mode="valid", dtype=types.FLOAT),
    "clahe": lambda f: fn.clahe(f(images), tiles_x=2, tiles_y=2, clip_limit=2.0),
    "equalize": lambda f: fn.equalize(f(images)),
    "dilate": lambda f: fn.experimental.dilate(f(images), mask_size=[3, 3]),
    "erode": lambda f: fn.experimental.erode(f(images), mask_size=[3, 3], iterations=2),
    "median_blur": lambda f: fn.experimental.median_blur(f(images), window_size=[3, 3]),
    "noise.gaussian": lambda f: fn.noise.gaussian(f(images), stddev=f(widths, side=True)),
    "noise.salt_and_pepper": lambda f: fn.noise.salt_and_pepper(f(images), prob=0.3),
    "noise.shot": lambda f: fn.noise.shot(fn.flip(f(floats)), factor=5.0),
    "jitter": lambda f: fn.jitter(f(images)),
    "arithmetic of integers": lambda f: (f(images) + 3) * 2,
    "laplacian": lambda f: fn.laplacian(f(images), window_size=3),
}

SMALL = {
    "box_encoder": lambda f: fn.box_encoder(f(inside), f(of_boxes), anchors=[0, 0, 0.5, 1, 0.5, 0, 1, 1], offset=True),
    "boxes and images": lambda f: (
        fn.flip(f(images), horizontal=(c := f(coins, side=True))),
        fn.bb_flip(f(boxes), horizontal=c),
    ),
    "debayer": lambda f: fn.debayer(f(mosaics), blue_position=[0, 1]),
    "sequence_rearrange": lambda f: fn.sequence_rearrange(f(clips, "FHWC"), new_order=[2, 0, 0, 1]),
    "bb_flip": lambda f: fn.bb_flip(f(boxes), horizontal=f(coins, side=True), vertical=1, ltrb=True),
    "coord_flip": lambda f: fn.coord_flip(f(points), flip_x=f(coins, side=True), flip_y=1, center_x=0.25),
    "coord_flip by centres": lambda f: fn.coord_flip(f(points), layout="yx", center_y=f(columns, side=True), flip_y=1),
    "coord_transform": lambda f: fn.coord_transform(f(points), M=[0.9, 0.1, -0.1, 0.9], T=[1.0, 2.0]),
    "coord_transform by data": lambda f: fn.coord_transform(f(points), MT=f(affine, side=True)),
    "coord_transform by numbers": lambda f: fn.coord_transform(f(points), M=f(columns, side=True), T=3.0),
    "coord_transform of pictures": lambda f: fn.coord_transform(f(images), M=[0.3, 0.6, 0.1], dtype=types.UINT8),
    "full": lambda f: fn.full(f(columns), shape=f(extents, side=True)),
    "full of a vector": lambda f: fn.full(f(lambda k: columns(k, shape=(3,))), shape=f(of_three, side=True)),
    "full_like": lambda f: fn.full_like(f(images), f(columns, side=True)),
    "ones_like": lambda f: fn.ones_like(f(images)),
    "zeros_like": lambda f: fn.zeros_like(f(floats), dtype=types.INT16),
    "one_hot": lambda f: fn.one_hot(f(labels), num_classes=4),
    "one_hot along an axis": lambda f: fn.one_hot(f(images), num_classes=3, axis=1, axis_name="K", dtype=types.UINT8),
}


def frames(x):
    return fn.expand_dims(x, axes=[0], new_axis_names="F")


def pixels(seed):
    return images(seed, channels=1)


RENAMED = {
    "reshape behind": lambda f: fn.reshape(fn.resize(f(images), resize_shorter=7.0), shape=[-1]),
    "reshape between": lambda f: fn.cast(
        fn.reshape(fn.flip(f(images)), rel_shape=[1, -1], layout="HW"), dtype=types.FLOAT
    ),
    "reshape between, all wanted": lambda f: (
        x := fn.flip(f(images)),
        y := fn.reshape(x, rel_shape=[1, -1], layout="HW"),
        fn.cast(y, dtype=types.FLOAT),
    ),
    "reshape in front": lambda f: fn.reductions.sum(fn.reshape(f(images), rel_shape=[1, -1]), axes=[0]),
    "reshape, of an inner tensor": lambda f: fn.reductions.sum(
        fn.reshape(fn.resize(f(images), resize_shorter=7.0), rel_shape=[1, -1]), axes=[0]
    ),
    "expand_dims": lambda f: (x := fn.flip(f(images)), frames(x)),
    "expand_dims, twice": lambda f: frames(
        fn.expand_dims(fn.crop(f(images), crop=[5, 6]), axes=[1, 3], new_axis_names="XY")
    ),
    "squeeze": lambda f: fn.squeeze(fn.brightness(f(pixels), brightness=1.2), axes=[2]),
    "squeeze of an input": lambda f: (x := f(pixels), fn.squeeze(x, axes=[2]), fn.flip(x))[1:],
    "reinterpret": lambda f: fn.reinterpret(fn.cast(f(images), dtype=types.INT16), dtype=types.UINT8),
    "per_frame": lambda f: fn.per_frame(fn.cast(f(images), dtype=types.FLOAT), replace=True),
}

# Cases of operators that do not exist on the GPU.
ON_CPU = {
    "bbox_paste": lambda f: fn.bbox_paste(f(inside), ratio=1.5, paste_x=f(columns, side=True)),
    "bbox_rotate": lambda f: fn.bbox_rotate(f(inside), angle=f(angles, side=True), input_shape=[100, 150]),
    "bbox_rotate with labels": lambda f: fn.bbox_rotate(
        f(inside), f(of_boxes), angle=30.0, input_shape=f(canvases, side=True), size=f(pairs, side=True) * 300.0
    ),
    "bbox_rotate and more": lambda f: fn.bb_flip(
        fn.bbox_rotate(fn.bb_flip(f(inside)), angle=20.0, input_shape=[100, 150], keep_size=True, mode="fixed")
    ),
    "random_bbox_crop": lambda f: fn.random_bbox_crop(f(inside), scaling=[0.3, 1.0], thresholds=[0.1, 0.5]),
    "random_bbox_crop with labels": lambda f: fn.random_bbox_crop(
        f(inside),
        f(of_boxes),
        thresholds=[0.2],
        all_boxes_above_threshold=False,
        output_bbox_indices=True,
        crop_shape=f(sizes, side=True),
        input_shape=[9, 8],
        total_num_attempts=5,
    ),
    "random_bbox_crop of volumes": lambda f: fn.random_bbox_crop(
        f(cuboids), bbox_layout="xyzXYZ", scaling=[0.5, 1.0], num_attempts=3, total_num_attempts=9
    ),
}


def recordings(seed):
    """WAV files of two channels of float32."""
    made = []
    for x in signals(seed):
        data = np.stack([x, -x], 1).astype("<f4").tobytes()
        fmt = struct.pack("<4sIHHIIHH", b"fmt ", 16, 3, 2, 8000, 64000, 8, 32)
        file = b"WAVE" + fmt + struct.pack("<4sI", b"data", len(data)) + data
        made.append(np.frombuffer(b"RIFF" + struct.pack("<I", len(file)) + file, "u1"))
    return made


AUDIO = {
    "decoders.audio": lambda f: tuple(fn.decoders.audio(f(recordings))),
    "decoders.audio at a rate": lambda f: tuple(
        fn.decoders.audio(f(recordings), downmix=True, dtype=types.INT16, sample_rate=f(rates, side=True))
    ),
    "decoders.audio, a part": lambda f: fn.slice(
        fn.decoders.audio(f(recordings), downmix=True)[0],
        rel_start=f(columns, side=True),
        shape=[5],
        axes=[0],
        out_of_bounds_policy="pad",
    ),
    "preemphasis_filter": lambda f: fn.preemphasis_filter(f(signals, "t"), preemph_coeff=f(columns, side=True)),
    "spectrogram": lambda f: fn.spectrogram(f(signals, "t"), window_length=16, window_step=8),
    "spectrogram, not centred": lambda f: fn.spectrogram(
        f(signals, "t"), window_length=16, window_step=8, center_windows=False, layout="tf"
    ),
    "to_decibels": lambda f: fn.to_decibels(fn.spectrogram(f(signals, "t"), window_length=16, window_step=9)),
    "power_spectrum": lambda f: fn.power_spectrum(f(signals, "t")),
    "power_spectrum of a length": lambda f: fn.power_spectrum(f(signals, "t"), nfft=128),
    "nonsilent_region": lambda f: fn.nonsilent_region(f(signals, "t"), window_length=8, reset_interval=16),
    "audio_resample": lambda f: fn.audio_resample(f(signals, "t"), in_rate=16000.0, out_rate=f(rates, side=True)),
    "audio_resample by a scale": lambda f: fn.audio_resample(f(signals, "t"), scale=1.5, dtype=types.INT16),
    "audio.speed_perturb": lambda f: fn.audio.speed_perturb(f(signals, "t"), speed=f(columns, side=True)),
    "audio.fade": lambda f: fn.audio.fade(f(signals, "t"), fade_in=3, fade_out=5, shape="half_sine"),
    "audio.loudness": lambda f: fn.audio.loudness(f(signals, "t"), sample_rate=16000.0),
    "audio.reverb": lambda f: fn.audio.reverb(f(signals, "t"), f(signals, "t")),
    "audio.add_noise": lambda f: fn.audio.add_noise(f(signals, "t"), f(signals, "t"), snr=f(columns, side=True)),
    "audio_resample to a length": lambda f: fn.audio_resample(f(signals, "t"), out_length=33),
}


CASES = {**RENAMED, **WARPED, **MOVED, **COMPUTED, **SMALL, **ON_CPU, **AUDIO}
