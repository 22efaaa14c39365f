# SPDX-License-Identifier: Apache-2.0
"""Conditionals inside chains: joined stages give the same results as separate ones."""

from pathlib import Path

import numpy as np
import pytest

from penstock import fn, pipeline_def, types
from penstock.auto_aug import rand_augment
from penstock.core.batch import Batch
from penstock.exec import plan as plan_module

PHOTOS = sorted(map(str, (Path(__file__).parents[3] / "examples" / "data").rglob("*.jpg")))[:12]
SHAPES = [(20, 31, 3), (9, 8, 3), (1, 1, 3), (13, 40, 3), (6, 6, 3), (30, 7, 3)]
N = len(SHAPES)


size_of_batch = [N]


def images(i):
    rng = np.random.default_rng(i)
    return [rng.integers(0, 256, s, np.uint8) for s in SHAPES[: size_of_batch[0]]]


def fed(layout="HWC"):
    return fn.external_source(source=images, layout=layout)


def coins(i):
    """Some, all, none and one of the samples."""
    some = [[0, 1, 1, 0, 1, 0], [1] * N, [0] * N, [0, 0, 0, 1, 0, 0]][i % 4]
    return [np.array(c) for c in some[: size_of_batch[0]]]


def coin():
    return fn.external_source(source=coins)


def pipeline(define, size=N, **kwargs):
    return pipeline_def(define, batch_size=size, num_threads=2, seed=3, enable_conditionals=True, **kwargs)()


def run(define, batches=4, size=N, **kwargs):
    p, out = pipeline(define, size, **kwargs), []
    for _ in range(batches):
        for o in p.run():
            out += [(o.layout(), np.array(o.at(i)), o.at(i).dtype) for i in range(len(o))]
    return out


def is_joined(define, size=N):
    """Whether chains are joined."""
    return "a chain for each branch" in pipeline(define, size).explain()


@pytest.fixture
def apart(monkeypatch):
    """A function that runs a definition with separate stages."""

    def run_apart(*args, **kwargs):
        with monkeypatch.context() as m:
            m.setattr(plan_module, "join_branches", lambda stages, outputs: stages)
            return run(*args, **kwargs)

    return run_apart


def same(a, b):
    assert len(a) == len(b)
    for (layout, x, dtype), (other_layout, y, other_dtype) in zip(a, b):
        assert (layout, dtype) == (other_layout, other_dtype)
        np.testing.assert_array_equal(x, y)


# Joined. ------------------------------------------------------------------------------------------------------


def crop_behind():
    x = fed()
    if coin() == 1:
        x = fn.brightness(x, brightness=1.7)
    else:
        x = fn.contrast(x, contrast=0.4)
    return fn.crop_mirror_normalize(x, crop=(1, 1), mean=[10.0, 20.0, 30.0])


def chain_before():
    x = fn.resize(fn.flip(fed()), size=[16, 17])
    if coin() == 1:
        x = fn.rotate(x, angle=20.0, keep_size=True, fill_value=0)
    return x


def chains_around():
    x = fn.resize(fed(), size=[16, 17])
    if coin() == 1:
        y = fn.flip(fn.rotate(x, angle=20.0, keep_size=True, fill_value=0))
    else:
        y = x
    return fn.crop(y, crop=(5, 6))


def data_per_sample():
    """Arguments that are data before, inside and after the conditional."""
    angle, crop_x = fn.random.uniform(range=[-90.0, 90.0]), fn.random.uniform(range=[0.0, 1.0])
    x = fn.brightness(fn.resize(fed(), size=[12, 13]), brightness=fn.random.uniform(range=[0.5, 1.5]))
    if coin() == 1:
        x = fn.rotate(x, angle=angle, fill_value=3, keep_size=True)
    else:
        x = fn.flip(x, horizontal=fn.random.coin_flip())
    return fn.crop(x, crop=(7, 7), crop_pos_x=crop_x), angle, crop_x


def random_inside():
    x = fn.resize(fed(), size=[12, 13])
    if coin() == 1:
        x = fn.random_resized_crop(x, size=[9, 9])
    else:
        x = fn.random_resized_crop(x, size=[9, 9], random_area=[0.1, 0.2])
    return fn.crop_mirror_normalize(x, mirror=fn.random.coin_flip())


def two_variables():
    x, y = fed(), fed()
    if coin() == 1:
        x, y = fn.flip(x), fn.brightness(y, brightness=0.5)
    else:
        x = fn.brightness(x, brightness=0.5)
    return x * 2 + y


