# SPDX-License-Identifier: Apache-2.0
"""Every transform compared with torchvision, with the same state of PyTorch's generator: the same parameters and
pixels."""

import pickle

import numpy as np
import pytest
from PIL import Image

torch = pytest.importorskip("torch")

from penstock import transforms  # noqa: E402

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
ROUNDS = 6
# That of the CPU. `torch.manual_seed` also stores three tracebacks, for devices that may be initialised later, which
# took three quarters of the time of some tests.
set_seed = torch.default_generator.manual_seed


def floats(t):
    return [t.ToImage(), t.ToDtype(torch.float32, scale=True)]


RECIPES = {
    "val": lambda t: [t.Resize(56), t.CenterCrop(44), t.ToTensor(), t.Normalize(MEAN, STD)],
    "val, v2": lambda t: [t.Resize(56), t.CenterCrop(44), *floats(t), t.Normalize(MEAN, STD)],
    "train": lambda t: [t.RandomResizedCrop(44), t.RandomHorizontalFlip(), *floats(t), t.Normalize(MEAN, STD)],
    "train, tensors": lambda t: [
        t.PILToTensor(),
        t.RandomResizedCrop((44, 30), antialias=True),
        t.RandomHorizontalFlip(),
        t.RandomVerticalFlip(),
        t.ConvertImageDtype(torch.float32),
        t.Normalize(MEAN, STD),
        t.RandomErasing(0.7),
    ],
    "cubic": lambda t: [t.RandomResizedCrop((30, 20), interpolation=3, scale=(0.5, 3.0)), t.RandomHorizontalFlip()],
    "resize": lambda t: [t.Resize((33, 47))],
    "max_size": lambda t: [t.Resize(31, interpolation=3, max_size=60)],
    "longer edge": lambda t: [t.Resize(None, max_size=60)],
    "nearest": lambda t: [t.Resize(31, interpolation=t.InterpolationMode.NEAREST)],
    "nearest-exact": lambda t: [t.Resize(31, interpolation=t.InterpolationMode.NEAREST_EXACT)],
    "aliased": lambda t: [t.Resize((20, 70), antialias=False)],
    "crop": lambda t: [t.RandomCrop(40, padding=4, pad_if_needed=True)],
    "crop, edge": lambda t: [t.RandomCrop(40, padding=(3, 5), pad_if_needed=True, padding_mode="edge")],
    "center": lambda t: [t.CenterCrop((60, 51))],
    "flips": lambda t: [t.RandomHorizontalFlip(), t.RandomVerticalFlip(0.3)],
    "pad": lambda t: [t.Pad((1, 2, 3, 4), fill=7)],
    "pad, colors": lambda t: [t.Pad(3, fill=(1, 2, 3))],
    "pad, reflect": lambda t: [t.Pad(3, padding_mode="reflect")],
    "pad, symmetric": lambda t: [t.Pad((2, 5), padding_mode="symmetric")],
    "jitter": lambda t: [t.ColorJitter(0.4, 0.4, 0.4, 0.1)],
    "hue": lambda t: [t.ColorJitter(hue=0.5)],
    "grey": lambda t: [t.Grayscale(1)],
    "grey, three": lambda t: [t.Grayscale(3)],
    "random grey": lambda t: [t.RandomGrayscale(0.5)],
    "blur": lambda t: [t.GaussianBlur((5, 9), (0.1, 2.0))],
    "blur, wide": lambda t: [t.GaussianBlur((23, 11), (0.5, 6.0))],
    "noise": lambda t: [t.PILToTensor(), t.RandomErasing(1.0, value="random")],
    "erasing, Pillow": lambda t: [t.RandomErasing(0.7, value=(9, 200, 31.7))],
    "noise, Pillow": lambda t: [t.RandomErasing(1.0, value="random")],
    "invert": lambda t: [t.RandomInvert(0.7)],
    "posterize": lambda t: [t.RandomPosterize(3, 0.7)],
    "sharpness": lambda t: [t.RandomAdjustSharpness(1.7, 0.7)],
    "autocontrast": lambda t: [t.RandomAutocontrast(0.7)],
    "equalize": lambda t: [t.RandomEqualize(0.7)],
    "order": lambda t: [
        t.RandomOrder([t.RandomVerticalFlip(), t.ColorJitter(0.2), t.RandomApply([t.GaussianBlur(3)])])
    ],
    "choice": lambda t: [t.RandomChoice([t.RandomVerticalFlip(1.0), t.ColorJitter(0.2)], p=[0.3, 0.7])],
    "rotation": lambda t: [t.RandomRotation(40)],
    "rotation, expanded": lambda t: [t.RandomRotation((10, 80), t.InterpolationMode.BILINEAR, expand=True, fill=9)],
    "rotation, center": lambda t: [t.RandomRotation(180, t.InterpolationMode.BILINEAR, center=(3, 5))],
    "rotation, colors": lambda t: [t.RandomRotation(180, fill=(1, 200.5, 3))],
    "quarter": lambda t: [t.RandomRotation((90, 90), expand=True)],
    "affine": lambda t: [t.RandomAffine(30, (0.1, 0.2), (0.7, 1.3), (5, 10, 3, 8), fill=3)],
    "affine, linear": lambda t: [t.RandomAffine(30, (0.1, 0.2), (0.7, 1.3), 5, t.InterpolationMode.BILINEAR)],
    "perspective": lambda t: [t.RandomPerspective(0.5, 1.0)],
    "perspective, nearest": lambda t: [t.RandomPerspective(0.7, 0.8, t.InterpolationMode.NEAREST, fill=100)],
    "AutoAugment": lambda t: [t.AutoAugment()],
    "AutoAugment, CIFAR10": lambda t: [t.AutoAugment(t.AutoAugmentPolicy.CIFAR10)],
    "AutoAugment, SVHN": lambda t: [t.AutoAugment(t.AutoAugmentPolicy.SVHN, fill=128)],
    "RandAugment": lambda t: [t.RandAugment(3)],
    "RandAugment, linear": lambda t: [t.RandAugment(interpolation=t.InterpolationMode.BILINEAR, fill=10)],
    "TrivialAugmentWide": lambda t: [t.TrivialAugmentWide()],
    "AugMix": lambda t: [t.AugMix()],
    "AugMix, some": lambda t: [t.AugMix(severity=7, all_ops=False)],
    "int16": lambda t: [t.PILToTensor(), t.ToDtype(torch.int16, scale=True)],
}


