# SPDX-License-Identifier: Apache-2.0
"""Serialises the pipelines of this folder with DALI: run `python make.py` in it, with nvidia-dali installed."""

from nvidia.dali import fn, math, pipeline_def, types


@pipeline_def(batch_size=4, num_threads=2, device_id=None, seed=5)
def pictures():
    data = fn.external_source(device="cpu", name="DATA", dtype=types.UINT8, ndim=1)
    images = fn.decoders.image(data, output_type=types.RGB)
    mirror = fn.random.coin_flip(probability=1.0)
    normal = fn.crop_mirror_normalize(
        images, crop=[6, 8], mirror=mirror, dtype=types.FLOAT, output_layout="CHW", mean=[1.0, 2.0, 3.0], std=[4.0]
    )
    return images, normal, images[1:3, 2:, :], images[0], images[:, -2]


@pipeline_def(batch_size=3, num_threads=1, device_id=None)
def numbers():
    x = fn.external_source(name="X", dtype=types.FLOAT, ndim=1)
    i = fn.external_source(name="I", dtype=types.INT32, ndim=1)
    small = types.Constant(3).uint8()
    return (
        *(-x, math.sqrt(x), x / small, i // 2, i / 2, math.clamp(x, 0, 2.5), x * 2 + i, 10 - i),
        *(x > 2, i != 3, i <= small, (i > 1) & (i < 4), math.pow(i, 2), math.max(x, i), +x),
        fn.constant(idata=[0, 1, 2, 3, 4, 5], shape=[2, 3], dtype=types.UINT8),
    )


@pipeline_def(batch_size=2, num_threads=1, device_id=None, enable_conditionals=True)
def branches():
    x = fn.external_source(name="X", dtype=types.FLOAT, ndim=1)
    if fn.random.coin_flip():
        x = x + 1
    return x


for definition in (pictures, numbers, branches):
    pipe = definition()
    pipe.build()
    pipe.serialize(filename=f"{definition.__name__}.dali")
