# SPDX-License-Identifier: Apache-2.0
"""Pipelines inside of PyTorch's DataLoader: `penstock.plugin.pytorch.experimental.proxy`."""

import collections
import inspect
import itertools
import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.utils.data import default_collate  # noqa: E402

from penstock import PipelineError, fn, pipeline_def  # noqa: E402
from penstock.plugin.pytorch.experimental import proxy  # noqa: E402

Point = collections.namedtuple("Point", "x y")


@pipeline_def(batch_size=4, num_threads=1)
def double():
    return fn.external_source(name="x") * 2.0


@pipeline_def(batch_size=4, num_threads=1)
def sum_and_difference():
    a, b = fn.external_source(name="a"), fn.external_source(name="b")
    return a + b, a - b


@pipeline_def(batch_size=4, num_threads=1, seed=5)
def noisy():
    return fn.external_source(name="x") + fn.random.uniform(range=(0.0, 0.5))


class Numbers(torch.utils.data.Dataset):
    """(transform(i), i) for the numbers below n."""

    def __init__(self, transform, n=10):
        self.transform, self.n = transform, n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return self.transform(np.float32([i])), i


@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize(("n_workers", "method"), [(0, None), (2, "fork"), (2, "spawn")])
def test_loader(n_workers, method, deterministic):
    with proxy.DALIServer(double(), deterministic) as server:
        data = Numbers(server.proxy)
        loader = proxy.DataLoader(server, data, batch_size=4, num_workers=n_workers, multiprocessing_context=method)
        assert len(loader) == 3
        for _ in range(1 if method == "spawn" else 2):  # each starts new workers, which import PyTorch
            batches = list(loader)
            assert [x.flatten().tolist() for x, _ in batches] == [[0, 2, 4, 6], [8, 10, 12, 14], [16, 18]]
            assert [i.tolist() for _, i in batches] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
            assert all(x.dtype is torch.float32 and x.shape == (len(i), 1) for x, i in batches)
        assert not server._results


def test_persistent_workers_and_shuffling():
    with proxy.DALIServer(double()) as server:
        loader = proxy.DataLoader(
            server, Numbers(server.proxy, 40), batch_size=4, shuffle=True, num_workers=2, persistent_workers=True
        )
        for _ in range(3):
            got = [(x.flatten().tolist(), i.tolist()) for x, i in loader]
            assert all(x == [2 * k for k in i] for x, i in got)
            assert sorted(k for _, i in got for k in i) == list(range(40))


def test_the_loader_of_pytorch():
    with proxy.DALIServer(double()) as server:
        loader = torch.utils.data.DataLoader(Numbers(server.proxy), batch_size=4, num_workers=2, drop_last=True)
        for x, i in loader:
            assert isinstance(x, proxy.DALIOutputBatchRef)
            assert server.produce_data((x, i))[0].flatten().tolist() == [2 * k for k in i.tolist()]


def test_several_inputs_and_outputs():
    with proxy.DALIServer(sum_and_difference()) as server:
        assert str(inspect.signature(server.proxy)) == "(a, b)"
        samples = []
        for i in range(3):
            a, b = np.full((2, 2), i, "f4"), np.full((2, 2), 1, "f4")
            total, difference = server.proxy(b=b, a=a)
            samples.append({"a": a, "point": Point(total, [difference]), "text": "t"})
        got = server.produce_data(default_collate(samples))
    assert (got["point"].x == got["a"] + 1).all() and (got["point"].y[0] == got["a"] - 1).all()
    assert isinstance(got["point"], Point) and got["text"] == ["t"] * 3


def test_objects_with_references():
    class Holder:
        pass

    with proxy.DALIServer(double()) as server:
        holder = Holder()
        holder.x, holder.y = default_collate([server.proxy(torch.ones(2))]), 3
        assert server.produce_data(holder).x.tolist() == [[2, 2]] and holder.y == 3


def test_deterministic_runs_give_the_same_numbers():
    def run(n_workers):
        with proxy.DALIServer(noisy(), deterministic=True) as server:
            loader = proxy.DataLoader(server, Numbers(server.proxy, 24), batch_size=4, num_workers=n_workers)
            return torch.cat([x for x, _ in loader])

    assert (run(0) == run(2)).all()


def test_a_batch_that_fails_costs_one_batch():
    """Inputs stay synchronous, also if only the second one is invalid."""
    with proxy.DALIServer(sum_and_difference()) as server:
        for b in (np.float32([1]), [np.float32([1]), np.int32([1])], np.float32([2])):
            pair = b if isinstance(b, list) else [b, b]
            batch = default_collate([server.proxy(np.float32([i]), pair[i]) for i in range(2)])
            if isinstance(b, list):
                with pytest.raises((TypeError, ValueError), match="same type"):
                    server.produce_data(batch)
            else:
                assert server.produce_data(batch)[0].flatten().tolist() == [b[0], 1 + b[0]]


@pipeline_def(batch_size=2, num_threads=1)
def decoder():
    return fn.resize(fn.decoders.image(fn.external_source(name="bytes")), size=(8, 8))


