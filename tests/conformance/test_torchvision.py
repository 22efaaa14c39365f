# SPDX-License-Identifier: Apache-2.0
"""Transforms with torchvision's names compared with the real DALI's: pixels, sizes, types, errors."""

import importlib

import numpy as np
import pytest

torch = pytest.importorskip("torch")
Image = pytest.importorskip("PIL.Image")
try:
    theirs = importlib.import_module("nvidia.dali.experimental.torchvision")
    theirs_f = importlib.import_module("nvidia.dali.experimental.torchvision.v2.functional")
except ImportError:
    pytest.skip("this DALI has no transforms of torchvision", allow_module_level=True)

import penstock.experimental.torchvision as ours  # noqa: E402
import penstock.experimental.torchvision.v2.functional as ours_f  # noqa: E402

RNG = np.random.default_rng(7)
RGB = RNG.integers(0, 256, (37, 52, 3), dtype=np.uint8)
SMOOTH = np.stack([*np.meshgrid(np.linspace(0, 255, 52), np.linspace(255, 0, 37)), np.full((37, 52), 90.0)], 2)
INPUTS = {
    "rgb": lambda: Image.fromarray(RGB),
    "smooth": lambda: Image.fromarray(SMOOTH.astype(np.uint8)),
    "grey": lambda: Image.fromarray(RGB[..., 0]),
    "rgba": lambda: Image.fromarray(np.dstack([RGB, RGB[..., 1]])),
    "chw": lambda: torch.from_numpy(RGB.transpose(2, 0, 1).copy()),
    "nchw": lambda: torch.from_numpy(RNG.integers(0, 256, (4, 3, 20, 31), dtype=np.uint8)),
    "float": lambda: torch.from_numpy(RGB.transpose(2, 0, 1).astype(np.float32, "C") / 255),
    "int16": lambda: torch.from_numpy(RGB.transpose(2, 0, 1).astype(np.int16, "C")),
    "five": lambda: torch.from_numpy(RNG.integers(0, 256, (5, 17, 23), dtype=np.uint8)),
}
PIXELS = ("rgb", "smooth", "grey", "rgba", "chw", "nchw", "float", "int16", "five")
COLOURS = ("rgb", "smooth")


@pytest.fixture(autouse=True)
def dali_without_cuda(monkeypatch):
    """DALI requests PyTorch's CUDA stream even if nothing is on a GPU."""
    if not torch.cuda.is_available():
        monkeypatch.setattr(torch.cuda, "current_stream", lambda *a, **k: None)


def array(x):
    return np.asarray(x) if isinstance(x, Image.Image) else x.numpy()


def compare(mine, real, steps=0):
    assert type(mine) is type(real)
    if isinstance(mine, list):
        assert len(mine) == len(real)
        for a, b in zip(mine, real):
            compare(a, b, steps)
        return
    if isinstance(mine, Image.Image):
        assert mine.mode == real.mode
    mine, real = array(mine), array(real)
    assert mine.dtype == real.dtype
    assert mine.shape == real.shape
    if mine.dtype.kind == "f":
        np.testing.assert_allclose(mine, real, rtol=2e-6, atol=steps if 0 < steps < 1 else 1e-5)
    else:
        assert np.abs(mine.astype("i8") - real.astype("i8")).max(initial=0) <= steps


