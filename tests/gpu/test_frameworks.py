# SPDX-License-Identifier: Apache-2.0
"""PyTorch and JAX on a real GPU (`make gpu-test`): their arrays share memory with the pipelines' batches, the host
never waits, and the work of both sides is ordered correctly."""

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

if os.environ.get("PENSTOCK_TEST_GPU") != "1":
    pytest.skip("needs a GPU", allow_module_level=True)

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

from penstock import fn, pipeline_def  # noqa: E402
from penstock.exec.scheduling.executor import Executor  # noqa: E402
from penstock.gpu import dlpack_export  # noqa: E402
from penstock.plugin.one_pipeline import given_out  # noqa: E402

FOLDER = str(Path(__file__).parents[2] / "examples" / "data")


@pytest.fixture
def torch():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch has no GPU")
    torch.cuda.set_device(0)  # JAX makes another one current, in test_two_gpus.py
    return torch


@pytest.fixture
def jax():
    jax = pytest.importorskip("jax")
    if jax.default_backend() != "gpu":
        pytest.skip("JAX has no GPU")
    return jax


@pytest.fixture
def seen(monkeypatch):
    """The batches returned by pipelines."""
    batches = []
    share = Executor.share

    def and_keep(self):
        outputs = share(self)
        batches.append([given_out(o) for o in outputs])
        return outputs

    monkeypatch.setattr(Executor, "share", and_keep)
    return batches


@pytest.fixture
def no_waiting(monkeypatch):
    """Fails if the host waits for the GPU while a batch is returned."""
    from penstock.gpu.batch import DeviceBatch

    def wait(self):
        raise AssertionError("the host waits for the GPU")

    monkeypatch.setattr(DeviceBatch, "wait", wait)


def pictures(size=64):
    jpegs, labels = fn.readers.file(file_root=FOLDER, name="reader")
    return fn.resize(fn.decoders.image(jpegs, device="mixed"), size=(size, size)), labels.gpu()


def pipe(**kwargs):
    return pipeline_def(pictures, batch_size=4, num_threads=2, device_id=0, **kwargs)()


