# SPDX-License-Identifier: Apache-2.0
"""Sequences without frames keep the extents of the frames they would have."""

import numpy as np
import pytest

import penstock

SOME = [(2, 4, 6, 3), (0, 7, 5, 3), (1, 4, 5, 3), (0, 5, 2, 3)]
NONE = [(0, 7, 5, 3), (0, 4, 6, 3)]
# Expected shape for a frame of (h, w, 3).
OPERATORS = {
    "brightness": (lambda fn, x: fn.brightness(x, brightness=2.0), lambda h, w: (h, w, 3)),
    "flip": (lambda fn, x: fn.flip(x), lambda h, w: (h, w, 3)),
    "resize": (lambda fn, x: fn.resize(x, resize_x=10, resize_y=4), lambda h, w: (4, 10, 3)),
    "shorter": (
        lambda fn, x: fn.resize(x, resize_shorter=20),
        lambda h, w: (20 * h // min(h, w), 20 * w // min(h, w), 3),
    ),
    "crop": (lambda fn, x: fn.crop(x, crop=(2, 2)), lambda h, w: (2, 2, 3)),
    "planes": (lambda fn, x: fn.crop_mirror_normalize(x, output_layout="FCHW"), lambda h, w: (3, h, w)),
    "blur": (lambda fn, x: fn.gaussian_blur(x, sigma=1.0), lambda h, w: (h, w, 3)),
    "random": (lambda fn, x: fn.random_resized_crop(x, size=(3, 5)), lambda h, w: (3, 5, 3)),
    "chain": (
        lambda fn, x: fn.flip(fn.resize(fn.brightness(x, brightness=2.0), resize_x=10, resize_y=4)),
        lambda h, w: (4, 10, 3),
    ),
}


def shapes_of(library, name, shapes, **kwargs):
    samples = [np.ones(s, "u1") for s in shapes]

    @library.pipeline_def(batch_size=len(shapes), num_threads=2, **kwargs)
    def pipe():
        return OPERATORS[name][0](library.fn, library.fn.external_source(lambda i: samples, layout="FHWC"))

    made = pipe()
    made.build()
    out = made.run()[0]
    if kwargs.get("device_id") is not None:
        out = out.as_cpu()
    return [np.array(out.at(i)).shape for i in range(len(shapes))]


@pytest.mark.parametrize("shapes", (SOME, NONE), ids=("some", "none"))
@pytest.mark.parametrize("name", OPERATORS)
def test_extents(name, shapes):
    becomes = OPERATORS[name][1]
    assert shapes_of(penstock, name, shapes) == [(f, *becomes(h, w)) for f, h, w, _ in shapes]


@pytest.mark.parametrize("shapes", (SOME, NONE), ids=("some", "none"))
@pytest.mark.parametrize("name", OPERATORS)
def test_as_dali(name, shapes):
    dali = pytest.importorskip("nvidia.dali", reason="the real DALI is not installed")
    assert shapes_of(dali, name, shapes, device_id=None) == shapes_of(penstock, name, shapes)


@pytest.mark.parametrize("shapes", (SOME, NONE), ids=("some", "none"))
def test_on_the_gpu(shapes):
    samples = [np.ones(s, "u1") for s in shapes]

    @penstock.pipeline_def(batch_size=len(shapes), num_threads=1, device_id=0)
    def pipe():
        x = penstock.fn.external_source(lambda i: samples, layout="FHWC").gpu()
        return penstock.fn.resize(penstock.fn.brightness(x, brightness=2.0), resize_x=10, resize_y=4)

    out = pipe().run()[0].as_cpu()
    assert [np.array(out.at(i)).shape for i in range(len(shapes))] == [(f, 4, 10, 3) for f, *_ in shapes]


def test_frames_without_arguments_have_no_extent():
    """Arguments per frame are empty for a sample without frames."""
    samples, angles = [np.ones(s, "u1") for s in SOME], [np.full(s[0], 90, "f4") for s in SOME]

    @penstock.pipeline_def(batch_size=len(SOME), num_threads=1)
    def pipe():
        x, by = (penstock.fn.external_source(lambda i, s=s: s, layout=k) for s, k in ((samples, "FHWC"), (angles, "F")))
        return penstock.fn.rotate(x, angle=by)

    out = pipe().run()[0]
    assert [out.at(i).shape for i in range(4)] == [(2, 6, 4, 3), (0, 0, 0, 0), (1, 5, 4, 3), (0, 0, 0, 0)]
