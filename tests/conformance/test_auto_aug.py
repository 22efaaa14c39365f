# SPDX-License-Identifier: Apache-2.0
"""Automatic augmentation against the real DALI: suites and policies, each augmentation with each magnitude and sign,
and how often each is drawn."""

import importlib
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from conformance import oracle, report

BINS = 11
PHOTOS = sorted((Path(__file__).parents[2] / "examples" / "data").rglob("*.jpg"))[:3]


def side(name):
    """The modules of one library."""
    pytest.importorskip("nvidia.dali", reason="the real DALI is not installed")
    root = {"penstock": "penstock", "dali": "nvidia.dali"}[name]
    names = ("auto_augment", "rand_augment", "trivial_augment", "augmentations", "core")
    found = {n: importlib.import_module(f"{root}.auto_aug.{n}") for n in names}
    top = {n: importlib.import_module(f"{root}.{n}") for n in ("fn", "types")}
    return SimpleNamespace(**found, **top, define=importlib.import_module(root).pipeline_def)


def suites(m):
    """(name, augmentation) of all suites and policies, with shifts in pixels and relative to the shape."""
    found = []
    for use_shape in (False, True):
        lists = {
            "rand": m.rand_augment.get_rand_augment_suite(use_shape),
            "rand-not-monotonic": m.rand_augment.get_rand_augment_non_monotonic_suite(use_shape),
            "trivial": m.trivial_augment.get_trivial_augment_wide_suite(use_shape),
        }
        policies = {
            "image_net": m.auto_augment.get_image_net_policy(use_shape),
            "cifar10": m.auto_augment.get_reduced_cifar10_policy(use_shape),
            "svhn": m.auto_augment.get_svhn_policy(use_shape),
        }
        if not use_shape:
            policies["reduced"] = m.auto_augment.get_reduced_image_net_policy()
        lists |= {name: list(p.augmentations.values()) for name, p in policies.items()}
        lists["defaults"] = [v for v in vars(m.augmentations).values() if type(v).__name__ == "Augmentation"]
        found += [
            (f"{suite}{'-shape' * use_shape}-{i}-{aug.name}", aug)
            for suite, augs in lists.items()
            for i, aug in enumerate(augs)
            if suite != "defaults" or not use_shape
        ]
    return found


def settings(aug):
    """The settings of an augmentation, as comparable values."""
    magnitudes = None if aug.mag_range is None else np.linspace(*aug.mag_range, BINS, dtype=np.float32)
    parameters = []
    for sign in (1, -1) if aug.randomly_negate else (1,):
        parameters += [np.asarray(aug.mag_to_param(sign * m)) for m in (() if magnitudes is None else magnitudes)]
    return (
        *(aug.name, tuple(aug.mag_range or ()), aug.randomly_negate, aug.param_device),
        *((p.astype("f8").tolist()) for p in parameters),
    )


def test_the_suites_have_dalis_magnitudes():
    ours, theirs = suites(side("penstock")), suites(side("dali"))
    assert [n for n, _ in ours] == [n for n, _ in theirs]
    for (name, a), (_, b) in zip(ours, theirs):
        assert settings(a) == settings(b), name


@pytest.mark.parametrize("name", ["image_net", "reduced_cifar10", "svhn", "reduced_image_net"])
def test_the_policies_are_dalis(name):
    def policy(m):
        p = getattr(m.auto_augment, f"get_{name}_policy")()
        return p.name, p.num_magnitude_bins, [[(a.name, prob, bin_) for a, prob, bin_ in s] for s in p.sub_policies]

    assert policy(side("penstock")) == policy(side("dali"))


@pytest.fixture(scope="module")
def pictures():
    """Photographs, noise, two levels, one value, and an image of one row."""
    from PIL import Image

    rng = np.random.default_rng(5)
    photos = [np.asarray(Image.open(p).convert("RGB").resize((61 + 8 * i, 47))) for i, p in enumerate(PHOTOS)]
    noise = rng.integers(0, 256, (33, 40, 3), np.uint8)
    levels = np.where(rng.random((20, 31, 1)) < 0.5, [10, 30, 50], [200, 100, 51]).astype("u1")
    return [*photos, noise, levels, np.full((9, 14, 3), 77, np.uint8), noise[:1]]


