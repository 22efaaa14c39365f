# SPDX-License-Identifier: Apache-2.0
"""PyTorch's plugin on a real GPU (`make gpu-test`): epochs, changing shapes, the DataLoader's proxy, functions in the
graph. Synchronisation is tested in tests/gpu/test_frameworks.py."""

import os
from pathlib import Path

import numpy as np
import pytest

if os.environ.get("PENSTOCK_TEST_GPU") != "1":
    pytest.skip("needs a GPU", allow_module_level=True)
torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("PyTorch has no GPU", allow_module_level=True)

from penstock import fn, ops, pipeline_def  # noqa: E402
from penstock.pipeline import Pipeline  # noqa: E402
from penstock.plugin.pytorch import (  # noqa: E402
    DALIClassificationIterator,
    DALIGenericIterator,
    DALIRaggedIterator,
    TorchPythonFunction,
)
from penstock.plugin.pytorch.experimental import proxy  # noqa: E402
from penstock.plugin.pytorch.fn import torch_python_function  # noqa: E402

FOLDER = str(Path(__file__).parents[2] / "examples" / "data")
NAMES = {"output_map": ["image", "label"], "reader_name": "reader"}


@pytest.fixture(autouse=True)
def current_device():
    """Tests with JAX in the same process leave another device current; see test_two_gpus.py."""
    torch.cuda.set_device(0)


@pipeline_def(num_threads=2, device_id=0)
def pictures(shard=0, n_shards=1, pad=False):
    jpegs, labels = fn.readers.file(
        file_root=FOLDER, name="reader", shard_id=shard, num_shards=n_shards, pad_last_batch=pad
    )
    return fn.resize(fn.decoders.image(jpegs, device="mixed", hw_decoder_load=0), size=(32, 32)), labels.gpu()


@pipeline_def(num_threads=2, device_id=None)
def on_the_cpu(n_shards=1):
    jpegs, labels = fn.readers.file(file_root=FOLDER, name="reader", num_shards=n_shards)
    return fn.resize(fn.decoders.image(jpegs), size=(32, 32)), labels


@pytest.mark.parametrize(("policy", "lengths"), [("FILL", [4] * 6), ("DROP", [4] * 5), ("PARTIAL", [4, 4, 4, 4, 4, 1])])
def test_epochs(policy, lengths):
    """As with a CPU pipeline, also after a reset in mid-epoch."""
    it = DALIGenericIterator(pictures(batch_size=4), last_batch_policy=policy, **NAMES)
    want = DALIGenericIterator(on_the_cpu(batch_size=4), last_batch_policy=policy, **NAMES)
    for stop in (None, 2, None):
        for i, (mine, theirs) in enumerate(zip(it, want, strict=stop is None)):
            mine, theirs = mine[0], theirs[0]
            assert mine["image"].is_cuda and mine["label"].is_cuda
            assert (mine["label"].cpu() == theirs["label"]).all()
            assert (mine["image"].cpu().int() - theirs["image"].int()).abs().float().mean() < 1
            if stop is None:
                assert policy == "FILL" or len(mine["image"]) == lengths[i]
            elif i == stop:
                break
        it.reset()
        want.reset()


def test_several_pipelines_on_one_gpu():
    pipes = [pictures(batch_size=4, shard=i, n_shards=2, pad=True) for i in range(2)]
    it = DALIClassificationIterator(pipes, reader_name="reader", last_batch_policy="PARTIAL", auto_reset=True)
    for _ in range(2):
        sizes = [[len(part["data"]) for part in batch] for batch in it]
        assert len(sizes) == len(it) == 3 and sum(map(sum, sizes)) == 21


def test_shapes_that_change():
    """Each batch has its own memory, regardless of previous shapes."""

    @pipeline_def(batch_size=2, num_threads=1, device_id=0)
    def growing():
        x = fn.external_source(source=lambda i: np.full((2, 3 + i % 4 * 1000, 5), i, "f4"), device="gpu")
        return x * 2

    it = DALIGenericIterator(growing(), ["x"], dynamic_shape=True, size=40)
    kept = [batch[0]["x"] for batch in it]
    for i, x in enumerate(kept):
        assert x.shape == (2, 3 + i % 4 * 1000, 5) and bool((x == 2 * i).all())


