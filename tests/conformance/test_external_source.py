# SPDX-License-Identifier: Apache-2.0
"""Sources in Python, with and without workers: the same program in both libraries gives the same batches, the same ends
of epochs, and calls the source with the same arguments."""

from types import SimpleNamespace

import numpy as np
import pytest

N = 11  # samples in an epoch
BATCH = 3


@pytest.fixture(scope="module")
def libs():
    from nvidia.dali import fn as their_fn
    from nvidia.dali import ops as their_ops
    from nvidia.dali import pipeline_def as their_def
    from nvidia.dali import types as their_types

    from penstock import fn, ops, pipeline_def, types

    return (
        SimpleNamespace(fn=their_fn, ops=their_ops, pipeline_def=their_def, types=their_types),
        SimpleNamespace(fn=fn, ops=ops, pipeline_def=pipeline_def, types=types),
    )


def numbered(info):
    if info.idx_in_epoch >= N:
        raise StopIteration
    return np.int32([info.idx_in_epoch, info.idx_in_batch, info.iteration, info.epoch_idx])


def ragged(info):
    i = info.idx_in_epoch
    return np.full((i % 4 + 1, 2), i, "u1"), np.full((3,) * (1 + 0), i / 2, "f8")


def whole(i):
    if i >= 3:
        raise StopIteration
    return [np.full((k + 1,), 10 * i + k, "i2") for k in range(BATCH)]


def whole_by_info(info):
    return [np.int64([info.iteration, info.epoch_idx])] * 2


def batches():
    for i in range(4):
        yield [np.float32([i, k]) for k in range(BATCH)]


def singles():
    for i in range(8):
        yield np.float32([i])


def strided(info):
    return np.arange(24, dtype="i4").reshape(4, 6)[::2, 1::3]


class Object:
    def __init__(self, step):
        self.step = step

    def __call__(self, info):
        return np.int32([self.step * info.idx_in_epoch])


class Stateful:
    """An iterable that can be restarted."""

    def __iter__(self):
        self.i = 0
        return self

    def __next__(self):
        self.i += 1
        if self.i > 3:
            raise StopIteration
        return [np.int32([self.i])] * BATCH


def torch_tensors(info):
    import torch

    return torch.full((2, info.idx_in_batch + 1), float(info.idx_in_epoch))


PULLED = {
    "samples": dict(source=numbered, batch=False),
    "samples, no argument": dict(source=lambda: np.int32([7]), batch=False),
    "default argument": dict(source=lambda i=5: np.full((2, 1), i, "i4")),
    "ragged, two outputs": dict(source=ragged, num_outputs=2, batch=False),
    "one output in a tuple": dict(source=lambda info: (np.int32([1]),), num_outputs=1, batch=False),
    "whole batches": dict(source=whole),
    "whole batches, by info": dict(source=whole_by_info, batch_info=True),
    "an array": dict(source=lambda i: np.full((2, 3), i, "f4")),
    "fewer samples": dict(source=lambda i: np.full((1 + i % 3, 2), i, "u2")),
    "no samples": dict(source=lambda i: np.zeros((0, 3), "f4")),
    "generator function": dict(source=batches),
    "generator function, no": dict(source=batches, cycle="no"),
    "generator function, quiet": dict(source=batches, cycle="quiet"),
    "generator function, True": dict(source=batches, cycle=True),
    "generator function, raise": dict(source=batches, cycle="raise"),
    "iterable, raise": dict(source=Stateful(), cycle="raise"),
    "list, quiet": dict(source=[np.full((2, 1), i, "u1") for i in range(3)], cycle="quiet"),
    "generator of samples": dict(source=singles, batch=False),
    "generator of samples, quiet": dict(source=singles, batch=False, cycle="quiet"),
    "object": dict(source=Object(3), batch=False),
    "layout for all": dict(source=ragged, num_outputs=2, batch=False, layout=["HW"]),
    "bool": dict(source=lambda i: np.array([[True], [False]])),
    "half": dict(source=lambda i: np.ones((2, 1), "f2")),
    "8 bytes": dict(source=lambda i: np.ones((2, 1), "u8")),
    "scalars": dict(source=lambda i: np.arange(3, dtype="f4")),
}
PARALLEL = {
    "samples": dict(source=numbered, batch=False),
    "ragged, two outputs": dict(source=ragged, num_outputs=2, batch=False),
    "strided": dict(source=strided, batch=False),
    "whole batches by default": dict(source=whole),
    "whole batches, ahead": dict(source=whole, batch=True, prefetch_queue_depth=3),
    "whole batches, by info": dict(source=whole_by_info, batch=True, batch_info=True),
    "generator function": dict(source=batches, batch=True),
    "generator function, quiet": dict(source=batches, batch=True, cycle="quiet"),
    "generator function, raise": dict(source=batches, batch=True, cycle="raise"),
    "iterable, raise": dict(source=Stateful(), batch=True, cycle="raise"),
    "object": dict(source=Object(3), batch=False),
    "PyTorch": dict(source=torch_tensors, batch=False),
}


