# SPDX-License-Identifier: Apache-2.0
"""LOCAL kernels, alone and as chains, against the CPU's."""

import numpy as np
import pytest
from segments import Segment, Step

from penstock.core.batch import Spec

SIZES = ((5, 4), (1, 1), (0, 4), (33, 17), (8, 67))
RNG = np.random.default_rng(1)


def images(dtype="u1", channels=3, sizes=SIZES):
    """Ragged samples HWC over the whole range of a type."""
    samples = []
    for h, w in sizes:
        x = (
            RNG.integers(0, 256, (h, w, channels))
            if np.dtype(dtype).kind in "iu"
            else RNG.random((h, w, channels)) * 300 - 20
        )
        samples.append(x.astype(dtype))
    return samples


def spec_of(samples, layout="HWC"):
    return Spec(np.array([x.shape for x in samples]), samples[0].dtype, layout)


def column(lo, hi, n=None):
    return RNG.uniform(lo, hi, len(SIZES) if n is None else n).astype("f4")


@pytest.mark.parametrize("offset", (0, 1, 3))
@pytest.mark.parametrize("to", ("u1", "f4", "i2"))
@pytest.mark.parametrize("of", ("u1", "f4"))
def test_linear(of, to, offset):
    x = images(of)
    spec = spec_of(x)
    columns = {"mul": column(0.2, 2), "add": column(-50, 50)}
    Segment([Step("color/linear", [1], [0], columns)], {0: spec, 1: spec.like(dtype=np.dtype(to))}, {0: x}, {1}).check(
        offsets=(offset,)
    )


def eight(rows):
    rows = np.asarray(rows)
    out = np.zeros((len(rows), 8), rows.dtype)
    out[:, : rows.shape[1]] = rows
    return out


class Chain:
    """A segment of consecutive LOCALs, built step by step."""

    def __init__(self, samples, layout="HWC"):
        self.samples, self.n = samples, len(samples)
        self.specs, self.steps = [spec_of(samples, layout)], []

    def add(self, kernel, columns, shape=None, dtype=None, layout=None):
        x = self.specs[-1]
        self.specs.append(x.like(shape=shape, dtype=dtype and np.dtype(dtype), layout=layout))
        self.steps.append(Step(kernel, [len(self.steps) + 1], [len(self.steps)], columns))
        return self

    def linear(self, dtype=None):
        return self.add("color/linear", {"mul": column(0.2, 2), "add": column(-50, 50)}, dtype=dtype)

    def matrix(self, dtype=None):
        matrix = RNG.uniform(-1, 1, (self.n, 9)).astype("f4")
        return self.add("color/color_matrix", {"matrix": matrix, "offset": matrix[:, :3] * 20}, dtype=dtype)

    def space(self, from_, to):
        shape = self.specs[-1].shape.copy()
        shape[:, -1] = 1 if to == 2 else 3
        return self.add("color/color_space", {"from": from_, "to": to}, shape)

    def flip(self, *axes):
        flip = np.zeros((self.n, 8), "u1")
        for a in axes:
            flip[:, a] = RNG.integers(0, 2, self.n)
        return self.add("geometry/flip", {"flip": flip})

    def window(self, border=0, dtype=None, channels=-1, by=(7, 5)):
        x = self.specs[-1]
        axes = [x.layout.find(c) for c in "HW"] if x.layout else [0, 1]
        start, shape = np.zeros_like(x.shape), x.shape.copy()
        start[:, axes] = RNG.integers(-by[0], by[0], (self.n, 2))
        shape[:, axes] = np.maximum(shape[:, axes] + RNG.integers(-by[1], by[1], (self.n, 2)), 0)
        if border:
            shape[(x.shape == 0).any(axis=1)] = 0
        columns = {"start": eight(start), "extent": eight(x.shape), "border": border, "channels": channels}
        return self.add("geometry/window", {**columns, "fill": np.array([[7.7, 1, 3, 4, 5, 6]], "f4")}, shape, dtype)

    def cmn(self, to="CHW", dtype="f4", channels=None):
        x = self.specs[-1]
        axes = [x.layout.find(c) for c in to]
        shape, first = x.shape[:, axes].copy(), np.zeros_like(x.shape)
        h, w, c = (to.find(name) for name in "HWC")
        for d in (h, w):
            shape[:, d] = np.maximum(shape[:, d] + RNG.integers(-5, 3, self.n), 0)
            first[:, d] = RNG.integers(-2, 3, self.n)
        if channels:
            shape[:, c] = channels
        mirror = RNG.integers(0, 2, self.n) == 1
        first[:, w] += np.where(mirror, shape[:, w] - 1, 0)
        most = int(shape[:, c].max())
        values = RNG.uniform(0.2, 1.5, (3, self.n, most)).astype("f4")
        columns = {"axis": eight(np.array([axes], "i4")), "first": eight(first), "channels": c}
        columns |= {
            "mirrored": np.where(mirror, w, -1),
            "mean": values[0] * 50,
            "scale": values[1],
            "fill": values[2] * 9,
        }
        return self.add("geometry/crop_mirror_normalize", columns, shape, dtype, to)

    def transpose(self, *perm):
        x = self.specs[-1]
        layout = "".join(x.layout[p] for p in perm)
        columns = {"perm": eight(np.array([perm], "i4"))}
        return self.add("generic/transpose", columns, x.shape[:, list(perm)], None, layout)

    def segment(self, kept=()):
        return Segment(self.steps, dict(enumerate(self.specs)), {0: self.samples}, {len(self.steps), *kept})

    def check(self, kept=(), **options):
        segment = self.segment(kept)
        segment.check(**options)
        return segment


