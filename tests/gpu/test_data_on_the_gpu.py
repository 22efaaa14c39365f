# SPDX-License-Identifier: Apache-2.0
"""`external_source` and `feed_input` with GPU data: it stays on the GPU, copied once or, with `no_copy`, shared; in
stream order, and as long as it is read. The other library is simulated."""

import os
import sys
import threading
import weakref
from types import SimpleNamespace

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
    ends,
    made_by_a_pipeline,
    pipe_of,
    stream_of,
    stream_of_somebody,
    values_of,
)
from test_reuse import LONG, SOON, happens, held

from emulated_work import Copies, work_of
from penstock.backend import TensorGPU, TensorListGPU
from penstock.core.errors import PipelineError
from penstock.gpu import borrowed

if os.environ.get("PENSTOCK_TEST_GPU") == "1":
    pytest.skip("only the emulated device counts copies, and only its streams can be held", allow_module_level=True)

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


CASES = [
    (given, way, ragged)
    for given in GIVEN
    for way in WAYS
    for ragged in (False, True)
    if not (ragged and given in WHOLE) and (way != "by samples" or given in LISTS)
]


@pytest.fixture(scope="module")
def stream():
    return stream_of_somebody()


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
    if launches:  # the kernel that copies many pieces; only its list was uploaded
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
    """Their outputs depend only on shapes, which are known without waiting for the GPU."""
    pipe = pipe_of(lambda: [Array(a, stream) for a in RAGGED], no_copy=no_copy, then=lambda x: (x + 1, x.shape()))
    for _ in range(6):  # planned first by rules, then by programs
        more, shapes = pipe.run()
        check_values(more, [a + 1 for a in RAGGED])
        assert [s.tolist() for s in values_of(shapes)] == [[k, 7] for k in range(1, N + 1)]


@pytest.mark.parametrize("no_copy", [False, True])
@pytest.mark.parametrize("given", ["an array that names its stream", "DLPack", "a list of arrays"])
def test_what_is_still_being_made_is_waited_for_by_the_gpu(given, no_copy, stream):
    """The host does not wait: the batch is returned before the array's stream has started."""
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
    """Work that the owner enqueues after the call runs after the copy, which has not started here."""
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
    """Its tensors don't state the stream."""

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
        borrowed.collect()
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
        borrowed.collect()
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
    borrowed.collect()
    assert alive() is not None
    check_values(out, DENSE)
    capsule = out.__dlpack__(stream=stream.handle)
    del out
    borrowed.collect()
    assert alive() is not None
    del capsule
    assert ends(alive)


def test_elements_at_odd_addresses_are_copied(stream):
    """Kernels require aligned elements."""
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
    one.strides = (4, 160, 4)  # the stride of an axis of one element is arbitrary
    check_values(by_batches(one).run()[0], DENSE[:1])
    turned = Strided(DENSE, stream)
    turned.strides = (4, 20, 60)
    with pytest.raises(PipelineError, match=r"(?s)a dense row-major array is needed.*arrays_on_the_gpu.py"):
        by_batches(turned).run()
