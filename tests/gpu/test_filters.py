# SPDX-License-Identifier: Apache-2.0
"""Filters give exactly the same results on the device as on the CPU."""

import numpy as np
import pytest
from segments import Segment, Step

from penstock.core.batch import Spec
from penstock.operators.filter import _lab

# Single pixels, empty images, several GPU tiles in each direction, and odd sizes.
SIZES = ((37, 150), (1, 1), (0, 4), (70, 45), (3, 2))


def images(dtype, channels=3, sizes=SIZES, seed=5):
    rng = np.random.default_rng(seed)
    shapes = [(*s, channels) if channels else s for s in sizes]
    if np.dtype(dtype).kind == "f":
        return [rng.normal(10, 5, s).astype(dtype) for s in shapes]
    info = np.iinfo(dtype)
    return [rng.integers(max(info.min, -30000), min(info.max, 60000), s).astype(dtype) for s in shapes]


def segment(kernel, samples, columns, to=None, more=(), layout=""):
    """A kernel over samples; `more` are samples of further inputs."""
    inputs = {0: samples, **{i + 2: m for i, m in enumerate(more)}}
    specs = {i: Spec(np.array([np.shape(x) for x in s]), s[0].dtype, "") for i, s in inputs.items()}
    specs[0] = Spec(specs[0].shape, specs[0].dtype, layout)
    specs[1] = specs[0].like(dtype=np.dtype(to or specs[0].dtype))
    step = Step(kernel, [1], [0, *range(2, 2 + len(more))], columns)
    return Segment([step], dict(sorted(specs.items())), inputs, {1})


def separable(samples, sizes, to=None, outer=0, axes=2):
    """`sizes` (n or 1, terms, axes) of windows of random weights."""
    n = len(samples)
    sizes = np.broadcast_to(np.asarray(sizes), (n, *np.shape(sizes)[1:]))
    terms, longest = sizes.shape[1], int(sizes.max())
    weights = np.random.default_rng(1).uniform(-0.5, 1, (n, terms, 3, longest)).astype("f4")
    all_ = np.ones((n, 3, 3), "i4")
    all_[:, :terms, 3 - axes :] = sizes
    weights[:, :, : 3 - axes] = 1
    weights /= np.where(np.arange(longest) < all_[:, :terms, :, None], weights, 0).sum(axis=3, keepdims=True)
    columns = {
        "windows": weights.reshape(n, -1),
        "size": all_.reshape(n, -1),
        "stride": longest,
        "terms": terms,
        "n_outer": outer,
        "n_space": axes,
    }
    return segment("filter/separable", samples, columns, to)


RAGGED = [[[3, 9]], [[1, 1]], [[5, 7]], [[9, 1]], [[3, 11]]]
CUBES = ((4, 9, 20), (1, 1, 1), (7, 5, 6))


@pytest.mark.parametrize("dtype", ("u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8"))
def test_separable_of_all_types(dtype):
    separable(images(dtype), [[[5, 3]]]).check(offsets=(0, 1))
    separable(images(dtype), [[[3, 7]]], "f4").check()


@pytest.mark.parametrize("channels", (0, 1, 2, 4, 5, 9, 200))
def test_separable_of_channels(channels):
    sizes = SIZES if channels < 9 else ((11, 13), (1, 1), (4, 0))
    separable(images("u1", channels, sizes), [[[5, 7]]]).check()


@pytest.mark.parametrize(
    "sizes", [[[[1, 1]]], RAGGED, [[[3, 5], [7, 1]]], [[[35, 3]]], [[[3, 25]]], [[[3, 301]]], [[[131, 5], [1, 3]]]]
)
def test_separable_of_windows(sizes):
    separable(images("u1", sizes=SIZES), sizes, "f4").check()


def test_separable_of_planes_lines_and_volumes():
    planes = [np.moveaxis(x, 2, 0) for x in images("u1")]
    separable(planes, [[[5, 3]]], outer=1).check()
    separable([x[:, :, 0].ravel() for x in images("u1")], [[[9]]], axes=1).check()
    volumes = [x.reshape(*s, 2) for s, x in zip(CUBES, images("i2", 2, [(s[0] * s[1], s[2]) for s in CUBES]))]
    separable(volumes, [[[3, 5, 1]]], axes=3).check()
    separable(volumes, [[[1, 5, 3]]], axes=3).check()
    separable(volumes, [[[3, 1, 1], [1, 5, 1], [1, 1, 7]]], "f4", axes=3).check()


