# SPDX-License-Identifier: Apache-2.0
"""Batches started by kept plans are, bit for bit, those that the rules plan."""

import gc
import weakref

import numpy as np
import pytest

from penstock import fn, pipeline_def, types
from penstock.core.rng import Random
from penstock.exec import gpu_chain, gpu_kept, gpu_plan, gpu_record
from penstock.pipeline import PipelineError

N = 5


def images(seed, dtype="u1", ndim=2, channels=3, lo=6, hi=12):
    r = np.random.default_rng(seed)
    shape = [(*r.integers(lo, hi, ndim), *([channels] if channels else [])) for _ in range(N)]
    return [(r.random(s) * 250).astype(dtype) for s in shape]


def columns(seed, low=0.0, high=1.0, shape=()):
    return list(np.random.default_rng(seed).uniform(low, high, (N, *shape)).astype("f4"))


class Feed:
    """Sources of a pipeline: for each, one list of samples per iteration."""

    def __init__(self, order):
        self.order = order

    def __call__(self, make, layout=None, device="gpu"):
        batches = {k: make(k) for k in self.order}
        kwargs = {"layout": layout} if layout else {}
        return fn.external_source(source=[batches[k] for k in self.order], device=device, **kwargs)


def run(define, order, monkeypatch, keeps=True):
    """The outputs of all batches, as lists of arrays, and how many segments were started by a kept plan."""
    found, computed = [], []
    with monkeypatch.context() as m:
        find = gpu_kept.Kept.find

        def counting(self, key, ctx):
            plan = find(self, key, ctx) if keeps else None
            found.append(plan is not None)
            return plan

        m.setattr(gpu_kept.Kept, "find", counting)
        start, plan = gpu_record.GpuReplays.start, gpu_record.GpuReplay.plan
        m.setattr(gpu_record.GpuReplays, "start", lambda self, ctx, begin: keeps and start(self, ctx, begin))

        def replayed(self, ctx):
            computed.append(plan(self, ctx))
            return computed[-1]

        m.setattr(gpu_record.GpuReplay, "plan", replayed)
        pipe = pipeline_def(lambda: define(Feed(order)), batch_size=N, num_threads=2, device_id=0, seed=7)()
        results = []
        for _ in order:
            outputs = [out.as_cpu() if hasattr(out, "as_cpu") else out for out in pipe.run()]
            results.append([[np.array(out.at(i)) for i in range(len(out))] for out in outputs])
    return results, sum(found), sum(computed)


def check(define, order, monkeypatch, computes=None):
    want, none, _ = run(define, order, monkeypatch, keeps=False)
    got, kept, computed = run(define, order, monkeypatch)
    assert none == 0
    if computes is None:
        assert kept + computed, "no plan was kept"
    else:
        assert bool(computed) == computes, f"{computed} batches were planned by a record"
    for iteration, (a, b) in enumerate(zip(got, want)):
        for output, (x, y) in enumerate(zip(a, b)):
            for i, (p, q) in enumerate(zip(x, y)):
                np.testing.assert_array_equal(p, q, err_msg=f"batch {iteration}, output {output}, sample {i}")
    return want


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
    "nothing at all": lambda f: (
        y := fn.flip(f(lambda k: [np.zeros((0, 3, 1), "u1")] * N, "HWC")),
        fn.expand_dims(y, axes=[0]),
    ),
    "frames": lambda f: fn.resize(f(lambda k: images(k, ndim=3, lo=2, hi=7), "FHWC"), size=(5, 4)),
    "frames, whole": lambda f: fn.crop(f(lambda k: images(k, ndim=3, lo=2, hi=7), "FHWC"), crop=(1, 2)),
    "siblings": lambda f: tuple(fn.crop(x, crop=(i + 1, 3)) for x in [f(images, "HWC")] for i in range(4)),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_same_batches_again_and_others_between(name, monkeypatch):
    check(OPERATORS[name], ALTERNATING, monkeypatch)


def test_contents_follow_when_shapes_stay(monkeypatch):
    def define(f):
        return fn.flip(f(lambda k: [x + np.uint8(k) for x in images(0)], "HWC"))

    want = check(define, [0, 1, 2, 3, 4, 5], monkeypatch)
    assert (want[0][0][0] != want[5][0][0]).any()


def test_arguments_that_are_data(monkeypatch):
    """The shapes are the same, the columns are not, or not always."""

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


def test_a_rule_that_draws_is_not_kept_but_its_neighbours_are(monkeypatch):
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
    for keeps, into in ((False, want), (True, got)):
        with monkeypatch.context() as m:
            if not keeps:
                m.setattr(gpu_kept.Kept, "find", lambda self, key, ctx: None)
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


def test_errors_of_rules_come_between_kept_batches():
    """A sample that is too small for its crop, after plans of others were kept."""
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
    monkeypatch.setattr(gpu_kept, "_KEPT_PLANS", 2)
    check(OPERATORS["crop"], [0, 1, 2, 3] * 3 + [3, 3, 3], monkeypatch)


