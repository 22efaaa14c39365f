# SPDX-License-Identifier: Apache-2.0
"""Defining, feeding and running pipelines: the same program gives the same values in both libraries."""

import contextlib
import io

import numpy as np
import pytest


@pytest.fixture(scope="module", params=["theirs", "ours"])
def lib(request):
    """The modules of one library."""
    from types import SimpleNamespace

    if request.param == "theirs":
        from nvidia.dali import Pipeline, fn, ops, pipeline_def, types
        from nvidia.dali.tensors import TensorCPU, TensorListCPU
    else:
        from penstock import Pipeline, TensorCPU, TensorListCPU, fn, ops, pipeline_def, types
    return SimpleNamespace(
        Pipeline=Pipeline,
        fn=fn,
        ops=ops,
        pipeline_def=pipeline_def,
        types=types,
        TensorCPU=TensorCPU,
        TensorListCPU=TensorListCPU,
    )


def rows(i, n=2):
    return np.full((n, 1), i, "i4")


def first(outputs):
    return [np.asarray(o.as_array()).ravel()[0].item() for o in outputs]


def fed(lib, depth=2, **kwargs):
    pipe = lib.Pipeline(2, 1, None, prefetch_queue_depth=depth, **kwargs)
    with pipe:
        pipe.set_outputs(lib.fn.external_source(name="x"))
    pipe.build()
    return pipe


def feed_then_run(lib):
    pipe = fed(lib)
    for i in range(4):
        pipe.feed_input("x", rows(i))
    return [first(pipe.run()) for _ in range(4)]


def one_feed_is_enough(lib):
    pipe = fed(lib)
    pipe.feed_input("x", rows(3))
    return first(pipe.run())


def feed_schedule_share(lib):
    pipe, got = fed(lib), []
    for i in range(4):
        pipe.feed_input("x", rows(i))
    for _ in range(3):
        pipe.schedule_run()
        got.append(first(pipe.share_outputs()))
        pipe.release_outputs()
    return got


def run_with_data(lib):
    pipe = fed(lib, depth=1)
    return [first(pipe.run(x=rows(i))) for i in range(4)]


def run_with_data_not_pipelined(lib):
    pipe = fed(lib, exec_pipelined=False, exec_async=False)
    return [first(pipe.run(x=rows(i))) for i in range(4)]


def batch_sizes(lib):
    pipe = lib.Pipeline(4, 1, None, prefetch_queue_depth=1)
    with pipe:
        pipe.set_outputs(lib.fn.external_source(name="x"))
    return [len(pipe.run(x=rows(i, n))[0]) for i, n in enumerate((4, 2, 3, 1))]


def reset_keeps_what_was_fed(lib):
    pipe = fed(lib)
    for i in range(3):
        pipe.feed_input("x", rows(i))
    a = first(pipe.run())
    pipe.reset()
    return a, first(pipe.run())


def _old_style(lib, depth, stop=None, **kwargs):
    class OldStyle(lib.Pipeline):
        def __init__(self):
            super().__init__(2, 1, None, prefetch_queue_depth=depth, **kwargs)
            self.input, self.i = lib.ops.ExternalSource(), 0

        def define_graph(self):
            self.x = self.input()
            return self.x

        def iter_setup(self):
            if self.i == stop:
                raise StopIteration
            self.feed_input(self.x, rows(self.i))
            self.i += 1

    return OldStyle()


def iter_setup_of_depth_1(lib):
    pipe = _old_style(lib, 1)
    return [first(pipe.run()) for _ in range(4)], pipe.i


def iter_setup_of_depth_3(lib):
    pipe = _old_style(lib, 3)
    return [first(pipe.run()) for _ in range(4)], pipe.i


def iter_setup_not_pipelined(lib):
    pipe = _old_style(lib, 2, exec_pipelined=False, exec_async=False)
    return [first(pipe.run()) for _ in range(4)], pipe.i


