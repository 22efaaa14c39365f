# SPDX-License-Identifier: Apache-2.0
"""The iterators of PyTorch and JAX over pipelines with GPU outputs. The emulated device uses host memory, which the
frameworks treat as CPU memory. A single pipeline uses the fast path (plugin/one_pipeline.py), iterators with overridden
methods do not; both give the same results. On a real GPU: test_frameworks.py."""

import ctypes
import gc
import os
import threading
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

if os.environ.get("PENSTOCK_TEST_GPU") == "1":
    pytest.skip("the frameworks are told that the memory is the host's", allow_module_level=True)
pytest.importorskip("torch")
pytest.importorskip("jax")

import jax  # noqa: E402
from test_reuse import held  # noqa: E402

from penstock import fn, pipeline_def, types  # noqa: E402
from penstock.exec.scheduling.executor import Executor  # noqa: E402
from penstock.gpu import dlpack_export  # noqa: E402
from penstock.pipeline import Pipeline  # noqa: E402
from penstock.plugin import jax as plugin_jax  # noqa: E402
from penstock.plugin import one_pipeline  # noqa: E402
from penstock.plugin import pytorch as plugin_torch  # noqa: E402
from penstock.plugin.jax import importing  # noqa: E402
from penstock.plugin.pytorch import torch_utils  # noqa: E402

FOLDER = str(Path(__file__).parents[2] / "examples" / "data")
_get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))


def _of_the_host(capsule):
    """Changes DLPack's device type from 2 to 1."""
    kind = ctypes.c_int32.from_address(_get(capsule, b"dltensor") + 8)
    assert kind.value == 2
    kind.value = 1
    return capsule


class _Device:
    def get_stream_for_external_ready_events(self):
        return 1

    def device_from_local_hardware_id(self, number):
        assert number == 0
        return self


def wait():
    """Waits until the work of the frameworks' stream is complete."""
    driver = ctypes.CDLL(os.environ["PENSTOCK_CUDA_DRIVER"])
    assert not driver.cuStreamSynchronize(ctypes.c_void_p(1))


@pytest.fixture(autouse=True)
def on_the_host(monkeypatch, request):
    take = torch_utils._of_capsule
    monkeypatch.setattr(torch_utils, "_of_capsule", lambda capsule: take(_of_the_host(capsule)))
    monkeypatch.setattr(torch_utils, "_current_stream", lambda device_id: 0)
    if not importing._try():  # then there is no fast path to JAX, but still to PyTorch
        if "JAX" in request.node.name:
            pytest.skip("this jaxlib is not known")
        return
    made, cpu = importing._made, jax.devices("cpu")[0]
    backend, public = importing._get_backend, jax.dlpack.from_dlpack

    def made_of_either(capsule, device, stream, copy, kind):
        if kind == 1:
            return made(capsule, device, stream, copy, kind)
        return made(_of_the_host(capsule), cpu, None, None, 1)

    monkeypatch.setattr(importing, "_made", made_of_either)
    monkeypatch.setattr(importing, "_get_backend", lambda kind: _Device() if kind == "cuda" else backend(kind))
    monkeypatch.setattr(jax.dlpack, "from_dlpack", lambda x: public(x.as_cpu() if hasattr(x, "as_cpu") else x))


@pytest.fixture
def in_order(monkeypatch):
    """On a GPU, JAX waits for the stream before it works on a tensor. On the CPU there are no streams, and it would
    slice incomplete data."""
    made = importing._made
    monkeypatch.setattr(importing, "_made", lambda *args: wait() or made(*args))


@pytest.fixture
def quick(monkeypatch):
    """Counts batches on the fast path."""
    count, take = [], one_pipeline.take
    monkeypatch.setattr(one_pipeline, "take", lambda it: count.append(it) or take(it))
    return count


class LongTorch(plugin_torch.DALIGenericIterator):
    def _convert(self, batches):
        return super()._convert(batches)


class LongJax(plugin_jax.DALIGenericIterator):
    def _convert(self, batches):
        return super()._convert(batches)


FACES = {
    "PyTorch": (plugin_torch.DALIGenericIterator, LongTorch, lambda batch: batch[0]),
    "JAX": (plugin_jax.DALIGenericIterator, LongJax, lambda batch: batch),
}


@pytest.fixture(params=FACES)
def face(request):
    return FACES[request.param]


def define(n=10, wide=False):
    """Batch i has samples filled with their numbers: one GPU output, a small one there, and one CPU output."""

    def source(info):
        if info.iteration * 4 >= n:
            raise StopIteration
        return np.full((5, 3), info.idx_in_epoch, "f4"), np.array([info.idx_in_epoch], "i8" if wide else "i4")

    x, label = fn.external_source(source=source, num_outputs=2, batch=False)
    return x.gpu() + 1, label.gpu(), x


