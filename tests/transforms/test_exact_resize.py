# SPDX-License-Identifier: Apache-2.0
"""The pixels of a resize, compared with Pillow and PyTorch."""

import numpy as np
import pytest
from PIL import Image

torch = pytest.importorskip("torch")

from penstock import fn, pipeline_def, types  # noqa: E402
from penstock.transforms import InterpolationMode, functional  # noqa: E402
from penstock.transforms._picture import Picture, pillow_is_known  # noqa: E402

PILLOW = {"nearest": 0, "lanczos": 1, "bilinear": 2, "bicubic": 3, "box": 4}


def shapes(n, seed, most=140):
    rng = np.random.default_rng(seed)
    for i in range(n):
        h, w, oh, ow = (int(v) for v in rng.integers(1, most, 4))
        if i % 10 == 0:
            h, oh = 900 + i, 1 + i % 7  # more taps than 16 bits of weights are used for
        yield rng.integers(0, 256, (h, w, 3), dtype=np.uint8), (oh, ow)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("layout", ["CHW", "HWC", "NCHW", "1HW", "sliced"])
def test_tensors(mode, antialias, layout):
    for x, size in shapes(60, len(mode) + len(layout)):
        t = torch.from_numpy(x).permute(2, 0, 1)
        t = {
            "CHW": t.contiguous(),
            "HWC": t,
            "NCHW": torch.stack([t, t.flip(-1)]),
            "1HW": t[:1].contiguous(),
            "sliced": t[:, ::2, ::2],
        }[layout]
        four = t if t.ndim == 4 else t[None]
        expected = torch.nn.functional.interpolate(four, size, mode=mode, antialias=antialias)
        got = functional.resize(t, size, InterpolationMode(mode), antialias=antialias)
        assert torch.equal(got, expected.reshape(got.shape)), (x.shape, size)


@pytest.mark.parametrize("mode", PILLOW)
@pytest.mark.parametrize("kind", ["RGB", "L", "RGBA", "P"])
def test_images(mode, kind):
    for x, size in shapes(80, len(mode) + len(kind)):
        image = Image.fromarray(x).convert(kind)
        expected = image.resize(size[::-1], PILLOW[mode])
        got = functional.resize(image, size, mode)
        assert got.mode == expected.mode and got.size == expected.size
        assert got.tobytes() == expected.tobytes(), (x.shape, size)


def test_the_order_of_passes_is_known():
    """Otherwise images would be resized by Pillow, slowly."""
    assert pillow_is_known() or int(Image.__version__.split(".")[0]) < 13


def test_a_window_has_the_pixels_of_the_whole():
    rng = np.random.default_rng(5)
    for x, (oh, ow) in shapes(100, 5):
        for mode in (None, "RGB"):
            top, left = int(rng.integers(0, oh)), int(rng.integers(0, ow))
            height, width = int(rng.integers(1, oh - top + 1)), int(rng.integers(1, ow - left + 1))
            pending = Picture(x.transpose(2, 0, 1), mode).resized((oh, ow), "bicubic", True)
            part = pending.cropped(top, left, height, width).pixels
            assert (part == pending.done().pixels[:, top : top + height, left : left + width]).all()


def resized(images, size, **arguments):
    @pipeline_def(batch_size=len(images), num_threads=2, device_id=None)
    def pipe():
        x = fn.external_source(lambda: images, layout="HWC", batch=True)
        return fn.resize(x, size=size, **arguments)

    (out,) = pipe().run()
    return [np.asarray(out.at(i)) for i in range(len(images))]


FILTERS = {"bilinear": types.INTERP_LINEAR, "bicubic": types.INTERP_CUBIC, "lanczos": types.INTERP_LANCZOS3}


@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "lanczos", "nearest"])
def test_pipelines_by_pillows_rule(mode):
    filter = FILTERS.get(mode, types.INTERP_NN)
    for seed in range(8):
        images = [x for x, _ in shapes(20, seed)]
        size = tuple(int(v) for v in np.random.default_rng(seed).integers(1, 90, 2))
        for x, got in zip(images, resized(images, size, rule="pillow", interp_type=filter)):
            expected = np.asarray(Image.fromarray(x).resize(size[::-1], PILLOW[mode]))
            assert (got == expected).all(), (x.shape, size)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "nearest"])
