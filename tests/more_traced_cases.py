# SPDX-License-Identifier: Apache-2.0
"""Like traced_cases.py, for operators that need more than their inputs' shapes, and those that process frames."""

import numpy as np

import traced_cases
from penstock import fn
from traced_cases import N, affine, angles, canvases, columns, images, volumes


def of_pairs(seed):
    """Indices of two samples for each sample, up to its own."""
    r = np.random.default_rng(seed)
    return [r.integers(0, i + 1, 2).astype("i4") for i in range(N)]


def spectra(seed, extent=20):
    r = np.random.default_rng(seed)
    return [r.random((extent, w)).astype("f4") for w in r.integers(1, 9, N)]


def qualities(seed):
    return list(np.random.default_rng(seed).integers(1, 100, N).astype("i4"))


def sequences(seed, channels=3):
    """The same total number of frames in each batch, with different numbers per sample."""
    r = np.random.default_rng(seed)
    counts = r.permutation([1, 2, 2, 3, 4])
    return [r.integers(0, 256, (f, *r.integers(6, 12, 2), channels), "u1") for f in counts]


def per_frame(seed):
    """A number for each frame of `sequences`."""
    return [r.uniform(0.5, 1.5, len(s)).astype("f4") for s in sequences(seed) for r in [np.random.default_rng(len(s))]]


def one_for_all(seed):
    """The same, except that the first sample has one number for all of its frames."""
    return [values[: 1 if i == 0 else None] for i, values in enumerate(per_frame(seed))]


FRAMES = {
    "frames, resized": lambda f: fn.resize(f(sequences, "FHWC"), resize_shorter=7.0),
    "frames, one window": lambda f: fn.crop(fn.resize(f(sequences, "FHWC"), size=(9, 8)), crop=(4, 5), crop_pos_x=0.2),
    "frames by data": lambda f: fn.brightness(f(sequences, "FHWC"), brightness=f(columns, side=True)),
    "frames by data of each": lambda f: fn.brightness(f(sequences, "FHWC"), brightness=f(per_frame, "F", side=True)),
    "frames by data of some": lambda f: fn.flip(
        fn.brightness_contrast(f(sequences, "FHWC"), contrast=f(one_for_all, "F", side=True)),
        horizontal=fn.random.coin_flip(),
    ),
    "frames, rotated": lambda f: fn.rotate(f(sequences, "FHWC"), angle=f(angles, side=True)),
    "frames, rotated by each": lambda f: fn.rotate(f(sequences, "FHWC"), angle=10 * f(per_frame, "F", side=True)),
    "frames, warped": lambda f: fn.warp_affine(f(sequences, "FHWC"), matrix=[0.9, 0.2, 1, -0.2, 0.9, 2]),
    "frames, warped by an input": lambda f: fn.warp_affine(f(sequences, "FHWC"), f(affine, side=True)),
    "frames at random": lambda f: fn.random_resized_crop(f(sequences, "FHWC"), size=(5, 6)),
    "frames, noisy": lambda f: fn.noise.gaussian(f(sequences, "FHWC"), stddev=20.0),
    "frames, compressed": lambda f: fn.jpeg_compression_distortion(f(sequences, "FHWC"), quality=30),
    "frames, several times": lambda f: (x := fn.hue(f(sequences, "FHWC"), hue=20.0), fn.rotate(x, angle=20.0)),
}

LATER = {
    "jpeg_compression_distortion": lambda f: fn.jpeg_compression_distortion(f(images), quality=f(qualities, side=True)),
    "jpeg_compression_distortion, then crop": lambda f: fn.crop(
        fn.jpeg_compression_distortion(f(lambda k: images(k, lo=30, hi=90)), quality=20), crop=(17, 5), crop_pos_x=0.9
    ),
    "mel_filter_bank": lambda f: fn.mel_filter_bank(f(spectra, "ft"), nfilter=5),
    "mfcc": lambda f: fn.mfcc(f(spectra, "ft"), n_mfcc=7, lifter=3.0),
    "tensor_resize": lambda f: fn.tensor_resize(f(images), sizes=[5, 20], axes=[0, 1]),
    "tensor_resize by data": lambda f: fn.tensor_resize(
        f(volumes, "DHWC"), scales=f(lambda k: columns(k, 0.5, 0.9, (3,)), side=True), axes=[0, 1, 2]
    ),
    "tensor_resize, one axis": lambda f: fn.tensor_resize(f(images), sizes=[20], axes=[1], mode="not_larger"),
    "multi_paste": lambda f: fn.multi_paste(f(images), in_ids=f(of_pairs, side=True), output_size=[30, 30]),
    "multi_paste of two": lambda f: fn.multi_paste(f(images), fn.resize(f(images), size=(3, 4)), output_size=[30, 31]),
    "multi_paste by data": lambda f: fn.multi_paste(
        f(images),
        in_ids=f(of_pairs, side=True),
        out_anchors_rel=f(lambda k: columns(k, 0, 0.5, (2, 2)), side=True),
        output_size=f(canvases, side=True),
    ),
}

CASES = {**traced_cases.CASES, **LATER}
