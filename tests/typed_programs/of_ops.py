# SPDX-License-Identifier: Apache-2.0
"""Operators as classes."""

import numpy as np

from penstock import DataNode, ops, types
from penstock.pipeline import Pipeline


class OldStyle(Pipeline):
    def __init__(self, folder: str):
        super().__init__(8, 2, 0, seed=12)
        self.input = ops.readers.File(file_root=folder, random_shuffle=True)
        self.decode = ops.decoders.Image(device="mixed", output_type=types.RGB)
        self.resize = ops.Resize(device="gpu", resize_x=300)
        self.uniform = ops.random.Uniform(range=(0.0, 1.0))
        self.feed = ops.ExternalSource()

    def define_graph(self) -> tuple[DataNode, ...]:
        jpegs, labels = self.input(name="Reader")
        images = self.resize(self.decode(jpegs), resize_y=self.uniform() * 100)
        self.feeded: DataNode = self.feed()
        both: DataNode = ops.Compose([ops.Flip(), ops.Cast(dtype=np.float32)])(images)
        return images, labels, self.feeded, both

    def iter_setup(self) -> None:
        self.feed_input(self.feeded, [np.zeros(3)])


pipe = OldStyle("folder")
size: int = pipe.epoch_size()["Reader"]
names: set[str] = ops.cpu_ops()
where: str = pipe.resize.device

ops.Resise(size=3)  # found: attr-defined
ops.Resize(sise=3)  # found: call-arg
ops.Resize(resize_x="wide")  # found: arg-type
pipe.resize(3, resize_w=4)  # found: call-arg
pipe.resize()  # found: call-arg
pipe.resize.preserved  # found: attr-defined
ops.readers.Fille(file_root="x")  # found: attr-defined
ops.Compose(3)  # found: arg-type
