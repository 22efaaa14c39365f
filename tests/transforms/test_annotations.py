# SPDX-License-Identifier: Apache-2.0
"""Masks, boxes, key points, images and videos of torchvision.tv_tensors, transformed as by torchvision."""

import numpy as np
import pytest
from PIL import Image
from test_pixels import set_seed

torch = pytest.importorskip("torch")

from penstock import transforms  # noqa: E402

RECIPES = {
    "segmentation": lambda t: [
        t.RandomResizedCrop((30, 24)),
        t.RandomHorizontalFlip(),
        t.ColorJitter(0.3, 0.3, 0.3, 0.1),
        t.ToImage(),
        t.ToDtype(torch.float32, scale=True),
        t.Normalize((0.5,) * 3, (0.2,) * 3),
    ],
    "detection": lambda t: [
        t.ToImage(),
        t.Resize(31, max_size=60),
        t.RandomVerticalFlip(),
        t.RandomCrop(25, pad_if_needed=True),
        t.GaussianBlur(3),
        t.RandomErasing(0.5),
    ],
    "center": lambda t: [t.Resize((40, 50)), t.CenterCrop((33, 28)), t.Pad((1, 2, 3, 4), fill=3)],
    "exact": lambda t: [t.Resize((17, 50), interpolation=t.InterpolationMode.NEAREST_EXACT)],
    "pure": lambda t: [t.Resize(20), t.ToPureTensor()],
}
MASK_RECIPES = {
    "affine": lambda t: [t.RandomAffine(30, (0.1, 0.2), (0.7, 1.3), 5, t.InterpolationMode.BILINEAR)],
    "rotation": lambda t: [t.RandomRotation(40, t.InterpolationMode.BILINEAR)],
    "perspective": lambda t: [t.RandomPerspective(0.5, 1.0)],
}


@pytest.fixture(scope="module")
def tv(v2):
    return pytest.importorskip("torchvision.tv_tensors")


def sample(tv, i, form="XYXY", places=True):
    rng = np.random.default_rng(i)
    h, w = (int(v) for v in rng.integers(40, 70, 2))
    x = rng.integers(0, 256, (h, w, 3), dtype=np.uint8)
    image, t = Image.fromarray(x), torch.from_numpy(x).permute(2, 0, 1).contiguous()
    made = {
        "label": torch.arange(3),
        "mask": tv.Mask(t[0] // 64),
        "masks": tv.Mask(t > 128),
        "image": [image, tv.Image(t), tv.Video(torch.stack([t, t.flip(-1)]))][i % 3],
    }
    if places:
        corners = torch.from_numpy(np.sort(rng.integers(0, 40, (5, 2, 2)), 1).reshape(5, 4))
        boxes = tv.BoundingBoxes(corners, format="XYXY", canvas_size=(h, w))
        torch_type = torch.float32 if i % 2 else torch.int64
        data = boxes.as_subclass(torch.Tensor).to(torch_type)
        if form == "XYWH":
            data[:, 2:] -= data[:, :2]
        if form == "CXCYWH":
            data = torch.cat([(data[:, :2] + data[:, 2:]) // 2, (data[:, 2:] - data[:, :2]) // 2 * 2], 1)
        made["boxes"] = tv.BoundingBoxes(data, format=form, canvas_size=(h, w))
        made["points"] = tv.KeyPoints(torch.from_numpy(rng.uniform(0, 39, (4, 2)).astype("f4")), canvas_size=(h, w))
    return made


def assert_same(got, expected, what):
    assert type(got) is type(expected), what
    if isinstance(expected, Image.Image):
        assert got.size == expected.size and got.tobytes() == expected.tobytes(), what
        return
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape), what
    torch.testing.assert_close(got.as_subclass(torch.Tensor), expected.as_subclass(torch.Tensor), rtol=1e-6, atol=1e-5)
    for name in ("canvas_size", "format"):
        assert getattr(got, name, None) == getattr(expected, name, None), what


@pytest.mark.parametrize("form", ["XYXY", "XYWH", "CXCYWH"])
@pytest.mark.parametrize("name", RECIPES)
def test_samples(v2, tv, name, form):
    ours, theirs = transforms.Compose(RECIPES[name](transforms)), v2.Compose(RECIPES[name](v2))
    for i in range(6):
        made = []
        for t in (ours, theirs):
            set_seed(i)
            made.append(t(sample(tv, i, form)))
        for key, expected in made[1].items():
            assert_same(made[0][key], expected, (key, i))


@pytest.mark.parametrize("name", MASK_RECIPES)
def test_masks(v2, tv, name):
    ours, theirs = transforms.Compose(MASK_RECIPES[name](transforms)), v2.Compose(MASK_RECIPES[name](v2))
    for i in range(8):
        made = []
        for t in (ours, theirs):
            set_seed(i)
            made.append(t(sample(tv, i, places=False)))
        for key, expected in made[1].items():
            assert_same(made[0][key], expected, (key, i))
    with pytest.raises(TypeError, match="of BoundingBoxes is not supported; use torchvision.transforms.v2"):
        ours(sample(tv, 0)["boxes"])


def test_types_by_class(v2, tv):
    dtypes = {tv.Image: torch.float32, tv.Mask: torch.int64, "others": None}
    got, expected = (t.ToDtype(dtypes, scale=True)(sample(tv, 1)) for t in (transforms, v2))
    for key in expected:
        assert_same(got[key], expected[key], key)


def test_what_colors_leave(v2, tv):
    x = sample(tv, 1)
    for made in (transforms.ColorJitter(0.5)(x), transforms.RandAugment()({"image": x["image"]})):
        assert type(made["image"]) is tv.Image
    assert transforms.RandomInvert(1.0)(x["mask"]) is x["mask"]
    with pytest.raises(TypeError, match="RandAugment can't move BoundingBoxes, KeyPoints, Mask"):
        transforms.RandAugment()(x)