def typical_segments():
    """One of each form, for compilers."""
    chains = [Chain(images(a)).add("generic/cast", {}, dtype=b) for a, b in (("u1", "f2"), ("f8", "?"), ("i8", "u4"))]
    chains += [Chain(images(a)).matrix(b) for a, b in (("u1", "u1"), ("f4", "u1"), ("f2", "i4"))]
    chains += [Chain(images()).space(0, 3), Chain(images()).space(0, 2), Chain(images("u1", 1)).space(2, 0)]
    chains += [Chain(images("u1", c)).flip(0, 1) for c in (1, 4, 7)] + [Chain(images()).transpose(1, 0, 2)]
    chains += [Chain(images("f4")).window(border, "u1") for border in (0, 2)] + [Chain(images("u1", 6)).window(4)]
    chains += [Chain(images()).cmn(to, d, c) for to, d, c in (("CHW", "f4", None), ("HWC", "f2", 4), ("CHW", "u1", 4))]
    chains += [Chain(images()).linear().matrix().flip(1).cmn(), Chain(images()).add("generic/copy", {})]
    chains += [Chain(images(dtype, 3, WIDE[8] + ((20, 20),) * 2)).transpose(1, 0, 2) for dtype in ("u1", "f4")]
    return [c.segment() for c in chains]


@pytest.mark.parametrize("to", ("u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8", "?"))
@pytest.mark.parametrize("of", ("u1", "i4", "f2", "f4"))
def test_cast(of, to):
    Chain(images(of)).add("generic/cast", {}, dtype=to).check(offsets=(0, 1))


@pytest.mark.parametrize("dtype", ("u1", "f2", "f8"))
def test_copy(dtype):
    Chain(images(dtype)).add("generic/copy", {}).check(offsets=(0, 5))


@pytest.mark.parametrize("of, to", (("u1", "u1"), ("u1", "f4"), ("f4", "u1"), ("i2", "f2")))
def test_color_matrix(of, to):
    Chain(images(of)).matrix(to).check(offsets=(0, 1))


@pytest.mark.parametrize("to", range(4))
@pytest.mark.parametrize("of", range(4))
def test_color_space(of, to):
    Chain(images("u1", 1 if of == 2 else 3)).space(of, to).check(offsets=(0, 2))


@pytest.mark.parametrize("dtype", ("u1", "f4"))
@pytest.mark.parametrize("channels", (1, 2, 3, 4, 7))
def test_flip(channels, dtype):
    Chain(images(dtype, channels)).flip(0, 1).check(offsets=(0, 1))


@pytest.mark.parametrize("border", range(5))
@pytest.mark.parametrize("channels", (1, 3, 6))
def test_window(channels, border):
    Chain(images("u1", channels)).window(border).check()
    Chain(images("f4", channels)).window(border, "u1").check()


