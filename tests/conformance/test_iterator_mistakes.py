# SPDX-License-Identifier: Apache-2.0
"""Iterators that are made or used wrongly, or without a size: both libraries raise at the same moment, with exceptions
of the same type."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("torch")


@pytest.fixture(scope="module")
def libs():
    import nvidia.dali as dali
    import nvidia.dali.plugin.base_iterator as their_base
    import nvidia.dali.plugin.pytorch as their_torch

    import penstock
    import penstock.plugin.base_iterator as base
    import penstock.plugin.pytorch as torch

    return (
        SimpleNamespace(dali=dali, fn=dali.fn, base=their_base, torch=their_torch, jax="nvidia.dali.plugin.jax"),
        SimpleNamespace(dali=penstock, fn=penstock.fn, base=base, torch=torch, jax="penstock.plugin.jax"),
    )


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    for i in range(6):
        (folder / f"{i}.bin").write_bytes(b"data")
    return sorted(str(p) for p in folder.iterdir())


def pipeline(m, define, batch_size=2, **kwargs):
    return m.dali.pipeline_def(define, batch_size=batch_size, num_threads=1, device_id=None, **kwargs)()


def source(m, batch_size=2, batches=3, outputs=1):
    def define():
        made = [np.full((batch_size, 1), i, "i4") for i in range(batches)]
        return tuple(m.fn.external_source(source=made) for _ in range(outputs))

    return pipeline(m, define, batch_size)


def ragged(m):
    return pipeline(m, lambda: m.fn.external_source(source=[[np.zeros(n, "f4") for n in (1, 2)]]))


def reader(m, files, n=5, batch_size=2, **kwargs):
    def define():
        return m.fn.readers.file(files=files[:n], labels=list(range(n)), name="R", **kwargs)[1]

    return pipeline(m, define, batch_size)


def generic(m, pipes, names=("x",), **kwargs):
    policy = kwargs.pop("policy", "FILL")
    return m.torch.DALIGenericIterator(pipes, list(names), last_batch_policy=m.torch.LastBatchPolicy[policy], **kwargs)


def prepared_later(m, pipe):
    made = generic(m, pipe, prepare_first_batch=False)
    return lambda: next(made)


def copied(m, shape, dtype="float32"):
    import torch

    given = m.dali.tensors.TensorCPU(np.ones((2, 3), "f4"))
    return lambda: m.torch.feed_ndarray(given, torch.zeros(shape, dtype=getattr(torch, dtype)))


MISTAKES = {
    "size of 0": lambda m, f: generic(m, source(m), size=0),
    "size that is no number": lambda m, f: generic(m, source(m), size="x"),
    "size and reader": lambda m, f: generic(m, reader(m, f), size=3, reader_name="R"),
    "padded and reader": lambda m, f: generic(m, reader(m, f), last_batch_padded=True, reader_name="R"),
    "a name twice": lambda m, f: generic(m, source(m, outputs=2), ["x", "x"]),
    "a name twice, ragged": lambda m, f: m.torch.DALIRaggedIterator(source(m, outputs=2), ["x", "x"]),
    "unknown tag": lambda m, f: m.torch.DALIRaggedIterator(source(m), ["x"], output_types=["foo"]),
    "unknown reader": lambda m, f: generic(m, reader(m, f), reader_name="S"),
    "no reader": lambda m, f: generic(m, source(m), reader_name="S"),
    "samples of several shapes": lambda m, f: generic(m, ragged(m)),
    "samples of several shapes, later": lambda m, f: prepared_later(m, ragged(m)),
    "no pipelines": lambda m, f: generic(m, None),
    "several pipelines without size": lambda m, f: generic(m, [source(m), source(m)]),
    "several batch sizes": lambda m, f: generic(m, [source(m), source(m, 3)], size=6),
    "several numbers of shards": lambda m, f: generic(
        m, [reader(m, f, num_shards=2), reader(m, f, num_shards=3, shard_id=1)], reader_name="R"
    ),
    "several sizes of readers": lambda m, f: generic(m, [reader(m, f), reader(m, f, 6)], reader_name="R"),
    "padding of some": lambda m, f: generic(
        m, [reader(m, f, num_shards=2), reader(m, f, num_shards=2, shard_id=1, pad_last_batch=True)], reader_name="R"
    ),
    "auto_reset": lambda m, f: generic(m, source(m), auto_reset="maybe"),
    "no data": lambda m, f: generic(m, source(m, batches=0)),
    "all is dropped": lambda m, f: generic(m, reader(m, f, batch_size=8), reader_name="R", policy="DROP"),
    "all is dropped, by size": lambda m, f: generic(m, source(m, 8), size=5, policy="DROP"),
    "checkpoints not enabled": lambda m, f: generic(m, source(m)).checkpoints,
    "copied into another shape": lambda m, f: copied(m, (3, 3)),
    "copied into another type": lambda m, f: copied(m, (2, 3), "int32"),
    "base class": lambda m, f: m.base._DaliBaseIterator(source(m), size=0),
}


def outcome(make):
    """When it fails, and the exception."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        moment = "made"
        try:
            use = make()
            moment = "used"
            use()
        except Exception as e:
            return moment, e
    return "never", None


@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes(libs, files, case):
    (when, theirs), (ours_when, ours) = (outcome(lambda m=m: MISTAKES[case](m, files)) for m in libs)
    assert when == ours_when != "never"
    assert isinstance(ours, type(theirs)), (theirs, ours)


JAX_MISTAKES = {
    "size of 0": lambda m, it, f: it(source(m), ["x"], size=0),
    "a name twice": lambda m, it, f: it(source(m, outputs=2), ["x", "x"]),
    "unknown reader": lambda m, it, f: it(reader(m, f), ["x"], reader_name="S"),
    "samples of several shapes": lambda m, it, f: it(ragged(m), ["x"]),
    "no sharding": lambda m, it, f: it(source(m), ["x"], sharding=3),
    "some of a batch on several devices": lambda m, it, f: it(
        [source(m), source(m)], ["x"], size=12, last_batch_policy=m.torch.LastBatchPolicy.PARTIAL
    ),
    "shards of several shapes": lambda m, it, f: it(
        [pipeline(m, lambda n=n: m.fn.external_source(source=[np.zeros((2, n))])) for n in (1, 2)], ["x"], size=4
    ),
}


@pytest.mark.parametrize("case", JAX_MISTAKES)
def test_mistakes_of_jax(libs, files, case):
    pytest.importorskip("jax")

    def of(m):
        import importlib

        iterator = importlib.import_module(m.jax).DALIGenericIterator
        return outcome(lambda: JAX_MISTAKES[case](m, iterator, files))

    (when, theirs), (ours_when, ours) = map(of, libs)
    assert when == ours_when == "made"
    assert isinstance(ours, type(theirs)), (theirs, ours)


def test_submodules(libs):
    """They are there without being imported."""
    for m in libs:
        assert m.torch.experimental.proxy.DALIServer and m.torch.fn.torch_python_function and m.torch.torch_utils


@pytest.mark.parametrize("policy", ["FILL", "PARTIAL", "DROP"])
def test_length_without_size(libs, policy):
    for m in libs:
        it = generic(m, source(m), policy=policy)
        assert len(it) == 0 and not it and len(list(it)) == 3


@pytest.mark.parametrize("size", [2.7, "4"])
def test_size_that_is_converted(libs, size):
    def sizes(m):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            it = generic(m, source(m), size=size)
        return it.size, len(list(it))

    theirs, ours = map(sizes, libs)
    assert ours == theirs