def outcome(lib, workers=None, **kwargs):
    """Two epochs, or eight batches: layout, type and samples by batch and output."""
    kwargs = {k: ([v] if isinstance(v, str) and k == "layout" else v) for k, v in kwargs.items()}
    more = {} if workers is None else {"py_num_workers": workers}

    @lib.pipeline_def(batch_size=BATCH, num_threads=1, device_id=None, **more)
    def define():
        out = lib.fn.external_source(**kwargs, **({} if workers is None else {"parallel": True}))
        return tuple(out) if isinstance(out, (list, tuple)) else out

    pipe, out, ends = define(), [], 0
    pipe.build()
    while len(out) < 8 + 2 and ends < 2:
        try:
            out.append([batch(o) for o in pipe.run()])
        except StopIteration:
            out.append("end")
            ends += 1
            pipe.reset()
    return out


def batch(output):
    samples = [np.array(output.at(i)) for i in range(len(output))]
    return output.layout(), [(s.dtype.name, s.shape, s.tolist()) for s in samples]


@pytest.mark.parametrize("case", PULLED)
def test_pulled(libs, case):
    theirs, ours = (outcome(lib, **PULLED[case]) for lib in libs)
    assert ours == theirs


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("case", PARALLEL)
@pytest.mark.filterwarnings("ignore")
def test_parallel(libs, case, workers):
    theirs, ours = (outcome(lib, workers, **PARALLEL[case]) for lib in libs)
    assert ours == theirs


@pytest.mark.parametrize(
    ("kwargs", "error"),
    [
        (dict(source=3), TypeError),
        (dict(source=[1], cycle="sometimes"), ValueError),
        (dict(source=numbered, cycle="quiet"), ValueError),
        (dict(source=batches(), cycle="quiet"), TypeError),
        (dict(source=lambda a, b: 1), TypeError),
        (dict(source=lambda i: 1 / 0), ZeroDivisionError),
        (dict(source=lambda i: None), RuntimeError),
        (dict(source=lambda i: np.zeros((BATCH + 1, 1))), RuntimeError),
        (dict(source=lambda i: [np.zeros((2, 1)), np.zeros(2)]), RuntimeError),
        (dict(source=lambda i: [np.zeros(2, "i4"), np.zeros(2)]), RuntimeError),
        (dict(source=lambda i: np.zeros((1, 1), "i4" if i else "f4")), RuntimeError),
        (dict(source=lambda i: np.zeros((1, 1) if i else (1, 1, 1))), RuntimeError),
        (dict(source=lambda i: np.zeros((1, 1)), ndim=2), RuntimeError),
        (dict(source=batches, parallel=True, batch=False), TypeError),
        (dict(source=lambda: 1, parallel=True, batch=False), TypeError),
    ],
)
def test_refused(libs, kwargs, error):
    for lib in libs:
        with pytest.raises(error):
            outcome(lib, **kwargs)


def test_nothing_was_fed_or_scheduled(libs):
    for lib in libs:
        make = lib.pipeline_def(lambda fn=lib.fn: fn.external_source(name="x"), batch_size=BATCH, num_threads=1)
        for ask, error in ((lambda p: p.outputs(), StopIteration), (lambda p: p.run(), IndexError)):
            pipe = make(device_id=None)
            pipe.build()
            with pytest.raises(error):
                ask(pipe)
