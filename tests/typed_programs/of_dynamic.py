# SPDX-License-Identifier: Apache-2.0
"""Operators at once, without a pipeline."""

import numpy as np

from penstock import types
from penstock.experimental import dynamic as ndd


def train(folder: str) -> ndd.Batch:
    reader = ndd.readers.File(file_root=folder, random_shuffle=True)
    total = ndd.as_batch([0.0] * 8)
    for jpegs, labels in reader.next_epoch(batch_size=8):
        images = ndd.decoders.image(jpegs, device="gpu", output_type=types.RGB)
        images = ndd.resize(images, size=(224, 224), dtype=ndd.uint8)
        images = ndd.rotate(images, angle=ndd.random.uniform(batch_size=8, range=(-10.0, 10.0), rng=ndd.random.RNG(3)))
        images = ndd.crop_mirror_normalize(images, mean=[1.0], std=[2.0], mirror=labels > 2)
        total = total + 2 * ndd.reductions.mean(images).cpu() - ndd.math.sqrt(total)
    jpegs, labels = reader(batch_size=8)
    return total + labels


with ndd.EvalMode.eager, ndd.Device("cpu"), ndd.EvalContext(num_threads=2) as context:
    context.evaluate_all()
one: ndd.Tensor = ndd.as_tensor(np.zeros((3, 4, 3), np.uint8), layout="HWC", device="cpu")
one = ndd.resize(ndd.imread("cat.jpg"), size=[8, 8]) * 2 + 1.5
one = ndd.math.clamp(abs(-one)[..., 0], 0, 255)
both: ndd.Batch = ndd.batch([one, one]) + one
both = one + ndd.math.max(both.slice[0], one)
array: np.ndarray = np.asarray(both.select(0)) + both.tensors[1].item()
part: ndd.Batch = both.select([1, 0]).select(slice(1))
print(both.batch_size, both.shape, both.dtype == ndd.float32, one.layout, one.device, part, ndd.int32([1, 2]).shape)
ndd.set_num_threads(2)
ndd.random.set_seed(3)


def wrong(batch: ndd.Batch) -> None:
    ndd.resize(batch, sise=3)  # found: call-overload
    ndd.resize(batch, size="large")  # found: arg-type
    ndd.rezise(batch, size=3)  # found: attr-defined
    ndd.readers.Fille(file_root="x")  # found: attr-defined
    ndd.readers.File(file_rot="x")  # found: call-arg
    batch.tensor  # found: attr-defined
    one.batch_size  # found: attr-defined
    batch + "one"  # found: arg-type
    one + "one"  # found: call-overload
    ndd.math.sqrrt(one)  # found: attr-defined
    ndd.math.sqrt("one")  # found: arg-type
    ndd.math.sqrt(batch).item()  # found: attr-defined
    ndd.random.RNG("seed")  # found: arg-type
    ndd.set_num_threads("two")  # found: arg-type
    ndd.float33  # found: attr-defined
