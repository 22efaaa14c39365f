# SPDX-License-Identifier: Apache-2.0
"""Random transforms have the documented distributions and are repeatable."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

torch = pytest.importorskip("torch")
stats = pytest.importorskip("scipy.stats")
pytest.importorskip("PIL")

from penstock.experimental.torchvision import (  # noqa: E402
    ColorJitter,
    Compose,
    GaussianBlur,
    RandomApply,
    RandomCrop,
    RandomGrayscale,
    RandomHorizontalFlip,
    RandomResizedCrop,
    RandomVerticalFlip,
    Resize,
)
from penstock.experimental.torchvision.v2 import functional  # noqa: E402

N = 4000
RAMP = torch.arange(8 * 9, dtype=torch.float32).reshape(1, 1, 8, 9).expand(N, 3, 8, 9).contiguous()


def share(mask) -> float:
    return float(np.mean(np.asarray(mask)))


@pytest.mark.parametrize("p", [0.1, 0.5, 0.8])
@pytest.mark.parametrize("transform", [RandomHorizontalFlip, RandomVerticalFlip, "apply", RandomGrayscale])
def test_probabilities(transform, p):
    op = RandomApply([RandomHorizontalFlip(1.0)], p) if transform == "apply" else transform(p)
    x = RAMP + torch.tensor([0.0, 100, 200]).reshape(3, 1, 1)
    changed = (Compose([op], seed=3)(x) != x).flatten(1).any(1)
    assert stats.binomtest(int(changed.sum()), N, p).pvalue > 1e-4


def test_all_transforms_of_a_list_are_applied_or_none():
    both = Compose([RandomApply([RandomHorizontalFlip(1.0), RandomVerticalFlip(1.0)], 0.5)], seed=1)
    first = set(both(RAMP)[:, 0, 0, 0].tolist())
    assert first == {0.0, 71.0}


@pytest.mark.parametrize(
    "padding, needed, size", [(0, False, (5, 4)), ((1, 2, 3, 4), False, (5, 4)), (0, True, (10, 3))]
)
def test_places_of_crops_are_equally_likely(padding, needed, size):
    crops = Compose([RandomCrop(size, padding, pad_if_needed=needed, fill=-1)], seed=2)(RAMP + 0.0)[:, 0]
    left, top, right, bottom = padding if isinstance(padding, tuple) else (padding,) * 4
    lack = max(0, size[0] - 8 - top - bottom)
    rows = 8 + top + bottom + 2 * lack - size[0] + 1
    columns = 9 + left + right - size[1] + 1
    # Where the picture's own first row and column are seen from the window: by any pixel of the picture in it.
    flat = crops.flatten(1)
    at = (flat >= 0).int().argmax(1)
    value = flat.gather(1, at[:, None])[:, 0]
    y = (value // 9).int() - at // size[1] + top + lack
    x = (value % 9).int() - at % size[1] + left
    counts = np.zeros((rows, columns))
    np.add.at(counts, (y.numpy(), x.numpy()), 1)
    assert stats.chisquare(counts.ravel()).pvalue > 1e-4


def test_windows_of_resized_crops():
    """Area and aspect ratio are in their ranges. The window's corners are determined from two ramps."""
    rows = torch.linspace(0, 200, 201).reshape(1, 201, 1).expand(1, 201, 301)
    columns = torch.linspace(0, 300, 301).reshape(1, 1, 301).expand(1, 201, 301)
    x = torch.cat([rows, columns])[None].expand(600, 2, 201, 301).contiguous()
    made = Compose([RandomResizedCrop(2, scale=(0.2, 0.4), ratio=(0.5, 1.5), antialias=False)], num_threads=2, seed=5)(
        x
    )
    height = 2 * (made[:, 0, 1, 0] - made[:, 0, 0, 0]).numpy()
    width = 2 * (made[:, 1, 0, 1] - made[:, 1, 0, 0]).numpy()
    area, ratio = height * width / (201 * 301), width / height
    assert stats.kstest(area, stats.uniform(0.2, 0.2).cdf).pvalue > 1e-4
    assert stats.kstest(np.log(ratio), stats.uniform(np.log(0.5), np.log(3.0)).cdf).pvalue > 1e-4


def test_factors_of_colours():
    x = torch.full((N, 3, 1, 1), 1.0)
    bright = Compose([ColorJitter(brightness=0.4)], seed=1)(x)[:, 0, 0, 0].numpy()
    assert stats.kstest(bright, stats.uniform(0.6, 0.8).cdf).pvalue > 1e-4
    dark = Compose([ColorJitter(brightness=3.0)], seed=1)(x)[:, 0, 0, 0].numpy()
    assert stats.kstest(dark, stats.uniform(0.0, 4.0).cdf).pvalue > 1e-4  # never below 0
    contrast = Compose([ColorJitter(contrast=(0.5, 2.0))], seed=1)(x)[:, 0, 0, 0].numpy()
    assert stats.kstest((contrast - 0.5) / 0.5, stats.uniform(0.5, 1.5).cdf).pvalue > 1e-4


