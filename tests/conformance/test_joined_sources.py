# SPDX-License-Identifier: Apache-2.0
"""`source_info` of samples that are made from several others, compared with the real DALI."""

import numpy as np
import pytest

import penstock
from conformance.test_files_and_facts import side_of


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    root = tmp_path_factory.mktemp("samples")
    for name in "abc":
        (root / name).write_bytes(bytes(range(12)))
    return [str(root / name) for name in "abc"]


def constant():
    return np.zeros((2, 2, 3), "u1")


def fed(fn):
    return fn.external_source(lambda: [constant()] * 3, layout="HWC")


def permuted(fn, x):
    return fn.permute_batch(x, indices=[0, 2, 2])


# x and y are images of the same files, in another order.
GRAPHS = {
    "cat": lambda fn, x, y: fn.cat(x, y),
    "cat of one": lambda fn, x, y: fn.cat(x, x),
    "cat, partly the same": lambda fn, x, y: fn.cat(x, permuted(fn, x)),
    "cat with a constant": lambda fn, x, y: fn.cat(x, constant()),
    "cat with what was fed": lambda fn, x, y: fn.cat(fed(fn), x),
    "cat of three": lambda fn, x, y: fn.cat(fed(fn), x, y),
    "stack": lambda fn, x, y: fn.stack(x, y),
    "stack of one": lambda fn, x, y: fn.stack(x, x),
    "sum": lambda fn, x, y: x + y,
    "sum with a number": lambda fn, x, y: 3 - x,
    "sum of sums": lambda fn, x, y: (x + 1) * (x + fed(fn)),
    "sum, then more": lambda fn, x, y: fn.flip(fn.cast(x + y, dtype=penstock.types.UINT8)),
    "fed": lambda fn, x, y: fed(fn),
    "permute_batch": lambda fn, x, y: permuted(fn, x),
    "permuted sum": lambda fn, x, y: permuted(fn, x + y),
    "slice": lambda fn, x, y: fn.slice(x, fn.cast(y[0, 0, :2] * 0, dtype=penstock.types.FLOAT), np.float32([0.5, 0.5])),
    "cast_like": lambda fn, x, y: fn.cast_like(x, y),
    "arguments": lambda fn, x, y: fn.flip(x, horizontal=fn.cast(y[0, 0, 0] * 0, dtype=penstock.types.INT32)),
    "normalize": lambda fn, x, y: fn.normalize(x, mean=fn.reductions.mean(y, keep_dims=True), stddev=1.0),
    "reshape": lambda fn, x, y: fn.reshape(x, shape=y.shape()),
    "sequence_rearrange": lambda fn, x, y: fn.sequence_rearrange(
        fn.reshape(x, layout="FHW"), new_order=fn.cast(y[0, 0, :1] * 0, dtype=penstock.types.INT32)
    ),
    "multi_paste": lambda fn, x, y: fn.multi_paste(x, in_ids=[0, 1], output_size=[4, 4]),
    "multi_paste, in order": lambda fn, x, y: fn.multi_paste(x, in_ids=[2, 0, 2], output_size=[4, 4]),
    "multi_paste of one": lambda fn, x, y: fn.multi_paste(x, in_ids=[1], output_size=[4, 4]),
    "multi_paste by data": lambda fn, x, y: fn.multi_paste(
        x, in_ids=fn.external_source(lambda: [np.int32(i) for i in ([0], [2, 1], [1, 1, 0])]), output_size=[4, 4]
    ),
    "multi_paste of inputs": lambda fn, x, y: fn.multi_paste(x, x, y, output_size=[4, 4]),
    "multi_paste of what was fed": lambda fn, x, y: fn.multi_paste(x, fed(fn), output_size=[4, 4]),
    "multi_paste of no files": lambda fn, x, y: fn.multi_paste(fed(fn), in_ids=[0, 1], output_size=[4, 4]),
    "multi_paste, then more": lambda fn, x, y: fn.flip(fn.multi_paste(x, y, output_size=[4, 4])),
    "multi_paste in a stack": lambda fn, x, y: fn.stack(*[fn.multi_paste(x, y, output_size=[4, 4])] * 2),
}


@pytest.mark.parametrize("graph", GRAPHS)
def test_where_joined_samples_come_from(files, graph):
    names = []
    for side in ("dali", "penstock"):
        fn, define, options = side_of(side)

        @define(batch_size=3, num_threads=1, seed=1, prefetch_queue_depth=1, **options)
        def pipe(fn=fn):
            x, y = (
                fn.reshape(fn.readers.file(files=order)[0], shape=[2, 2, 3], layout="HWC")
                for order in (files, files[::-1])
            )
            return GRAPHS[graph](fn, x, y)

        running = pipe()
        for _ in range(5):  # later ones are planned by programs
            (batch,) = running.run()
            names.append([batch[i].source_info() for i in range(3)])
    assert names[:5] == names[5:]