def test_batches_that_rules_planned_are_free_at_once(monkeypatch):
    """Nothing of a plan's making refers to itself: the memory of inputs would stay until the next collection."""
    segments = []
    plan = gpu_chain.GpuSegment.plan

    def planned(self):
        segments.append(weakref.ref(self.calls[0].a))
        return plan(self)

    monkeypatch.setattr(gpu_chain.GpuSegment, "plan", planned)
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
    assert len(segments) == 3
    assert not any(s() is not None for s in segments)


# Plans that records compute -------------------------------------------------------------------------------------------

NEVER_AGAIN = list(range(14))
MEAN = {"mean": [1.0, 2.0, 3.0], "std": [2.0, 3.0, 4.0]}


def coins(f):
    return f(lambda k: list(np.random.default_rng(k).integers(0, 2, N).astype("i4")), device="cpu")


COMPUTED = {
    "brightness": lambda f: fn.brightness(f(images, "HWC"), brightness=1.3, brightness_shift=0.1),
    "brightness by data": lambda f: fn.brightness(f(images, "HWC"), brightness=f(columns, device="cpu")),
    "contrast, to float": lambda f: fn.contrast(f(images, "HWC"), contrast=1.3, dtype=types.FLOAT),
    "resize": lambda f: fn.resize(f(images, "HWC"), size=(5, 7)),
    "resize, cubic": lambda f: fn.resize(f(images, "HWC"), resize_x=9, interp_type=types.INTERP_CUBIC),
    "resize, ragged": lambda f: fn.resize(f(images, "HWC"), resize_shorter=8.0),
    "resize by data": lambda f: fn.resize(
        f(images, "HWC"), resize_y=f(lambda k: columns(k, 3, 9), device="cpu"), dtype=types.FLOAT
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
    """What a record is of no use for, the rules plan."""

    def define(f):
        x = fn.resize(f(lambda k: [np.ascontiguousarray(x) for x in odd(k)], "HWC"), size=(4, 5))
        return x, fn.brightness(x, brightness=0.5)

    check(define, NEVER_AGAIN, monkeypatch)


def test_a_bad_sample_between_computed_batches():
    sizes = np.random.default_rng(3).integers(6, 12, (12, N, 2))
    sizes[8, 2] = 3, 7

    def source(i):
        return [np.zeros((*s, 3), "u1") for s in sizes[i]]

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


# Bugs that the tests above must notice -------------------------------------------------------------------------------


def unseen_contents(monkeypatch):
    """Plans are found again by shapes alone."""
    monkeypatch.setattr(
        gpu_kept.Order, "reads", lambda self, at, r=gpu_kept.Order.reads: [(e, False) for e, _ in r(self, at)]
    )


def unseen_shapes(monkeypatch):
    key = gpu_kept.Kept.key
    monkeypatch.setattr(gpu_kept.Kept, "key", lambda *a: None if (k := key(*a)) is None else k[:3])


def unwatched(monkeypatch):
    """A plan that depends on random numbers passes for one that doesn't."""
    monkeypatch.setattr(gpu_chain, "Watched", type("Blind", (Random,), {"read": False, "__init__": _copy}))


def _copy(self, random):
    Random.__init__(self, random.key, random.epoch, random.position)


def unpatched_positions(monkeypatch):
    monkeypatch.setattr(gpu_plan.Image, "column", lambda self, *a: None)


def unexpected(monkeypatch):
    """A record is taken for good whatever the launches were chosen by."""
    monkeypatch.setattr(gpu_record, "expect", lambda *a: "")


def unread_shapes(monkeypatch):
    """Extents of the first batch stand for those of all."""
    take_in = gpu_record.GpuRecord.input

    def once(self, e, batch):
        rows = take_in(self, e, batch)
        self._calls.pop()
        return rows

    monkeypatch.setattr(gpu_record.GpuRecord, "input", once)


PLANTED = [
    (unexpected, test_odd_batches_between, (lambda k: images(k, channels=1 if k >= 6 else 3),)),
    (unread_shapes, test_sizes_that_never_come_again, ("resize",)),
    (unseen_contents, test_arguments_that_are_data, ()),
    (unseen_shapes, test_same_batches_again_and_others_between, ("crop",)),
    (unwatched, test_a_rule_that_draws_is_not_kept_but_its_neighbours_are, ()),
    (unpatched_positions, test_random_numbers_are_those_of_the_batch, ("noise.gaussian",)),
]


@pytest.mark.parametrize("plant, test, arguments", PLANTED, ids=[p[0].__name__ for p in PLANTED])
def test_planted_bugs_are_noticed(plant, test, arguments, monkeypatch):
    """Results of kept plans with the bug against those of the rules without."""
    real = run

    def planted(define, order, patch, keeps=True):
        with monkeypatch.context() as m:
            if keeps:
                plant(m)
            return real(define, order, patch, keeps)

    monkeypatch.setitem(globals(), "run", planted)
    with pytest.raises((AssertionError, PipelineError)) as e:
        test(*arguments, monkeypatch)
    assert "no plan was kept" not in str(e.value)
