# SPDX-License-Identifier: Apache-2.0
"""Two GPUs in one process and in two: `make gpu-test` on a machine that has them. Arrays of JAX and tensors of PyTorch
are the batches of the pipelines, not copies, each on the GPU of its pipeline."""

import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

if os.environ.get("PENSTOCK_TEST_GPU") != "1":
    pytest.skip("needs two GPUs", allow_module_level=True)
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
jax = pytest.importorskip("jax")
from jax.sharding import Mesh, NamedSharding  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

from penstock import fn, pipeline_def  # noqa: E402
from penstock.pipeline import Pipeline  # noqa: E402
from penstock.plugin.jax import DALIGenericIterator, data_iterator  # noqa: E402
from penstock.plugin.jax.fn import jax_function  # noqa: E402

ROOT = Path(__file__).parents[2]
FOLDER = str(ROOT / "examples" / "data")

if jax.default_backend() != "gpu" or len(jax.devices()) < 2:
    pytest.skip("needs two GPUs", allow_module_level=True)
DEVICES = jax.devices()[:2]


@pytest.fixture
def seen(monkeypatch):
    """The batches returned by pipelines."""
    batches = []
    wrapped = Pipeline._wrapped
    monkeypatch.setattr(Pipeline, "_wrapped", lambda *a: batches.append(wrapped(*a)) or batches[-1])
    return batches


def pictures(num_shards=1, shard_id=0, size=64):
    jpegs, labels = fn.readers.file(file_root=FOLDER, name="reader", num_shards=num_shards, shard_id=shard_id)
    return fn.resize(fn.decoders.image(jpegs, device="mixed"), size=(size, size)), labels


NAMES = {"output_map": ["image", "label"], "reader_name": "reader"}


def test_one_gpu(seen):
    it = data_iterator(pictures, prepare_first_batch=False, **NAMES)(batch_size=4, device_id=1)
    kept = [next(it) for _ in range(4)]
    for batch, outputs in zip(kept, seen, strict=True):
        assert batch["image"].devices() == {DEVICES[1]} and batch["label"].devices() == {jax.devices("cpu")[0]}
        assert batch["image"].unsafe_buffer_pointer() == outputs[0].data_ptr()
    values = [np.asarray(outputs[0].as_cpu().as_array()) for outputs in seen]
    seen.clear()
    it._pipes[0].close()
    assert all((np.asarray(b["image"]) == v).all() for b, v in zip(kept, values))


def test_a_pipeline_does_not_change_the_current_device():
    torch = pytest.importorskip("torch")
    from penstock.plugin.pytorch import DALIGenericIterator as TorchIterator

    torch.cuda.set_device(0)
    it = TorchIterator(pipeline_def(pictures, batch_size=4, num_threads=2, device_id=1)(), ["image", "label"])
    assert next(it)[0]["image"].device.index == 1
    assert torch.cuda.current_device() == 0
    it._pipes[0].close()
    assert torch.cuda.current_device() == 0


def test_shards(seen):
    sharding = NamedSharding(Mesh(np.array(DEVICES), ("batch",)), P("batch"))
    it = data_iterator(pictures, sharding=sharding, prepare_first_batch=False, **NAMES)(batch_size=8)
    batch = next(it)
    parts = batch["image"].addressable_shards
    assert [(s.device, s.data.shape) for s in parts] == [(d, (4, 64, 64, 3)) for d in DEVICES]
    assert [s.data.unsafe_buffer_pointer() for s in parts] == [outputs[0].data_ptr() for outputs in seen]
    assert batch["label"].devices() == set(DEVICES)
    total = jax.jit(lambda x: x.astype("f4").mean())(batch["image"])
    assert abs(float(total) - np.asarray(batch["image"]).astype("f8").mean()) < 0.1


def test_axis_of_devices():
    batch = next(data_iterator(pictures, devices=DEVICES, **NAMES)(batch_size=8))
    assert batch["image"].shape == (2, 4, 64, 64, 3) and batch["image"].devices() == set(DEVICES)


def test_partial_and_ragged():
    it = data_iterator(pictures, last_batch_policy="PARTIAL", **NAMES)(batch_size=16)
    assert [b["image"].shape[0] for b in it] == [16, 5]

    @pipeline_def(batch_size=4, device_id=0)
    def ragged():
        jpegs, _ = fn.readers.file(file_root=FOLDER)
        return fn.decoders.image(jpegs, device="mixed")

    with pytest.raises(ValueError, match="output 'image'.*differ in shape"):
        DALIGenericIterator(ragged(), ["image"])


def test_batches_keep_their_content():
    """A batch that JAX still computes with is not written to by the pipeline."""
    work = jax.jit(lambda x: jax.lax.fori_loop(0, 50, lambda i, s: s + x.astype("f4").mean(), 0.0) / 50)
    it = data_iterator(pictures, **NAMES)(batch_size=7, device_id=0)
    on_gpu = [float(m) for m in [work(b["image"]) for _ in range(3) for b in it]]
    it = data_iterator(pictures, **NAMES)(batch_size=7, device_id=1)
    again = [float(np.asarray(b["image"]).astype("f8").mean()) for _ in range(3) for b in it]
    np.testing.assert_allclose(on_gpu, again, rtol=1e-3)


