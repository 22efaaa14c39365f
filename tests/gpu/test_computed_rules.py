# SPDX-License-Identifier: Apache-2.0
"""Operators whose plans on the GPU a record computes give what the rules give."""

import pytest
from planned_batches import check, planted

from penstock import fn, types
from penstock.exec import gpu_record
from penstock.gpu import decided
from penstock.pipeline import PipelineError
from replayed_cases import CASES, images

NEVER_AGAIN = list(range(14))


@pytest.mark.parametrize("name", CASES)
def test_same_as_by_rules(name, monkeypatch):
    def define(feed):
        def f(make, layout=None, side=False):
            layout = layout or ("HWC" if make(0)[0].ndim == 3 and not side else None)
            return feed(make, layout, device="cpu" if side else "gpu")

        return CASES[name](f)

    check(define, NEVER_AGAIN, monkeypatch, computes=True)


def wide(k):
    """Pictures whose runs of elements are long enough that a companion chooses by them."""
    return images(k, lo=14, hi=18, channels=3 if k < 6 else (2, 3)[k % 2])


def operand(k):
    """Of the shape of the pictures, or one number each."""
    return [x if k < 6 or k % 2 else x[:1, :1, :1].copy() for x in wide(k)]


ODD = {
    "sums": lambda f: fn.reductions.sum(f(wide, "HWC"), axes=[0, 1]),
    "normalize": lambda f: fn.normalize(f(wide, "HWC"), axes=[0, 1]),
    "arithmetic": lambda f: f(wide, "HWC") + f(operand, "HWC"),
    "cat": lambda f: fn.cat(x := f(wide, "HWC"), x, axis=2),
    "gaussian_blur": lambda f: fn.gaussian_blur(f(wide, "HWC"), sigma=0.6),
    "erase": lambda f: fn.erase(f(wide, "HWC"), anchor=[3.0, 2.0], shape=[5.0, 6.0]),
}


@pytest.mark.parametrize("name", ODD)
def test_batches_that_need_other_launches(name, monkeypatch):
    check(ODD[name], NEVER_AGAIN, monkeypatch)


def unexpected(monkeypatch):
    """A record is taken for good whatever a companion chose by."""
    monkeypatch.setattr(decided, "_expect_phases", lambda *a: "")
    monkeypatch.setattr(decided, "_expect_tensor", lambda *a: "")


@pytest.mark.parametrize("name", ["arithmetic", "sums", "normalize"])
def test_planted_bugs_are_noticed(name, monkeypatch):
    with pytest.raises((AssertionError, PipelineError)):
        planted(unexpected, test_batches_that_need_other_launches, (name,), monkeypatch)


def frames(x):
    return fn.expand_dims(x, axes=[0], new_axis_names="F")


def pixels(k):
    return images(k, channels=1)


RENAMED = {
    "reshape": lambda f: fn.reshape(f(wide, "HWC"), rel_shape=[1, -1], layout="HW"),
    "reshape, src_dims": lambda f: fn.reshape(f(wide, "HWC"), src_dims=[1, -1, 0, 2]),
    "reshape behind": lambda f: fn.reshape(fn.resize(f(wide, "HWC"), resize_shorter=7.0), shape=[-1]),
    "reshape between": lambda f: fn.cast(
        fn.reshape(fn.flip(f(wide, "HWC")), rel_shape=[1, -1], layout="HW"), dtype=types.FLOAT
    ),
    "reshape in front": lambda f: fn.reductions.sum(fn.reshape(f(wide, "HWC"), rel_shape=[1, -1]), axes=[0]),
    "of an inner tensor": lambda f: fn.reductions.sum(
        fn.reshape(fn.resize(f(wide, "HWC"), resize_shorter=7.0), rel_shape=[1, -1]), axes=[0]
    ),
    "expand_dims": lambda f: (x := fn.flip(f(wide, "HWC")), frames(x)),
    "expand_dims, twice": lambda f: frames(
        fn.expand_dims(fn.crop(f(wide, "HWC"), crop=[5, 6]), axes=[1, 3], new_axis_names="XY")
    ),
    "squeeze": lambda f: fn.squeeze(fn.brightness(f(pixels, "HWC"), brightness=1.2), axes=[2]),
    "of an input": lambda f: (x := f(pixels, "HWC"), fn.squeeze(x, axes=[2]), fn.flip(x))[1:],
    "squeeze by name": lambda f: fn.squeeze(f(pixels, "HWC"), axis_names="C"),
    "reinterpret": lambda f: fn.reinterpret(fn.cast(f(wide, "HWC"), dtype=types.INT16), dtype=types.UINT8),
    "per_frame": lambda f: fn.per_frame(fn.cast(f(wide, "HWC"), dtype=types.FLOAT), replace=True),
}


@pytest.mark.parametrize("name", RENAMED)
def test_what_is_seen_in_the_memory_of_others(name, monkeypatch):
    check(RENAMED[name], NEVER_AGAIN, monkeypatch, computes=True)


def misplaced(monkeypatch):
    """All samples begin where the first does."""
    renamed = gpu_record.RecordedSegment._renamed
    monkeypatch.setattr(gpu_record.RecordedSegment, "_renamed", lambda self, e, whole: renamed(self, e, None))


@pytest.mark.parametrize("name", ["of an inner tensor", "squeeze"])
def test_samples_that_are_misplaced_are_noticed(name, monkeypatch):
    with pytest.raises((AssertionError, PipelineError)):
        planted(misplaced, test_what_is_seen_in_the_memory_of_others, (name,), monkeypatch)
