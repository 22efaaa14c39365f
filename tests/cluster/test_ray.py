# SPDX-License-Identifier: Apache-2.0
"""Workers that are Ray actors: batches are the same as without workers, also when actors are killed."""

import os
import signal
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install penstock[ray]")

from pipelines import SIZE, N, all_ready, assert_same, exists, pictures, pool_of, values, wait_until, write_pictures  # noqa: E402

import penstock  # noqa: E402
import ray_cluster  # noqa: E402
from penstock import fn, pipeline_def  # noqa: E402
from penstock.cluster import ray_link  # noqa: E402


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return write_pictures(tmp_path_factory.mktemp("pictures"))


def start():
    """One machine that lets three workers of one thread run."""
    folders = [Path(penstock.__file__).parents[1], Path(__file__).parent]
    ray_cluster.start(folders, num_cpus=3, object_store_memory=100 << 20)


@pytest.fixture(scope="module", autouse=True)
def cluster():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start()
        yield
        ray.shutdown()


def pids(pipe):
    links = [m.link for m in pool_of(pipe).slots]
    return [link.pid for link in links if link is not None and link.pid]


def how_they_come(pipe):
    """How each worker transfers its batches."""
    all_ready(pipe)
    connections = [m.link._connection for m in pool_of(pipe).slots]
    return ["Objects" if c is None else type(c._incoming).__name__ for c in connections]


WAYS = {"Shared": None, "Streamed": lambda: "another machine", "Objects": lambda: None}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "order", [{}, {"random_shuffle": True, "num_shards": 2, "shard_id": 1}], ids=["plain", "shuffled"]
)
def test_bytes_checkpoints_and_places(files, order, way, monkeypatch):
    if WAYS[way]:
        monkeypatch.setattr(ray_link, "_machine", WAYS[way])
    plain, crewed = pictures(files, **order), pictures(files, **order, workers="auto")
    assert len(pool_of(crewed).slots) == 3
    for i in range(2 * N // SIZE):
        assert_same(values(plain.run()), values(crewed.run()), i)
        assert plain.checkpoint() == crewed.checkpoint()
    assert crewed.run()[0][0].source_info() == plain.run()[0][0].source_info()
    assert "3 workers of 1 thread" in crewed.explain()
    assert how_they_come(crewed) == [way] * 3
    crewed.close()


def test_samples_are_pillows(files):
    from PIL import Image

    pipe = pictures(files, workers="auto")
    for i in range(4):
        whole, _, labels = pipe.run()
        for k in range(SIZE):
            which = (i * SIZE + k) % N
            assert int(np.asarray(labels[k])[0]) == which
            np.testing.assert_array_equal(np.asarray(whole[k]), np.asarray(Image.open(files[which])))
    pipe.close()


@pytest.mark.parametrize("way", WAYS)
def test_actors_killed_at_random(files, way, monkeypatch):
    if WAYS[way]:
        monkeypatch.setattr(ray_link, "_machine", WAYS[way])
    seed = list(WAYS).index(way)
    rng = np.random.default_rng(seed)
    order = {"random_shuffle": True}
    plain, crewed = pictures(files, **order), pictures(files, **order, workers="auto")
    all_ready(crewed)
    assert_same(values(plain.run()), values(crewed.run()))
    killed, over = [], threading.Event()

    def kill():
        while not over.wait(rng.uniform(0.7, 1.3)):
            there = [p for p in pids(crewed) if exists(p)]
            if there:
                killed.append(int(rng.choice(there)))
                os.kill(killed[-1], signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    i = 0
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            while i < 30 or len(killed) < 4:
                assert_same(values(plain.run()), values(crewed.run()), i)
                assert plain.checkpoint() == crewed.checkpoint()
                i += 1
    finally:
        over.set()
        thread.join()
        crewed.close()


def test_actors_are_gone_after_close_and_batches_stay(files):
    plain, pipe = pictures(files), pictures(files, workers="auto")
    threads = threading.active_count()
    batch = pipe.run()
    there = pids(pipe)
    assert there
    pipe.close()
    wait_until(lambda: not any(map(exists, there)))
    wait_until(lambda: threading.active_count() <= threads + 1)
    assert_same(values(plain.run()), values(batch))


def test_a_program_that_leaves_the_cluster_makes_the_rest_itself(files):
    """It does not start another cluster, which many Ray functions would do if there is none."""
    plain, pipe = pictures(files), pictures(files, workers="auto")
    all_ready(pipe)
    there = pids(pipe)
    assert_same(values(plain.run()), values(pipe.run()))
    try:
        ray.shutdown()
        with pytest.warns(UserWarning, match="no worker is left") as told:
            for i in range(40):
                assert_same(values(plain.run()), values(pipe.run()), i)
        assert len(told) == 1
        pipe.close()
        wait_until(lambda: not any(map(exists, there)))
        assert not ray.is_initialized()
    finally:
        if not ray.is_initialized():
            start()


def test_bad_samples_are_listed_and_raised(files, tmp_path):
    bad = write_pictures(tmp_path, 12)
    os.truncate(bad[4], 30)
    plain, crewed = (pictures(bad, on_error="replace", **w) for w in ({}, {"workers": "auto"}))
    for i in range(6):
        assert_same(values(plain.run()), values(crewed.run()), i)
    listed = [[e for e in p.errors() if e.iteration < 6] for p in (plain, crewed)]
    assert listed[0] == listed[1] != []
    crewed.close()
    raising = pictures(bad, workers="auto")
    with pytest.raises(RuntimeError, match=r"(?s)pipelines\.py.*004\.png|004\.png.*pipelines\.py"):
        raising.run()
    raising.run()
    raising.close()


def test_another_version_is_refused_by_name(files, monkeypatch):
    mine = penstock.__version__
    monkeypatch.setattr(penstock, "__version__", "9.8.7")
    pipe = pictures(files, workers="auto")
    with pytest.raises(RuntimeError, match=rf"it has penstock {mine}, this process 9\.8\.7; install"):
        pipe.run()
    pipe.close()


def test_other_cluster_than_the_connected_one(files):
    with pytest.raises(ConnectionError, match='workers="auto" takes that one'):
        pictures(files, workers="ray://127.0.0.1:1").build()


def test_what_cannot_be_sent_is_refused_when_it_is_defined():
    @pipeline_def(batch_size=2, num_threads=1)
    def pipe():
        return fn.external_source(source=lambda info: np.zeros(3), name="mine", batch=False)

    with pytest.raises(ValueError, match=r"(?s)test_ray.py.*workers='auto'.*data is in this process"):
        pipe(workers="auto").build()
