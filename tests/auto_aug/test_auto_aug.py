# SPDX-License-Identifier: Apache-2.0
"""Automatic augmentation in pipelines: fusion into one operator, devices, threads, sequences, user-defined
augmentations. Steps are tested in tests/operators/augment, DALI's numbers in tests/conformance."""

import warnings

import numpy as np
import pytest

from penstock import fn, pipeline_def, types
from penstock.auto_aug import augmentations, auto_augment, rand_augment, trivial_augment
from penstock.auto_aug.core import Policy, augmentation, select, signed_bin

SHAPES = [(20, 31, 3), (9, 8, 3), (1, 1, 3), (13, 40, 3)] * 3


def images(i, frames=0):
    rng = np.random.default_rng(i)
    return [rng.integers(0, 256, (frames, *s) if frames else s, np.uint8) for s in SHAPES]


@augmentation(mag_range=(0, 60), randomly_negate=True)
def lighter(data, value):
    return fn.cast(data + value, dtype=types.UINT8)


@augmentation(mag_range=(0, 1))
def flipped_if_large(data, value):
    if value > 0.5:
        data = fn.flip(data)
    return data


def own_policy(x):
    steps = [[(lighter, 0.7, 3), (augmentations.rotate, 0.5, 9)], [(flipped_if_large, 1.0, 10)], [(lighter, 1.0, 10)]]
    return auto_augment.apply_auto_augment(Policy("own", 11, steps), x, fill_value=0)


def mixed_suite(x):
    suite = [lighter, *trivial_augment.get_trivial_augment_wide_suite(), flipped_if_large]
    return trivial_augment.apply_trivial_augment(suite, x, fill_value=0)


WAYS = {
    "auto": auto_augment.auto_augment,
    "auto-shape": lambda x: auto_augment.auto_augment(x, shape=[20, 20], fill_value=None),
    "reduced": lambda x: auto_augment.auto_augment(x, "reduced_image_net"),
    "cifar": lambda x: auto_augment.auto_augment(x, "reduced_cifar10", interp_type=types.INTERP_NN),
    "svhn": lambda x: auto_augment.auto_augment(x, "svhn", max_translate_abs=(5, 10)),
    "rand": lambda x: rand_augment.rand_augment(x, n=3, m=17),
    "rand-not-monotonic": lambda x: rand_augment.rand_augment(x, n=2, m=5, monotonic_mag=False, excluded=["rotate"]),
    "trivial": lambda x: trivial_augment.trivial_augment_wide(x, shape=[10, 10]),
    "own-policy": own_policy,
    "mixed-suite": mixed_suite,
}


def run(way, gpu=False, threads=2, seed=5, frames=0, batches=2, build=None):
    @pipeline_def(
        batch_size=len(SHAPES),
        num_threads=threads,
        seed=seed,
        device_id=0 if gpu else None,
        enable_conditionals=True,
    )
    def pipe():
        x = fn.external_source(source=lambda i: images(i, frames), layout="FHWC" if frames else "HWC")
        return WAYS[way](x.gpu() if gpu else x)

    p, out = pipe(), []
    for _ in range(batches):
        (o,) = p.run()
        o = o.as_cpu() if gpu else o
        out += [np.array(o.at(i)) for i in range(len(SHAPES))]
    return out


@pytest.mark.parametrize("way", WAYS)
def test_the_same_on_any_device_with_any_threads(way):
    one = run(way, threads=1)
    assert any((a.shape != b.shape) or (a != b).any() for a, b in zip(one, images(0)))
    for other in (run(way, threads=3), run(way, gpu=True)):
        for a, b in zip(one, other):
            np.testing.assert_array_equal(a, b)
    assert any((a != b).any() for a, b in zip(one, run(way, seed=6)))


@pytest.mark.parametrize("way", ["auto", "rand", "mixed-suite"])
def test_frames_of_a_sequence_are_changed_alike(way):
    sequences = run(way, frames=2, batches=1)
    again = run(way, frames=2, batches=1, gpu=True)
    for a, b in zip(sequences, again):
        np.testing.assert_array_equal(a, b)

    @pipeline_def(batch_size=200, num_threads=2, seed=5, enable_conditionals=True)
    def still():
        x = fn.external_source(source=lambda i: [np.stack([images(1)[0]] * 3)] * 200, layout="FHWC")
        return WAYS[way](x)

    (out,) = still().run()
    for i in range(200):
        assert (out.at(i) == out.at(i)[:1]).all()


