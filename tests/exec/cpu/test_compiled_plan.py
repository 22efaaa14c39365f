# SPDX-License-Identifier: Apache-2.0
"""Plans made by programs are the same as those made by rules: for other images, other arguments, bad samples."""

import numpy as np
import pytest

from encoded_images import encode, mixed, photograph
from penstock import fn, pipeline_def, types
from penstock.core import plan_memory

N, BATCHES = 6, 14


def pictures(iteration, mode="RGB"):
    rng = np.random.default_rng(iteration)
    sizes = rng.integers(20, 90, (N, 2)).tolist()
    return [encode(photograph(i, h, w, mode), "JPEG") for i, (h, w) in enumerate(sizes)]


def whole(x):
    return [x]


def val(x):
    x = fn.resize(x, resize_shorter=40)
    return [fn.crop_mirror_normalize(x, crop=(32, 30), mean=[9.0, 8.0, 7.0], std=[2.0])]


def drawn(x):
    small = fn.resize(x, resize_x=fn.random.uniform(range=(20, 70)), resize_y=33, interp_type=types.INTERP_CUBIC)
    place, mirror = fn.random.uniform(range=(0, 1)), fn.random.coin_flip()
    return [small, fn.crop_mirror_normalize(small, crop=(30, 20), crop_pos_x=place, mirror=mirror)]


def padded(x):
    out_of_bounds = fn.crop_mirror_normalize(x, crop=(60, 60), out_of_bounds_policy="pad", fill_values=[3.0])
    return [out_of_bounds, fn.crop_mirror_normalize(x, crop=(10, 10), pad_output=True, dtype=types.UINT8)]


def region(x):
    return [fn.resize(x, size=(0, 31), roi_start=(0.1, 0.2), roi_end=(0.9, 0.7), roi_relative=True, max_size=50)]


def filters(x):
    chosen = fn.cast(fn.random.uniform(values=[0, 1, 3]), dtype=types.INT32)
    return [fn.resize(x, size=(20, 30), interp_type=fn.reinterpret(chosen, dtype=types.INTERP_TYPE))]


def run(steps, source, on_error="raise"):
    """All outputs of all batches as arrays, kept until the end, as returned outputs must not change."""

    @pipeline_def(batch_size=N, num_threads=2, device_id=None, seed=5, on_error=on_error)
    def pipe():
        files = fn.external_source(source, batch_info=False)
        return tuple(steps(fn.decoders.image(files, output_type=types.RGB)))

    p = pipe()
    batches = [p.run() for _ in range(BATCHES)]
    return [[o.at(i) for o in outputs for i in range(len(o))] for outputs in batches], [
        [o.shape() for o in outputs] for outputs in batches
    ]


@pytest.fixture
def by_program(monkeypatch):
    """Counts batches planned by programs, and failed attempts."""
    counts = {True: 0, False: 0}
    original = plan_memory.TracedPlan.refill

    def counted(self, ctx):
        result = original(self, ctx)
        counts[result] += 1
        return result

    monkeypatch.setattr(plan_memory.TracedPlan, "refill", counted)
    return counts


def by_rules(monkeypatch, *args, **kwargs):
    with monkeypatch.context() as m:
        m.setenv("PENSTOCK_PLAN", "rules")
        return run(*args, **kwargs)


def check(ours, theirs):
    (pixels, shapes), (expected, expected_shapes) = ours, theirs
    assert shapes == expected_shapes
    for a, b in zip(pixels, expected):
        assert len(a) == len(b)
        for x, y in zip(a, b):
            np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("steps", [whole, val, drawn, padded, region, filters], ids=lambda f: f.__name__)
def test_same_as_by_rules(steps, by_program, monkeypatch):
    ours = run(steps, pictures)
    if steps is not filters:
        assert by_program[True] > BATCHES // 2
    check(ours, by_rules(monkeypatch, steps, pictures))


def test_bad_samples_take_the_rules(by_program, monkeypatch):
    def source(i):
        samples = pictures(i)
        if i % 4 == 3:
            samples[i % N] = np.frombuffer(b"no picture", "u1")
        return samples

    ours = run(val, source, on_error="skip")
    assert by_program[True] and by_program[False]
    check(ours, by_rules(monkeypatch, val, source, on_error="skip"))


def test_errors_name_the_sample():
    def source(i):
        samples = pictures(i)
        if i == 8:
            samples[2] = samples[2][:40]
        return samples

    with pytest.raises(RuntimeError, match=r"decoders\.image(.|\n)*Sample 2 of iteration 8"):
        run(val, source)


def test_stored_channels(by_program, monkeypatch):
    """Python code depends on the channels, so other channels than the traced ones require the rules."""

    def source(i):
        return pictures(i) if i % 5 else mixed()[:N]

    def stored(x):
        return [fn.crop_mirror_normalize(x, crop=(16, 16), mean=[1.0], std=[2.0])]

    def run_any(steps, source):
        @pipeline_def(batch_size=N, num_threads=2, device_id=None)
        def pipe():
            files = fn.external_source(source, batch_info=False)
            return tuple(steps(fn.decoders.image(files, output_type=types.ANY_DATA)))

        p = pipe()
        return [[o.at(i) for o in p.run() for i in range(N)] for _ in range(BATCHES)]

    ours = run_any(stored, source)
    assert by_program[True] and by_program[False]
    monkeypatch.setenv("PENSTOCK_PLAN", "rules")
    for a, b in zip(ours, run_any(stored, source)):
        for x, y in zip(a, b):
            np.testing.assert_array_equal(x, y)
