# SPDX-License-Identifier: Apache-2.0
"""`external_source` and `feed_input` with data that lies on the GPU: it stays there, as one copy or, with `no_copy`,
where it is; in the order of the streams, and as long as anybody reads it. The other library is this test's own."""

import gc
import os
import sys
import threading
import time
import weakref
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from test_reuse import LONG, SOON, happens, held

from emulated_work import Copies, work_of
from penstock import fn, pipeline_def, types
from penstock.backend import TensorGPU, TensorListGPU
from penstock.core.errors import DataError, PipelineError
from penstock.gpu import dlpack, lent
from penstock.gpu.driver import Device
from penstock.gpu.memory import pool
from penstock.gpu.stream import ForeignStream, Stream

if os.environ.get("PENSTOCK_TEST_GPU") == "1":
    pytest.skip("only the emulated device counts copies, and only its streams can be held", allow_module_level=True)

PHOTO = sorted((Path(__file__).parents[2] / "examples" / "data").rglob("*.jpg"))[0]
N = 5
DENSE = np.arange(N * 3 * 40, dtype="f4").reshape(N, 3, 40)
RAGGED = [np.arange(k * 7, dtype="i4").reshape(k, 7) - k for k in range(1, N + 1)]


class Array:
    """Of a library whose work goes on in a stream of its own; its interface says which that is."""

    def __init__(self, values, stream, offset=0):
        self.shape, self.dtype, self.stream = values.shape, values.dtype, stream
        self.nbytes = values.nbytes
        with stream.device:
            self.block = pool(stream.device).take(values.nbytes + offset, stream)
            self.address = self.block.address + offset
            self.fill(values)
            stream.synchronize()

    def fill(self, values):
        values = np.ascontiguousarray(values)
        with self.stream.device:
            self.stream.upload(self.address, values.ctypes.data, values.nbytes)

    def interface(self, **more):
        about = {"data": (self.address, False), "shape": self.shape, "typestr": self.dtype.str, "version": 3}
        return {**about, **more}

    @property
    def __cuda_array_interface__(self):
        return self.interface(stream=self.stream.handle)


class Silent(Array):
    @property
    def __cuda_array_interface__(self):
        return self.interface(version=2)


class WithDlpack(Array):
    """As JAX does it: makes the consumer's stream wait."""

    __cuda_array_interface__ = property()
    device_id = 0

    def __dlpack_device__(self):
        return (2, self.device_id)

    def __dlpack__(self, *, stream=None, **kwargs):
        with self.stream.device:
            ForeignStream(self.stream.device, stream).wait(self.stream.record())
        return self.capsule()

    def capsule(self):
        return dlpack.capsule(self.address, self.shape, self.dtype, self.device_id, self)


@pytest.fixture(scope="module")
def stream():
    """Of somebody else; it lives longer than all batches."""
    device = Device.get(0)
    with device:
        return Stream(device)


WHOLE = {
    "an array that names its stream": Array,
    "an array that doesn't": Silent,
    "DLPack": WithDlpack,
    "a capsule": lambda x, s: WithDlpack(x, s).capsule(),
    "TensorListGPU": lambda x, s: TensorListGPU(Array(x, s)),
}
LISTS = {
    "a list of arrays": lambda x, s: [Array(a, s) for a in x],
    "a list of capsules": lambda x, s: [WithDlpack(a, s).capsule() for a in x],
    "a list of TensorGPU": lambda x, s: [TensorGPU(Array(a, s)) for a in x],
    "samples of a pipeline": lambda x, s: list(made_by_a_pipeline(x)),
}
GIVEN = {
    **WHOLE,
    **LISTS,
    "TensorListGPU of a list": lambda x, s: TensorListGPU([Array(a, s) for a in x]),
    "a batch of a pipeline": lambda x, s: made_by_a_pipeline(x),
}


def made_by_a_pipeline(x):
    define = pipeline_def(lambda: fn.external_source(lambda: x, device="gpu"), batch_size=N, num_threads=1, device_id=0)
    return define().run()[0]


def by_batches(made, **kwargs):
    return pipe_of(lambda: made, **kwargs)


def by_samples(made, **kwargs):
    return pipe_of(lambda info: made[info.idx_in_batch], batch=False, **kwargs)


def fed(made, **kwargs):
    pipe = pipe_of(None, name="x", **kwargs)
    pipe.feed_input("x", made)
    return pipe


def pipe_of(source, device="gpu", then=lambda x: x, on_error="raise", batch_size=N, **kwargs):
    """Makes one batch at a time, when it is asked for."""

    @pipeline_def(batch_size=batch_size, num_threads=1, device_id=0, prefetch_queue_depth=1, on_error=on_error)
    def define():
        return then(fn.external_source(source, device=device, **kwargs))

    pipe = define()
    pipe.build()
    return pipe


def values_of(out):
    return [np.array(a) for a in out.as_cpu()]