def equalize(samples, axis):
    return segment("filter/equalize", samples, {"axis": axis})


@pytest.mark.parametrize("channels", (0, 1, 2, 3, 4, 5))
def test_equalize(channels):
    samples = images("u1", channels)
    samples[0] //= 3
    samples[3][:] = 7
    equalize(samples, 2 if channels else -1).check(offsets=(0, 1))


def test_equalize_of_planes_and_channels_that_differ():
    equalize([np.ascontiguousarray(np.moveaxis(x, 2, 0)) for x in images("u1")], 0).check()
    equalize([x[:, :, : 1 + i % 3].copy() for i, x in enumerate(images("u1"))], 2).check()


def test_equalize_of_parts():
    equalize(images("u1", 3, [(130, 141), (77, 333)]), 2).check(offsets=(0, 3))


def morphology(samples, size, outer=0, dilates=1, border=4, iterations=1):
    size = np.asarray(size, "i4")
    columns = {"size": size, "anchor": size // 3, "border": border, "dilates": dilates}
    return segment("filter/morphology", samples, {**columns, "iterations": iterations, "n_outer": outer})


@pytest.mark.parametrize("dtype", ("u1", "u2", "f4"))
@pytest.mark.parametrize("dilates", (0, 1))
def test_morphology(dtype, dilates):
    for border, size in enumerate(([3, 3], [9, 2], [1, 12], [5, 40], [2, 5])):
        morphology(images(dtype), [size], dilates=dilates, border=border).check(offsets=(0, 1))


def test_morphology_of_sizes_that_differ_iterations_planes_and_channels():
    sizes = [[3, 5], [1, 1], [4, 4], [7, 1], [2, 13]]
    morphology(images("u1"), sizes, border=0).check()
    morphology(images("u1"), sizes, border=3, iterations=4).check()
    planes = [np.ascontiguousarray(np.moveaxis(x, 2, 0)) for x in images("u2")]
    morphology(planes, [[3, 3]], outer=1, iterations=2).check()
    for channels in (0, 2, 11):
        morphology(images("u1", channels), [[3, 4]], iterations=3).check()


def test_morphology_of_large_rectangles():
    for border in range(5):
        morphology(images("f4"), [[50, 120]], border=border, iterations=border % 3 + 1).check()


def median(samples, size, outer=0):
    return segment("filter/median", samples, {"size": np.asarray(size, "i4"), "n_outer": outer})


@pytest.mark.parametrize("dtype", ("u1", "u2", "f4"))
def test_median(dtype):
    for size in ([1, 1], [3, 3], [1, 5], [5, 3], [5, 5], [7, 5], [1, 55]):
        median(images(dtype), [size]).check(offsets=(0, 1))


def test_median_of_sizes_that_differ_large_windows_planes_and_channels():
    median(images("u1"), [[3, 3], [1, 1], [9, 9], [7, 1], [1, 13]]).check()
    median(images("u1", 3, ((5, 7), (20, 3))), [[151, 301]]).check()
    median(images("f4", 9, ((5, 7), (3, 3))), [[151, 121]]).check()
    median([np.ascontiguousarray(np.moveaxis(x, 2, 0)) for x in images("u2")], [[3, 3]], outer=1).check()
    for channels in (0, 2, 11):
        median(images("u1", channels), [[3, 3]]).check()


def correlate(samples, sizes, to=None, border=0, anchor=0, fill=None, outer=0, less=0):
    """`sizes` of filters in turn; `less` (axes,) is by how much outputs are smaller."""
    rng = np.random.default_rng(3)
    sizes = [sizes[i % len(sizes)] for i in range(len(samples))]
    weights = [rng.uniform(-0.3, 0.5, s).astype("f4") for s in sizes]
    more = [weights] if fill is None else [weights, [np.full(1, fill + i, x.dtype) for i, x in enumerate(samples)]]
    axes = len(sizes[0])
    anchor = np.broadcast_to(anchor, axes).tolist()
    columns = {"anchor": [[*[0] * (3 - axes), *anchor]], "border": border, "has_fill": fill is not None}
    found = segment("filter/correlate", samples, {**columns, "n_outer": outer, "n_space": axes}, to, more)
    if np.any(less):
        shape = found.specs[0].shape.copy()
        shape[:, outer : outer + axes] -= np.asarray(less)
        found.specs[1] = Spec(shape, found.specs[1].dtype, "")
    return found


@pytest.mark.parametrize("dtype", ("u1", "u2", "i1", "i2", "f2", "f4"))
def test_correlate_of_all_types(dtype):
    correlate(images(dtype), [(3, 5)], anchor=(1, 3)).check(offsets=(0, 1))
    correlate(images(dtype), [(3, 5), (1, 1), (9, 4)], "f4").check()


@pytest.mark.parametrize("border", range(5))
def test_correlate_of_borders(border):
    correlate(images("u1"), [(3, 3)], border=border, anchor=2).check()
    correlate(images("u1"), [(2, 3), (6, 7)], border=border, fill=9).check()


def test_correlate_of_planes_channels_and_large_filters():
    planes = [np.ascontiguousarray(np.moveaxis(x, 2, 0)) for x in images("u2")]
    correlate(planes, [(3, 3)], outer=1).check()
    for channels in (0, 2, 11):
        correlate(images("u1", channels), [(3, 4)]).check()
    correlate(images("u1", 3, ((20, 30), (5, 6))), [(90, 120)]).check()
    correlate(images("u1", 9, ((9, 11), (5, 6))), [(90, 120)], fill=3, border=4).check()


@pytest.mark.parametrize("border", range(5))
def test_small_filters_over_several_tiles(border):
    """Tiles inside the image, at its borders, and partial ones; rows at any address."""
    sizes = ((70, 190), (37, 171))
    correlate(images("u1", 3, sizes), [(5, 5)], border=border, anchor=2, fill=9).check(offsets=(0, 1))


@pytest.mark.parametrize("channels, size", ((1, (1, 25)), (4, (25, 1)), (2, (5, 4))))
@pytest.mark.parametrize("of, to", (("u1", "f4"), ("f4", "f4"), ("f2", "f2")))
def test_small_filters_of_other_types(channels, size, of, to):
    correlate(images(of, channels, ((41, 300), (3, 70))), [size], to).check()


def test_correlate_where_filters_lie_inside():
    correlate(images("u1", 3, ((70, 150), (9, 9))), [(3, 6)], less=(2, 5)).check()


def test_correlate_of_volumes():
    volumes = [x.reshape(*s, 2) for s, x in zip(CUBES, images("i2", 2, [(s[0] * s[1], s[2]) for s in CUBES]))]
    for border in (0, 4):
        correlate(volumes, [(3, 3, 2)], border=border, fill=5).check()
    correlate(volumes, [(2, 3, 2), (1, 7, 1)], anchor=0, border=2).check()


def clahe(samples, tiles=(3, 4), luma=1, limit=2.0):
    forward, backward = _lab.matrices()
    columns = {"tables": _lab.tables(), "forward": forward[None], "backward": backward[None], "tiles": [tiles]}
    return segment("filter/clahe", samples, {**columns, "clip_limit": limit, "luma": luma})


@pytest.mark.parametrize("channels, luma", ((1, 1), (3, 1), (3, 0)))
def test_clahe(channels, luma):
    samples = images("u1", channels)
    samples[0] //= 3
    for tiles, limit in (((3, 4), 2.0), ((1, 1), 0.0), ((8, 8), 40.0)):
        clahe(samples, tiles, luma, limit).check(offsets=(0, 1))


def test_clahe_of_gray_and_colours():
    clahe([x[..., : 1 + 2 * (i % 2)].copy() for i, x in enumerate(images("u1"))]).check()


def typical():
    """Segments with very different sources."""
    return [
        clahe(images("u1")),
        correlate(images("u1"), [(3, 3)]),
        correlate(images("f2"), [(3, 3), (11, 7)], "f4", fill=1),
        correlate(images("u1"), [(90, 120)]),
        median(images("u1"), [[5, 5]]),
        median(images("f4"), [[3, 3]]),
        median(images("u2"), [[3, 3], [1, 1], [9, 9], [7, 1], [1, 13]]),
        median(images("f4"), [[151, 121]]),
        morphology(images("u1"), [[3, 3]], iterations=2),
        morphology(images("f4"), [[3, 3], [1, 7], [2, 3], [9, 1], [1, 1]], dilates=0),
        morphology(images("f4"), [[50, 120]]),
        equalize(images("u1"), 2),
        equalize(images("u1", 0), -1),
        equalize(images("u1", 5), 2),
        separable(images("u1"), [[[7, 7]]]),
        separable(images("f2", 1), RAGGED),
        separable(images("i8"), [[[3, 301]]], "f4"),
    ]