def cases():
    """Name, function (package) -> transform, inputs, tolerance of integers in steps (below 1: of floats)."""
    for size in (8, (9, 21), [30], (60, 70)):
        yield f"Resize({size})", lambda t, s=size: [t.Resize(s)], PIXELS, 1
    for mode in ("NEAREST", "BILINEAR", "BICUBIC", "LANCZOS"):
        for antialias in (True, False):
            yield (
                f"Resize({mode}, {antialias})",
                lambda t, m=mode, a=antialias: [t.Resize((15, 61), t.InterpolationMode[m], antialias=a)],
                ("rgb", "chw", "float"),
                1,
            )
    for size, max_size in ((20, 25), (20, 21), (None, 15), (None, 80), (7, 7), (30, 31)):
        yield f"Resize({size}, {max_size})", lambda t, s=size, m=max_size: [t.Resize(s, max_size=m)], PIXELS, 1
    for size in (1, 8, 9, 16, 17, (36, 51), (20, 60), (61, 20), (40, 57), (41, 58), (101, 103)):
        yield f"CenterCrop({size})", lambda t, s=size: [t.CenterCrop(s)], PIXELS, 0
    for mode in ("constant", "edge", "reflect", "symmetric"):
        for padding in (0, 3, (2, 5), (1, 2, 3, 4), (60, 45)):
            yield f"Pad({padding}, {mode})", lambda t, p=padding, m=mode: [t.Pad(p, 0, m)], PIXELS, 0
    for fill in (7, 7.6, None, (9,)):
        yield f"Pad({fill})", lambda t, f=fill: [t.Pad((1, 2), f)], PIXELS, 0
    yield "Pad(1, 2, 3)", lambda t: [t.Pad(4, (1, 2, 3))], ("rgb", "chw", "nchw", "float"), 0
    for p in (0.0, 1.0):
        yield f"RandomHorizontalFlip({p})", lambda t, p=p: [t.RandomHorizontalFlip(p)], PIXELS, 0
        yield f"RandomVerticalFlip({p})", lambda t, p=p: [t.RandomVerticalFlip(p)], PIXELS, 0
        yield f"RandomApply({p})", lambda t, p=p: [t.RandomApply([t.Resize((9, 9)), t.Pad(2)], p)], PIXELS, 1
        yield f"RandomGrayscale({p})", lambda t, p=p: [t.RandomGrayscale(p)], (*COLOURS, "grey"), 1
    for size in (3, 5, (3, 7), [9], 33):
        for sigma in (0.4, 1.7, (0.9, 0.9)):
            yield f"GaussianBlur({size}, {sigma})", lambda t, k=size, s=sigma: [t.GaussianBlur(k, s)], PIXELS, 1
    for mean, std in (([120.0, 110, 100], [50.0, 60, 70]), ([0.5], [0.25])):
        yield f"Normalize({mean})", lambda t, m=mean, s=std: [t.Normalize(m, s)], ("chw", "nchw", "float", "int16"), 0
    for n in (1, 3):
        yield f"Grayscale({n})", lambda t, n=n: [t.Grayscale(n)], (*COLOURS, "grey"), 1
    for name, value in (("brightness", 1.3), ("contrast", 0.6), ("saturation", 1.8), ("hue", 0.2), ("hue", -0.5)):
        yield (
            f"ColorJitter({name}={value})",
            lambda t, n=name, v=value: [t.ColorJitter(**{n: (v, v)})],
            COLOURS,
            1,
        )
    yield "ColorJitter(all)", lambda t: [t.ColorJitter((1.2, 1.2), (0.7, 0.7), (1.5, 1.5), (-0.1, -0.1))], COLOURS, 1
    yield "ColorJitter()", lambda t: [t.ColorJitter()], COLOURS, 0
    yield "RandomCrop(all)", lambda t: [t.RandomCrop((37, 52))], ("rgb", "chw", "float"), 0
    yield "PILToTensor", lambda t: [t.PILToTensor()], PIXELS, 0
    yield "ToPureTensor", lambda t: [t.Resize(9), t.ToPureTensor()], PIXELS, 1
    yield "ToPILImage", lambda t: [t.Pad(3), t.ToPILImage()], ("rgb", "grey", "rgba", "chw", "nchw", "float"), 0
    chain = lambda t: [t.Resize(30), t.CenterCrop(28), t.PILToTensor(), t.Normalize([120.0] * 3, [60.0] * 3)]  # noqa: E731
    yield "chain", chain, ("rgb", "smooth", "chw", "nchw"), 1 / 59  # one step of the resized values, normalised
    yield "empty", lambda t: [], PIXELS, 0


CASES = [(f"{name} {x}", make, x, steps) for name, make, inputs, steps in cases() for x in inputs]