def test_ragged_and_partial():
    @pipeline_def(batch_size=4, num_threads=2, device_id=0)
    def ragged():
        jpegs, labels = fn.readers.file(file_root=FOLDER, name="reader")
        return fn.decoders.image(jpegs, device="mixed"), labels.gpu()

    types = [DALIRaggedIterator.SPARSE_LIST_TAG, DALIRaggedIterator.DENSE_TAG]
    it = DALIRaggedIterator(
        ragged(), ["image", "label"], reader_name="reader", output_types=types, last_batch_policy="PARTIAL"
    )
    batches = list(it)
    assert [len(b[0]["image"]) for b in batches] == [len(b[0]["label"]) for b in batches] == [4] * 5 + [1]
    assert all(x.is_cuda and x.ndim == 3 and x.dtype is torch.uint8 for b in batches for x in b[0]["image"])
    assert len({x.data_ptr() for b in batches for x in b[0]["image"]}) == 21


class Numbers(torch.utils.data.Dataset):
    def __init__(self, transform):
        self.transform = transform

    def __len__(self):
        return 10

    def __getitem__(self, i):
        return self.transform(np.full((64, 64), i, "f4")), i


@pytest.mark.parametrize("fed_on", ["cpu", "gpu"])
@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("workers", [0, 2])
def test_proxy(workers, deterministic, fed_on):
    """Worker processes read, the GPU of the training's process transforms."""

    @pipeline_def(batch_size=4, num_threads=1, device_id=0)
    def double():
        x = fn.external_source(name="x", device=fed_on)
        return (x if fed_on == "gpu" else x.gpu()) * 2

    with proxy.DALIServer(double(), deterministic) as server:
        loader = proxy.DataLoader(server, Numbers(server.proxy), batch_size=4, num_workers=workers)
        for _ in range(2):
            batches = list(loader)
            assert [len(x) for x, _ in batches] == [4, 4, 2]
            for x, i in batches:
                assert x.is_cuda and (x[:, 5, 7].cpu() == 2 * i).all() and bool((x == x[:, :1, :1]).all())


def test_proxy_with_decoding():
    files = sorted(Path(FOLDER).glob("*/*.jpg"))[:8]

    class Files(torch.utils.data.Dataset):
        def __init__(self, transform):
            self.transform = transform

        def __len__(self):
            return len(files)

        def __getitem__(self, i):
            return self.transform(np.fromfile(files[i], "u1")), i

    @pipeline_def(batch_size=4, num_threads=2, device_id=0)
    def decode():
        encoded = fn.external_source(name="file", no_copy=True)
        images = fn.resize(fn.decoders.image(encoded, device="mixed", hw_decoder_load=0), size=(48, 48))
        return fn.crop_mirror_normalize(images, mean=[128.0], std=[64.0])

    with proxy.DALIServer(decode()) as server:
        loader = proxy.DataLoader(server, Files(server.proxy), batch_size=4, num_workers=2)
        batches = [x for x, _ in loader]
    assert all(x.is_cuda and x.shape == (4, 3, 48, 48) and 0.1 < float(x.std()) < 3 for x in batches)


class Doubling(Pipeline):
    """A function in a graph of the class style."""

    def __init__(self, device):
        super().__init__(2, 1, 0, exec_async=False, exec_pipelined=False)
        self.input = ops.ExternalSource(lambda i: np.full((2, 100), i, "f4"), device="gpu")
        self.twice = TorchPythonFunction(lambda x: (x * 2, x.sum()), num_outputs=2, device=device)

    def define_graph(self):
        return tuple(self.twice(self.input()))


def test_function_in_the_class_style():
    pipe = Doubling("gpu")
    for i in range(5):
        twice, total = (o.as_cpu() for o in pipe.run())
        assert (twice.as_array() == 2 * i).all() and [total.at(k).item() for k in range(2)] == [100 * i] * 2


