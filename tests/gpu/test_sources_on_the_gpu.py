# SPDX-License-Identifier: Apache-2.0
"""`external_source` with GPU data: errors, epochs, bad samples, checkpoints, modes."""

import os
from pathlib import Path

import numpy as np
import pytest
from arrays_on_the_gpu import (
    DENSE,
    RAGGED,
    WAYS,
    Array,
    N,
    Silent,
    WithDlpack,
    by_batches,
    check_values,
    fed,
    pipe_of,
    stream_of_somebody,
)

from emulated_work import Copies
from penstock import fn, pipeline_def, types
from penstock.backend import TensorGPU, TensorListGPU
from penstock.core.errors import DataError, PipelineError
from penstock.gpu.driver import Device
from penstock.gpu.memory import pool
from penstock.gpu.stream import Stream

if os.environ.get("PENSTOCK_TEST_GPU") == "1":
    pytest.skip("only the emulated device counts copies, and only its streams can be held", allow_module_level=True)

PHOTO = sorted((Path(__file__).parents[2] / "examples" / "data").rglob("*.jpg"))[0]


@pytest.fixture(scope="module")
def stream():
    return stream_of_somebody()


@pytest.mark.parametrize("host_first", [False, True])
@pytest.mark.parametrize("way", ["by batches", "by samples"])
def test_samples_lie_on_one_device(way, host_first, stream):
    mixed = [Array(a, stream) for a in DENSE]
    mixed[0 if host_first else 3] = DENSE[0]
    said = "sample 0 is {}, sample {} {}".format(
        *(("in the host's memory", 1, "on") if host_first else ("on the pipeline's GPU", 3, "in"))
    )
    with pytest.raises(PipelineError, match=said):
        WAYS[way](mixed).run()
    with pytest.raises(DataError, match=said):
        fed(mixed)


def test_errors(stream):
    array = Array(DENSE, stream)
    with pytest.raises(PipelineError, match="has type float32, but dtype asks for uint8"):
        by_batches(array, dtype=types.UINT8).run()
    with pytest.raises(PipelineError, match="samples of 2 dimensions, but ndim asks for 3"):
        by_batches(array, ndim=3).run()
    with pytest.raises(PipelineError, match="layout 'HWC' does not fit"):
        by_batches(array, layout="HWC").run()
    with pytest.raises(PipelineError, match="same number of dimensions and the same type"):
        by_batches([array, Array(DENSE[0], stream)]).run()
    with pytest.raises(PipelineError, match="sample 1: .*complex64"):
        by_batches([array, Array(DENSE.astype("c8"), stream)]).run()
    with pytest.raises(PipelineError, match="first axis is the batch.*got a scalar"):
        by_batches(Array(np.float32(3), stream)).run()
    with pytest.raises(PipelineError, match="at most 4"):
        by_batches(array, batch_size=4).run()
    changing = iter([array, Array(DENSE[:, 0], stream)])
    pipe = pipe_of(lambda: next(changing))
    check_values(pipe.run()[0], DENSE)
    with pytest.raises(PipelineError, match="Number of dimensions of the data fed.*has changed"):
        pipe.run()


def test_too_little_memory(stream):
    arrays = [Array(np.full(n, n % 7, "f4"), stream) for n in (1 << 20, 1 << 10)]

    @pipeline_def(batch_size=1, num_threads=1, device_id=0, prefetch_queue_depth=1, device_memory_limit=1 << 20)
    def define(no_copy):
        return fn.external_source(lambda i: [arrays[i]], device="gpu", no_copy=no_copy)

    pipe = define(False)
    with pytest.raises(PipelineError, match=r"(?s)test_sources_on_the_gpu.py.*no_copy=True.*device_memory_limit"):
        pipe.run()
    check_values(pipe.run()[0], [np.full(1 << 10, 2, "f4")])
    check_values(define(True).run()[0], [np.full(1 << 20, 4, "f4")])


