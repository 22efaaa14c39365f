# SPDX-License-Identifier: Apache-2.0
"""Batches with plans computed by a record are bit for bit the same as with rules."""

import numpy as np
import pytest
from planned_batches import Feed, N, check, columns, images, planted

from more_traced_cases import FRAMES, LATER
from penstock import fn, pipeline_def, types
from penstock.core import plan_memory, program
from penstock.exec.cpu import plan as cpu_plan
from penstock.exec.gpu import chain as gpu_chain
from penstock.exec.gpu import plan as gpu_plan
from penstock.pipeline import PipelineError

NEVER_AGAIN = list(range(14))
MEAN = {"mean": [1.0, 2.0, 3.0], "std": [2.0, 3.0, 4.0]}


def coins(f):
    return f(lambda k: list(np.random.default_rng(k).integers(0, 2, N).astype("i4")), device="cpu")


def blurred(x):
    return fn.gaussian_blur(x, window_size=3)


COMPUTED = {
    "inner tensors": lambda f: fn.cat(*(x := [blurred(f(images, "HWC"))]), blurred(*x), blurred(blurred(*x)), axis=2),
    "brightness": lambda f: fn.brightness(f(images, "HWC"), brightness=1.3, brightness_shift=0.1),
    "brightness by data": lambda f: fn.brightness(f(images, "HWC"), brightness=f(columns, device="cpu")),
    "contrast, to float": lambda f: fn.contrast(f(images, "HWC"), contrast=1.3, dtype=types.FLOAT),
    "resize": lambda f: fn.resize(f(images, "HWC"), size=(5, 7)),
    "resize, cubic": lambda f: fn.resize(f(images, "HWC"), resize_x=9, interp_type=types.INTERP_CUBIC),
    "resize, ragged": lambda f: fn.resize(f(images, "HWC"), resize_shorter=8.0),
    "resize by data": lambda f: fn.resize(
        f(images, "HWC"), resize_y=f(lambda k: columns(k, 3, 9), device="cpu"), dtype=types.FLOAT
    ),
    "resize of the same images by data": lambda f: fn.resize(
        f(lambda _: images(0), "HWC"), resize_y=f(lambda k: columns(k, 3, 9), device="cpu")
    ),
    "planes": lambda f: fn.resize(
        f(lambda k: [np.ascontiguousarray(x.transpose(2, 0, 1)) for x in images(k)], "CHW"), size=(5, 7)
    ),
    "grey": lambda f: fn.resize(f(lambda k: images(k, channels=1), "HWC"), size=(5, 7)),
    "crop_mirror_normalize": lambda f: fn.crop_mirror_normalize(f(images, "HWC"), crop=(4, 5), mirror=coins(f), **MEAN),
    "whole images": lambda f: fn.crop_mirror_normalize(f(images, "HWC"), output_layout="HWC", **MEAN),
    "padded": lambda f: fn.crop_mirror_normalize(
        f(images, "HWC"), crop=(9, 10), out_of_bounds_policy="pad", fill_values=[7.0], dtype=types.FLOAT16, **MEAN
    ),
    "copy": lambda f: fn.copy(f(images, "HWC")),
    "cast": lambda f: fn.cast(f(images, "HWC"), dtype=types.FLOAT),
    "crop": lambda f: fn.crop(f(images, "HWC"), crop=(4, 5), crop_pos_x=0.3),
    "crop of a place that is data": lambda f: fn.crop(
        f(images, "HWC"), crop=(4, 5), crop_pos_y=f(columns, device="cpu")
    ),
    "crop, padded": lambda f: fn.crop(f(images, "HWC"), crop=(9, 0), out_of_bounds_policy="pad", fill_values=[7.0]),
    "flip": lambda f: fn.flip(f(images, "HWC"), vertical=1),
    "flip by data": lambda f: fn.flip(f(images, "HWC"), horizontal=coins(f)),
    "hue": lambda f: fn.hue(f(images, "HWC"), hue=40.0),
    "color_twist": lambda f: fn.color_twist(f(images, "HWC"), hue=20.0, saturation=1.2, contrast=0.9),
    "color_twist by data": lambda f: fn.color_twist(
        f(images, "HWC"), hue=(c := f(columns, device="cpu")), saturation=c, contrast=c, brightness=c
    ),
    "hsv by data": lambda f: fn.hsv(f(images, "HWC"), hue=f(lambda k: columns(k, -90, 90), device="cpu"), value=1.3),
    "brightness_contrast": lambda f: fn.brightness_contrast(f(images, "HWC"), brightness=1.2, contrast=0.9),
    "several": lambda f: fn.crop(
        fn.flip(fn.hue(fn.resize(f(images, "HWC"), resize_shorter=8.0), hue=9.0), horizontal=coins(f)), crop=(5, 4)
    ),
    "random_resized_crop": lambda f: fn.random_resized_crop(f(images, "HWC"), size=(4, 5)),
    "train": lambda f: fn.crop_mirror_normalize(
        fn.random_resized_crop(f(images, "HWC"), size=6), mirror=fn.random.coin_flip(), dtype=types.FLOAT, **MEAN
    ),
    "val": lambda f: fn.crop_mirror_normalize(
        fn.resize(f(images, "HWC"), resize_shorter=8.0), crop=(6, 6), mirror=coins(f), **MEAN
    ),
    "read twice": lambda f: (
        x := fn.resize(f(images, "HWC"), resize_shorter=8.0),
        fn.brightness(x, brightness=0.7),
        fn.crop_mirror_normalize(x, crop=(3, 3), **MEAN),
    )[1:],
}