def ragged_outputs():
    x = fn.brightness(fed(), brightness=1.1)
    if coin() == 1:
        x = fn.crop(x, crop=(1, 1))
    else:
        x = fn.flip(x)
    return x


def other_types_inside():
    x = fn.flip(fed())
    if coin() == 1:
        y = fn.cast(x, dtype=types.FLOAT) * 0.5
    else:
        y = fn.cast(fn.flip(x), dtype=types.FLOAT)
    return fn.crop(y, crop=(1, 1))


def one_after_the_other():
    x = fn.flip(fed())
    if coin() == 1:
        x = fn.brightness(x, brightness=0.5)
    x = fn.contrast(x, contrast=0.7)
    if coin() == 0:
        x = fn.flip(x, vertical=1)
    return fn.crop(x, crop=(1, 1))


def nested():
    x = fn.flip(fed())
    c = coin()
    if c == 1:
        if fn.random.coin_flip() == 1:
            x = fn.brightness(x, brightness=0.5)
        else:
            x = fn.contrast(x, contrast=0.5)
    return fn.crop(x, crop=(1, 1))


def three_ways():
    c = fn.external_source(source=lambda i: [np.array((i + j * j) % 3) for j in range(size_of_batch[0])])
    x = fn.resize(fed(), size=[12, 13])
    if c == 0:
        x = fn.brightness(x, brightness=0.5)
    elif c == 1:
        x = fn.rotate(x, angle=30.0, keep_size=True)
    return fn.crop(x, crop=(5, 5))


def nested_data():
    """Arguments and images from every scope around, and a chain between the conditionals."""
    a, b, c = (fn.random.uniform(range=[0.5, 1.5]) for _ in range(3))
    x, y = fn.resize(fed(), size=[12, 13]), fn.resize(fed(), size=[12, 13])
    if coin() == 1:
        x = fn.brightness(x, brightness=a)
        if fn.random.coin_flip() == 1:
            x = fn.contrast(fn.brightness(x, brightness=b), contrast=a)
        else:
            x = x + y
            x = fn.cast(x, dtype=types.UINT8)
        x = fn.brightness(x, brightness=b)
    else:
        x = fn.flip(y)
    return fn.brightness(x, brightness=c)


def two_outputs():
    x, y = fed(), fed()
    if coin() == 1:
        x, y = fn.flip(x), fn.brightness(y, brightness=0.5)
    else:
        x = fn.brightness(x, brightness=0.5)
    return x * 2 + y, x


def noise():
    x = fn.resize(fed(), size=[12, 13])
    x = fn.cast(x + fn.random.normal(x, stddev=20.0), dtype=types.UINT8)
    if coin() == 1:
        x = fn.cast(x + fn.random.uniform(x, range=[0.0, 9.0]), dtype=types.UINT8)
    return fn.crop(x, crop=(5, 5))


def augmented():
    x = fn.random_resized_crop(fed(), size=[12, 13])
    if coin() == 1:
        x = rand_augment.rand_augment(x, n=2, m=9)
    else:
        x = fn.flip(x)
    return fn.crop_mirror_normalize(x, mirror=fn.random.coin_flip())


def decoded():
    jpegs, labels = fn.readers.file(files=PHOTOS, labels=list(range(len(PHOTOS))))
    x = fn.decoders.image(jpegs)
    if coin() == 1:
        x = fn.crop(x, crop=(60, 70), crop_pos_x=0.1)
    else:
        x = fn.resize(x, size=[60, 70])
    return fn.crop_mirror_normalize(x), labels


JOINED = [crop_behind, chain_before, chains_around, data_per_sample, random_inside, two_variables, ragged_outputs]
JOINED += [other_types_inside, one_after_the_other, decoded, nested, three_ways, nested_data, two_outputs]
JOINED += [noise, augmented]


# Not joined. ---------------------------------------------------------------------------------------------------------


def used_elsewhere():
    """The split value is also an output."""
    x = fn.flip(fed())
    if coin() == 1:
        y = fn.brightness(x, brightness=0.5)
    else:
        y = x
    return y, x


def five_ways():
    c = fn.external_source(source=lambda i: [np.array((i + j) % 5) for j in range(size_of_batch[0])])
    x = fn.flip(fed())
    if c == 0:
        x = fn.brightness(x, brightness=0.5)
    elif c == 1:
        x = fn.contrast(x, contrast=0.5)
    elif c == 2:
        x = fn.flip(x)
    elif c == 3:
        x = fn.brightness(x, brightness=1.5)
    return fn.crop(x, crop=(1, 1))


