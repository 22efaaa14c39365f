# SPDX-License-Identifier: Apache-2.0
"""A loader in the style of DALI's first versions: operators are made in the constructor, readers named in the call, two
pipelines wrapped as one data set. `class_style.py FOLDER N_SHARDS [gpu]`, where 0 shards means a single pipeline."""

import sys

from nvidia.dali import ops, types
from nvidia.dali.pipeline import Pipeline
from nvidia.dali.plugin.pytorch import DALIClassificationIterator

GPU = sys.argv[3:] == ["gpu"]


class HybridPipeline(Pipeline):
    def __init__(self, batch_size, file_root, num_threads, device_id, num_shards, shard_id, old_name):
        super(HybridPipeline, self).__init__(batch_size, num_threads, device_id)  # noqa: UP008  the style of the time
        if num_shards == 0:
            self.input = ops.FileReader(file_root=file_root)
        else:
            self.input = ops.FileReader(file_root=file_root, num_shards=num_shards, shard_id=shard_id)
        device = "gpu" if GPU else "cpu"
        self.decode = ops.ImageDecoder(device="mixed" if GPU else "cpu", output_type=types.RGB)
        self.res = ops.RandomResizedCrop(device=device, size=224)
        dtype = {"output_dtype": types.FLOAT} if old_name else {"dtype": types.FLOAT}
        self.cmnp = ops.CropMirrorNormalize(device=device, output_layout=types.NCHW, mean=0.0, std=1.0, **dtype)

    def define_graph(self):
        jpegs, labels = self.input(name="Reader")
        images = self.decode(jpegs)
        images = self.res(images)
        images = self.cmnp(images)
        return images, labels


class TorchWrapper:
    """Combines iterators, taking batches in turns."""

    def __init__(self, num_shards, data_loader):
        self.count, self.num_shards, self.data_loader = 0, num_shards, data_loader

    def __iter__(self):
        return self

    def __len__(self):
        if self.num_shards == 0:
            return self.data_loader.size
        return len(self.data_loader) * self.data_loader[0].size

    def __next__(self):
        if self.num_shards == 0:
            data = next(self.data_loader)
        else:
            data = next(self.data_loader[self.count % self.num_shards])
            self.count += 1
        return data[0]["data"], data[0]["label"].view(-1).long()


def get_iter_dali(batch_size, file_root, num_shards, old_name=False):
    pipelines = [
        HybridPipeline(batch_size, file_root, 4, shard, num_shards, shard, old_name) for shard in range(num_shards or 1)
    ]
    for pipeline in pipelines:
        pipeline.build()
    size = pipelines[0].epoch_size()["Reader"] // pipelines[0].batch_size * pipelines[0].batch_size
    loaders = [DALIClassificationIterator(pipelines=p, last_batch_policy="drop", size=size) for p in pipelines]
    return TorchWrapper(num_shards, loaders if num_shards else loaders[0])


if __name__ == "__main__":
    n_shards = int(sys.argv[2])
    for is_old in (False, True):
        loader = get_iter_dali(4, sys.argv[1], n_shards, is_old)
        n = 0
        for x, y in loader:
            n += len(y)
            assert 0 <= float(x.min()) and 1 < float(x.max()) <= 255
        print(n, len(loader), tuple(x.shape), x.dtype, tuple(y.shape), y.dtype)