def check_values(out, want):
    got = values_of(out)
    assert len(got) == len(want)
    for g, w in zip(got, want):
        assert g.dtype == w.dtype
        np.testing.assert_array_equal(g, w)


def ends(alive):
    """Whether an object is let go of, once the GPU is through."""
    end = time.monotonic() + LONG
    while alive() is not None and time.monotonic() < end:
        lent.collect()
        gc.collect()
        time.sleep(0.001)
    return alive() is None


def stream_of(pipe):
    """The one that the source copies by."""
    (source,) = (pipe._plan.source_op(n) for n in pipe._plan.sources)
    return next(iter(source.on_gpu.values()))._stream


WAYS = {"by batches": by_batches, "by samples": by_samples, "fed": fed}
CASES = [
    (given, way, ragged)
    for given in GIVEN
    for way in WAYS
    for ragged in (False, True)
    if not (ragged and given in WHOLE) and (way != "by samples" or given in LISTS)
]


@pytest.mark.parametrize("given, way, ragged", CASES)
def test_one_copy_on_the_gpu_and_none_over_the_bus(given, way, ragged, stream):
    want = RAGGED if ragged else DENSE
    made = GIVEN[given](want, stream)
    pipe = WAYS[way](made) if way != "fed" else pipe_of(None, name="x")
    nbytes = sum(a.nbytes for a in want)
    with Copies() as copies:
        if way == "fed":
            pipe.feed_input("x", made)
        (out,) = pipe.run(-1)
        launches, waits = work_of(stream_of(pipe).handle)
    assert copies.from_gpu.copies == 0 and waits == 0
    pieces = 1 if launches else copies.on_gpu.copies
    assert 1 <= pieces <= 3 and launches <= 1 and (launches == 1) != (copies.on_gpu.copies > 0)
    if launches:  # of the kernel that copies many pieces, whose list is what was uploaded
        assert copies.to_gpu.nbytes <= 24 * N
    else:
        assert nbytes <= copies.on_gpu.nbytes <= nbytes + 64 * N  # with the gaps between samples of a batch
        assert copies.to_gpu.copies == 0
    if given in WHOLE and not ragged:
        assert copies.on_gpu.copies == 1
    check_values(out, want)


@pytest.mark.parametrize("given, way, ragged", CASES)
def test_nothing_is_copied_where_that_is_asked_for(given, way, ragged, stream):
    want = RAGGED if ragged else DENSE
    made = GIVEN[given](want, stream)
    pipe = WAYS[way](made, no_copy=True) if way != "fed" else pipe_of(None, name="x", no_copy=True)
    with Copies() as copies:
        if way == "fed":
            pipe.feed_input("x", made)
        (out,) = pipe.run(-1)
    assert copies.to_gpu.copies == copies.from_gpu.copies == copies.on_gpu.copies == 0
    if isinstance(made, (Array, TensorListGPU)):
        assert out.data_ptr() == (made.address if isinstance(made, Array) else made.data_ptr())
    elif isinstance(made, list) and isinstance(made[0], (Array, TensorGPU)):
        addresses = [a.address if isinstance(a, Array) else a.data_ptr() for a in made]
        assert [out[i].data_ptr() for i in range(N)] == addresses
    check_values(out, want)


@pytest.mark.parametrize("no_copy", [False, True])
def test_operators_behind_it(no_copy, stream):
    """What they make follows from shapes that are known without asking the GPU."""
    pipe = pipe_of(lambda: [Array(a, stream) for a in RAGGED], no_copy=no_copy, then=lambda x: (x + 1, x.shape()))
    for _ in range(6):  # planned by rules, and then by programs
        more, shapes = pipe.run()
        check_values(more, [a + 1 for a in RAGGED])
        assert [s.tolist() for s in values_of(shapes)] == [[k, 7] for k in range(1, N + 1)]


@pytest.mark.parametrize("no_copy", [False, True])
@pytest.mark.parametrize("given", ["an array that names its stream", "DLPack", "a list of arrays"])
def test_what_is_still_being_made_is_waited_for_by_the_gpu(given, no_copy, stream):
    """The host goes on: the batch is given out before the stream of the array has begun."""
    made = GIVEN[given](DENSE, stream)
    pipe = by_batches(made, no_copy=no_copy)
    with held(stream):
        for a, values in zip(made, DENSE) if isinstance(made, list) else [(made, DENSE)]:
            a.fill(values + 100)
        (out,) = pipe.run(-1)
        assert not happens(out._batch.ready, SOON)
    check_values(out, DENSE + 100)