@pytest.mark.parametrize("dtype", ("u1", "f2", "f4", "f8"))
def test_a_window_alone_is_copied(dtype):
    shapes = {
        "rows": (((9, 40), (3, 5), (0, 4)), ((-2, -3), (1, 2), (0, 0)), ((12, 46), (2, 2), (3, 3))),
        "whole pixels": (((9, 40, 3), (3, 70, 3), (4, 4, 3)), ((-2, 3, 0), (0, 0, 0), (9, 9, 0)), ((9, 30, 3),) * 3),
        "whole rows": (((9, 8, 3), (5, 8, 3)), ((2, 0, 0), (-1, 0, 0)), ((5, 8, 3), (7, 8, 3))),
        "cut channels": (((4, 9, 25), (2, 3, 25)), ((0, 1, 1), (0, -1, -2)), ((4, 5, 23), (2, 8, 26))),
        "narrow rows": (((4, 9, 5), (2, 3, 5)), ((0, 1, 1), (0, -1, -2)), ((4, 5, 3), (2, 8, 6))),
        "long rows": (((3, 30000), (9, 4)), ((0, 5), (0, 0)), ((3, 29000), (9, 4))),
        "beside the input": (((9, 40), (9, 40)), ((0, 45), (-20, 0)), ((4, 40), (12, 40))),
        "everything": (((40, 50),), ((0, 0),), ((40, 50),)),
        "volumes": (((2, 3, 20, 3), (3, 2, 9, 3)), ((-1, 1, 2, 0), (1, 0, 0, 0)), ((3, 3, 25, 3), (1, 4, 9, 3))),
        "one axis": (((100,), (7,)), ((-3,), (2,)), ((120,), (4,))),
    }
    for name, (samples, start, shape) in shapes.items():
        x = [(RNG.random(s) * 250).astype(dtype) for s in samples]
        columns = {"start": eight(start), "extent": eight(samples), "channels": -1, "fill": np.array([[7.7]], "f4")}
        chain = Chain(x, "").add("geometry/window", columns, np.array(shape))
        chain.check(offsets=(0, 1, 5))
        (launch,) = chain.segment().launches()[1]
        assert ("copy_window" in launch.source) == (name != "narrow rows" or dtype in ("f4", "f8"))


def test_window_with_a_fill_per_channel():
    for dtype, count, copied in (("u1", 3, True), ("i2", 4, True), ("f4", 3, True), ("u1", 2, True), ("u1", 6, False)):
        chain = Chain(images(dtype, count)).window(channels=2)
        chain.check(offsets=(0, 1, 3))
        (launch,) = chain.segment().launches()[1]
        assert ("copy_window" in launch.source) == copied


@pytest.mark.parametrize("to", ("CHW", "HWC"))
@pytest.mark.parametrize("channels, padded", ((1, None), (3, None), (3, 4), (5, 8)))
def test_crop_mirror_normalize(channels, padded, to):
    for dtype in ("f4", "u1", "f2"):
        Chain(images("u1", channels)).cmn(to, dtype, padded).check()


def test_crop_mirror_normalize_of_planes():
    x = [np.ascontiguousarray(np.moveaxis(x, 2, 0)) for x in images("f4", 3)]
    Chain(x, "CHW").cmn("CHW").check()
    Chain(x, "CHW").cmn("HWC").check()


# Planes with an alignment of only 4, 8 or 16 bytes, and rows with several runs per thread.
WIDE = {4: ((4, 35), (8, 517), (12, 33), (0, 4)), 8: ((8, 35), (8, 300), (4, 34)), 16: ((16, 17), (1, 1024), (3, 144))}


@pytest.mark.parametrize("dtype", ("u1", "f2", "f4"))
@pytest.mark.parametrize("aligned", WIDE)
def test_planes_that_are_aligned_alike(aligned, dtype):
    x = images("u1", 3, WIDE[aligned])
    n = len(x)
    planes = np.array([(3, h, w) for h, w in WIDE[aligned]])
    for mirrored, by in ((np.arange(n) % 2 == 0, 0), (np.arange(n) % 2 == 1, 3)):
        first = np.zeros((n, 3), "i8")
        first[:, 1] = by - 2 * by * (np.arange(n) % 2)  # exceeds one side
        first[:, 2] = np.where(mirrored, planes[:, 2] - 1, 0) + by
        columns = {"axis": eight(np.array([[2, 0, 1]], "i4")), "first": eight(first), "channels": 0}
        columns |= {"mirrored": np.where(mirrored, 2, -1)}
        values = RNG.uniform(0.2, 1.5, (3, n, 3)).astype("f4")
        columns |= {"mean": values[0] * 50, "scale": values[1], "fill": values[2] * 9}
        Chain(x).add("geometry/crop_mirror_normalize", columns, planes, dtype, "CHW").check(offsets=(0, 2))
    if dtype == "u1":
        chain = Chain(x).transpose(2, 0, 1)
        chain.check()
        (launch,) = chain.segment().launches()[1]
        assert "run_rows" in launch.source