def iter_setup_that_ends(lib):
    pipe, got = _old_style(lib, 2, stop=3), []
    for _ in range(2):
        with contextlib.suppress(StopIteration):
            while True:
                got.append(first(pipe.run()))
        got.append("end")
        pipe.i = 0
        pipe.reset()
    return got


def reused_array(lib):
    buffer = rows(0)

    def source(i):
        buffer[:] = i
        return buffer

    pipe = lib.pipeline_def(
        lambda: lib.fn.external_source(source=source), batch_size=2, num_threads=1, device_id=None
    )()
    return [first(pipe.run()) for _ in range(5)]


def constants(lib):
    def define():
        return 1, 2.5, np.array([1, 2]), True, [3, 4], lib.types.Constant(7), lib.types.Constant([1.5, 2])

    pipe = lib.pipeline_def(define, batch_size=2, num_threads=1, device_id=None)()
    return [(o.as_array().tolist(), int(o.dtype)) for o in pipe.run()]


def arguments_of_function_and_decorator(lib):
    @lib.pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def define(a, *more, b=3):
        return (lib.types.Constant(a), lib.types.Constant(b), *(lib.types.Constant(m) for m in more))

    pipe = define(5, 6, 7, b=8, batch_size=3)
    return first(pipe.run()), pipe.max_batch_size


def infos_of_samples_and_batches(lib):
    seen = []

    def sample(info):
        seen.append((info.idx_in_epoch, info.idx_in_batch, info.iteration, info.epoch_idx))
        return np.int32([info.idx_in_epoch])

    def define():
        return (
            lib.fn.external_source(source=sample, batch=False),
            lib.fn.external_source(source=lambda b: rows(10 * b.epoch_idx + b.iteration), batch_info=True),
        )

    pipe = lib.pipeline_def(define, batch_size=2, num_threads=1, device_id=None, prefetch_queue_depth=1)()
    out = [first(pipe.run()) for _ in range(3)]
    return out, seen[:6]


def containers(lib):
    x = np.arange(24, dtype="u1").reshape(2, 3, 4)
    t, batch = lib.TensorCPU(x, "HWC"), lib.TensorListCPU(x, "HW")
    ragged = lib.TensorListCPU([lib.TensorCPU(np.zeros((1, 2), "f4")), lib.TensorCPU(np.ones((3, 2), "f4"))])
    facts = [t.shape(), t.ndim(), t.layout(), int(t.dtype), t.get_property("layout"), t.source_info(), bytes(t)]
    facts += [batch.shape(), batch.ndim(), batch.layout(), batch.is_dense_tensor(), ragged.is_dense_tensor()]
    facts += [batch.as_tensor().shape(), batch.as_tensor().layout(), batch.as_reshaped_tensor([4, 6]).shape()]
    facts += [batch.at(1).tolist(), batch[1].layout(), ragged.as_reshaped_tensor([8]).shape()]
    facts += [lib.TensorListCPU.broadcast(t, 3).shape(), lib.TensorListCPU.broadcast(t, 3).layout()]
    t = lib.TensorCPU(np.zeros((1, 3, 1), "u4"), "HWC")
    t.reinterpret(lib.types.INT32)
    facts += [int(t.dtype), t.squeeze(1), t.squeeze(-1), t.shape(), t.layout(), t.squeeze(), t.shape(), t.layout()]
    batch.reset()
    return [*facts, len(batch), batch.shape()]


PROGRAMS = [
    feed_then_run,
    one_feed_is_enough,
    feed_schedule_share,
    run_with_data,
    run_with_data_not_pipelined,
    batch_sizes,
    reset_keeps_what_was_fed,
    iter_setup_of_depth_1,
    iter_setup_of_depth_3,
    iter_setup_not_pipelined,
    iter_setup_that_ends,
    reused_array,
    constants,
    arguments_of_function_and_decorator,
    infos_of_samples_and_batches,
    containers,
]
RESULTS: dict[str, object] = {}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_same_values(lib, program):
    with contextlib.redirect_stdout(io.StringIO()):
        result = program(lib)
    assert RESULTS.setdefault(program.__name__, result) == result