def apply(m, aug, images, layout, **kwargs):
    """Each image with each bin and sign, as the samples of one batch."""
    calls = [(x, b, s) for x in images for b in range(BINS) for s in (0, 1)]

    @m.define(batch_size=len(calls), num_threads=2, device_id=None, seed=1, enable_conditionals=True)
    def pipe():
        def column(values):
            return m.fn.external_source(source=lambda i: [np.int32(v) for v in values])

        x = m.fn.external_source(source=lambda i: [c[0] for c in calls], layout=layout)
        given = dict(kwargs)
        if "shape" in given:
            hw = [np.int64(c[0].shape[-3:-1]) for c in calls]
            given["shape"] = m.fn.external_source(source=lambda i: hw)
        bins = m.core.signed_bin(column([c[1] for c in calls]), random_sign=column([c[2] for c in calls]))
        return aug(x, magnitude_bin=bins, num_magnitude_bins=BINS, **given)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (out,) = pipe().run()
    return [np.array(out.at(i)) for i in range(len(calls))]


def compare(name, images, layout, share, least, **kwargs):
    """Values may differ by one step, for at most a `share` of an image's values, or `least` values."""
    results = []
    for which in ("dali", "penstock"):
        m = side(which)
        results.append(apply(m, dict(suites(m))[name], images, layout, **kwargs))
    t, wrong = report.tally(f"auto_aug.augmentations.{name.split('-')[-1]}"), oracle.NONE
    t.cases += 1
    for i, (want, got) in enumerate(zip(*results)):
        what = f"{name} {kwargs}, sample {i}"
        wrong = wrong or oracle._compare_arrays(want, got, oracle.Bound(steps=1), t, what)
        differ = np.count_nonzero(want != got)
        if not wrong and differ > max(share * want.size, least):
            wrong = f"{what}: {differ} of {want.size} values differ"
    if wrong:
        t.failures.append(wrong)
        pytest.fail(wrong, pytrace=False)


NAMES = [n for n, _ in suites(side("penstock"))] if importlib.util.find_spec("nvidia.dali") else []
WARPS = {"shear_x", "shear_y", "translate_x", "translate_y", "rotate"}


def bound_of(name):
    """Weighted sums near halves may be rounded to either side, as their order differs."""
    aug = name.split("-")[-1]
    return (0.1, 12) if aug in WARPS else (0.03, 4) if aug == "sharpness" else (0.001, 3)


def shape_of(name):
    m = side("penstock")
    required = m.core._args.get_required_kwargs(dict(suites(m))[name].op, 2)
    return {"shape": True} if "shape" in required else {}


@pytest.mark.filterwarnings("ignore:.*is now deprecated")
@pytest.mark.parametrize("name", NAMES)
def test_each_magnitude(name, pictures):
    compare(name, pictures, "HWC", *bound_of(name), **shape_of(name))


@pytest.mark.filterwarnings("ignore:.*is now deprecated")
@pytest.mark.parametrize("name", [n for n in NAMES if n.startswith(("trivial", "defaults"))])
def test_sequences(name, pictures):
    videos = [np.stack([p, p[::-1], p[:, ::-1]]) for p in pictures[1:5]]
    compare(name, videos, "FHWC", *bound_of(name), **shape_of(name))


@pytest.mark.parametrize("interp", ["INTERP_LINEAR", "INTERP_NN"])
@pytest.mark.parametrize("fill_value", [0, 255, None])
@pytest.mark.parametrize("name", [n for n in NAMES if n.startswith("trivial") and n.split("-")[-1] in WARPS])
def test_what_lies_outside(name, fill_value, interp, pictures):
    results = []
    for which in ("dali", "penstock"):
        m = side(which)
        kwargs = {"fill_value": fill_value, "interp_type": getattr(m.types, interp)} | shape_of(name)
        results.append(apply(m, dict(suites(m))[name], pictures, "HWC", **kwargs))
    for want, got in zip(*results):
        differ = (want != got).any(axis=-1)
        # For coordinates between two pixels, nearest neighbours differ by more than a step.
        assert interp == "INTERP_NN" or np.abs(want.astype("i4") - got).max() <= 1
        assert np.count_nonzero(differ) <= max(0.04 * differ.size, 12)


# Random choices, on images of a single value that identifies the augmentation. ----------------------------------------