@pytest.mark.parametrize("channels, perm", ((1, (1, 0, 2)), (3, (1, 0, 2)), (3, (2, 1, 0)), (20, (2, 1, 0))))
def test_turned_tiles(channels, perm):
    chain = Chain(images("u1", channels, ((40, 33), (1, 70), (32, 32), (0, 4), (15, 64)))).transpose(*perm)
    chain.check(offsets=(0, 1))
    (launch,) = chain.segment().launches()[1]
    assert "run_tiles" in launch.source
    chain = Chain(images("f4", channels, ((40, 33), (1, 70), (32, 32), (0, 4), (35, 64)))).window().linear("u1")
    chain.transpose(*perm).check()


def test_wide_rows():
    x = images("u1", 3, ((6, 700), (3, 512), (2, 129), (1, 1), (0, 5)))
    Chain(x).flip(0, 1).check(offsets=(0, 1))
    Chain(x).window().check(offsets=(0, 1))
    Chain(x).linear().matrix().flip(1).cmn("HWC").check()


def test_rows_of_a_whole_warp():
    sizes = ((3, 500), (2, 517), (1, 480), (2, 499), (2, 482))
    for dtype in ("u1", "f4"):
        Chain(images(dtype, 3, sizes)).flip(0, 1).check(offsets=(0, 1))
        Chain(images(dtype, 3, sizes)).cmn("HWC").check(offsets=(0, 3))
    Chain(images("u1", 4, sizes)).linear("f4").flip(1).check(offsets=(0, 1))
    (launch,) = Chain(images("u1", 3, sizes)).flip(1).segment().launches()[1]
    assert "run_rows" in launch.source and ", 32, 256, " in launch.source


def test_large_tiles():
    sizes = ((70, 130), (129, 66), (64, 64), (1, 90), (127, 65))
    for dtype, channels in (("u1", 1), ("f2", 3), ("f4", 1), ("f8", 1)):
        chain = Chain(images(dtype, channels, sizes)).transpose(1, 0, 2)
        chain.check(offsets=(0, 1))
        (launch,) = chain.segment().launches()[1]
        assert "run_tiles" in launch.source and ", 64>" in launch.source
    Chain(images("u1", 3, sizes)).window().flip(0).transpose(1, 0, 2).check()


@pytest.mark.parametrize("perm", ((0, 1, 2), (2, 0, 1), (1, 0, 2), (2, 1, 0)))
@pytest.mark.parametrize("channels", (3, 5))
def test_transpose(channels, perm):
    Chain(images("u1", channels)).transpose(*perm).check()


def test_chains():
    Chain(images()).linear("f4").matrix("u1").flip(0, 1).window().cmn().check()
    Chain(images()).window().linear().window(1).flip(1).space(0, 2).linear("f4").check()
    Chain(images("u1", 6)).linear("f4").window(channels=2).cmn().check()
    Chain(images("f4")).flip(0).matrix("u1").transpose(2, 0, 1).window(2).check()


def test_what_is_kept_is_written():
    chain = Chain(images()).linear("f4").matrix("u1").flip(0, 1)
    segment = chain.check(kept={1})
    _, launches = segment.launches()
    assert [x.calls for x in launches] == [[0], [1, 2]]


def test_frames_and_volumes():
    samples = [RNG.integers(0, 255, (f, h, w, 3)).astype("u1") for f, (h, w) in zip((2, 1, 3, 1, 2), SIZES)]
    Chain(samples, "FHWC").flip(1, 2).cmn("FCHW").check()
    Chain(samples, "FHWC").flip(0, 2).cmn("CFHW").check()
    Chain(samples, "").window(by=(1, 1)).check()


def test_one_huge_sample_among_small_ones():
    x = images("u1", 3, ((3, 2), (900, 700), (1, 1), (5, 5), (2, 2)))
    Chain(x).linear().check()
    Chain(x).flip(1).cmn().check()