def pipes(**kwargs):
    """A pipeline on each GPU, each with its shard."""
    define = pipeline_def(pictures, batch_size=4, num_threads=2, **kwargs)
    return [define(num_shards=2, shard_id=i, device_id=i) for i in range(2)]


def on_cpu(n=3):
    """The expected outputs, computed on the CPU except for decoding: batches of GPU 0 only."""
    define = pipeline_def(pictures, batch_size=4, num_threads=2, device_id=0)
    made = [define(num_shards=2, shard_id=i) for i in range(2)]
    return [[p.run()[0].as_cpu().as_array() for p in made] for _ in range(n)]


def close_to(got, want):
    """Batches are shared between decoders according to their speeds, and their pixels differ slightly."""
    return np.abs(got.astype("i4") - want).mean() < 1


def test_torch_on_two_gpus(seen):
    torch = pytest.importorskip("torch")
    from penstock.plugin.pytorch import DALIGenericIterator as TorchIterator

    it = TorchIterator(pipes(), ["image", "label"], reader_name="reader", prepare_first_batch=False)
    kept = [next(it) for _ in range(3)]
    for batch, *outputs in zip(kept, seen[::2], seen[1::2], strict=True):
        for i, part in enumerate(batch):
            assert part["image"].device == torch.device("cuda", i)
            assert part["image"].data_ptr() == outputs[i][0].data_ptr()
    want = on_cpu()
    for batch, parts in zip(kept, want):
        assert all(close_to(b["image"].cpu().numpy(), w) for b, w in zip(batch, parts))


def test_threads_with_pipelines_on_either_gpu():
    """Several pipelines on several GPUs run at once without affecting each other."""
    want, problems = on_cpu(4), []

    def work(number):
        try:
            (made,) = [pipes()[number % 2]]
            for i in range(4):
                images = made.run()[0]
                assert images.device_id() == number % 2
                assert close_to(images.as_cpu().as_array(), want[i][number % 2])
        except BaseException as e:
            problems.append(e)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(120)
    assert not problems


def test_jax_function_on_the_second_gpu():
    seen = []

    def double(x):
        seen.append(x.devices())
        return x * 2

    def define():
        x = fn.external_source(source=lambda i: np.full((2, 8), i, "i4"), device="gpu")
        return jax_function(double)(x) + 0

    made = pipeline_def(define, batch_size=2, num_threads=1, device_id=1)()
    outputs = [made.run()[0] for _ in range(3)]
    assert [o.device_id() for o in outputs] == [1] * 3 and set(map(frozenset, seen)) == {frozenset({DEVICES[1]})}
    assert [int(o.as_cpu().as_array().max()) for o in outputs] == [0, 2, 4]


def test_peeking_at_a_sharded_batch():
    pytest.importorskip("clu")
    from penstock.plugin.jax.clu import peekable_data_iterator

    sharding = NamedSharding(Mesh(np.array(DEVICES), ("batch",)), P("batch"))
    it = peekable_data_iterator(pictures, sharding=sharding, **NAMES)(batch_size=8)
    peeked = it.peek_async().result()
    assert peeked["image"] is it.peek()["image"] is next(it)["image"] and peeked["image"].devices() == set(DEVICES)
    assert it.is_nonpadding.sharding.device_set == set(DEVICES)


def run(*arguments, **env):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])}
    return subprocess.Popen(
        [sys.executable, *map(str, arguments)], env=environment | env, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )  # fmt: skip


def test_dalis_documents_on_jax():
    """Both, cell by cell, with the devices that they print."""
    pytest.importorskip("clu")
    process = run("-m", "penstock.as_dali", ROOT / "tests" / "plugin" / "jax_documents.py", FOLDER, "gpu")
    out, err = process.communicate(timeout=120)
    assert out.strip().endswith("all as documented"), err[-3000:]


def test_a_program_in_the_class_style():
    pytest.importorskip("torch")
    program = ROOT / "tests" / "as_dali" / "programs" / "class_style.py"
    process = run("-W", "ignore", "-m", "penstock.as_dali", program, FOLDER, 2, "gpu")
    out, err = process.communicate(timeout=120)
    assert out.splitlines() == ["40 40 (4, 3, 224, 224) torch.float32 (4,) torch.int64"] * 2, err[-3000:]


def test_two_processes_of_a_gpu_each(tmp_path):
    pytest.importorskip("clu")
    (tmp_path / "class").mkdir()
    for i in range(16):
        (tmp_path / "class" / f"{i:02d}.jpg").write_bytes(bytes([i] * 4))
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    program = ROOT / "tests" / "plugin" / "two_processes.py"
    processes = [run(program, rank, port, tmp_path, "gpu") for rank in range(2)]
    try:
        results = [p.communicate(timeout=150) for p in processes]
    finally:
        for p in processes:
            p.kill()
    assert all("done" in out for out, _ in results), "\n".join(err[-2000:] for _, err in results)