def test_batches_of_several_sizes_from_an_iterable_with_several_outputs(stream):
    sizes = [3, 5, 1]
    batches = [(Array(DENSE[:n] + n, stream), DENSE[:n], [Array(a, stream) for a in RAGGED[:n]]) for n in sizes]

    @pipeline_def(batch_size=N, num_threads=1, device_id=0)
    def define():
        return tuple(fn.external_source(batches, num_outputs=3, cycle="raise", device="gpu", layout=["ab", "cd"]))

    pipe = define()
    for _ in range(2):
        for n in sizes:
            a, b, c = pipe.run()
            assert (a.layout(), b.layout(), c.layout()) == ("ab", "cd", "")
            check_values(a, DENSE[:n] + n), check_values(b, DENSE[:n]), check_values(c, RAGGED[:n])
        with pytest.raises(StopIteration):
            pipe.run()
        pipe.reset()


def test_layouts_come_along(stream):
    for data in (TensorListGPU(Array(DENSE, stream), layout="ab"), [TensorGPU(Array(DENSE[0], stream), layout="ab")]):
        pipe = fed(data)
        assert pipe.run()[0].layout() == "ab"
        if isinstance(data, TensorListGPU):
            assert data.layout() == "ab"
    given = TensorListGPU(Array(DENSE, stream), layout="ab")
    with pytest.raises(DataError, match='expected data with layout: "cd" and got: "ab"'):
        fed(given, layout="cd")
    assert given.layout() == "ab"


def test_no_samples(stream):
    array = Array(DENSE, stream)
    batches = iter([array, np.empty((0, 3, 40), "f4"), array])
    pipe = pipe_of(lambda: next(batches))
    assert [len(pipe.run()[0]) for _ in range(3)] == [N, 0, N]

    class Nothing(Silent):
        def __init__(self, shape):
            self.shape, self.dtype, self.address = shape, np.dtype("f4"), 0

    assert by_batches(Nothing((0, 3, 40))).run()[0].shape() == []
    (out,) = by_batches(Nothing((2, 0, 40))).run()
    assert out.shape() == [(0, 40)] * 2


@pytest.mark.parametrize("no_copy", [False, True])
@pytest.mark.parametrize("policy", ["skip", "replace"])
def test_bad_samples(policy, no_copy, stream):
    arrays = [Array(a, stream) for a in DENSE]

    def source(info):
        if info.idx_in_batch in (0, 3):
            raise OSError("lost")
        return arrays[info.idx_in_batch]

    pipe = pipe_of(source, batch=False, on_error=policy, no_copy=no_copy, then=lambda x: (x, x + 1))
    want = DENSE[[1, 2, 4]] if policy == "skip" else DENSE[[1, 1, 2, 4, 4]]
    for _ in range(3):
        with Copies() as copies:
            x, more = pipe.run(-1)
        assert copies.from_gpu.copies == 0
        check_values(x, want)
        check_values(more, want + 1)
    for a, values in zip(arrays, DENSE):  # unchanged
        check_values(TensorListGPU([a]), [values])


