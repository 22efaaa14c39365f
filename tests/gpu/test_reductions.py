# SPDX-License-Identifier: Apache-2.0
"""Normalisation on the device against the CPU's."""

import numpy as np
import pytest
from segments import Segment, Step

from penstock.core.batch import Spec

RNG = np.random.default_rng(5)
SHAPES = ((20, 31, 3), (1, 1, 3), (64, 50, 3), (5, 4, 3))
COMPUTED, ARGUMENT, INPUT = range(3)


def samples_of(dtype, shapes=SHAPES):
    if np.dtype(dtype).kind == "f":
        return [RNG.normal(1000, 5, s).astype(dtype) for s in shapes]
    info = np.iinfo(dtype)
    return [RNG.integers(max(info.min, -3000), min(info.max, 3000), s).astype(dtype) for s in shapes]


def parameters_of(shapes, reduced):
    return np.array([[int(np.prod([e for e, r in zip(s, reduced) if not r]))] for s in shapes])


def eight(reduced):
    return np.array([[*reduced, *(0,) * (8 - len(reduced))]], "u1")


AXES = [(1, 1, 1), (1, 1, 0), (0, 0, 1), (1, 0, 0), (0, 1, 0), (1, 0, 1), (0, 1, 1), (0, 0, 0)]


def normalize_segment(
    dtype, to, reduced, mean=COMPUTED, stddev=COMPUTED, shapes=SHAPES, given="f4", one=False, **columns
):
    samples, params = samples_of(dtype, shapes), parameters_of(shapes, reduced)
    specs = {0: Spec(np.array(shapes), np.dtype(dtype), "HWC"[: len(shapes[0])])}
    specs[1] = specs[0].like(dtype=np.dtype(to))
    inputs, ins = {0: samples}, [0]
    for number, origin in ((2, mean), (3, stddev)):
        if origin == INPUT:
            shape = np.ones_like(params) if one else params
            number = len(specs)
            specs[number] = Spec(shape, np.dtype(given), "")
            inputs[number] = [(RNG.random(n) * 20 + 5).astype(given) for n in shape[:, 0]]
            ins.append(number)
    all_ = {"reduced": eight(reduced), "mean_origin": mean, "stddev_origin": stddev, "scale": 20, "shift": 100}
    all_ |= {"mean": 3.5, "stddev": 7.25, **columns}
    return Segment([Step("math/normalize", [1], ins, all_)], specs, inputs, {1})


def normalize(*args, **columns):
    segment = normalize_segment(*args, **columns)
    for a, b in zip(segment.on_cpu()[1], segment.on_device()[1]):
        if b.dtype.kind == "f":
            np.testing.assert_allclose(b, a, rtol=3e-7, atol=1e-4)
        else:
            assert np.abs(a.astype("i8") - b).max(initial=0) <= 1
            assert (a != b).mean() < 0.01 if b.size else True


@pytest.mark.parametrize("reduced", AXES)
@pytest.mark.parametrize("of, to", (("u1", "f4"), ("f4", "f4"), ("u2", "u1")))
def test_normalize(of, to, reduced):
    normalize(of, to, reduced)


@pytest.mark.parametrize("mean, stddev", [(m, s) for m in range(3) for s in range(3)])
@pytest.mark.parametrize("reduced", ((1, 1, 0), (0, 1, 0)))
def test_given_parameters(reduced, mean, stddev):
    for one, given in ((False, "f4"), (True, "f4"), (False, "f8")):
        normalize("u1", "f4", reduced, mean, stddev, given=given, one=one, epsilon=0.5)


def test_what_does_not_vary_becomes_zero():
    shapes = ((7, 9, 3), (600, 300, 1))
    specs = {0: Spec(np.array(shapes), np.dtype("u1"), "HWC")}
    specs[1] = specs[0].like(dtype=np.dtype("f4"))
    samples = [np.full(s, 201, "u1") for s in shapes]
    columns = {"reduced": eight((1, 1, 1)), "scale": 1}
    for x in Segment([Step("math/normalize", [1], [0], columns)], specs, {0: samples}, {1}).on_device()[1]:
        assert not x.any()


def test_empty_samples_and_many_parameters():
    normalize("f4", "f4", (1, 1, 0), shapes=((0, 4, 3), (3, 2, 3)))
    normalize("u1", "f4", (0, 0, 1), shapes=((60, 70, 3), (2, 3, 3)))
    normalize("u1", "f4", (0, 1, 0), shapes=((3, 20, 80), (2, 3, 80)), ddof=1)


@pytest.mark.parametrize(
    "reduced, shapes",
    [
        ((0, 1, 1), ((3, 40, 61), (2, 9, 1), (3, 1, 700))),
        ((0, 1, 0), ((3, 700, 3), (2, 1, 3))),
        ((1, 1, 0), ((40, 61, 2), (301, 5, 2))),
        ((1, 1, 0), ((40, 61, 4), (301, 5, 4), (0, 5, 4))),
        ((1, 0, 1), ((2, 3, 600), (3, 3, 601))),
    ],
)
def test_runs(reduced, shapes):
    for of, to in (("u1", "f4"), ("f4", "f4")):
        segment = normalize_segment(of, to, reduced, shapes=shapes)
        assert (", 0>(l)" in segment.launches()[1][0].source) == (reduced == (1, 0, 1))
        for offset in (0, 1):
            for a, b in zip(segment.on_cpu()[1], segment.on_device(offset)[1]):
                if b.dtype.kind == "f":
                    np.testing.assert_allclose(b, a, rtol=1e-6, atol=1e-4)
                else:
                    assert np.abs(a.astype("i8") - b).max(initial=0) <= 1
                    assert (a != b).mean() < 0.01 if b.size else True