@pytest.mark.parametrize("kind", [Array, Silent, WithDlpack])
def test_the_owner_may_write_into_it_again(kind, stream):
    """What its stream is asked for behind the call comes behind the copy, which has not begun here."""
    array = kind(DENSE, stream)
    named = kind is not Array
    pipe = by_batches(array, cuda_stream=stream.handle if named else None)
    with held(stream_of(pipe)):
        (out,) = pipe.run(-1)
        array.fill(DENSE * 0 - 1)
        with stream.device:
            written = stream.record()
        assert not happens(written, SOON)
    with stream.device:
        assert happens(written, LONG)
    check_values(out, DENSE)


def test_pytorchs_current_stream_waits_for_the_copy(stream, monkeypatch):
    """Which its tensors don't tell."""

    class Tensor(WithDlpack):
        device = "cuda:0"

        def __dlpack__(self, *, stream=None, **kwargs):
            assert stream == self.stream.handle
            return self.capsule()

    current = SimpleNamespace(cuda_stream=stream.handle)
    cuda = SimpleNamespace(current_stream=lambda device: current if device == "cuda:0" else None)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(Tensor=Tensor, cuda=cuda))
    array = Tensor(DENSE, stream)
    pipe = by_batches(array)
    with held(stream_of(pipe)):
        (out,) = pipe.run(-1)
        array.fill(DENSE * 0 - 1)
        with stream.device:
            written = stream.record()
        assert not happens(written, SOON)
    check_values(out, DENSE)


@pytest.mark.parametrize("way", ["by batches", "fed"])
def test_without_a_stream_the_caller_waits_for_the_copy(way, stream):
    array, done = Silent(DENSE, stream), threading.Event()
    pipe = pipe_of((lambda: array) if way == "by batches" else None, cuda_stream=-1, name="x")

    def give():
        if way == "fed":
            pipe.feed_input("x", array)
        else:
            pipe.schedule_run()
        done.set()

    thread = threading.Thread(target=give, daemon=True)
    with held(stream_of(pipe)):
        thread.start()
        assert not done.wait(SOON)
    assert done.wait(LONG)
    thread.join(LONG)
    array.fill(DENSE * 0 - 1)
    stream.synchronize()
    if way == "fed":
        pipe.schedule_run()
    check_values(pipe.outputs()[0], DENSE)


def test_an_array_is_kept_until_it_is_copied(stream):
    array = WithDlpack(DENSE, stream)
    alive = weakref.ref(array)
    pipe = pipe_of(None, name="x")
    with held(stream_of(pipe)):
        pipe.feed_input("x", array)
        del array
        lent.collect()
        assert alive() is not None
        (out,) = pipe.run(-1)
    assert ends(alive)
    check_values(out, DENSE)


def test_an_array_in_place_is_kept_until_its_readers_are_done(stream):
    array = Array(DENSE, stream)
    alive = weakref.ref(array)
    pipe = pipe_of(None, name="x", no_copy=True, then=lambda x: (x, x + 1))
    pipe.feed_input("x", array)
    del array
    with held(pipe._plan.session._streams[0]):
        x, more = pipe.run(-1)
        del x
        lent.collect()
        assert alive() is not None  # x + 1 reads it
    check_values(more, DENSE + 1)
    assert ends(alive)


def test_an_output_in_place_keeps_its_array(stream):
    array = Array(DENSE, stream)
    alive = weakref.ref(array)
    pipe = pipe_of(None, name="x", no_copy=True)
    pipe.feed_input("x", array)
    del array
    (out,) = pipe.run()
    pipe.close()
    lent.collect()
    assert alive() is not None
    check_values(out, DENSE)
    capsule = out.__dlpack__(stream=stream.handle)
    del out
    lent.collect()
    assert alive() is not None
    del capsule
    assert ends(alive)


def test_elements_at_odd_addresses_are_copied(stream):
    """Kernels read whole elements."""
    array = Array(DENSE, stream, offset=2)
    (out,) = by_batches(array, no_copy=True).run()
    assert out.data_ptr() % 4 == 0
    check_values(out, DENSE)


def test_what_is_said_of_strides(stream):
    class Strided(Array):
        strides = ()

        @property
        def __cuda_array_interface__(self):
            return self.interface(strides=self.strides)

    one = Strided(DENSE[:1], stream)
    one.strides = (4, 160, 4)  # an axis of one element may say anything
    check_values(by_batches(one).run()[0], DENSE[:1])
    turned = Strided(DENSE, stream)
    turned.strides = (4, 20, 60)
    with pytest.raises(PipelineError, match=r"(?s)a dense row-major array is needed.*test_data_on_the_gpu.py"):
        by_batches(turned).run()


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
    with pytest.raises(PipelineError, match=r"(?s)no_copy=True.*device_memory_limit.*test_data_on_the_gpu.py"):
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
    for a, values in zip(arrays, DENSE):  # nobody has written there
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
        if k == 1:  # who writes into an output has one of his own
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
    """Nothing else reads the output, so it is the same."""
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
    assert "data that lies on the GPU already is not copied to it" in text


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
    """Memory of copies goes back to the pool, and never before it was read."""
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