def test_sigmas():
    x = torch.zeros(1000, 1, 1, 3)
    x[..., 1] = 1
    made = Compose([GaussianBlur((1, 3), (0.5, 1.5))], seed=1)(x)[:, 0, 0]
    # At the border the picture is mirrored, so that the ends have what goes to both sides of the middle.
    sigma = np.sqrt(-0.5 / np.log((made[:, 0] / 2 / made[:, 1]).numpy()))
    assert stats.kstest(sigma, stats.uniform(0.5, 1.0).cdf).pvalue > 1e-4


def some(**arguments):
    return Compose([RandomCrop(4), RandomHorizontalFlip(), ColorJitter(0.5)], **arguments)


def test_a_seed_repeats_the_sequence_whatever_the_threads():
    one, two, other = some(seed=7), some(seed=7, num_threads=2), some(seed=8)
    for _ in range(3):
        a, b, c = one(RAMP[:50]), two(RAMP[:50]), other(RAMP[:50])
        assert torch.equal(a, b)
        assert not torch.equal(a, c)
    assert not torch.equal(one(RAMP[:50]), a)


def test_a_seed_gives_the_same_one_by_one():
    one, batch = some(seed=7), some(seed=7)
    assert torch.equal(torch.stack([one(x) for x in RAMP[:20]]), batch(RAMP[:20]))


def test_the_generator_of_torch_repeats():
    transform = some()
    made = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        made.append((transform(RAMP[:50]), transform(RAMP[:50])))
    assert torch.equal(made[0][0], made[1][0]) and torch.equal(made[0][1], made[1][1])
    assert not torch.equal(made[0][0], made[0][1]) and not torch.equal(made[0][0], made[2][0])


def test_what_draws_nothing_leaves_the_generator_alone():
    torch.manual_seed(5)
    state = torch.get_rng_state()
    Compose([Resize(4), RandomHorizontalFlip(1.0), ColorJitter((0.5, 0.5))])(RAMP[:2])
    functional.resize(RAMP[:2], 4)
    assert torch.equal(torch.get_rng_state(), state)
    functional.gaussian_blur(RAMP[:2], 3, (1.0, 2.0))
    assert not torch.equal(torch.get_rng_state(), state)


def test_a_blur_with_a_seed_of_its_own():
    blur = [GaussianBlur(3, (0.5, 2.0), seed=9)]
    torch.manual_seed(1)
    one = [Compose(blur)(RAMP[:4]) for _ in range(2)]
    assert torch.equal(one[0], one[1])
    transform = Compose(blur)
    assert not torch.equal(transform(RAMP[:4]), transform(RAMP[:4]))


class _Pictures(torch.utils.data.Dataset):
    def __init__(self, transform):
        self.transform = transform

    def __len__(self):
        return 16

    def __getitem__(self, i):
        return self.transform(RAMP[0])


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_workers_of_a_loader(start):
    """Each worker draws different numbers, the same in each run with the same seed. The transform was used before."""
    transform = Compose([RandomCrop(4), ColorJitter(0.9)])
    transform(RAMP[0])
    made = []
    for _ in range(2 if start == "fork" else 1):
        torch.manual_seed(3)
        loader = torch.utils.data.DataLoader(
            _Pictures(transform), batch_size=4, num_workers=2 if start == "fork" else 1, multiprocessing_context=start
        )
        made.append(torch.cat(list(loader)))
        assert len({tuple(x.flatten().tolist()) for x in made[0]}) == 16
    assert torch.equal(made[0], made[-1])


def test_workers_with_a_seed_differ():
    loader = torch.utils.data.DataLoader(_Pictures(Compose([ColorJitter(0.9)], seed=1)), batch_size=8, num_workers=2)
    first, second = loader
    assert not torch.equal(first, second)


def test_pickles():
    transform = some(seed=4)
    transform(RAMP[:2])
    copy = pickle.loads(pickle.dumps(transform))
    assert torch.equal(copy(RAMP[:9]), some(seed=4)(RAMP[:9]))
    alone = RandomCrop(4)
    alone(RAMP[:2])
    assert pickle.loads(pickle.dumps(alone)).size == (4, 4)


def test_threads_share_a_transform():
    transform = Compose([Resize((5, 5)), RandomHorizontalFlip(1.0)])
    expected = [transform(RAMP[i : i + 3] + i) for i in range(40)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda i: transform(RAMP[i : i + 3] + i), range(40)))
    assert all(torch.equal(a, b) for a, b in zip(expected, found))