def test_samples_that_fail_late_are_not_replaced_in_the_users_memory(stream):
    array = Array(DENSE, stream)
    file = np.fromfile(PHOTO, "u1")
    files = [file, file, file[: len(file) // 2], file, file]

    @pipeline_def(batch_size=N, num_threads=1, device_id=0, on_error="replace")
    def define():
        x = fn.external_source(lambda: array, device="gpu", no_copy=True)
        return x, fn.decoders.image(fn.external_source(lambda: files))

    for _ in range(2):
        check_values(define().run()[0], DENSE[[0, 1, 3, 3, 4]])
    check_values(TensorListGPU(array), DENSE)


@pytest.mark.parametrize("no_copy", [False, True])
def test_repeated_data_is_on_the_gpu_once(no_copy, stream):
    pipe = fed(Array(DENSE, stream), repeat_last=True, no_copy=no_copy, then=lambda x: (x, x + 1))
    pipe.run()
    for k in range(4):
        with Copies() as copies:
            x, more = pipe.run(-1)
        assert copies.on_gpu.copies == copies.from_gpu.copies == 0
        check_values(x, DENSE)
        check_values(more, DENSE + 1)
        if k == 1:  # a consumer that writes to an output has its own copy
            with x._batch.device:
                s = Stream(x._batch.device)
                s.fill(x.data_ptr(), 0, DENSE.nbytes)
                s.synchronize()


def test_data_of_another_gpu_comes_by_way_of_the_host(stream, monkeypatch):
    monkeypatch.setenv("PENSTOCK_EMULATED_DEVICES", "2")
    device = Device.get(1)
    with device:
        other = WithDlpack(DENSE, Stream(device))
    other.device_id = 1
    for data in (other, [other.capsule()], TensorListGPU(other)):
        (out,) = by_batches(data).run()
        assert out.device_id() == 0
        check_values(out, DENSE[None] if isinstance(data, list) else DENSE)


def test_a_source_on_the_cpu_whose_output_is_copied_to_the_gpu(stream):
    """Nothing else reads the output, so this is equivalent."""
    array = Array(DENSE, stream)
    pipe = pipe_of(lambda: array, device="cpu", then=lambda x: x.gpu())
    with Copies() as copies:
        (out,) = pipe.run(-1)
    assert copies.from_gpu.copies == copies.to_gpu.copies == 0
    check_values(out, DENSE)
    both = pipe_of(lambda: Array(DENSE, stream), device="cpu", then=lambda x: (x.gpu(), x))
    on_gpu, on_cpu = both.run()
    check_values(on_gpu, DENSE)
    np.testing.assert_array_equal(on_cpu.as_array(), DENSE)


def test_debug_mode_and_branches(stream):
    @pipeline_def(batch_size=N, num_threads=1, device_id=0, debug=True)
    def debugged():
        return fn.external_source(lambda: Array(DENSE, stream), device="gpu") + 1

    check_values(debugged().run()[0], DENSE + 1)

    @pipeline_def(batch_size=N, num_threads=1, device_id=0, enable_conditionals=True)
    def branched():
        x = fn.external_source(lambda: Array(DENSE, stream), device="gpu")
        if fn.external_source(lambda: np.arange(N)) > 1:
            y = x + 1
        else:
            y = x + 2
        return y

    check_values(branched().run()[0], DENSE + np.float32([2, 2, 1, 1, 1])[:, None, None])


def test_the_plan_tells(stream):
    text = str(by_batches(Array(DENSE, stream)).explain())
    assert "data that is already on the GPU is not copied" in text


def test_a_checkpoint_goes_on(stream):
    def source(i):
        if i == 6:
            raise StopIteration
        return Array(DENSE + i, stream)

    def define():
        return fn.external_source(source, device="gpu")

    made = pipeline_def(define, batch_size=N, num_threads=1, device_id=0, enable_checkpointing=True)
    first = made()
    for i in range(3):
        check_values(first.run()[0], DENSE + i)
    again = made(checkpoint=first.checkpoint())
    for i in range(3, 6):
        check_values(again.run()[0], DENSE + i)
    with pytest.raises(StopIteration):
        again.run()


def test_many_batches_ahead_in_few_blocks(stream):
    """Memory of copies returns to the pool after it was read."""
    array, count = Array(DENSE, stream), [0]

    def source():
        count[0] += 1
        array.fill(DENSE + count[0])
        return array

    @pipeline_def(batch_size=N, num_threads=1, device_id=0, prefetch_queue_depth=3)
    def define():
        return fn.external_source(source, device="gpu") * 2

    pipe = define()
    for k in range(1, 40):
        check_values(pipe.run()[0], (DENSE + k) * 2)
    assert pool(stream.device).held < 64 << 20
