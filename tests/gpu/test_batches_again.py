# SPDX-License-Identifier: Apache-2.0
"""Repeated batches, unchanged or with some changes, are bit for bit the same as with rules."""

import gc
import weakref

import numpy as np
import pytest
from planned_batches import Feed, N, check, columns, images, planted

from penstock import fn, pipeline_def, types
from penstock.core import plan_cache, plan_memory
from penstock.exec.gpu import chain as gpu_chain
from penstock.pipeline import PipelineError

AGAIN = [0] * 8
ALTERNATING = [0, 1, 0, 1, 2, 0, 1, 2, 0, 3, 1, 0, 2, 1]

OPERATORS = {
    "brightness": lambda f: fn.brightness(f(images, "HWC"), brightness=1.3, brightness_shift=0.1),
    "color_twist": lambda f: fn.color_twist(f(images, "HWC"), hue=20.0, saturation=1.2, contrast=0.9),
    "crop": lambda f: fn.crop(f(images, "HWC"), crop=(4, 5), crop_pos_x=0.3),
    "crop_mirror_normalize": lambda f: fn.crop_mirror_normalize(
        f(images, "HWC"), crop=(4, 5), mean=[1.0, 2.0, 3.0], std=[2.0, 3.0, 4.0], mirror=1
    ),
    "slice": lambda f: fn.slice(f(images, "HWC"), rel_start=(0.1, 0.2), rel_shape=(0.5, 0.6), axes=(0, 1)),
    "flip": lambda f: fn.flip(f(images, "HWC"), horizontal=1, vertical=1),
    "pad": lambda f: fn.pad(f(images, "HWC"), axes=(0, 1), align=(4,), fill_value=3.0),
    "resize": lambda f: fn.resize(f(images, "HWC"), size=(5, 7)),
    "resize, then crop": lambda f: fn.crop(fn.resize(f(images, "HWC"), resize_shorter=8.0), crop=(5, 5)),
    "rotate": lambda f: fn.rotate(f(images, "HWC"), angle=30.0, fill_value=1.0),
    "warp_affine": lambda f: fn.warp_affine(f(images, "HWC"), matrix=[0.9, 0.2, 1.0, -0.1, 0.8, 2.0]),
    "transpose": lambda f: fn.transpose(f(images, "HWC"), perm=(2, 0, 1)),
    "gaussian_blur": lambda f: fn.gaussian_blur(f(images, "HWC"), sigma=1.0),
    "normalize": lambda f: fn.normalize(f(images, "HWC"), axes=(0, 1)),
    "reductions.mean": lambda f: fn.reductions.mean(f(images, "HWC"), axes=(0, 1)),
    "equalize": lambda f: fn.equalize(f(images, "HWC")),
    "lookup_table": lambda f: fn.lookup_table(f(images, "HWC"), keys=[1, 2], values=[9.0, 8.0], dtype=types.UINT8),
    "arithmetic": lambda f: f(images, "HWC") * 0.5 + 3,
    "cat": lambda f: fn.cat(x := f(images, "HWC"), x, axis=1),
    "erase": lambda f: fn.erase(f(images, "HWC"), anchor=(1.0, 1.0), shape=(2.0, 3.0), fill_value=7.0),
    "one_hot": lambda f: fn.one_hot(f(lambda k: [x[..., 0] % 8 for x in images(k)]), num_classes=8),
    "coord_flip": lambda f: fn.coord_flip(f(lambda k: columns(k, shape=(4, 2))), layout="xy"),
    "reshape": lambda f: fn.reshape(f(images, "HWC"), shape=[-1]),
    "reshape, then cast": lambda f: fn.cast(fn.reshape(f(images, "HWC"), shape=[-1]), dtype=types.FLOAT),
    "expand_dims of what is made": lambda f: fn.expand_dims(fn.flip(f(images, "HWC")), axes=[0]),
    "both of two": lambda f: (y := fn.flip(f(images, "HWC")), fn.expand_dims(y, axes=[0])),
    "nothing at all": lambda f: fn.flip(f(lambda k: [np.zeros((0, 3, 1), "u1")] * N, "HWC")),
    "nothing at all, and a view of it": lambda f: (
        y := fn.flip(f(lambda k: [np.zeros((0, 3, 1), "u1")] * N, "HWC")),
        fn.expand_dims(y, axes=[0]),
    ),
    "frames": lambda f: fn.resize(f(lambda k: images(k, ndim=3, lo=2, hi=7), "FHWC"), size=(5, 4)),
    "frames, whole": lambda f: fn.crop(f(lambda k: images(k, ndim=3, lo=2, hi=7), "FHWC"), crop=(1, 2)),
    "siblings": lambda f: tuple(fn.crop(x, crop=(i + 1, 3)) for x in [f(images, "HWC")] for i in range(4)),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_same_batches_again_and_others_between(name, monkeypatch):
    check(OPERATORS[name], ALTERNATING, monkeypatch, computes=True)


def test_contents_follow_when_shapes_stay(monkeypatch):
    def define(f):
        return fn.flip(f(lambda k: [x + np.uint8(k) for x in images(0)], "HWC"))

    want = check(define, [0, 1, 2, 3, 4, 5], monkeypatch)
    assert (want[0][0][0] != want[5][0][0]).any()


def test_arguments_that_are_data(monkeypatch):
    """The shapes are the same, but the columns change."""

    def define(f):
        x = f(lambda k: images(0), "HWC")
        b = f(lambda k: columns(k // 2, 0.5, 1.5), device="cpu")
        return fn.brightness(x, brightness=b), fn.rotate(x, angle=b * 30.0)

    want = check(define, [0, 1, 2, 3, 0, 4, 1, 2, 0, 1, 2, 3], monkeypatch)
    assert (want[0][0][0] != want[2][0][0]).any()


def test_inputs_that_rules_look_into(monkeypatch):
    def define(f):
        x = f(lambda k: images(0), "HWC")
        start = f(lambda k: columns(k, 0.0, 0.3, (2,)), device="cpu")
        return fn.slice(x, start, f(lambda k: columns(9, 0.4, 0.5, (2,)), device="cpu"), axes=(0, 1))

    check(define, [0, 1, 0, 1, 0, 1, 2, 0, 1], monkeypatch)


RANDOM = {
    "random.uniform": lambda f: fn.random.uniform(device="gpu"),
    "random.uniform of a shape": lambda f: fn.random.uniform(device="gpu", shape=[70], dtype=types.UINT8),
    "random.normal": lambda f: fn.random.normal(f(images, "HWC"), device="gpu"),
    "random.coin_flip": lambda f: (fn.random.coin_flip(device="gpu"), fn.random.coin_flip(device="gpu", shape=[80])),
    "noise.gaussian": lambda f: fn.noise.gaussian(f(images, "HWC"), stddev=20.0),
    "noise.salt_and_pepper": lambda f: fn.noise.salt_and_pepper(f(images, "HWC"), prob=0.3),
    "noise.shot": lambda f: fn.noise.shot(f(images, "HWC"), factor=5.0),
    "jitter": lambda f: fn.jitter(f(images, "HWC")),
    "frames": lambda f: fn.noise.gaussian(f(lambda k: images(k, ndim=3, lo=2, hi=7), "FHWC"), stddev=20.0),
}


def _several(outputs):
    return outputs if isinstance(outputs, tuple) else (outputs,)


@pytest.mark.parametrize("name", RANDOM)
def test_random_numbers_are_those_of_the_batch(name, monkeypatch):
    want = check(lambda f: (*_several(RANDOM[name](f)), fn.flip(f(lambda k: images(0), "HWC"))), AGAIN, monkeypatch)
    assert any((np.asarray(a) != np.asarray(b)).any() for a, b in zip(want[4][0], want[5][0]))


def test_a_rule_that_draws_and_its_neighbour(monkeypatch):
    def define(f):
        x = f(lambda k: images(0), "HWC")
        return fn.random_resized_crop(x, size=(4, 4)), fn.slice(x, start=(1, 2), shape=(2, 3), axes=(0, 1))

    want = check(define, AGAIN, monkeypatch)
    assert (want[4][0][0] != want[5][0][0]).any()


def test_branches(monkeypatch):
    def define(f):
        x = f(lambda k: images(k % 2), "HWC")
        if fn.random.coin_flip(dtype=types.BOOL):
            y = fn.flip(x)
        else:
            y = fn.brightness(x, brightness=0.5)
        return y

    want, got = [], []
    for how, into in (("rules", want), ("", got)):
        with monkeypatch.context() as m:
            m.setenv("PENSTOCK_PLAN", how)
            pipe = pipeline_def(
                lambda: define(Feed([0, 1] * 6)),
                batch_size=N,
                num_threads=2,
                device_id=0,
                seed=7,
                enable_conditionals=True,
            )()
            for _ in range(12):
                out = pipe.run()[0].as_cpu()
                into.append([np.array(out.at(i)) for i in range(N)])
    for a, b in zip(got, want):
        for x, y in zip(a, b):
            np.testing.assert_array_equal(x, y)


def test_outputs_that_are_held_stay_as_they_are():
    pipe = pipeline_def(
        lambda: fn.flip(Feed(ALTERNATING)(images, "HWC")), batch_size=N, num_threads=2, device_id=0, seed=7
    )()
    held = [pipe.run()[0] for _ in ALTERNATING]
    for k, out in zip(ALTERNATING, held):
        for i, x in enumerate(images(k)):
            np.testing.assert_array_equal(np.asarray(out.as_cpu().at(i)), x[:, ::-1])


def test_errors_of_rules_come_between_batches():
    """A sample that is too small for its crop."""
    sizes = [(8, 8)] * 4 + [(3, 8)] + [(8, 8)] * 2

    def source(i):
        return [np.zeros((*sizes[i], 3), "u1") for _ in range(N)]

    def define():
        x = fn.external_source(source=source, layout="HWC", device="gpu")
        return fn.slice(x, start=(2, 2), shape=(4, 4), axes=(0, 1))

    pipe = pipeline_def(define, batch_size=N, num_threads=2, device_id=0, on_error="raise")()
    for i in range(6):
        if i == 4:
            with pytest.raises(PipelineError, match="fn.slice"):
                pipe.run()
        else:
            pipe.run()


def test_few_plans_are_kept(monkeypatch):
    monkeypatch.setattr(plan_cache, "_KEPT_ROWS", 2 * N)
    check(OPERATORS["crop"], [0, 1, 2, 3] * 3 + [3, 3, 3], monkeypatch)


def test_batches_that_rules_planned_are_free_at_once(monkeypatch):
    """Planning creates no reference cycles, which would keep the memory of inputs until the next garbage collection."""
    segments = []
    lay_out = gpu_chain.GpuChain.lay_out

    def laid_out(self, made, called):
        segments.append(weakref.ref(made))
        return lay_out(self, made, called)

    monkeypatch.setattr(gpu_chain.GpuChain, "lay_out", laid_out)
    pipe = pipeline_def(
        lambda: fn.flip(Feed([0, 1, 2])(images, "HWC")),
        batch_size=N,
        num_threads=1,
        device_id=0,
        prefetch_queue_depth=1,
    )()
    gc.collect()
    gc.disable()
    try:
        for _ in range(3):
            pipe.run()
    finally:
        gc.enable()
    assert len(segments) == 3  # the third batch is traced
    assert not any(s() is not None for s in segments)


# Bugs that the tests above must detect -------------------------------------------------------------------------------


def forgetful(monkeypatch):
    """Programs don't get the current batch's data."""
    finish = plan_memory.TracedPlan.finish

    def without(self):
        finish(self)
        self._given = []

    monkeypatch.setattr(plan_memory.TracedPlan, "finish", without)


PLANTED = [
    (forgetful, test_arguments_that_are_data, ()),
    (forgetful, test_inputs_that_rules_look_into, ()),
    (forgetful, test_random_numbers_are_those_of_the_batch, ("noise.gaussian",)),
]


@pytest.mark.parametrize("plant, test, arguments", PLANTED, ids=[p[1].__name__ for p in PLANTED])
def test_planted_bugs_are_noticed(plant, test, arguments, monkeypatch):
    with pytest.raises((AssertionError, PipelineError)) as e:
        planted(plant, test, arguments, monkeypatch)
    assert "planned by a program" not in str(e.value)


def test_the_rules_plan_every_batch_if_the_environment_says_so(monkeypatch):
    monkeypatch.setenv("PENSTOCK_PLAN", "rules")
    pipe = pipeline_def(
        lambda: fn.flip(Feed([0, 0, 0, 1, 2, 3, 4, 5])(images, "HWC")), batch_size=N, num_threads=1, device_id=0
    )()
    for _ in range(8):
        pipe.run()
    (chain,) = [c for (c,) in pipe._plan.chains.values() if isinstance(c, gpu_chain.GpuChain)]
    assert chain.plans.counts == {"by program": 0, "by rules": 8}