@pytest.mark.parametrize("name", COMPUTED)
def test_sizes_that_never_come_again(name, monkeypatch):
    check(COMPUTED[name], NEVER_AGAIN, monkeypatch, computes=True)


@pytest.mark.parametrize(
    "odd",
    [
        lambda k: images(k, channels=1 if k % 3 == 2 else 3),
        lambda k: [x[..., : 1 + (i + k) % 3] for i, x in enumerate(images(k))] if k % 4 == 3 else images(k),
        lambda k: images(k, lo=1, hi=900) if k == 9 else images(k, lo=1, hi=30),
        lambda k: [np.zeros((0, 5, 3), "u1"), *images(k)[1:]] if k % 3 == 2 else images(k),
    ],
    ids=["other channels", "ragged channels", "large ones", "empty ones"],
)
def test_odd_batches_between(odd, monkeypatch):
    """Batches to which a record does not apply are planned by rules."""

    def define(f):
        x = fn.resize(f(lambda k: [np.ascontiguousarray(x) for x in odd(k)], "HWC"), size=(4, 5))
        return x, fn.brightness(x, brightness=0.5)

    check(define, NEVER_AGAIN, monkeypatch)


@pytest.mark.parametrize("name", [*FRAMES, *LATER])
def test_as_on_the_cpu(name, monkeypatch):
    def define(f):
        return {**FRAMES, **LATER}[name](
            lambda make, layout=None, side=False: f(make, layout, "cpu" if side else "gpu")
        )

    check(define, NEVER_AGAIN, monkeypatch)


def test_memory_of_inner_tensors_is_used_again(monkeypatch):
    """Five consecutive blurs; each reads the output of the previous one."""
    plans, plan_of = [], gpu_chain.GpuChain.plan_of
    monkeypatch.setattr(gpu_chain.GpuChain, "plan_of", lambda *a: plans.append(plan_of(*a)) or plans[-1])
    check(lambda f: blurred(blurred(blurred(blurred(blurred(f(images, "HWC")))))), NEVER_AGAIN, monkeypatch)
    assert {tuple(map(len, plan._inner)) for plan in plans} == {(2, 2)}


