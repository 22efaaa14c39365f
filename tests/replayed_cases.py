# SPDX-License-Identifier: Apache-2.0
"""Calls of operators whose plans can be replayed for pictures of sizes that never come again, by name; `f` feeds what a
function makes for each iteration, `coins` and the like are such functions."""

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


def affine(seed):
    return [np.float32([[1.1, 0.2, 1], [-0.1, 0.9, 2]]) + s for s in columns(seed, 0, 0.1, (2, 3))]


def homography(seed):
    return [np.float32([[1.1, 0.2, 1], [-0.1, 0.9, 2], [0.01, 0, 1]]) + 0.1 * s for s in columns(seed, 0, 0.1, (3, 3))]


def maps(seed):
    return columns(seed, -1, 9, (5, 7))


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

CASES = {**WARPED}