@pytest.mark.parametrize("antialias", [True, False])
def test_pipelines_by_pytorchs_rule(mode, antialias):
    for dtype, most in ((np.uint8, 0), (np.float32, 2e-5)):  # whose weights PyTorch has in single precision
        images = [x.astype(dtype) / dtype(255) if most else x for x, _ in shapes(20, 3)]
        filter = FILTERS.get(mode, types.INTERP_NN)
        smooth = {"antialias": antialias, "align_corners": False} if mode != "nearest" else {}
        for x, got in zip(images, resized(images, (40, 53), rule="torch", interp_type=filter, antialias=antialias)):
            t = torch.from_numpy(x).permute(2, 0, 1)[None]
            expected = torch.nn.functional.interpolate(t, (40, 53), mode=mode, **smooth)[0].permute(1, 2, 0).numpy()
            assert np.abs(got.astype("f8") - expected).max() <= most, x.shape


@pytest.mark.parametrize("rule", ["pillow-box", "torch-nearest-exact"])
def test_pipelines_by_filters_without_a_type(rule):
    for seed in range(4):
        images = [x for x, _ in shapes(20, seed)]
        size = tuple(int(v) for v in np.random.default_rng(seed).integers(1, 90, 2))
        for x, got in zip(images, resized(images, size, rule=rule)):
            if rule == "pillow-box":
                expected = np.asarray(Image.fromarray(x).resize(size[::-1], Image.Resampling.BOX))
            else:
                t = torch.from_numpy(x).permute(2, 0, 1)[None]
                expected = torch.nn.functional.interpolate(t, size, mode="nearest-exact")[0].permute(1, 2, 0).numpy()
            assert (got == expected).all(), (x.shape, size)
    with pytest.raises(ValueError, match="also sets the filter: leave out interp_type"):
        resized(images, (2, 2), rule=rule, interp_type=types.INTERP_LINEAR)


def test_regions_are_crops():
    """In a pipeline: whole regions, mirrored ones, and windows of a following crop."""
    x = np.random.default_rng(0).integers(0, 256, (80, 90, 3), dtype=np.uint8)
    region = {"roi_start": (10, 20), "roi_end": (61, 77)}
    expected = np.asarray(Image.fromarray(x[10:61, 20:77]).resize((30, 40), Image.Resampling.BILINEAR))
    (got,) = resized([x], (40, 30), rule="pillow", **region)
    assert (got == expected).all()
    (got,) = resized([x], (40, -30), rule="pillow", **region)
    assert (got == expected[:, ::-1]).all()

    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def pipe():
        y = fn.resize(fn.external_source(lambda: [x], layout="HWC"), size=(41, 44), rule="torch")
        return fn.crop(y, crop=(20, 20))

    whole = torch.nn.functional.interpolate(
        torch.from_numpy(x).permute(2, 0, 1)[None], (41, 44), mode="bilinear", antialias=True
    )[0].permute(1, 2, 0)
    (out,) = pipe().run()
    got = np.asarray(out.at(0))
    assert any((got == whole[top : top + 20, 12:32].numpy()).all() for top in (10, 11))


def test_errors_of_the_rule():
    x = [np.zeros((4, 4, 3), np.uint8)]
    with pytest.raises(ValueError, match=r"rule takes one of 'dali', 'pillow', 'torch', .*; got 'cv2'"):
        resized(x, (2, 2), rule="cv2")
    with pytest.raises(ValueError, match="interp_type=.*GAUSSIAN is not supported by rule='torch'"):
        resized(x, (2, 2), rule="torch", interp_type=types.INTERP_GAUSSIAN)
    with pytest.raises(RuntimeError, match=r"volumes \(DHWC\) can't be resized by rule='pillow'"):

        @pipeline_def(batch_size=1, num_threads=1, device_id=None)
        def pipe():
            volume = fn.external_source(lambda: [np.zeros((2, 4, 4, 3), np.uint8)], layout="DHWC")
            return fn.resize(volume, size=(2, 2, 2), rule="pillow")

        pipe().run()