ONE = np.full((2, 2, 3), 100, np.uint8)


def values(m, define, n=4000):
    """The value of the first pixel of each of n samples."""
    pipe = m.define(batch_size=n, num_threads=1, device_id=None, seed=7, enable_conditionals=True)(define)()
    (out,) = pipe.run()
    return np.array([np.asarray(out.at(i)).flat[0] for i in range(n)])


def ones(m):
    return m.fn.external_source(source=lambda i: ONE, batch=False, layout="HWC")


def made(m):
    """Augmentations that can be distinguished by their result for 100. Magnitudes change it by up to 10, with 11
    bins."""
    a = m.augmentations
    return [
        a.solarize_add.augmentation(mag_range=(0, 10)),
        a.brightness.augmentation(mag_range=(0.5, 0.6), randomly_negate=True, mag_to_param=lambda x: 1 + x),
        a.invert,
    ]


def trivial(m):
    return m.trivial_augment.apply_trivial_augment(made(m), ones(m), num_magnitude_bins=11)


def rand(m):
    return m.rand_augment.apply_rand_augment(made(m), ones(m), n=1, m=4, num_magnitude_bins=11)


def rand_twice(m):
    return m.rand_augment.apply_rand_augment(made(m), ones(m), n=2, m=4, num_magnitude_bins=11)


def own_policy(m):
    add, light, invert = made(m)
    steps = [[(add, 0.3, 2), (light, 0.9, 4)], [(invert, 1.0, None), (add, 0.5, 7)], [(light, 0.2, 0)], [(add, 1.0, 9)]]
    return m.auto_augment.apply_auto_augment(m.core.Policy("own", 11, steps), ones(m))


def with_one_of_the_users(m):
    @m.core.augmentation(mag_range=(0, 20), randomly_negate=True)
    def own(data, by):
        return m.fn.cast(data + by, dtype=m.types.UINT8)

    augs = [*made(m), own]
    return m.rand_augment.apply_rand_augment(augs, ones(m), n=2, m=4, num_magnitude_bins=11)


def policy_of_the_user(m):
    @m.core.augmentation(mag_range=(0, 20), randomly_negate=True)
    def own(data, by):
        if by > 0:
            data = m.fn.cast(data + by, dtype=m.types.UINT8)
        else:
            data = m.fn.cast(data - 1, dtype=m.types.UINT8)
        return data

    add, light, invert = made(m)
    steps = [[(own, 0.3, 2), (light, 0.9, 4)], [(invert, 1.0, None), (own, 0.5, 7)], [(light, 0.2, 0)]]
    return m.auto_augment.apply_auto_augment(m.core.Policy("own", 11, steps), ones(m))


DRAWN = [trivial, rand, rand_twice, own_policy, with_one_of_the_users, policy_of_the_user]


@pytest.mark.parametrize("define", DRAWN, ids=lambda f: f.__name__)
def test_as_often_as_in_dali(define):
    from scipy import stats

    ours, theirs = (values(m, lambda m=m: define(m)) for m in (side("penstock"), side("dali")))
    found = np.unique(np.concatenate([ours, theirs]))
    counts = np.array([[np.count_nonzero(x == v) for v in found] for x in (ours, theirs)])
    rare = counts.sum(axis=0) < 10
    counts = np.column_stack([counts[:, ~rare], counts[:, rare].sum(axis=1)])
    p = stats.chi2_contingency(counts[:, counts.any(axis=0)]).pvalue
    assert p > 1e-4, f"{p}: {dict(zip(found, counts.T.tolist()))}"


# Mistakes. ------------------------------------------------------------------------------------------------------------

