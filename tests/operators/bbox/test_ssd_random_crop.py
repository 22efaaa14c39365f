# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest
from scipy import stats
from windows import accepted, drawn_by_definition

from penstock import fn, ops, pipeline_def

HEIGHT, WIDTH = 60, 80
IMAGE = np.stack([*np.mgrid[:HEIGHT, :WIDTH], np.zeros((HEIGHT, WIDTH))], axis=-1).astype("u1")  # its own coordinates
BOXES = np.float32([[0.1, 0.1, 0.5, 0.4], [0.45, 0.4, 0.95, 0.9]])
LABELS = np.int32([3, 7])
THRESHOLDS = (0, 0.1, 0.3, 0.5, 0.7, 0.9)


def run(n, seed=1, num_threads=2, face=fn, **kwargs):
    """Images, boxes and labels of n crops."""

    @pipeline_def(batch_size=n, num_threads=num_threads, seed=seed)
    def pipe():
        image = fn.external_source(source=[[IMAGE] * n], cycle=True, layout="HWC")
        boxes, labels = (fn.external_source(source=[[x] * n], cycle=True) for x in (BOXES, LABELS))
        if face is ops:
            return tuple(ops.SSDRandomCrop(**kwargs)(image, boxes, labels))
        return tuple(fn.ssd_random_crop(image, boxes, labels, **kwargs))

    with pytest.deprecated_call():
        p = pipe()
    outputs = p.run()
    assert outputs[0].layout() == "HWC"
    return [[np.array(x.at(i)) for i in range(n)] for x in outputs]


def windows_of(images):
    """Windows (n, 4): x, y, width, height in pixels, from the pixel values."""
    return np.array([[i[0, 0, 1], i[0, 0, 0], i.shape[1], i.shape[0]] for i in images], "f8")


def by_definition(rng, n):
    """n windows (relative, float64): thresholds are drawn until a window is accepted."""
    candidates = drawn_by_definition(rng, n, [0.3, 1.0], [0.5, 2.0])
    fits = np.stack([accepted(candidates, BOXES.astype("f8"), t)[0] for t in THRESHOLDS])
    # The acceptance rate of a threshold determines how often it is the last one chosen; a window without an allowed
    # aspect ratio also leads to another choice.
    free = rng.uniform(0.3, 1, (2, 100000))
    share = ((free[0] / free[1] >= 0.5) & (free[0] / free[1] <= 2)).mean()
    odds = np.array([1.0, *(share * fits.mean(axis=1))])
    counts = rng.multinomial(n, odds / odds.sum())
    chosen = [rng.choice(candidates[f], c) for f, c in zip(fits, counts[1:])]
    return np.concatenate([np.tile([0, 0, 1, 1.0], (counts[0], 1)), *chosen])


def test_windows():
    images, _, _ = run(1500)
    seen, expected = windows_of(images), by_definition(np.random.default_rng(2), 3000)
    share = np.array([(w[:, 2] == e).mean() for w, e in ((seen, WIDTH), (expected, 1))])
    assert abs(share[0] - share[1]) < 0.05
    pixels = np.rint(expected * [WIDTH, HEIGHT, WIDTH, HEIGHT])
    for a, b in zip(seen.T, pixels.T):
        assert stats.ks_2samp(a, b).statistic < 0.06


def test_boxes_follow_their_window():
    images, boxes, labels = run(200, num_attempts=20)
    for w, b, names in zip(windows_of(images) / [WIDTH, HEIGHT, WIDTH, HEIGHT], boxes, labels):
        rows = [LABELS.tolist().index(x) for x in names]
        expected = np.clip((BOXES[rows].reshape(-1, 2, 2) - w[:2]) / w[2:], 0, 1).reshape(-1, 4)
        np.testing.assert_allclose(b, expected, atol=0.07)  # the window is rounded to pixels
        assert len(b) > 0


def test_threads_and_faces():
    first = run(20)
    for other in (run(20, num_threads=4), run(20, face=ops)):
        assert all(np.array_equal(a, b) for u, v in zip(first, other) for a, b in zip(u, v))
    assert any(a.shape != b.shape for a, b in zip(first[0], run(20, seed=9)[0]))


def test_errors():
    with pytest.raises(TypeError, match="Did you mean 'num_attempts'"):
        run(1, num_atempts=3)
    with pytest.raises(ValueError, match="at least 1, got 0"):
        run(1, num_attempts=0)
    with pytest.raises(ValueError, match="takes 'cpu'"):
        run(1, device="gpu")
