# SPDX-License-Identifier: Apache-2.0
"""Pipelines serialised by DALI give the same results here."""

import numpy as np
import pytest

from modules import ROOT
from penstock import Pipeline

dali = pytest.importorskip("nvidia.dali")
fn, math, types = dali.fn, dali.math, dali.types


def read():
    return fn.readers.file(file_root=str(ROOT / "examples" / "data"), name="files")


def validation():
    files, labels = read()
    images = fn.resize(
        fn.decoders.image(files, output_type=types.RGB), resize_shorter=64, interp_type=types.INTERP_CUBIC
    )
    normal = {"dtype": types.FLOAT16, "output_layout": "HWC", "mean": [120.0], "std": [60.0, 61.0, 62.0]}
    return fn.crop_mirror_normalize(images, crop=(48, 48), crop_pos_x=0.25, **normal), labels


def by_data():
    files, labels = read()
    images = fn.decoders.image(files, output_type=types.GRAY)
    angle = fn.cast(labels, dtype=types.FLOAT) * 10.5 + 3
    return fn.rotate(images, angle=angle, fill_value=7, interp_type=types.INTERP_NN), fn.shapes(images), angle


def parts():
    files, _ = read()
    images = fn.slice(fn.decoders.image(files), rel_start=[0.1, 0.2], rel_shape=[0.5, 0.6], axis_names="HW")
    return fn.reductions.mean(images, axes=[0, 1]), images[3:9:1, 5], fn.transpose(images, perm=[2, 0, 1])


def constants():
    x = fn.constant(fdata=[0.5, 2.5, 9], shape=[3])
    i = types.Constant(np.int32([[1, -2], [5, 40]]))
    small, wide = types.Constant(3).uint8(), types.Constant(4.5)
    more = [x / small, math.clamp(x, 1, wide), i // 3, i % 3, i**2, 3 - x, math.atan2(x, 2)]
    return (*more, i != 5, i >= -2, (i < 3) | (i == 40), fn.cat(x, x * 2, axis=0), fn.stack(i, -i), math.abs(i))


def several_outputs():
    files, labels = read()
    images = fn.resize(fn.decoders.image(files), size=[20, 30])
    boxes = types.Constant(np.float32([[0.1, 0.1, 0.6, 0.7], [0.2, 0.3, 0.9, 0.8]]))
    anchor, shape, kept = fn.random_bbox_crop(boxes, scaling=[1.0, 1.0], aspect_ratio=[1.0, 1.0], bbox_layout="xyXY")
    return fn.slice(images, anchor, shape), kept, fn.one_hot(labels, num_classes=9), fn.pad(labels, fill_value=-1)


@pytest.mark.parametrize("body", [validation, by_data, parts, constants, several_outputs])
def test_outputs(body):
    @dali.pipeline_def(batch_size=4, num_threads=1, device_id=None, seed=3)
    def definition():
        return body()

    pipe = definition()
    pipe.build()
    ours = Pipeline.deserialize(pipe.serialize())
    for theirs, made in zip(pipe.run(), ours.run()):
        for i in range(4):
            a, b = np.asarray(theirs.at(i)), np.asarray(made.at(i))
            assert a.dtype == b.dtype and a.shape == b.shape
            bound = {"uint8": 2, "float16": 0.05}.get(a.dtype.name, 1e-5 if body is not parts else 1)
            assert np.abs(a.astype("f8") - b.astype("f8")).max(initial=0) <= bound