def test_a_sample_that_fails(repository_image):
    jpeg = np.frombuffer(repository_image.read_bytes(), "u1")
    with proxy.DALIServer(decoder()) as server:
        for file, is_good in ((jpeg, True), (jpeg[:100], False), (jpeg, True)):
            batch = default_collate([server.proxy(file)])
            if is_good:
                assert server.produce_data(batch).shape == (1, 8, 8, 3)
            else:
                with pytest.raises(PipelineError, match=r"fn\.decoders\.image"):
                    server.produce_data(batch)


@pytest.fixture
def repository_image():
    from pathlib import Path

    return Path(__file__).parents[2] / "examples/data/animals/cat.jpg"


def test_an_iteration_that_is_left_early():
    with proxy.DALIServer(double()) as server:
        loader = proxy.DataLoader(server, Numbers(server.proxy, 64), batch_size=4, num_workers=2)
        for _ in range(2):
            assert [i.tolist()[0] for _, i in itertools.islice(loader, 3)] == [0, 4, 8]
        assert len(list(loader)) == 16
    assert not server._results and server._thread is None


class Failing(Numbers):
    """Sample 5 fails after the transform."""

    def __getitem__(self, i):
        sample = super().__getitem__(i)
        if i == 5:
            raise ValueError("five")
        return sample


@pytest.mark.parametrize("n_workers", [0, 1])
def test_a_data_set_that_fails(n_workers):
    """Only the batch of the failing sample is lost."""
    with proxy.DALIServer(double()) as server:
        loader = iter(proxy.DataLoader(server, Failing(server.proxy, 12), batch_size=4, num_workers=n_workers))
        assert next(loader)[0].flatten().tolist() == [0, 2, 4, 6]
        with pytest.raises(ValueError, match="five"):
            next(loader)
        assert next(loader)[0].flatten().tolist() == [16, 18, 20, 22]


class TwoViews(Numbers):
    def __getitem__(self, i):
        return self.transform(np.float32([i])), self.transform(np.float32([i + 0.5]))


@pytest.mark.parametrize("n_workers", [0, 2])
def test_two_calls_for_each_sample(n_workers):
    with proxy.DALIServer(double()) as server:
        loader = proxy.DataLoader(server, TwoViews(server.proxy, 8), batch_size=4, num_workers=n_workers)
        got = [(a.flatten().tolist(), b.flatten().tolist()) for a, b in loader]
    assert got == [([0, 2, 4, 6], [1, 3, 5, 7]), ([8, 10, 12, 14], [9, 11, 13, 15])]


def test_a_server_that_is_used_again():
    server = proxy.DALIServer(double())
    for _ in range(2):
        with server:
            assert server.produce_data(default_collate([server.proxy(np.float32([3]))])).tolist() == [[6]]
    loader = proxy.DataLoader(server, Numbers(server.proxy), batch_size=2)
    assert next(iter(loader))[0].tolist() == [[0], [2]]  # the loader starts it, too
    server.stop_thread()


def test_mistakes():
    with pytest.raises(TypeError, match="takes a Pipeline; got int"):
        proxy.DALIServer(3)
    with pytest.raises(RuntimeError, match="no inputs"):
        proxy.DALIServer(pipeline_def(lambda: fn.constant(idata=1), batch_size=1, num_threads=1)())
    server = proxy.DALIServer(double())
    with pytest.raises(TypeError, match="missing a required argument: 'x'"):
        server.proxy()
    with pytest.raises(ValueError, match="batch_size=5 is more than the pipeline's batch_size=4"):
        proxy.DataLoader(server, Numbers(server.proxy), batch_size=5)
    with pytest.raises(ValueError, match="needs batches"):
        proxy.DataLoader(server, Numbers(server.proxy), batch_size=None)
    with server, pytest.raises(TypeError, match="in no batch yet"):
        server.produce_data([server.proxy(1.0)])
    samples = [proxy.DALIServer(double()).proxy(1.0) for _ in range(2)]
    with pytest.raises(RuntimeError, match="since the last batch"):
        default_collate(samples)
    with pytest.raises(TypeError, match="left its worker process before it was in a batch"):
        pickle.dumps(samples[0])
    with server, pytest.raises(ValueError, match="batch of 5 samples, the pipeline has batch_size=4"):
        server.produce_data(default_collate([server.proxy(1.0) for _ in range(5)]))


@pytest.mark.parametrize(
    ("args", "kwargs", "text"),
    [
        ((), {"a": 1, "c": 2}, r"proxy\(\) got an unexpected argument 'c'"),
        ((), {"aa": 1, "b": 2}, "'aa'. Did you mean 'a'"),
        ((1,), {}, r"proxy\(\): missing a required argument: 'b'"),
    ],
)
def test_wrong_inputs(args, kwargs, text):
    server = proxy.DALIServer(sum_and_difference())
    with pytest.raises(TypeError, match=text):
        server.proxy(*args, **kwargs)
