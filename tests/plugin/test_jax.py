# SPDX-License-Identifier: Apache-2.0
"""The iterators for JAX: dictionaries of arrays on the CPU without a copy, one device or several (forced CPU
devices)."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

jax = pytest.importorskip("jax")

from penstock import fn, pipeline_def  # noqa: E402
from penstock.pipeline import Pipeline  # noqa: E402
from penstock.plugin.jax import DALIGenericIterator, data_iterator  # noqa: E402
from penstock.plugin.jax.iterator import DALIGenericIterator as FromModule  # noqa: E402


@pytest.fixture(scope="module")
def iterator_fn(files):
    """As in the tutorials, but for the decoder."""

    @data_iterator(output_map=["data", "labels"], reader_name="reader")
    def iterator_fn(n=7):
        data, labels = fn.readers.file(files=files[:n], labels=list(range(n)), name="reader")
        return data, labels

    return iterator_fn


def test_a_dictionary_of_arrays(iterator_fn):
    it = iterator_fn(batch_size=1)
    batch = next(it)
    assert isinstance(it, DALIGenericIterator) and DALIGenericIterator is FromModule
    assert isinstance(batch, dict) and list(batch) == ["data", "labels"]
    assert all(isinstance(v, jax.Array) for v in batch.values())
    assert batch["data"].shape == (1, 8) and batch["labels"].shape == (1, 1) and batch["labels"].dtype == np.int32
    assert len(it) == 7 and len([*it]) == 6
    assert batch["data"].devices() == {jax.devices("cpu")[0]}


def test_arguments_of_pipeline_and_function(iterator_fn):
    it = iterator_fn(n=4, batch_size=2, num_threads=2, seed=7)
    assert it._pipes[0].num_threads == 2 and it._pipes[0].seed == 7 and it._pipes[0].device_id == 0
    assert [b["labels"].flatten().tolist() for b in it] == [[0, 1], [2, 3]]
    assert iterator_fn(batch_size=2)._pipes[0].num_threads == 4
    assert iterator_fn.__name__ == "iterator_fn"


def test_function_and_decorator_without_arguments(files):
    def pipe():
        return fn.external_source(source=lambda i: np.float32([[i], [i]]))

    it = data_iterator(pipe, output_map=["x"], size=6)(batch_size=2)
    assert [b["x"][0, 0].item() for b in it] == [0, 1, 2]


def test_policies(iterator_fn, make):
    def labels(policy):
        it = DALIGenericIterator(make.reader(), ["data", "labels"], reader_name="reader", last_batch_policy=policy)
        return [b["labels"].flatten().tolist() for b in it]

    assert labels("FILL")[-1] == [6, 0] and labels("DROP")[-1] == [4, 5] and labels("partial")[-1] == [6]


def test_no_copy(make, monkeypatch):
    pipe = make.source(lambda i: np.full((2, 16, 16, 3), i, "f4"))
    seen = []
    share = Pipeline.share_outputs
    monkeypatch.setattr(Pipeline, "share_outputs", lambda *a: seen.append(share(*a)) or seen[-1])
    it = DALIGenericIterator(pipe, ["x"], prepare_first_batch=False)
    arrays = []
    for _ in range(5):
        arrays.append(next(it)["x"])
        assert arrays[-1].unsafe_buffer_pointer() == seen[-1][0].data_ptr()
    seen.clear()
    pipe.close()
    del it, pipe
    assert [a[1, 3, 3, 1].item() for a in arrays] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("dtype", ["u1", "i1", "i2", "i4", "f2", "f4", "?", "u2", "u4"])
def test_types(make, dtype):
    x = np.array([[0, 1], [2, 3]]).astype(dtype)
    array = next(DALIGenericIterator(make.source(lambda i: x), ["x"]))["x"]
    assert array.dtype == x.dtype and (np.asarray(array) == x).all()


def test_64_bit_types_follow_jax(make):
    x = np.int64([[1], [2]])
    assert next(DALIGenericIterator(make.source(lambda i: x), ["x"]))["x"].dtype == np.int32
    with jax.enable_x64(True):
        assert next(DALIGenericIterator(make.source(lambda i: x), ["x"]))["x"].dtype == np.int64


def test_skipped_samples(files):
    @data_iterator(output_map=["data", "labels"], reader_name="reader")
    def pipe():
        names = [f + ".missing" if i in (1, 4, 5) else f for i, f in enumerate(files[:6])]
        return fn.readers.file(files=names, labels=list(range(6)), name="reader")

    it = pipe(batch_size=2, on_error="skip")
    assert [b["labels"].flatten().tolist() for b in it] == [[0], [2, 3]] and len(it) == 3


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda p: DALIGenericIterator(p(), ["x"]), ValueError, "output 'x'.*differ in shape"),
        (
            lambda p: DALIGenericIterator(p(), ["x", "y"]),
            ValueError,
            r"2 names \('x', 'y'\), but the pipeline has 1 output",
        ),
        (
            lambda p: DALIGenericIterator([p(), p()], ["x"], size=4, last_batch_policy="PARTIAL"),
            ValueError,
            "single pipeline",
        ),
        (
            lambda p: DALIGenericIterator(p(), ["x"], reader_name="reader"),
            ValueError,
            "no reader of that name; it has none",
        ),
        (lambda p: data_iterator(p, sharding=object(), devices=[]), ValueError, "exclude each other"),
        (lambda p: data_iterator(3), TypeError, "decorates a function"),
        (lambda p: data_iterator(pipeline_def(len)), TypeError, "decorate the function itself"),
        (
            lambda p: data_iterator(lambda: None, output_map=["x"])(batch_size=2, checkpoints=[]),
            NotImplementedError,
            "checkpoints",
        ),
        (lambda p: data_iterator(lambda: 1, output_map=["x"])(batch_sise=2), TypeError, "Did you mean 'batch_size'"),
        (
            lambda p: data_iterator(lambda: 1, output_map=["x"], devices=jax.devices())(batch_size=2),
            TypeError,
            "num_shards and shard_id",
        ),
    ],
)
def test_mistakes(make, call, error, text):
    with pytest.raises(error, match=text):
        call(make.ragged)


SHARDED = """
import numpy as np, jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
from penstock import fn
from penstock.plugin.jax import data_iterator, DALIGenericIterator
devices = jax.devices()
assert len(devices) == 4

