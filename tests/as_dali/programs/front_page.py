# SPDX-License-Identifier: Apache-2.0
"""What DALI's front page shows: `front_page.py FOLDER` trains for one epoch on nothing."""

import sys

import nvidia.dali.fn as fn
import nvidia.dali.types as types
from nvidia.dali.pipeline import pipeline_def
from nvidia.dali.plugin.pytorch import DALIGenericIterator

images_dir = sys.argv[1]


@pipeline_def(num_threads=4, device_id=0)
def get_dali_pipeline():
    images, labels = fn.readers.file(file_root=images_dir, random_shuffle=True, name="Reader")
    images = fn.decoders.image_random_crop(images, device="cpu", output_type=types.RGB)
    images = fn.resize(images, resize_x=256, resize_y=256)
    images = fn.crop_mirror_normalize(
        images,
        crop_h=224,
        crop_w=224,
        mean=[0.485 * 255, 0.456 * 255, 0.406 * 255],
        std=[0.229 * 255, 0.224 * 255, 0.225 * 255],
        mirror=fn.random.coin_flip(),
    )
    return images, labels


train_data = DALIGenericIterator([get_dali_pipeline(batch_size=16)], ["data", "label"], reader_name="Reader")

for i, data in enumerate(train_data):
    x, y = data[0]["data"], data[0]["label"]
    print(i, tuple(x.shape), x.dtype, tuple(y.shape), y.dtype)
print(len(train_data))