def numbers(size=1 << 22, **kwargs):
    """Batch i is full of i, made on the GPU by several kernels, one of which takes long."""

    def define():
        x = fn.external_source(source=lambda i: np.full((2, size // 2), i, "f4"), device="gpu")
        return fn.copy(x + 0)

    return pipeline_def(define, batch_size=2, num_threads=1, device_id=0, **kwargs)()


NAMES = {"output_map": ["image", "label"], "reader_name": "reader"}


def test_torch_shares_memory(torch, seen, no_waiting):
    from penstock.plugin.pytorch import DALIGenericIterator

    it = DALIGenericIterator(pipe(), prepare_first_batch=False, **NAMES)
    kept = [next(it)[0] for _ in range(3)]
    assert len(seen) == 3
    for batch, outputs in zip(kept, seen):
        assert batch["image"].is_cuda and batch["label"].is_cuda
        assert batch["image"].data_ptr() == outputs[0].data_ptr() and batch["label"].data_ptr() == outputs[1].data_ptr()
    values = [np.asarray(outputs[0].as_cpu().as_array()) for outputs in seen]
    it._pipes[0].close()
    seen.clear()
    del it
    assert all((b["image"].cpu().numpy() == v).all() for b, v in zip(kept, values))


def test_jax_shares_memory(jax, seen, no_waiting):
    from penstock.plugin.jax import data_iterator

    it = data_iterator(pictures, prepare_first_batch=False, **NAMES)(batch_size=4)
    kept = [next(it) for _ in range(3)]
    assert len(seen) == 3
    for batch, outputs in zip(kept, seen):
        assert batch["image"].devices() == batch["label"].devices() == {jax.devices("gpu")[0]}
        assert batch["image"].unsafe_buffer_pointer() == outputs[0].data_ptr()
    values = [np.asarray(outputs[0].as_cpu().as_array()) for outputs in seen]
    it._pipes[0].close()
    seen.clear()
    del it
    assert all((np.asarray(b["image"]) == v).all() for b, v in zip(kept, values))


def _slow_torch(torch, x):
    y = torch.randn(4096, 4096, device="cuda")
    for _ in range(20):
        y = y @ y * 1e-3
    return x.double().sum() + 0 * y.sum().nan_to_num(0)


def test_torch_works_on_what_was_given_out(torch):
    """The sums are correct although the host never waits and the memory is reused."""
    from penstock.plugin.pytorch import DALIGenericIterator

    it = DALIGenericIterator(numbers(), ["x"], size=10**9)
    stream = torch.cuda.Stream()
    sums = []
    for k in range(24):
        with torch.cuda.stream(stream) if k % 2 else torch.cuda.stream(torch.cuda.default_stream()):
            sums.append(_slow_torch(torch, next(it)[0]["x"]))
    torch.cuda.synchronize()
    assert [round(s.item() / (1 << 22)) for s in sums] == list(range(24))


def _slow_jax(jax):
    def slow(x):
        y = jax.numpy.ones((4096, 4096)) * 1e-3
        y = jax.lax.fori_loop(0, 20, lambda i, y: y @ y * 1e-3, y)
        return x.sum() / x.size + 0 * y.sum()

    return jax.jit(slow)


def test_jax_works_on_what_was_given_out(jax):
    from penstock.plugin.jax import DALIGenericIterator

    it = DALIGenericIterator(numbers(), ["x"], size=10**9)
    slow = _slow_jax(jax)
    jax.block_until_ready(slow(jax.numpy.zeros((2, 1 << 21))))
    begin = time.perf_counter()
    means = [slow(next(it)["x"]) for _ in range(24)]
    issued = time.perf_counter() - begin
    got = [round(float(m)) for m in means]
    print(f"issued in {issued * 1e3:.1f} ms, done after {(time.perf_counter() - begin) * 1e3:.1f} ms")
    assert got == list(range(24))


def test_jax_lets_go_only_when_it_is_through(jax):
    """A batch released by JAX returns to its pool only after JAX's kernels have read it."""
    from penstock.plugin.jax import DALIGenericIterator

    it = DALIGenericIterator(numbers(), ["x"], size=10**9, prepare_first_batch=False)
    slow = _slow_jax(jax)
    jax.block_until_ready(slow(jax.numpy.zeros((2, 1 << 21))))
    x = next(it)["x"]
    dlpack_export.collect()
    before = len(dlpack_export._exported)
    y = slow(x)
    del x
    dlpack_export.collect()
    early = len(dlpack_export._exported) < before and not y.is_ready()
    jax.block_until_ready(y)
    print("JAX lets go at once:", early)
    # Even if it is released early, the memory is not overwritten before: see the test above and this one.
    again = [slow(next(it)["x"]) for _ in range(12)]
    assert [round(float(a)) for a in again] == list(range(1, 13))


@pytest.mark.parametrize("no_copy", [False, True])
def test_jax_makes_the_data_of_a_source(jax, no_copy):
    """The array is taken before JAX has computed it, and JAX releases it immediately."""
    slow = _slow_jax(jax)
    zeros = jax.numpy.zeros((4, 1 << 20))
    jax.block_until_ready(slow(zeros))
    add = jax.jit(lambda x, y: x + y)

    def source(i):
        return add(zeros, slow(zeros + i))

    made = pipeline_def(lambda: fn.external_source(source, device="gpu", no_copy=no_copy) + 1, batch_size=4)
    pipe = made(num_threads=1, device_id=0, prefetch_queue_depth=3)
    for i in range(6):
        (out,) = pipe.run()
        assert (np.round(out.as_cpu().as_array()) == i + 1).all()


def ragged():
    jpegs, labels = fn.readers.file(file_root=FOLDER, name="reader")
    return fn.decoders.image(jpegs, device="mixed"), labels


def test_torch_ragged(torch):
    from penstock.plugin.pytorch import DALIRaggedIterator

    made = pipeline_def(ragged, batch_size=3, num_threads=2, device_id=0)
    (want,) = [made().run()[0].as_cpu()]
    for tag in ("sparse_list", "sparse_coo", "padded"):
        it = DALIRaggedIterator(made(), ["image", "label"], reader_name="reader", output_types=[tag, "dense"])
        x = next(it)[0]["image"]
        samples = list(x.to_dense() if tag == "sparse_coo" else x)
        for s, w in zip(samples, (want.at(i) for i in range(3))):
            assert s.is_cuda and (s.cpu().numpy()[tuple(map(slice, w.shape))] == w).all()
    with pytest.raises(ValueError, match="output 'image'.*differ in shape"):
        DALIRaggedIterator(made(), ["image", "label"], reader_name="reader")


def test_feed_ndarray(torch):
    from penstock.plugin.pytorch import feed_ndarray

    (images, _) = pipe().run()
    for stream in (None, torch.cuda.Stream(), torch.cuda.Stream().cuda_stream):
        target = torch.zeros(4, 64, 64, 3, dtype=torch.uint8, device="cuda")
        torch.cuda.synchronize()  # waits for another stream
        feed_ndarray(images, target, cuda_stream=stream)
        torch.cuda.synchronize()
        assert (target.cpu().numpy() == images.as_cpu().as_array()).all()
    one = torch.zeros(64, 64, 3, dtype=torch.uint8)
    assert (feed_ndarray(images[1], one).numpy() == images.as_cpu().at(1)).all()


def test_run_with_a_stream(torch, no_waiting):
    """Outputs are ordered before the work of the stream."""
    made, stream = numbers(), torch.cuda.Stream()
    sums = []
    for _ in range(8):
        with torch.cuda.stream(stream):
            sums.append(torch.from_dlpack(made.run(stream)[0].as_tensor()).double().mean())
    torch.cuda.synchronize()
    assert [round(s.item()) for s in sums] == list(range(8))


@pytest.mark.parametrize("compiled", [False, True])
def test_jax_function(jax, compiled):
    from penstock.plugin.jax.fn import jax_function

    def flip(images):
        assert compiled or images.devices() == {jax.devices("gpu")[0]}
        return images[:, :, ::-1] // 2

    operator = jax_function(jax.jit(flip) if compiled else flip)

    def define():
        x = fn.resize(fn.decoders.image(fn.readers.file(file_root=FOLDER)[0], device="mixed"), size=(64, 96))
        y = operator(x)
        return x, y, fn.flip(y)

    made = pipeline_def(define, batch_size=4, num_threads=2, device_id=0)()
    for _ in range(6):
        x, y, z = (o.as_cpu().as_array() for o in made.run())
        assert (y == x[:, :, ::-1] // 2).all() and (z == x // 2).all()


def test_jax_function_in_order_with_slow_work(jax):
    """JAX's work is slow; later operators wait for it on the GPU, and its memory is not reused before."""
    from penstock.plugin.jax.fn import jax_function

    def slow(x):
        y = jax.numpy.ones((4096, 4096)) * 1e-3
        y = jax.lax.fori_loop(0, 10, lambda i, y: y @ y * 1e-3, y)
        return x * 2 + 0 * y.sum()

    operator = jax_function(jax.jit(slow))

    def define():
        x = fn.external_source(source=lambda i: np.full((2, 1 << 20), i, "f4"), device="gpu")
        return operator(fn.copy(x)) + 1, operator(x + 1)

    made = pipeline_def(define, batch_size=2, num_threads=1, device_id=0)()
    for i in range(12):
        a, b = (o.as_cpu().as_array() for o in made.run())
        assert (a == 2 * i + 1).all() and (b == 2 * i + 2).all()


def test_jax_function_without_inputs_and_without_outputs(jax):
    from penstock.plugin.jax.fn import jax_function

    seen = []
    look = jax_function(lambda x: seen.append(x.devices()), num_outputs=0)

    def define():
        x = jax_function(lambda: jax.numpy.ones((2, 3)), device="gpu")()
        look(x)
        return x

    (x,) = pipeline_def(define, batch_size=2, num_threads=1, device_id=0)().run()
    assert x.as_cpu().as_array().tolist() == [[1, 1, 1]] * 2 and seen[0] == {jax.devices("gpu")[0]}


def test_jax_function_with_a_sharding(jax):
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    from penstock.plugin.jax.fn import jax_function

    sharding = NamedSharding(Mesh(jax.devices("gpu")[:1], ("batch",)), PartitionSpec("batch"))
    operator = jax_function(lambda x: x + 1, sharding=sharding)

    def define():
        return operator(fn.external_source(source=lambda i: np.full((2, 8), i, "i4"), device="gpu"))

    made = pipeline_def(define, batch_size=2, num_threads=1, device_id=0)()
    assert [int(made.run()[0].as_cpu().as_array().min()) for _ in range(4)] == [1, 2, 3, 4]


@pytest.mark.parametrize("framework", ["torch", "jax"])
def test_batches_that_are_alive_at_exit(framework, request):
    """The process exits normally while it holds batches."""
    request.getfixturevalue(framework)
    take = {"torch": "torch.from_dlpack", "jax": "jax.dlpack.from_dlpack"}[framework]
    program = f"""
import numpy as np, {framework}
from penstock import fn, pipeline_def

data = [np.ones(3, "f4")] * 2
pipe = pipeline_def(lambda: fn.external_source(lambda: data, device="gpu") + 1, batch_size=2)(device_id=0)
x = {take}(pipe.run(-1)[0].as_tensor())
print(float(x.sum()))
"""
    done = subprocess.run([sys.executable, "-c", program], text=True, capture_output=True, timeout=120)
    assert (done.returncode, done.stdout.strip()) == (0, "12.0"), done.stderr