def pipe(**kwargs):
    inner = {k: kwargs.pop(k) for k in ("n", "wide") if k in kwargs}
    return pipeline_def(lambda: define(**inner), batch_size=4, num_threads=1, device_id=0, **kwargs)()


NAMES = ["x", "label", "host"]


def read(tensor):
    """Its values, when the frameworks' stream has waited for them."""
    wait()
    return np.asarray(tensor).copy()


def values(batches, of):
    return [{k: read(v) for k, v in of(b).items()} for b in batches]


@pytest.mark.parametrize("policy", ["FILL", "PARTIAL", "DROP"])
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.usefixtures("in_order")
def test_both_ways_give_the_same(face, quick, policy, wide):
    short, long, of = face
    made = []
    for kind in (short, long):
        it = kind(pipe(n=100, wide=wide), NAMES, size=10, last_batch_policy=policy, auto_reset=True)
        assert it._is_quick == (kind is short)
        made.append([values(it, of) for _ in range(2)])
    assert quick and {type(it) for it in quick} == {short}
    lengths = {"FILL": [4, 4, 4], "PARTIAL": [4, 4, 2], "DROP": [4, 4]}[policy]
    assert [len(b["x"]) for b in made[0][0]] == lengths
    for b, first in zip(made[0][0], (0, 4, 8)):
        numbers = first + np.arange(len(b["x"]))
        assert (b["x"] == numbers[:, None, None] + 1).all() and b["x"].shape[1:] == (5, 3)
        assert (b["label"][:, 0] == numbers).all() and (b["host"] == numbers[:, None, None]).all()
    for one, other in zip(*made):
        assert len(one) == len(other)
        for a, b in zip(one, other):
            assert a.keys() == b.keys() == set(NAMES)
            assert all((a[k] == b[k]).all() and a[k].dtype == b[k].dtype for k in a)


def test_the_end_of_the_data(face, quick):
    short, _, of = face
    it = short(pipe(n=8), NAMES)
    assert [b["label"][:, 0].tolist() for b in values(it, of)] == [[0, 1, 2, 3], [4, 5, 6, 7]] and quick
    with pytest.raises(StopIteration):
        next(it)


def test_data_that_ends_with_each_epoch(face, quick):
    short, _, of = face

    def define():
        data = [np.full((2, 3), i, "f4") for i in range(3)]
        return fn.external_source(source=data, cycle="raise", device="gpu")

    it = short(pipeline_def(define, batch_size=2, num_threads=1, device_id=0)(), ["x"], size=6, auto_reset=True)
    for _ in range(3):
        assert [int(b["x"][0, 0]) for b in values(it, of)] == [0, 1, 2]
    assert quick


def test_tensors_are_the_batches(face, monkeypatch):
    short, _, of = face
    addresses, share = [], Executor.share

    def and_look(self):
        outputs = share(self)
        addresses.append([int(o.rows["data"][0]) for o in outputs[:2]])
        return outputs

    monkeypatch.setattr(Executor, "share", and_look)
    kept = [of(b) for b in short(pipe(n=100), NAMES, size=40)]
    assert len(kept) == len(addresses) == 10
    for batch, (x, label) in zip(kept, addresses):
        got = [v.data_ptr() if hasattr(v, "data_ptr") else v.unsafe_buffer_pointer() for v in map(batch.get, NAMES[:2])]
        assert got == [x, label]
    assert all((read(b["x"]) == read(b["host"]) + 1).all() for b in kept)  # and do not change


def test_all_is_given_back(face):
    short, _, of = face
    gc.collect()
    dlpack_export.collect()
    before = len(dlpack_export._exported)
    it = short(pipe(n=100), NAMES, size=40)
    kept = [of(b) for b in it]
    assert len(dlpack_export._exported) == before + 2 * len(kept)
    del it, kept
    gc.collect()
    dlpack_export.collect()
    assert len(dlpack_export._exported) == before


def test_no_more_batches_are_on_their_way_than_are_wanted(face):
    """Waits for the oldest of three incomplete batches; then all are complete."""
    short, _, of = face
    it = short(pipe(n=1000), NAMES, size=400, prepare_first_batch=False)
    it._pipes[0].build()
    streams = list(it._pipes[0]._plan.session._streams)
    with ExitStack() as holding:
        for stream in streams:
            holding.enter_context(held(stream))
        kept = [of(next(it)) for _ in range(2)]
        got = []
        thread = threading.Thread(target=lambda: got.append(of(next(it))), daemon=True)
        thread.start()
        thread.join(0.3)
        assert not got
    thread.join(60)
    assert [read(b["x"])[0, 0, 0] for b in (*kept, *got)] == [1, 5, 9]