@pytest.mark.parametrize("operator", [fn.flip, fn.copy, blurred], ids=["flip", "copy", "gaussian_blur"])
def test_nothing_at_first(operator, monkeypatch):
    """A plan created for an empty batch is also valid for others."""

    def make(k):
        return images(k) if k > 3 else [x[:0] for x in images(k)]

    check(lambda f: operator(f(make, "HWC")), NEVER_AGAIN, monkeypatch, computes=None)


def test_the_report_says_where_plans_came_from():
    def pipe(order):
        p = pipeline_def(lambda: fn.flip(Feed(order)(images, "HWC")), batch_size=N, num_threads=2, device_id=0)()
        for _ in order:
            p.run()
        plans = p.stats()["plans"]
        assert plans.pop("untraceable") == {}
        return plans

    again, never = pipe([0] * 9), pipe(list(range(9)))
    for plans in (again, never):
        assert plans["by program"] > 4 and sum(plans.values()) == 9


def test_a_bad_sample_between_computed_batches():
    sizes = np.random.default_rng(3).integers(6, 12, (12, N, 2))
    sizes[8, 2] = 3, 7

    def source(i):
        return [np.zeros((*s, 3), "u1") for s in sizes[i % 12]]

    def define():
        x = fn.external_source(source=source, layout="HWC", device="gpu", batch=True)
        return fn.crop_mirror_normalize(x, crop=(5, 5), mean=[1.0], std=[2.0])

    pipe = pipeline_def(define, batch_size=N, num_threads=2, device_id=0, on_error="raise")()
    for i in range(12):
        if i == 8:
            with pytest.raises(PipelineError, match="Sample 2"):
                pipe.run()
        else:
            assert pipe.run()[0].as_cpu().at(0).shape == (3, 5, 5)


def unread_columns(monkeypatch):
    """Uses the arguments of the first batch for all."""
    finish = plan_memory.TracedPlan.finish

    def without(self):
        finish(self)
        self._given = []

    monkeypatch.setattr(plan_memory.TracedPlan, "finish", without)


def sizes_of_the_first(monkeypatch):
    """Each batch gets the memory required by the first batch of its plan."""
    placed, first = cpu_plan.Outputs.placed, {}
    monkeypatch.setattr(cpu_plan.Outputs, "placed", lambda self: first.setdefault(id(self), (self, [*placed(self)]))[1])


def shapes_of_the_first(monkeypatch):
    """Other shapes of inputs are not noticed."""
    always = property(lambda self: True, lambda self, value: None)
    monkeypatch.setattr(program.Program, "same_shapes", always, raising=False)


def shapes_of_the_first_arguments(monkeypatch):
    """Arguments that change the shapes of outputs are not noticed."""
    always = property(lambda self: True, lambda self, value: None)
    monkeypatch.setattr(plan_memory.TracedPlan, "_keeps_shapes", always, raising=False)


def one_slot(monkeypatch):
    """All inner tensors share the same memory."""
    real = gpu_plan.share_slots
    monkeypatch.setattr(gpu_plan, "share_slots", lambda steps: dict.fromkeys(real(steps), 0))


PLANTED = [
    (sizes_of_the_first, test_sizes_that_never_come_again, ("resize, ragged",)),
    (shapes_of_the_first, test_sizes_that_never_come_again, ("resize, ragged",)),
    (shapes_of_the_first_arguments, test_sizes_that_never_come_again, ("resize of the same images by data",)),
    (one_slot, test_sizes_that_never_come_again, ("inner tensors",)),
    (unread_columns, test_sizes_that_never_come_again, ("flip by data",)),
]


@pytest.mark.parametrize("plant, test, arguments", PLANTED, ids=[p[0].__name__ for p in PLANTED])
def test_planted_bugs_are_noticed(plant, test, arguments, monkeypatch):
    with pytest.raises((AssertionError, PipelineError)) as e:
        planted(plant, test, arguments, monkeypatch)
    assert "planned by a program" not in str(e.value)
