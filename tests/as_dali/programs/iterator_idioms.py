# SPDX-License-Identifier: Apache-2.0
"""Iterators that programs derive from DALI's; more of idioms.py, which runs them."""

import numpy as np
from nvidia.dali import fn, pipeline_def, types
from nvidia.dali.plugin.pytorch import DALIGenericIterator
from own_iterator import LastBatchPolicy, Own, _DaliBaseIterator


def idioms(files):
    """Functions by name; each returns a list of arrays."""

    @pipeline_def(batch_size=4, num_threads=1, device_id=None)
    def labels(shard=0, shards=1, pad=False, constant=False):
        label = fn.readers.file(
            files=files[:11], labels=list(range(11)), name="R", shard_id=shard, num_shards=shards, pad_last_batch=pad
        )[1]
        return (label, types.Constant(1)) if constant else label

    return {f.__name__: lambda f=f: f(labels) for f in (derived_from_dalis_base, arguments_in_the_order_of_2019)}


def arguments_in_the_order_of_2019(labels):
    """There was no `reader_name` then, so a boolean is passed in its position."""

    class Old(DALIGenericIterator):
        def __init__(self, pipelines, size, auto_reset=False, fill_last_batch=True, padded=False):
            super().__init__(pipelines, ["data", "label"], size, auto_reset, fill_last_batch, padded)

        def __len__(self):
            return int(self._size / self.batch_size) + 1

        def __next__(self):
            return super().__next__()[0]["data"]

    it = Old([labels(constant=True)], 11)
    return [np.array([len(it), it._size]), *(x.numpy() for _ in range(2) for x in it)]


def derived_from_dalis_base(labels):
    @pipeline_def(batch_size=4, num_threads=1, device_id=None)
    def source(n=3):
        return fn.external_source(source=[np.full((4, 1), i, np.int32) for i in range(n)], cycle="raise")

    class OfTorch(DALIGenericIterator):
        """The plugin's iterator with another conversion of outputs."""

        __next__ = Own.__next__

    given = []
    for policy in LastBatchPolicy.FILL, LastBatchPolicy.DROP, LastBatchPolicy.PARTIAL:
        iterators = [
            Own(labels(), ["x"], reader_name="R", last_batch_policy=policy),
            Own([labels(i, 2, True) for i in range(2)], ["x"], reader_name="R", last_batch_policy=policy),
            Own(labels(), ["x"], 11, last_batch_policy=policy, auto_reset=True, prepare_first_batch=False),
            Own([labels(), labels()], ["x"], 11, last_batch_policy=policy),
            Own(source(), ["x"], last_batch_policy=policy, auto_reset=True),
            OfTorch([labels(i, 2) for i in range(2)], ["x"], reader_name="R", last_batch_policy=policy),
        ]
        for i, it in enumerate(iterators):
            for _ in range(3):
                batches = it if i != 2 else (next(it) for _ in range(len(it)))  # without reaching StopIteration
                given += [part["x"].flatten().numpy() for batch in batches for part in batch]
                given.append(np.array([-1]))
                it.reset()
    of_torch = DALIGenericIterator(labels(), ["x"], reader_name="R")
    given.append(np.array([isinstance(x, _DaliBaseIterator) for x in (of_torch, *iterators, labels())]))
    return given
