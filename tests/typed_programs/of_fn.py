# SPDX-License-Identifier: Apache-2.0
"""Operators as functions."""

from typing import Any

import numpy as np

from penstock import DataNode, fn, math, types
from penstock.types import DALIDataType


def graph(folder: str, normalised: dict[str, Any]) -> tuple[DataNode, ...]:
    jpegs, labels = fn.readers.file(file_root=folder, files=["a", "b"], random_shuffle=True, name="reader")
    images = fn.decoders.image(jpegs, device="mixed", output_type=types.RGB, hw_decoder_load=0.5)
    images = fn.resize(images, size=(224, 224), interp_type=types.INTERP_LINEAR, dtype=np.uint8, antialias=True)
    angle = fn.random.uniform(range=(-10.0, 10.0), seed=3)
    images = fn.rotate(images, angle=angle, fill_value=0, keep_size=True)
    images = fn.crop_mirror_normalize(images, mirror=fn.random.coin_flip(probability=0.3), **normalised)
    images = fn.warp_affine(images, matrix=[1.0, 0, 0, 0, 1, 0], size=fn.shapes(images)[:2])
    images = fn.color_twist(images, brightness=math.clamp(angle * 0.1, 0.5, 1.5), hue=math.sqrt(angle))
    boxes, classes = fn.box_encoder(images, labels, anchors=[0.0, 0.0, 1.0, 1.0])
    parts = [images, images, images]
    both = fn.cat(*parts, axis=0), fn.stack(boxes, classes, np.zeros((1, 3), np.float32), 3.5, axis_name="C")
    same = fn.random.choice([1, 2, 3]), fn.cast(labels, dtype=types.FLOAT), fn.reshape(images, layout="HWC")
    one = fn.external_source(source=lambda i: [np.zeros(3)], dtype=types.UINT8)
    two, three = fn.external_source(lambda i: ([np.zeros(3)], [np.zeros(3)]), 2)
    four = fn.external_source(name="x", num_outputs=1)[0]
    five, six = fn.python_function(one, two, function=lambda a, b: (a, b), num_outputs=2)
    constant = types.Constant([1.5, 2], dtype=types.FLOAT, layout="C"), types.Constant(3).uint8() * images
    return (*both, *same, three, four, five, six, fn.transforms.combine(angle, angle), *constant)


kind: DALIDataType = types.to_dali_type("float32")
number: float = types.Constant(3.5).value
scalar = types.to_numpy_type(types.INT64)(3)


def wrong(x: DataNode) -> None:
    fn.resize(x, sise=3)  # found: call-arg
    fn.resize(x, size="large")  # found: arg-type
    fn.resize()  # found: call-arg
    fn.resize("x", size=3)  # found: arg-type
    fn.resize(x, dtype="float")  # found: arg-type
    fn.resize(x, interp_type=types.RGB)  # found: arg-type
    fn.rezise(x, size=3)  # found: attr-defined
    fn.readers.fille(file_root="x")  # found: attr-defined
    fn.reader.file(file_root="x")  # found: attr-defined
    fn.readers.file(file_rot="x")  # found: call-arg
    fn.brightness(x, brightness="much")  # found: arg-type
    fn.cat(axis=1)  # found: call-arg
    fn.cat(x, "y")  # found: arg-type
    fn.external_source(sourse=3)  # found: call-overload
    fn.random.uniform(range="ab")  # found: arg-type
    math.sqrrt(x)  # found: attr-defined
    math.sqrt("x")  # found: arg-type
    math.clamp(x, 3)  # found: call-arg
    types.UINT9  # found: attr-defined
    types.DALIDataType.UINT9  # found: attr-defined
    types.Constant(3, shpae=[3])  # found: call-overload
    types.Constant(3).uint9()  # found: attr-defined
    fn.external_source(num_outputs=2).gpu()  # found: attr-defined
