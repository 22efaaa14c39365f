# SPDX-License-Identifier: Apache-2.0
"""The main job on photographs: windows pushed down to the decoder give the same pixels as whole images, and a batch
depends only on the seed."""

from pathlib import Path

import numpy as np
import pytest

from penstock import fn, pipeline_def, types

ROOT = Path(__file__).parents[3] / "examples" / "data"


def val(images):
    images = fn.resize(images, resize_shorter=100)
    return [images, fn.crop_mirror_normalize(images, crop=(80, 80), mean=[120.0], std=[60.0])]


def cropped(images):
    images = fn.crop(images, crop=(97, 103), crop_pos_x=fn.random.uniform(range=(0, 1)))
    return [images, fn.color_twist(images, hue=20.0, saturation=0.7)]


def training(images):
    images = fn.random_resized_crop(images, size=64)
    twisted = fn.color_twist(images, brightness=fn.random.uniform(range=(0.8, 1.2)), hue=10.0)
    mirror = fn.random.coin_flip()
    return [images, twisted, fn.crop_mirror_normalize(twisted, mirror=mirror, dtype=types.FLOAT16)]


def roi(images):
    images = fn.resize(images, size=(40, 50), roi_start=(0.2, 0.3), roi_end=(0.7, 0.6), roi_relative=True)
    return [images, fn.flip(images, horizontal=fn.random.coin_flip())]


def colours_between(images):
    bright = fn.brightness_contrast(images, brightness=1.2, contrast=0.9)
    sliced = fn.slice(bright, (0.1, 0.2), (0.5, 0.4), axis_names="HW")
    return [bright, sliced, fn.cast(sliced, dtype=types.FLOAT)]


def anchored(images):
    """The window's position is computed by operators after the decoder, in a separate chain."""
    anchor = fn.random.uniform(range=(0, 0.5), shape=[2]) * 0.8 + 0.1
    return [images, fn.slice(images, anchor, (0.3, 0.4), axis_names="HW")]


JOBS = [val, cropped, training, roi, colours_between, anchored]


@pipeline_def(batch_size=21, num_threads=2, seed=11)
def pipe(job, keep):
    """With `keep`, every intermediate image is an output, so no image is computed partially."""
    jpegs, labels = fn.readers.file(file_root=str(ROOT), name="reader", random_shuffle=True)
    images = fn.decoders.image(jpegs)
    steps = job(images)
    return (steps[-1], labels, images, *steps) if keep else (steps[-1], labels)


def samples(batch):
    return [np.array(batch.at(i)) for i in range(len(batch))]


@pytest.mark.parametrize("job", JOBS)
def test_windows_give_the_pixels_of_whole_images(job):
    narrow, whole = pipe(job, False), pipe(job, True)
    assert "window" in narrow.explain()
    for _ in range(2):
        a, b = narrow.run(), whole.run()
        assert a[1].as_array().tolist() == b[1].as_array().tolist()
        for x, y in zip(samples(a[0]), samples(b[0])):
            np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize("threads, depth, batch", [(1, 1, 21), (16, 4, 21), (3, 2, 7)])
def test_batches_are_a_function_of_the_seed(job, threads, depth, batch):
    first = pipe(job, False)
    other = pipe(job, False, num_threads=threads, prefetch_queue_depth=depth, batch_size=batch)
    want = [s for _ in range(2) for s in samples(first.run()[0])]
    got = [s for _ in range(2 * 21 // batch) for s in samples(other.run()[0])]
    for x, y in zip(got, want):
        np.testing.assert_array_equal(x, y)
    reseeded = pipe(job, False, seed=12).run()
    assert reseeded[1].as_array().tolist() != first.run()[1].as_array().tolist()