def test_functions_of_batches_and_errors():
    """A result on the CPU is a clear error, and the pipeline continues."""
    from penstock import PipelineError

    @pipeline_def(batch_size=2, num_threads=1, device_id=0)
    def pipe(function, **kwargs):
        x = fn.external_source(source=lambda i: np.full((2, 8), i, "f4"), device="gpu")
        return torch_python_function(x, function=function, device="gpu", **kwargs)

    made = pipe(lambda xs: [x + len(xs) for x in xs], batch_processing=True)
    assert [float(made.run()[0].as_cpu().as_array().max()) for _ in range(3)] == [2, 3, 4]
    turns = iter(range(9))
    made = pipe(lambda x: x.cpu() if next(turns) == 2 else x)  # in the second batch
    made.run()
    with pytest.raises(PipelineError, match="tensors on the GPU"):
        made.run()
    assert (made.run()[0].as_cpu().as_array() == 2).all()


def test_a_training_step_on_a_stream_of_its_own():
    """A batch is used on another stream than the one it was taken on, as in prefetchers of programs."""
    it = DALIGenericIterator(pictures(batch_size=4), last_batch_policy="DROP", auto_reset=True, **NAMES)
    want = DALIGenericIterator(on_the_cpu(batch_size=4), last_batch_policy="DROP", **NAMES)
    loading = torch.cuda.Stream()
    means, kept = [], None
    for batch in it:
        with torch.cuda.stream(loading):
            x = batch[0]["image"].float().mean((1, 2, 3))
        torch.cuda.current_stream().wait_stream(loading)
        x.record_stream(torch.cuda.current_stream())
        means.append(x * 1)
        kept = batch
    assert kept is not None
    theirs = [b[0]["image"].float().mean((1, 2, 3)) for b in want]
    for a, b in zip(means, theirs, strict=True):
        assert (a.cpu() - b).abs().max() < 1


@pytest.mark.parametrize("side", [False, True])
@pytest.mark.parametrize("shape", ["array", "list"])
def test_tensors_as_data_of_a_source(shape, side):
    """Computed late by PyTorch's current stream, and overwritten there when the source is called again."""
    stream = torch.cuda.Stream() if side else torch.cuda.default_stream()
    memory = torch.zeros(6, 1 << 20, device="cuda")
    large = torch.randn(4096, 4096, device="cuda")

    def source(i):
        for _ in range(4):
            large.copy_(large @ large).clamp_(-1, 1)
        memory.fill_(i)
        return memory if shape == "array" else list(memory)

    made = pipeline_def(lambda: fn.external_source(source, device="gpu") + 1, batch_size=6, num_threads=1, device_id=0)
    with torch.cuda.stream(stream):
        pipe = made(prefetch_queue_depth=3)
        for i in range(8):
            (out,) = pipe.run()
            assert (np.asarray(out.as_cpu().as_array()) == i + 1).all()


@pytest.mark.parametrize("shape", ["array", "list"])
def test_tensors_in_place(shape):
    rows = torch.arange(6 * 4, device="cuda", dtype=torch.int16).reshape(6, 4)
    given = rows if shape == "array" else [r.clone() for r in rows]

    @pipeline_def(batch_size=6, num_threads=1, device_id=0)
    def define():
        x = fn.external_source(lambda: given, device="gpu", no_copy=True)
        return x, x * 2

    for _ in range(2):
        x, twice = define().run()
        assert [x[i].data_ptr() for i in range(6)] == [t.data_ptr() for t in given]
        assert (x.as_cpu().as_array() == rows.cpu().numpy()).all()
        assert (twice.as_cpu().as_array() == 2 * rows.cpu().numpy()).all()
    with pytest.raises(RuntimeError, match="a dense row-major tensor is needed"):
        pipe = pipeline_def(lambda: fn.external_source(name="x", device="gpu"), batch_size=6, device_id=0)()
        pipe.build()
        pipe.feed_input("x", torch.zeros(6, 4, 3, device="cuda").transpose(1, 2))