def condition_of_the_chain():
    x = fn.flip(fed())
    if fn.shapes(x)[0] > 10:
        x = fn.brightness(x, brightness=0.5)
    return fn.crop(x, crop=(1, 1))


def argument_of_the_chain():
    """A value computed in the chain before is an argument after the conditional."""
    x, a = fn.flip(fed()), fn.random.uniform(shape=[], range=[0.0, 1.0])
    if coin() == 1:
        a = fn.cast(a * 0.5, dtype=types.FLOAT)
    return fn.crop(x, crop=(1, 1), crop_pos_x=a), a


def whole_batches():
    x = fn.resize(fed(), size=[8, 8])
    if coin() == 1:
        x = fn.brightness(x, brightness=0.5)
    return fn.permute_batch(x, indices=fn.batch_permutation(seed=1))


NOT_JOINED = [five_ways, argument_of_the_chain]


@pytest.mark.parametrize(
    "define", [*JOINED, *NOT_JOINED, used_elsewhere, whole_batches, condition_of_the_chain], ids=lambda f: f.__name__
)
def test_as_stage_by_stage(define, apart, monkeypatch):
    monkeypatch.setattr(Batch, "guard_bytes", 64)
    same(run(define), apart(define))
    monkeypatch.setattr("test_joined.size_of_batch", [1])
    same(run(define, size=1), apart(define, size=1))


@pytest.mark.parametrize("define", JOINED, ids=lambda f: f.__name__)
def test_is_joined(define):
    assert is_joined(define)


@pytest.mark.parametrize("define", NOT_JOINED, ids=lambda f: f.__name__)
def test_is_not_joined(define):
    assert not is_joined(define)


def test_windows_go_through_to_the_decoder():
    lines = {line.split("(")[0].split()[-1]: line for line in pipeline(decoded).explain().splitlines() if "=" in line}
    assert "computes only the window that fn.crop or fn.resize reads" in lines["fn.decoders.image"]


def test_outputs_are_one_dense_block():
    (out,) = pipeline(chains_around).run()
    array = out.as_array()
    assert array.shape == (N, 5, 6, 3) and array.flags.c_contiguous and array.ctypes.data == out.at(0).ctypes.data


def test_sequences_go_stage_by_stage(apart):
    def define():
        x = fn.external_source(
            source=lambda i: [np.stack([x] * (2 + j % 2)) for j, x in enumerate(images(i))], layout="FHWC"
        )
        x = fn.flip(x)
        if coin() == 1:
            x = fn.brightness(x, brightness=0.5)
        return fn.crop(x, crop=(1, 1))

    same(run(define), apart(define))


def test_samples_keep_the_names_of_their_files():
    def define():
        jpegs, labels = fn.readers.file(files=PHOTOS)
        x = fn.decoders.image(jpegs)
        if coin() == 1:
            x = fn.flip(x)
        return fn.resize(x, size=[20, 30]), labels

    p = pipeline(define)
    for k in range(2):
        images, labels = p.run()
        assert [images[i].source_info() for i in range(N)] == PHOTOS[N * k : N * k + N]
        assert labels.as_array().ravel().tolist() == list(range(N * k, N * k + N))


def test_stats_know_every_operator():
    p = pipeline(chains_around)
    for _ in range(4):
        p.run()
    text = str(p.stats())
    assert all(name in text for name in ("resize", "rotate", "flip", "crop"))


def split_for_others_too():
    """A branch's input is split separately if an operator that is not joined also reads it."""
    x = fed()
    if coin() == 1:
        first, x = (
            fn.python_function(x, function=lambda a: a[:1, :1].copy(), output_layouts="HWC"),
            fn.brightness(x, brightness=1.7),
        )
    else:
        first, x = fn.crop(x, crop=(1, 1)), fn.contrast(x, contrast=0.4)
    return fn.crop_mirror_normalize(x, crop=(1, 1)), first


def test_splits_are_part_of_the_branches(apart):
    """They are not separate stages, unless other operators read their outputs."""
    assert "_conditional.split" not in pipeline(crop_behind).explain().split("a chain for each branch")[0]
    same(run(split_for_others_too, 5), apart(split_for_others_too, 5))