def test_samples_that_are_skipped(face, quick, tmp_path):
    short, long, of = face
    good = sorted(Path(FOLDER).rglob("*.jpg"))[:5]
    for i, name in enumerate("abcdefgh"):
        data = good[i % 5].read_bytes() if name not in "bcd" and name not in "ef" else b"no picture"
        (tmp_path / f"{name}.jpg").write_bytes(data)

    @pipeline_def(batch_size=2, num_threads=1, device_id=0, on_error="skip")
    def pictures():
        jpegs, labels = fn.readers.file(file_root=str(tmp_path), files=sorted(os.listdir(tmp_path)), name="reader")
        return fn.decoders.image(jpegs, device="mixed", hw_decoder_load=0.0)[:16, :16], labels.gpu()

    both = []
    for kind in (short, long):
        it = kind(pictures(), ["image", "label"], reader_name="reader", last_batch_policy="PARTIAL")
        assert it._is_quick == (kind is short)
        both.append([b["label"][:, 0].tolist() for b in values(it, of)])
    # Of the batches (a, b), (c, d), (e, f) and (g, h), the middle ones are skipped.
    assert both == [[[0], [6, 7]]] * 2 and quick


def test_errors_are_those_of_the_long_way(face):
    short, long, of = face

    @pipeline_def(batch_size=2, num_threads=1, device_id=0)
    def ragged():
        return fn.external_source(source=lambda: [np.zeros((i + 2, 3), "f4") for i in range(2)], device="gpu")

    for kind in (short, long):
        with pytest.raises(ValueError, match="differ in shape"):
            kind(ragged(), ["x"])

    def outcomes(kind, n, **kwargs):
        def source(i):
            if i == n:
                raise OSError("lost")
            return np.full((2, 3), i, "f4")

        made = pipeline_def(
            lambda: fn.external_source(source=source, device="gpu", **kwargs), batch_size=2, device_id=0
        )
        it = kind(made(), ["x"], size=12)
        got = []
        while True:
            try:
                x = values([next(it)], of)[0]["x"]
            except StopIteration:
                return got
            except OSError as e:
                got.append(str(e))
            else:
                assert (x == x[0, 0]).all()
                got.append(int(x[0, 0]))

    for kind in (short, long):
        assert outcomes(kind, 1, background=True) == [0, "lost", 2, 3, 4, 5]
        assert outcomes(kind, 4) == [0, 1, "lost", 3, 5, 6]  # as in DALI: when the source is called


class Watched(Pipeline):
    def run(self, *args, **kwargs):
        self.runs = getattr(self, "runs", 0) + 1
        return super().run(*args, **kwargs)


def test_what_programs_override_is_called(face):
    short, _, of = face

    def filled(p):
        with p:
            p.set_outputs(fn.external_source(source=lambda i: np.full((2, 3), i, "f4"), device="gpu"))
        return p

    it = short(filled(Watched(2, 1, 0)), ["x"], size=8)
    assert len(values(it, of)) == it._pipes[0].runs == 4

    class Rows(short):
        rows = 0

        def _run_in_epoch(self):
            self.rows += 2
            return super()._run_in_epoch()

    it = Rows(filled(Pipeline(2, 1, 0)), ["x"], size=8)
    assert len(values(it, of)) == 4 and it.rows >= 8
    wanted = filled(Pipeline(2, 1, 0, output_dtype=types.INT8))
    with pytest.raises(RuntimeError, match="output_dtype asks for"):
        short(wanted, ["x"], size=8)


def test_several_pipelines():
    pipes = [pipe(n=100) for _ in range(2)]
    it = plugin_torch.DALIGenericIterator(pipes, NAMES, size=16)
    assert not it._is_quick
    first = []
    for batches in it:
        wait()
        first.append([batch["label"][0, 0].item() for batch in batches])
    assert first == [[0, 0], [4, 4]]


def test_a_reset_in_the_middle(face):
    short, long, of = face

    def made(kind):
        def pictures():
            jpegs, labels = fn.readers.file(file_root=FOLDER, name="reader")
            return jpegs, labels.gpu()

        it = kind(
            pipeline_def(lambda: pictures()[1], batch_size=4, num_threads=1, device_id=0)(), ["x"], reader_name="reader"
        )
        out = []
        for stop in (2, None, 1, None):
            out += [b["x"].tolist() for i, b in zip(range(stop or 99), values(it, of))] + ["end"]
            it.reset()
        return out

    assert made(short) == made(long)
