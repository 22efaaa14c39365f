# SPDX-License-Identifier: Apache-2.0
"""Pipelines that continue from checkpoints taken at any moment: the same batches in both libraries."""

import numpy as np
import pytest

LENGTH = 4  # batches in an epoch of the sources
# R runs, r resets at the end of an epoch, c takes a checkpoint.
MOMENTS = ("cRRcRc", "RRRRcRc", "RRRRRcrRc", "RRRRRrRRcRcRRcrc")
READERS = ({}, {"pad_last_batch": True}, {"num_shards": 2, "shard_id": 1}, {"num_shards": 3, "stick_to_shard": True})


@pytest.fixture(scope="module")
def libs():
    import nvidia.dali as dali

    import penstock

    return dali, penstock


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    paths = [tmp_path_factory.mktemp("files") / f"{i}.bin" for i in range(7)]
    for p in paths:
        p.write_bytes(b"data")
    return [str(p) for p in paths]


def of_batch(i):
    if i >= LENGTH:  # DALI counts the end of a source as an iteration
        raise StopIteration
    return np.full((2, 1), i, "i4")


def of_info(info):
    return of_batch(info.iteration) + 10 * info.epoch_idx


def of_sample(info):
    return of_batch(info.iteration)[0] + 10 * info.epoch_idx + 100 * info.idx_in_epoch


SOURCES = {"batches": {"source": of_batch}, "infos": {"source": of_info, "batch_info": True}}
SOURCES["samples"] = {"source": of_sample, "batch": False}


def steps(pipe, letters):
    """The results of the steps, and the checkpoints."""
    seen, taken = [], []
    for letter in letters:
        if letter == "c":
            taken.append(pipe.checkpoint())
        elif letter == "r":
            pipe.reset()
        else:
            try:
                seen.append(np.array(pipe.run()[0].as_array()).ravel().tolist())
            except StopIteration:
                seen.append("end")
    return seen, taken


def told(lib, define, letters, after):
    """What a pipeline returns; what those return that continue from its checkpoints, with another depth and number of
    threads; and those that continue from theirs."""

    def made(**kwargs):
        kwargs = {"num_threads": 1, "prefetch_queue_depth": 2, **kwargs}
        pipe = lib.pipeline_def(
            lambda: define(lib.fn), batch_size=2, device_id=None, enable_checkpointing=True, **kwargs
        )()
        pipe.build()
        return pipe

    seen, taken = steps(made(), letters)
    results = [seen]
    for checkpoint in taken:
        seen, more = steps(made(checkpoint=checkpoint, num_threads=3, prefetch_queue_depth=3), after)
        results.append(seen)
        results += (steps(made(checkpoint=c, prefetch_queue_depth=1), after)[0] for c in more)
    return results


@pytest.mark.parametrize("letters", [m.replace("r", "") for m in MOMENTS])
@pytest.mark.parametrize("kwargs", READERS, ids=str)
def test_readers(libs, files, kwargs, letters):
    def define(fn):
        return fn.readers.file(files=files, labels=list(range(7)), **kwargs)[1]

    theirs, ours = (told(lib, define, letters, "RcRRRRRRc") for lib in libs)
    assert ours == theirs


@pytest.mark.parametrize("letters", MOMENTS)
@pytest.mark.parametrize("source", SOURCES)
def test_sources(libs, source, letters):
    def define(fn):
        return fn.external_source(**SOURCES[source])

    # After five runs, each of them is at the end of an epoch.
    theirs, ours = (told(lib, define, letters, "RRRRRrRcRRRRrRR") for lib in libs)
    assert ours == theirs