def pictures(i):
    rng = np.random.default_rng(i)
    h, w = (int(v) for v in rng.integers(12, 90, 2))
    x = rng.integers(0, 256, (h, w, 3), dtype=np.uint8)
    if i % 4 == 0:  # with flat parts
        x = np.repeat(np.repeat(x[: h // 6 + 1, : w // 6 + 1], 6, 0), 6, 1)
    image, t = Image.fromarray(x), torch.from_numpy(x).permute(2, 0, 1)
    yield "image", image
    yield "grey image", image.convert("L")
    yield "tensor", t.contiguous()
    yield "channels last", t
    yield "batch", torch.stack([t, t.flip(-1)])
    yield "floats", t.float() / 255


def called(transform, x, seed):
    set_seed(seed)
    try:
        return transform(x)
    except Exception as e:
        return e


def assert_same(got, expected, what):
    if isinstance(expected, Exception):
        assert isinstance(got, Exception), (what, expected)
        return
    if isinstance(got, Exception):
        raise AssertionError(what) from got
    if isinstance(expected, Image.Image):
        assert (got.mode, got.size) == (expected.mode, expected.size), what
        assert got.tobytes() == expected.tobytes(), what
        return
    got, expected = torch.as_tensor(got), torch.as_tensor(expected)
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape), what
    if got.is_floating_point():
        assert torch.allclose(got, expected, rtol=1e-6, atol=1e-6), (what, (got - expected).abs().max())
    else:
        assert torch.equal(got, expected), (what, (got.long() - expected.long()).abs().max())


@pytest.mark.parametrize("name", RECIPES)
def test_pixels(v2, name):
    ours, theirs = transforms.Compose(RECIPES[name](transforms)), v2.Compose(RECIPES[name](v2))
    for i in range(ROUNDS):
        for kind, x in pictures(i):
            before = x.copy() if isinstance(x, Image.Image) else x.clone()
            expected = called(theirs, before, i)
            assert_same(called(ours, x, i), expected, (kind, i))
            if i == 0:
                assert_same(called(pickle.loads(pickle.dumps(ours)), x, i), expected, (kind, "pickled"))
            if name != "noise":
                assert_same(x, before, (kind, i, "the input"))


@pytest.mark.parametrize("size, sigma", [(3, 0.8), (9, 1.7), (15, 4.0)])
def test_blurred_bytes_are_rounded_as_by_pytorch(v2, size, sigma):
    """There are so many pixels that another order of summation would round some of them differently."""
    x = torch.from_numpy(np.random.default_rng(size).integers(0, 256, (3, 900, 900), dtype=np.uint8))
    got, expected = (t.functional.gaussian_blur(x, [size, size], [sigma, sigma]) for t in (transforms, v2))
    assert torch.equal(got, expected)


def test_a_sample_of_any_structure(v2):
    image = Image.effect_noise((40, 30), 50).convert("RGB")
    sample = {"image": image, "label": 3, "more": (torch.arange(4), "name")}
    ours, theirs = (t.Compose([t.Resize(20), t.RandomHorizontalFlip(), *floats(t)]) for t in (transforms, v2))
    got, expected = called(ours, sample, 0), called(theirs, sample, 0)
    assert torch.equal(got["image"], torch.as_tensor(expected["image"]))
    assert got["label"] == 3 and torch.equal(got["more"][0], torch.arange(4)) and got["more"][1] == "name"
    x, y = torch.zeros(3, 8, 8), torch.ones(2)
    assert transforms.Resize(4)(x, y)[0].shape == (3, 4, 4) and transforms.Resize(4)(x, y)[1] is y


@pytest.mark.parametrize("name", ["MixUp", "CutMix"])
@pytest.mark.parametrize("alpha", [0.2, 1.0])
def test_mixing(v2, name, alpha):
    for i in range(ROUNDS):
        set_seed(i)
        x, y = torch.rand(5, 3, 12 + i, 20), torch.randint(7, (5,))
        ours, theirs = (getattr(t, name)(alpha=alpha, num_classes=7) for t in (transforms, v2))
        for a, b in zip(called(ours, (x, y), i), called(theirs, (x, y), i)):
            assert_same(a, b, i)
        batch = {"image": x, "labels": torch.nn.functional.one_hot(y, 7).float()}
        got, expected = called(ours, batch, i), called(theirs, batch, i)
        for key in batch:
            assert_same(got[key], expected[key], i)


class _Noise(torch.utils.data.Dataset):
    def __init__(self, transform):
        self.transform = transform

    def __len__(self):
        return 12

    def __getitem__(self, i):
        torch.manual_seed(i)
        x = np.random.default_rng(i).integers(0, 256, (50 + i, 60, 3), dtype=np.uint8)
        return self.transform(Image.fromarray(x)), i


@pytest.mark.parametrize("workers", [0, 2])
def test_in_a_data_loader(v2, workers):
    made = []
    for t in (transforms, v2):
        data = _Noise(t.Compose(RECIPES["train"](t)))
        made.append(list(torch.utils.data.DataLoader(data, batch_size=4, num_workers=workers)))
    for (x, i), (y, j) in zip(*made):
        assert torch.equal(x, y) and torch.equal(i, j)


def test_errors():
    with pytest.raises(TypeError, match=r"normalize takes floats; got torch.uint8. Put ToDtype"):
        transforms.Normalize(MEAN, STD)(torch.zeros(3, 4, 4, dtype=torch.uint8))
    with pytest.raises(ValueError, match="p is a probability in"):
        transforms.RandomHorizontalFlip(1.5)
    with pytest.raises(ValueError, match="size=None needs a max_size"):
        transforms.Resize(None)
    with pytest.raises(ValueError, match=r"RandomCrop: size=\(9, 9\) is larger than the picture, 4 x 4; pad_if_needed"):
        transforms.RandomCrop(9)(torch.zeros(3, 4, 4))


def test_every_name_is_answered(v2):
    """By a transform here, or by an error with an alternative, which can be combined with our transforms."""
    for name in (n for n, x in vars(v2).items() if isinstance(x, type) and issubclass(x, v2.Transform)):
        if not hasattr(transforms, name):
            with pytest.raises(AttributeError, match=f"put torchvision.transforms.v2.{name} into the same Compose"):
                getattr(transforms, name)
    image = Image.effect_noise((40, 30), 50)
    mixed = transforms.Compose([transforms.Resize(20), v2.RGB(), transforms.CenterCrop(9)])
    assert mixed(image).tobytes() == v2.Compose([v2.Resize(20), v2.RGB(), v2.CenterCrop(9)])(image).tobytes()


STEPS = [name for name in RECIPES if name not in ("noise", "int16") and "expand" not in name]


@pytest.mark.parametrize("seed", range(6))
def test_random_programs(v2, seed):
    """Transforms in a random order, all with one generator state."""
    rng = np.random.default_rng(seed)
    names = [STEPS[i] for i in rng.integers(0, len(STEPS), 4)]
    recipes = [t.Compose([step for name in names for step in RECIPES[name](t)]) for t in (transforms, v2)]
    for i in range(3):
        for kind, x in pictures(100 * seed + i):
            copied = x.copy() if isinstance(x, Image.Image) else x.clone()
            assert_same(called(recipes[0], x, i), called(recipes[1], copied, i), (names, kind, i))
