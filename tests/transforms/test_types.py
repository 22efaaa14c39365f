# SPDX-License-Identifier: Apache-2.0
"""Every function of transforms.functional compared with torchvision's, on tensors of all types and layouts, on images
of all of Pillow's modes, and on arrays: the same result, or an error in both."""

import numpy as np
import pytest
from PIL import Image
from test_pixels import assert_same, set_seed

torch = pytest.importorskip("torch")

from penstock import transforms  # noqa: E402

TYPES = ("uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "bool")
MODES = ("L", "LA", "RGB", "RGBA", "P", "1", "I;16", "F", "I", "CMYK", "YCbCr", "HSV")
CORNERS = [[0, 0], [16, 0], [16, 12], [0, 12]], [[2, 1], [14, 0], [15, 11], [1, 10]]
TOLERANCES = {torch.float16: 2e-3, torch.bfloat16: 2e-2, torch.float32: 2e-6, torch.float64: 1e-12}

CALLS = {
    "adjust_brightness": [(0.5,), (1.7,), (-1,)],
    "adjust_contrast": [(0.5,), (1.7,)],
    "adjust_gamma": [(0.5,), (2.2, 1.3)],
    "adjust_hue": [(0.2,), (-0.5,), (0.7,)],
    "adjust_saturation": [(0.5,), (1.7,)],
    "adjust_sharpness": [(0.5,), (2.0,)],
    "affine": [(20.0, [1, 2], 1.2, [3.0, 4.0]), (20.0, [1, 2], 1.2, [3.0, 4.0], "BILINEAR", [5.0])],
    "autocontrast": [()],
    "center_crop": [(5,), ([7, 4],), (20,)],
    "convert_image_dtype": [(t,) for t in TYPES],
    "crop": [(1, 2, 5, 6), (-2, -3, 20, 30), (5, 5, 30, 30)],
    "equalize": [()],
    "gaussian_blur": [(3,), ([5, 3], [1.0, 2.0]), (4,)],
    "get_dimensions": [()],
    "get_size": [()],
    "horizontal_flip": [()],
    "invert": [()],
    "normalize": [([0.5], [0.2]), ([0.1, 0.2, 0.3], [1.0, 2, 3]), ([0.5], [0.0])],
    "pad": [(2,), ([1, 2], 5), ([2, 1], None, "symmetric"), ([-1, 2], 3.7), (2, (9,))],
    "permute_channels": [([2, 0, 1],), ([0],), ([0, 0, 0],)],
    "perspective": [CORNERS, (*CORNERS, "NEAREST", 3)],
    "pil_to_tensor": [()],
    "posterize": [(3,), (8,), (0,), (9,)],
    "resize": [
        *((7,), ([5, 9],), ([0, 3],), ([30, 25], "BICUBIC"), (8, "BILINEAR", None, False), (8, "BILINEAR", None, None)),
        *((30, "BICUBIC", None, None), (8, "BOX"), (8, "LANCZOS"), (8, "LANCZOS", None, False), (7, "BILINEAR", 9)),
    ],
    "resized_crop": [(1, 2, 5, 6, [4, 9]), (1, 2, 5, 6, [4, 9], "BILINEAR", None)],
    "rgb_to_grayscale": [(), (3,), (2,)],
    "rotate": [(20.0,), (90,), (30.0, "BILINEAR", True), (45, "NEAREST", False, [3, 4], [7])],
    "solarize": [(100,), (0.5,), (300,)],
    "to_dtype": [(t, scale) for t in TYPES for scale in (False, True)],
    "to_pil_image": [(), ("L",), ("F",), ("I;16",), ("LA",)],
    "to_tensor": [()],
    "vertical_flip": [()],
}


def tensor(rng, shape, dtype):
    """Of the whole range of small types. Of large ones a million, as torchvision computes some of them in float32."""
    if dtype is torch.bool:
        return torch.from_numpy(rng.random(shape) < 0.5)
    if dtype.is_floating_point:
        return torch.from_numpy(rng.random(shape)).to(dtype)
    return torch.from_numpy(rng.integers(0, min(torch.iinfo(dtype).max, 10**6), shape, endpoint=True)).to(dtype)


def tensors(dtype):
    rng = np.random.default_rng(3)
    for channels in (1, 3, 4):
        yield f"{channels} channels", tensor(rng, (channels, 13, 17), dtype)
    batch = tensor(rng, (2, 3, 13, 17), dtype)
    yield "batch", batch
    yield "channels last", batch.contiguous(memory_format=torch.channels_last)
    yield "interleaved", tensor(rng, (13, 17, 3), dtype).permute(2, 0, 1)
    yield "strided", tensor(rng, (3, 13, 34), dtype)[:, :, ::2]
    yield "turned", tensor(rng, (3, 17, 13), dtype).flip(-1).transpose(-1, -2)
    yield "one color", tensor(rng, (1, 1, 1), dtype).expand(3, 13, 17)
    yield "no batch", tensor(rng, (0, 3, 13, 17), dtype)
    yield "a pixel", tensor(rng, (3, 1, 1), dtype)


def image(mode):
    rng = np.random.default_rng(5)
    x = rng.integers(0, 256, (13, 17, 4), dtype=np.uint8)
    if mode == "I;16":
        return Image.fromarray(rng.integers(0, 65536, (13, 17)).astype(np.uint16))
    return Image.fromarray(x[..., : 4 if mode in ("LA", "RGBA") else 3].copy()).convert(mode)


def called(library, name, args, x):
    def of_library(v):
        modes = library.InterpolationMode
        return getattr(torch, v) if v in TYPES else getattr(modes, v) if v in modes.__members__ else v

    set_seed(1)
    try:
        return getattr(library.functional, name)(x, *(of_library(v) if isinstance(v, str) else v for v in args))
    except Exception as e:
        return e


# torchvision's faults, and where nothing depends on it: what, and why.
NOT_COMPARED = {
    ("no batch", "center_crop"): "torchvision reshapes to a wrong size",
    ("no batch", "resize"): "torchvision checks no mode then",
}


def compare(v2, name, what, x):
    if (what, name) in NOT_COMPARED:
        return
    for args in CALLS[name]:
        given = x.copy() if isinstance(x, (Image.Image, np.ndarray)) else x.clone()
        expected, got = called(v2, name, args, given), called(transforms, name, args, x)
        if isinstance(expected, (list, tuple)):
            assert got == expected, (what, args)
        elif isinstance(expected, torch.Tensor) and expected.dtype.is_floating_point and isinstance(got, torch.Tensor):
            assert (got.dtype, got.shape) == (expected.dtype, expected.shape), (what, args)
            near = TOLERANCES[got.dtype]
            assert torch.allclose(got.double(), expected.double(), rtol=near, atol=near), (what, args)
        elif isinstance(expected, Image.Image) and expected.mode == "F":
            assert np.allclose(np.asarray(got), np.asarray(expected), rtol=1e-5), (what, args)
        else:
            assert_same(got, expected, (what, args))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", CALLS)
def test_tensors(v2, name, dtype):
    for what, x in tensors(getattr(torch, dtype)):
        compare(v2, name, what, x)


@pytest.mark.parametrize("name", CALLS)
def test_images(v2, name):
    for mode in MODES:
        compare(v2, name, mode, image(mode))


@pytest.mark.parametrize("name", ["to_tensor", "to_pil_image"])
def test_arrays(v2, name):
    x = np.asarray(image("RGB"))
    for what, array in {"bytes": x, "grey": x[..., 0], "floats": (x / 255).astype("f4"), "two": x[..., :2]}.items():
        compare(v2, name, what, array)


@pytest.mark.parametrize("mode", ["RGB", "L", "P", "RGBA", "LA", "CMYK", "YCbCr", "HSV"])
@pytest.mark.parametrize("name", ["AugMix", "RandomEqualize", "RandomAutocontrast", "RandomErasing"])
def test_classes_on_images(v2, name, mode):
    for seed in range(4):
        made = []
        for library in (v2, transforms):
            set_seed(seed)
            step = getattr(library, name)(**({} if name == "AugMix" else {"p": 1.0}))
            try:
                made.append(step(image(mode)))
            except Exception as e:
                made.append(e)
        assert_same(made[1], made[0], (name, mode, seed))
