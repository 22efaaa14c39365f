# SPDX-License-Identifier: Apache-2.0
"""Each transform agrees with its definition, for images and tensors of every layout."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("PIL")

from picture_forms import close, forms, picture_of  # noqa: E402
from transform_definitions import blurred, center, edge_size, jittered, luma, padded_by, triangular, window  # noqa: E402

from penstock.experimental.torchvision import (  # noqa: E402
    CenterCrop,
    ColorJitter,
    Compose,
    GaussianBlur,
    Grayscale,
    InterpolationMode,
    Normalize,
    Pad,
    RandomApply,
    RandomCrop,
    RandomGrayscale,
    RandomHorizontalFlip,
    RandomResizedCrop,
    RandomVerticalFlip,
    Resize,
)


def check(transforms, array, expected, steps=0, dtype=None):
    """The result is the same for all forms of an image. The output has the form of the input."""
    transform = Compose(transforms, num_threads=2)
    for name, x in forms(array).items():
        y = transform(x)
        assert type(y) is type(x), name
        if name != "image":
            assert y.ndim == x.ndim and y.shape[:-3] == x.shape[:-3], name
            assert picture_of(y).dtype == (dtype or array.dtype)
        close(picture_of(y), expected, steps)


@pytest.mark.parametrize("size, limit", [(10, None), (40, None), (10, 12), (10, 14), (None, 9), (None, 70), (5, 5)])
@pytest.mark.parametrize("turned", [False, True])
def test_resize_by_an_edge(array, size, limit, turned):
    array = np.ascontiguousarray(array.swapaxes(0, 1)) if turned else array
    height, width = edge_size(*array.shape[:2], size, limit)
    check([Resize(size, max_size=limit)], array, triangular(array.astype("f8"), height, width), steps=1)


@pytest.mark.parametrize("size", [(7, 9), [50, 11], (23, 34)])
@pytest.mark.parametrize("antialias", [True, False, None])
def test_resize_to_a_size(array, size, antialias):
    expected = triangular(array.astype("f8"), *size, antialias=antialias is not False)
    check([Resize(size, antialias=antialias)], array, expected, steps=1)


def test_resize_by_the_nearest_pixel(array):
    rows, columns = ((np.arange(9) + 0.5) * 23 / 9).astype(int), ((np.arange(50) + 0.5) * 34 / 50).astype(int)
    expected = array[rows][:, columns]
    check([Resize((9, 50), InterpolationMode.NEAREST)], array, expected)
    check([Resize((9, 50), 0)], array, expected)


@pytest.mark.parametrize("mode", ["BICUBIC", "LANCZOS"])
def test_other_interpolations_keep_what_is_even(mode):
    array = np.full((9, 12, 3), 77, np.uint8)
    check([Resize((20, 5), InterpolationMode[mode])], array, np.full((20, 5, 3), 77))


def test_interpolation_of_torchvision_itself():
    """Its enumeration has the same values."""

    class Mode:
        value = "bicubic"

    assert Resize(5, Mode()).interpolation is InterpolationMode.BICUBIC


@pytest.mark.parametrize("size", [1, 9, 10, (22, 33), (23, 34), (24, 30), (40, 41), (9, 60), (61, 8), [5]])
def test_center_crop(array, size):
    height, width = (size, size) if isinstance(size, int) else (size[0], size[-1])
    check([CenterCrop(size)], array, center(array, height, width))


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric"])
@pytest.mark.parametrize("padding", [0, 3, (2, 5), (1, 2, 3, 4), (50, 40)])
def test_pad(array, mode, padding):
    values = padding if isinstance(padding, tuple) else (padding,)
    check([Pad(padding, 0, mode)], array, padded_by(array, *values * (4 // len(values)), mode))


@pytest.mark.parametrize("fill", [7, 7.9, (9,), None, 300, -5])
def test_pad_fills(array, fill):
    value = np.float64(0 if fill is None else fill[0] if isinstance(fill, tuple) else fill)
    if array.dtype.kind != "f":
        info = np.iinfo(array.dtype)
        value = np.trunc(np.clip(value, info.min, info.max))
    check([Pad(2, fill)], array, padded_by(array, 2, 2, 2, 2, fill=value))


def test_pad_fills_channels():
    array = np.zeros((2, 3, 3), np.uint8)
    check([Pad((1, 0), (1, 2, 3))], array, padded_by(array, 1, 0, 1, 0, fill=[1, 2, 3]))


def test_pad_fills_by_the_kind_of_input():
    from PIL import Image

    pad = Pad(1, {Image.Image: 5, torch.Tensor: 6})
    assert picture_of(pad(Image.new("L", (2, 2))))[0, 0] == 5
    assert picture_of(pad(torch.zeros(1, 2, 2)))[0, 0] == 6
    assert picture_of(Pad(1, {"others": 7})(torch.zeros(1, 2, 2)))[0, 0] == 7


@pytest.mark.parametrize("transform", [RandomHorizontalFlip, RandomVerticalFlip])
def test_flips(array, transform):
    check([transform(1.0)], array, array[:, ::-1] if transform is RandomHorizontalFlip else array[::-1])
    check([transform(0.0)], array, array)


@pytest.mark.parametrize("kernel", [3, (3, 7), [5], 21])
@pytest.mark.parametrize("sigma", [0.5, (1.5, 1.5)])
def test_gaussian_blur(array, kernel, sigma):
    size = (kernel, kernel) if isinstance(kernel, int) else (kernel[0], kernel[-1])
    expected = blurred(array.astype("f8"), *size, sigma if isinstance(sigma, float) else sigma[0])
    check([GaussianBlur(kernel, sigma)], array, expected, steps=0.01)


def test_normalize(array):
    mean, std = np.linspace(10, 90, array.shape[2]), np.linspace(20, 60, array.shape[2])
    from penstock.experimental.torchvision import ToPureTensor

    expected = (array - mean) / std
    for x in forms(array).values():
        y = Compose([Normalize(mean, std), ToPureTensor()])(x)
        assert y.dtype == torch.float32
        close(picture_of(y), expected)
    y = Compose([Normalize([5.0], [2.0])])(forms(array)["chw"])
    close(picture_of(y), (array - 5.0) / 2.0)


FACTORS = [
    {"brightness": 1.4},
    {"contrast": 0.5},
    {"saturation": 1.7},
    {"saturation": 0.0},
    {"hue": 0.25},
    {"hue": -0.4},
]
FACTORS.append({"brightness": 0.8, "contrast": 1.3, "saturation": 0.6, "hue": 0.1})


@pytest.mark.parametrize("factors", FACTORS, ids=str)
@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32"])
def test_color_jitter(factors, dtype):
    array = np.random.default_rng(3).integers(0, 256, (11, 17, 3)).astype(np.uint8)
    array = (array / np.float32(255) if dtype == "float32" else array).astype(dtype)
    expected = jittered(array.astype("f8"), **factors, center=0.5 if dtype == "float32" else 128.0)
    check([ColorJitter(**{k: (v, v) for k, v in factors.items()})], array, expected, steps=0.01)


def test_color_jitter_of_grey_and_of_alpha():
    grey = np.random.default_rng(3).integers(0, 256, (5, 7, 1)).astype(np.uint8)
    some = ColorJitter(brightness=(0.5, 0.5), contrast=(0.7, 0.7), saturation=(3.0, 3.0), hue=(0.2, 0.2))
    check([some], grey, 0.5 * (128 + 0.7 * (grey.astype("f8") - 128)), steps=0.01)
    rgba = np.random.default_rng(4).integers(0, 256, (5, 7, 4)).astype(np.uint8)
    expected = np.dstack([jittered(rgba[..., :3].astype("f8"), 0.5, 0.7, 3.0, 0.2), rgba[..., 3]])
    check([some], rgba, expected, steps=0.01)
    check([ColorJitter()], rgba, rgba)
    check([ColorJitter(saturation=2.0)], grey, grey)


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32"])
def test_grayscale(channels, dtype):
    array = np.random.default_rng(5).integers(0, 256, (5, 7, channels)).astype(dtype)
    expected = luma(array[..., :3].astype("f8")) if channels > 1 else array[..., 0].astype("f8")
    check([Grayscale()], array, expected[..., None], steps=0.01)
    check([Grayscale(3)], array, np.repeat(expected[..., None], 3, axis=2), steps=0.01)


def test_random_grayscale_of_all_or_none():
    array = np.random.default_rng(5).integers(0, 256, (5, 7, 4)).astype(np.uint8)
    made = picture_of(RandomGrayscale(1.0)(forms(array)["chw"]))
    assert np.abs(made[..., :3] - luma(array[..., :3].astype("f8"))[..., None]).max() <= 0.501
    assert (made[..., 3] == array[..., 3]).all()
    check([RandomGrayscale(0.0)], array, array)
    check([RandomGrayscale(1.0)], array[..., :1].copy(), array[..., :1])


def test_crops_that_leave_no_choice(array):
    check([RandomCrop((23, 34))], array, array)
    check([RandomCrop((25, 36), padding=1, padding_mode="edge")], array, padded_by(array, 1, 1, 1, 1, "edge"))
    whole = RandomResizedCrop((9, 11), scale=(1.0, 1.0), ratio=(34 / 23, 34 / 23))
    check([whole], array, triangular(array.astype("f8"), 9, 11), steps=1)


def test_apply_to_all_or_none(array):
    some = [Pad(1), RandomHorizontalFlip(1.0)]
    check([RandomApply(some, 1.0)], array, padded_by(array, 1, 1, 1, 1)[:, ::-1])
    check([RandomApply(some, 0.0)], array, array)
    check([RandomApply([], 0.5)], array, array)


def test_a_whole_list(array):
    """A window of a window of a resized, mirrored and normalised image."""
    n = array.shape[2]
    resized = triangular(array.astype("f8"), 16, 23)
    expected = (center(window(resized, 0, 0, 16, 23), 11, 12)[:, ::-1] - 3.0) / 2.0
    from penstock.experimental.torchvision import PILToTensor

    steps = [Resize(16), CenterCrop((11, 12)), RandomHorizontalFlip(1.0), PILToTensor(), Normalize([3.0] * n, [2.0])]
    for x in forms(array).values():
        y = Compose(steps)(x)
        assert y.shape[-3:] == (n, 11, 12)
        bound = 0.76 if array.dtype.kind != "f" else 1e-4
        assert np.abs(picture_of(y) - expected).max() <= bound