@pytest.mark.parametrize("make, x, steps", [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_transform(make, x, steps):
    x = INPUTS[x]()
    compare(ours.Compose(make(ours))(x), theirs.Compose(make(theirs))(x), steps)


def functions():
    """Name, function (module of functions, package) -> result, inputs, tolerance in steps."""
    for size in ([8], [9, 21], 12):
        yield f"resize({size})", lambda f, t, x, s=size: f.resize(x, s), PIXELS, 1
    yield "resize(max_size)", lambda f, t, x: f.resize(x, None, max_size=19), PIXELS, 1

    yield "resize(bicubic)", lambda f, t, x: f.resize(x, [9, 60], t.InterpolationMode.BICUBIC), ("rgb", "chw"), 1
    for size in (8, [9, 60], [15]):
        yield f"center_crop({size})", lambda f, t, x, s=size: f.center_crop(x, s), PIXELS, 0
    for window in ((2, 3, 5, 6), (-2, -3, 8, 60), (15, 18, 40, 10), (90, 90, 2, 2)):
        yield f"crop{window}", lambda f, t, x, w=window: f.crop(x, *w), PIXELS, 0
    for window in ((2, 3, 11, 9), (0, 0, 17, 20)):
        yield f"resized_crop{window}", lambda f, t, x, w=window: f.resized_crop(x, *w, [7, 8]), PIXELS, 1
    yield "horizontal_flip", lambda f, t, x: f.horizontal_flip(x), PIXELS, 0
    yield "vertical_flip", lambda f, t, x: f.vertical_flip(x), PIXELS, 0
    yield "gaussian_blur", lambda f, t, x: f.gaussian_blur(x, (3, 5), 1.1), PIXELS, 1
    tensors = ("chw", "nchw", "float", "int16")
    yield "normalize", lambda f, t, x: f.normalize(x, [100.0, 90, 80], [50.0, 40, 30]), tensors, 0
    for mode in ("constant", "edge", "reflect", "symmetric"):
        yield f"pad({mode})", lambda f, t, x, m=mode: f.pad(x, [1, 2, 3, 4], 0, m), PIXELS, 0
    yield "pad(fill)", lambda f, t, x: f.pad(x, [3, 4], 8), PIXELS, 0
    yield "to_grayscale", lambda f, t, x: f.to_grayscale(x), (*COLOURS, "grey"), 0
    yield "to_grayscale(3)", lambda f, t, x: f.to_grayscale(x, 3), COLOURS, 1
    yield "rgb_to_grayscale", lambda f, t, x: f.rgb_to_grayscale(x), (*COLOURS, "grey"), 0
    images = ("rgb", "grey", "rgba")
    yield "pil_to_tensor", lambda f, t, x: f.pil_to_tensor(x), images, 0
    yield "to_tensor", lambda f, t, x: f.to_tensor(x), images, 0
    yield "to_pil_image", lambda f, t, x: f.to_pil_image(x), ("chw", "float"), 0
    yield "to_pil_image(HSV)", lambda f, t, x: f.to_pil_image(x, "HSV"), ("chw",), 0


FUNCTIONS = [(f"{name} {x}", f, x, steps) for name, f, inputs, steps in functions() for x in inputs]


@pytest.mark.parametrize("call, x, steps", [c[1:] for c in FUNCTIONS], ids=[c[0] for c in FUNCTIONS])
def test_function(call, x, steps):
    x = INPUTS[x]()
    compare(call(ours_f, ours, x), call(theirs_f, theirs, x), steps)


@pytest.mark.parametrize("x", sorted(INPUTS))
@pytest.mark.parametrize("name", ["get_size", "get_image_size", "get_dimensions"])
def test_sizes(name, x):
    x = INPUTS[x]()
    assert getattr(ours_f, name)(x) == getattr(theirs_f, name)(x)


WRONG = [
    *(lambda t, s=s: t.CenterCrop(s) for s in (0, -1, 3.5, "a", None, (), (1, 2, 3), (0, 5))),
    *(lambda t, s=s: t.RandomCrop(s) for s in (0, 3.5, None, (), (1, 2, 3), (5.5, 6))),
    *(lambda t, s=s: t.RandomResizedCrop(s) for s in (0, 3.5, None, (), (1, 2, 3), (5.5, 6))),
    *(lambda t, s=s: t.Resize(s) for s in (0, -1, 3.5, "a", None, (), (1, 2, 3), (0, 5))),
    *(lambda t, m=m: t.Resize((5, 6), max_size=m) for m in (5, 20)),
    *(lambda t, m=m: t.Resize(5, m) for m in (4, 6, -1, "bilinear", None)),
    lambda t: t.Resize(5, t.InterpolationMode.BOX),
    lambda t: t.RandomResizedCrop(5, interpolation=t.InterpolationMode.NEAREST_EXACT),
    *(lambda t, s=s: t.RandomResizedCrop(5, scale=s) for s in ((0, 1), (0.5, 0.2), (1,), 0.5, "a", None)),
    *(lambda t, s=s: t.RandomResizedCrop(5, ratio=s) for s in ((-1, 1), (2, 1), (1, 2, 3), None)),
    *(lambda t, p=p: t.RandomCrop(5, p) for p in (-1, (5, 5, 5), 1.5)),
    lambda t: t.RandomCrop(5, pad_if_needed="x"),
    lambda t: t.RandomCrop(5, fill="x"),
    *(lambda t, p=p: t.Pad(p) for p in (-1, 3.5, "a", None, (), (1,), (1, 2, 3), (-1, 5))),
    *(lambda t, m=m: t.Pad(1, 0, m) for m in ("x", None, 1)),
    *(lambda t, p=p: t.RandomGrayscale(p) for p in (-0.1, 1.1, "a", None)),
    *(lambda t, p=p: t.RandomApply([], p) for p in (-0.1, 1.1, "a", None)),
    *(lambda t, n=n: t.Grayscale(n) for n in (0, 2, 4)),
    *(lambda t, k=k: t.GaussianBlur(k) for k in (0, -1, 2, (2, 3), "a", None, 3.5)),
    *(lambda t, s=s: t.GaussianBlur(3, s) for s in (0, -1, (2, 1), (0, 1), (1,), "a", None)),
    *(lambda t, b=b: t.ColorJitter(b) for b in (-0.1, (1.5, 0.5), (-1, 1), None)),
    *(lambda t, h=h: t.ColorJitter(hue=h) for h in (-0.1, 0.6, (0.2, -0.2), (-0.5, 0.6), None)),
    *(lambda t, s=s: t.Normalize([0.5] * 3, s) for s in ([0, 1, 1], 0.5, None, "a")),
    lambda t: t.Normalize([0.5], [0.5], inplace=True),
]  # fmt: skip


@pytest.mark.parametrize("make", WRONG, ids=range(len(WRONG)))
def test_the_same_error_on_construction(make):
    """Errors of the same type. Those that DALI raises only later, or not at all, are in tests/torchvision."""
    with pytest.raises(Exception) as real:
        make(theirs)
    with pytest.raises(type(real.value)) as mine:
        make(ours)
    assert len(str(mine.value)) > 20


STATIC = [
    lambda t: t.CenterCrop.adjust_size([5]),
    lambda t: t.RandomCrop.adjust_size(5),
    *(lambda t, p=p: t.RandomCrop.adjust_padding(p) for p in (None, 3, [3], (3, 4), (1, 2, 3, 4))),
    *(lambda t, f=f: t.RandomCrop.adjust_fill(f) for f in (None, 3, [3], (3, 4))),
    *(lambda t, s=s: t.Resize.infer_effective_size(s) for s in (10, [10], [10, 12], None)),
    *(
        lambda t, a=a: tuple(t.Resize.calculate_target_size_dynamic_mode(*a))
        for a in (((20, 22), 10, None), ((20, 22), [10, 12], None), ((20, 22), 10, 10), ((22, 20), 10, None),
                  ((20, 22), None, 15), ((20, 22), 10, 11), ((375, 500), 224, 256))
    ),
    lambda t: t.Resize.normalize_interpolation(3).name,
    lambda t: {k: v.name for k, v in t.Resize.int_to_interpolation_mode.items()},
    lambda t: {m.name for m in t.Resize.not_supported_interpolation_modes},
]  # fmt: skip


@pytest.mark.parametrize("call", STATIC, ids=range(len(STATIC)))
def test_what_classes_compute(call):
    assert call(ours) == call(theirs)


def places(package, transform, x, n=150):
    """Where crops of 16 copies of a ramp begin."""
    found = [transform(x)[:, 0, 0, 0] for _ in range(n // 16 + 1)]
    return torch.cat(found)


def test_random_crops_are_distributed_alike():
    from scipy.stats import ks_2samp

    ramp = torch.arange(30 * 40, dtype=torch.float32).reshape(1, 30, 40)
    x = torch.stack([ramp] * 16)
    made = {}
    for package in (ours, theirs):
        crop = package.Compose([package.RandomCrop((11, 13))], seed=5)
        rrc = package.RandomResizedCrop(1, scale=(0.3, 0.5), interpolation=package.InterpolationMode.NEAREST)
        rrc = package.Compose([rrc], seed=5)
        made[package] = [torch.cat([c(x)[:, 0, 0, 0] for _ in range(40)]) for c in (crop, rrc)]
    for mine, real in zip(made[ours], made[theirs]):
        for of in (lambda v: v // 40, lambda v: v % 40):
            assert ks_2samp(of(mine), of(real)).pvalue > 1e-4