def test_ready_made_augmentation_is_one_operator():
    for way in list(WAYS)[:8]:

        @pipeline_def(batch_size=2, num_threads=1)
        def pipe(way=way):
            return WAYS[way](fn.external_source(source=images, layout="HWC"))

        p = pipe()
        text = p.explain()
        assert text.count("augment") == 1 and "merge" not in text, text


def test_seeds():
    """The same explicit seed draws the same for an image and its mask."""

    @pipeline_def(batch_size=len(SHAPES), num_threads=1, seed=1)
    def pipe(a, b):
        x = fn.external_source(source=images, layout="HWC")
        return tuple(rand_augment.rand_augment(x, n=2, m=20, seed=s) for s in (a, b))

    same, other = pipe(3, 3).run(), pipe(3, 4).run()
    n = len(SHAPES)
    assert all((same[0].at(i) == same[1].at(i)).all() for i in range(n))
    assert any((other[0].at(i) != other[1].at(i)).any() for i in range(n))


def test_select_takes_what_the_index_says():
    ops = [augmentations.invert, lighter, augmentations.identity, augmentations.brightness]
    index = [0, 1, 2, 3, 1, 0, 3, 2]
    bins, signs = [2, 10, 4, 5, 0, 1, 10, 3], [0, 1, 0, 1, 0, 1, 0, 1]

    @pipeline_def(batch_size=8, num_threads=2, enable_conditionals=True)
    def pipe():
        def column(values):
            return fn.external_source(source=lambda i: [np.int32(v) for v in values])

        x = types.Constant(np.full((4, 5, 3), 90, np.uint8), layout="HWC")
        signed = signed_bin(column(bins), random_sign=column(signs))
        return select(ops, column(index), x, magnitude_bin=signed, num_magnitude_bins=11)

    (out,) = pipe().run()
    for i, k in enumerate(index):
        sign = 1 - 2 * signs[i]
        want = [165, 90 + sign * bins[i] * 6, 90, round(90 * (1 + sign * bins[i] * 0.09))][k]
        assert (out.at(i) == want).all(), (i, out.at(i).flat[0], want)


def test_a_bin_without_a_sign_warns():
    @pipeline_def(batch_size=1)
    def pipe():
        return augmentations.rotate(
            fn.external_source(source=images, layout="HWC"), magnitude_bin=2, num_magnitude_bins=3
        )

    with pytest.warns(Warning, match="signed_bin"):
        pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("error")

        @pipeline_def(batch_size=1)
        def quiet():
            x = fn.external_source(source=images, layout="HWC")
            return augmentations.solarize(x, magnitude_bin=2, num_magnitude_bins=3)

        quiet()


def test_names_in_a_policy_are_made_unique():
    other = augmentations.rotate.augmentation((0, 90))
    p = Policy("p", 11, [[(augmentations.rotate, 1.0, 1)], [(other, 0.5, 2), (augmentations.invert, 0.5, None)]])
    assert list(p.augmentations) == ["0__rotate", "1__rotate", "2__invert"]
    assert "0__rotate" in repr(p) and p.name == "p"


ERRORS = {
    "what is accepted": (
        lambda x: auto_augment.auto_augment(x, "cifar"),
        ValueError,
        "one of 'image_net', 'reduced_image_net', 'svhn', 'reduced_cifar10'; got 'cifar'",
    ),
    "what to use": (
        lambda x: rand_augment.rand_augment(x, 2, 3, max_translate_rel=0.5),
        ValueError,
        "`max_translate_rel` cannot be used without image shapes; use `max_translate_abs`",
    ),
    "where a shape comes from": (
        lambda x: rand_augment.apply_rand_augment([augmentations.translate_y], x, 1, 1),
        ValueError,
        r"`translate_y` requires `shape` argument.*fn\.peek_image_shape",
    ),
    "the range of bins": (lambda x: rand_augment.rand_augment(x, 2, 31), ValueError, r"from `\[0, 30\]`, got 31"),
    "names there are": (
        lambda x: trivial_augment.trivial_augment_wide(x, excluded=["turn"]),
        ValueError,
        "`turn` was specified in `excluded`, but .* it has translate_x, translate_y, shear_x",
    ),
    "unused": (
        lambda x: rand_augment.apply_rand_augment([augmentations.invert], x, 1, 1, angle=3),
        Exception,
        "none of the augmentations takes `angle`",
    ),
}


@pytest.mark.parametrize("what", ERRORS)
def test_errors_say(what):
    define, exception, text = ERRORS[what]

    @pipeline_def(batch_size=1)
    def pipe():
        return define(fn.external_source(source=images, layout="HWC"))

    with pytest.raises(exception, match=text):
        pipe()