MISTAKES = {
    "no such policy": lambda m, x: m.auto_augment.auto_augment(x, "cifar"),
    "shape for a policy without": lambda m, x: m.auto_augment.auto_augment(x, "reduced_image_net", shape=[4, 4]),
    "pixels with shape": lambda m, x: m.auto_augment.auto_augment(x, shape=[4, 4], max_translate_abs=10),
    "relative without shape": lambda m, x: m.auto_augment.auto_augment(x, max_translate_rel=0.5),
    "magnitude too large": lambda m, x: m.rand_augment.rand_augment(x, n=2, m=31),
    "negative magnitude": lambda m, x: m.rand_augment.rand_augment(x, n=2, m=-1),
    "negative n": lambda m, x: m.rand_augment.rand_augment(x, n=-1, m=3),
    "no bins": lambda m, x: m.rand_augment.rand_augment(x, n=2, m=0, num_magnitude_bins=0),
    "excluded unknown": lambda m, x: m.trivial_augment.trivial_augment_wide(x, excluded=["turn"]),
    "nothing to choose": lambda m, x: m.trivial_augment.apply_trivial_augment([], x),
    "unused argument": lambda m, x: m.rand_augment.apply_rand_augment([m.augmentations.invert], x, 1, 1, angle=3),
    "missing shape": lambda m, x: m.rand_augment.apply_rand_augment([m.augmentations.translate_x], x, 1, 1),
    "no bin": lambda m, x: m.augmentations.brightness(x, num_magnitude_bins=4),
    "no number of bins": lambda m, x: m.augmentations.brightness(x, magnitude_bin=1),
    "a policy without sub-policies": lambda m, x: m.auto_augment.apply_auto_augment(m.core.Policy("p", 11, []), x),
    "a probability above one": lambda m, x: m.core.Policy("p", 11, [[(m.augmentations.invert, 1.5, None)]]),
    "a bin beyond": lambda m, x: m.core.Policy("p", 11, [[(m.augmentations.rotate, 0.5, 11)]]),
    "no bin in a policy": lambda m, x: m.core.Policy("p", 11, [[(m.augmentations.rotate, 0.5, None)]]),
    "no augmentation": lambda m, x: m.core.Policy("p", 11, [[("rotate", 0.5, 3)]]),
    "decorated twice": lambda m, x: m.core.augmentation(m.augmentations.rotate),
    "one argument": lambda m, x: m.core.augmentation(lambda data: data),
    "a shift of 128": lambda m, x: m.augmentations.solarize_add.augmentation(mag_range=(0, 128))(
        x, magnitude_bin=3, num_magnitude_bins=4
    ),
    "parameters of two shapes": lambda m, x: m.augmentations.solarize.augmentation(
        mag_to_param=lambda v: np.zeros(1 + (v > 100))
    )(x, magnitude_bin=m.fn.external_source(source=lambda i: [np.int32(0)]), num_magnitude_bins=4),
}
ACCEPTED = {
    "no steps": lambda m, x: m.rand_augment.rand_augment(x, n=0, m=3),
    "an int for the bin": lambda m, x: m.augmentations.rotate(x, magnitude_bin=3, num_magnitude_bins=4),
    "magnitudes as an array": lambda m, x: m.augmentations.solarize.augmentation(mag_range=np.array([3, 90, 200]))(
        x, magnitude_bin=1
    ),
    "excluded": lambda m, x: m.rand_augment.rand_augment(x, n=1, m=3, excluded=["rotate", "identity"]),
    "shape as a list": lambda m, x: m.auto_augment.auto_augment(x, shape=[2, 2], max_translate_rel=(0.5, 0.2)),
    "shape as data": lambda m, x: m.auto_augment.auto_augment(x, "svhn", shape=m.fn.shapes(x)),
    "a bin without need": lambda m, x: m.core.Policy("p", 11, [[(m.augmentations.invert, 0.5, 3)]]) and x,
    "an empty sub-policy": lambda m, x: m.auto_augment.apply_auto_augment(m.core.Policy("p", 11, [[]]), x),
    "not monotonic": lambda m, x: m.rand_augment.rand_augment(x, n=3, m=3, monotonic_mag=False, seed=4),
    "a new name": lambda m, x: m.augmentations.invert.augmentation(name="negative")(x),
    "rotation that grows": lambda m, x: m.augmentations.rotate(
        x, magnitude_bin=3, num_magnitude_bins=4, rotate_keep_size=False
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("what", [*MISTAKES, *ACCEPTED])
def test_what_is_accepted(what):
    define = (MISTAKES | ACCEPTED)[what]
    errors = []
    for which in ("dali", "penstock"):
        m = side(which)
        try:
            values(m, lambda m=m: define(m, ones(m)), 1)
            errors.append(None)
        except Exception as e:
            errors.append(f"{type(e).__name__}: {e}")
    assert bool(errors[0]) == bool(errors[1]) == (what in MISTAKES), errors
    assert "internal" not in (errors[1] or "")