def source(num_shards=1, shard_id=0):
    return fn.external_source(source=lambda i: np.full((2, 16), 100 * i + 10 * num_shards + shard_id, "i4"))

def first(sharding, batch_size=8, **kwargs):
    make = data_iterator(source, output_map=["x"], size=64, sharding=sharding, **kwargs)
    return next(make(batch_size=batch_size))["x"]

# Along one axis: the batch is global, each device holds its part of it.
sharding = NamedSharding(Mesh(devices, ("batch",)), P("batch"))
x = first(sharding)
assert x.shape == (8, 16) and x.sharding == sharding and x[:, 0].tolist() == [40, 40, 41, 41, 42, 42, 43, 43]
assert [s.data.shape for s in x.addressable_shards] == [(2, 16)] * 4

# The order of the devices in the mesh, not their numbers, says who has which part.
x = first(NamedSharding(Mesh(devices[::-1], ("batch",)), P("batch")))
assert x[:, 0].tolist() == [40, 40, 41, 41, 42, 42, 43, 43]
assert {s.device.id: int(s.data[0, 0]) for s in x.addressable_shards} == {3: 40, 2: 41, 1: 42, 0: 43}

# Devices with the same part share a pipeline.
x = first(NamedSharding(Mesh(np.array(devices).reshape(2, 2), ("batch", "model")), P("batch")), batch_size=4)
assert x.shape == (4, 16) and x[:, 0].tolist() == [20, 20, 21, 21]
assert {s.device.id: int(s.data[0, 0]) for s in x.addressable_shards} == {0: 20, 1: 20, 2: 21, 3: 21}

# Devices instead of a sharding: an axis of devices in front.
x = next(data_iterator(source, output_map=["x"], size=64, devices=devices[:2])(batch_size=4))["x"]
assert x.shape == (2, 2, 16) and x[:, 0, 0].tolist() == [20, 21] and len(x.devices()) == 2
out = jax.pmap(lambda a: a + 1, devices=devices[:2])(x)
assert out[:, 0, 0].tolist() == [21, 22]

# A computation on the sharded batch, and an epoch of it.
it = data_iterator(source, output_map=["x"], size=32, sharding=sharding)(batch_size=8)
total = jax.jit(lambda a: a.sum())
want = [sum(100 * i + 40 + s for s in range(4)) * 32 for i in range(4)]
assert len(it) == 4 and [int(total(b["x"])) for b in it] == want

for batch_size, text in ((6, "can't be split evenly into 4 shards"), (None, "needs a batch_size")):
    try:
        first(sharding, batch_size=batch_size)
    except ValueError as e:
        assert text in str(e), e
    else:
        raise AssertionError(text)
try:
    data_iterator(source, output_map=["x"], size=64, sharding=sharding)(batch_size=8, shard_id=1)
except TypeError as e:
    assert "'shard_id' follows from the sharding" in str(e)
print("done")
"""


def test_several_devices():
    env = os.environ | {
        "XLA_FLAGS": "--xla_force_host_platform_device_count=4",
        "JAX_PLATFORMS": "cpu",
        "PYTHONPATH": str(Path(__file__).parents[2] / "src"),
    }
    out = subprocess.run([sys.executable, "-W", "ignore", "-c", SHARDED], env=env, capture_output=True, text=True)
    assert out.stdout.strip() == "done", out.stderr[-2000:]


def test_arrays_alive_when_the_interpreter_ends():
    program = (
        "import numpy as np\nfrom penstock import fn, pipeline_def\nfrom penstock.plugin.jax import "
        "DALIGenericIterator\n"
        "pipe = pipeline_def(batch_size=2)(lambda: fn.external_source(source=lambda i: np.zeros((2, 8), 'f4')))()\n"
        "it = DALIGenericIterator(pipe, ['x'])\nkept = [next(it) for _ in range(4)]\n"
    )
    env = os.environ | {"JAX_PLATFORMS": "cpu", "PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    out = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True)
    assert out.returncode == 0 and "Exception" not in out.stderr, out.stderr
