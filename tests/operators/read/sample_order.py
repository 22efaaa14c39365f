# SPDX-License-Identifier: Apache-2.0
"""The order of samples: from its definition, from readers with and without files, and as in DALI."""

import itertools
from collections.abc import Iterator

import numpy as np

import penstock
from penstock.operators.read._sharded import ShardedSource


def begin(shard: int, size: int, num_shards: int) -> int:
    """The first sample of a shard: floor(shard * size / num_shards)."""
    return shard * size // num_shards


def epoch_of_shard(size, num_shards=1, shard_id=0, stick_to_shard=False, pad_last_batch=False, batch=1, epoch=0):
    """The samples of one shard in one epoch. Without sticking, it moves to the next shard with each epoch; padding
    repeats the last sample up to the size of the largest shard and then to whole batches."""
    shard = shard_id if stick_to_shard else (shard_id + epoch) % num_shards
    samples = list(range(begin(shard, size, num_shards), begin(shard + 1, size, num_shards)))
    if pad_last_batch:
        largest = -(-size // num_shards)
        samples += [samples[-1]] * (-(-largest // batch) * batch - len(samples))
    return samples


def batches(size: int, batch: int, **kwargs) -> Iterator[list[int]]:
    """The endless sequence of batches; without padding, they continue into the next epoch."""
    stream = (s for e in itertools.count() for s in epoch_of_shard(size, batch=batch, epoch=e, **kwargs))
    while True:
        yield list(itertools.islice(stream, batch))


class Numbers(ShardedSource, abstract=True):
    """A data set of `size` samples without data: for orders that files would make slow."""

    size_found = 0

    def found(self) -> int:
        return self.size_found


def numbers(size: int, *, seed: int = 0, batch: int = 1, **kwargs) -> Numbers:
    """`seed` is the pipeline's; a seed of the reader is `own_seed`."""
    defaults = {name: arg.default for name, arg in Numbers.schema.items()}
    if "own_seed" in kwargs:
        kwargs["seed"] = kwargs.pop("own_seed")
    source = Numbers({**defaults, **kwargs})
    source.size_found = size
    source.open(batch, seed)
    return source


def take(source: Numbers, n: int) -> list[int]:
    return source.take(n, 0).index.tolist()


def epochs(size: int, n_epochs: int, **kwargs) -> list[list[int]]:
    """The first epochs of one shard that sticks."""
    source = numbers(size, **kwargs)
    found = []
    for e in range(n_epochs):
        assert source.state()["epoch"] == e and source.begins_epoch(source.state())
        found.append(take(source, len(epoch_of_shard(size, kwargs.get("num_shards", 1), kwargs.get("shard_id", 0)))))
    return found


def pipeline(files: list[str], batch: int, module=penstock, *, num_threads=1, depth=2, seed=1, **kwargs):
    """A pipeline whose only output are the numbers of the files."""

    @module.pipeline_def(
        batch_size=batch, num_threads=num_threads, device_id=None, seed=seed, prefetch_queue_depth=depth
    )
    def pipe():
        return module.fn.readers.file(files=files, labels=list(range(len(files))), name="reader", **kwargs)[1]

    built = pipe()
    built.build()
    return built


def run(pipe, n_batches: int) -> list[list[int]]:
    return [np.asarray(pipe.run()[0].as_tensor()).ravel().tolist() for _ in range(n_batches)]
