# SPDX-License-Identifier: Apache-2.0
"""Machines that join and leave a Ray cluster: nodes of Ray's `cluster_utils` on this machine."""

import os
import warnings
from pathlib import Path

import numpy as np
import pytest

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install penstock[ray]")

from pipelines import all_ready, assert_same, pictures, pool_of, values, wait_until, write_pictures  # noqa: E402

import penstock  # noqa: E402
from penstock.cluster.connection import Shared, Streamed  # noqa: E402

SECONDS = 120.0  # for Ray to start a node, or to see that it is gone, on a busy machine
NODE = {"object_store_memory": 100 << 20, "include_dashboard": False}


@pytest.fixture(scope="module")
def cluster():
    """A machine for one worker with one thread, which also runs this program."""
    cluster_utils = pytest.importorskip("ray.cluster_utils")
    paths = os.pathsep.join([str(Path(penstock.__file__).parents[1]), str(Path(__file__).parent)])
    env = {"env_vars": {"PYTHONPATH": paths}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = cluster_utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 1, **NODE})
        ray.init(address=made.address, log_to_driver=False, runtime_env=env)
        yield made
        ray.shutdown()
        made.shutdown()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return write_pictures(tmp_path_factory.mktemp("pictures"))


def ways(pipe):
    """How each worker transfers its batches."""
    connections = [m.link._connection for m in list(pool_of(pipe).slots) if m.link is not None]
    return [type(c._incoming) for c in connections if c is not None]


class Compared:
    """Compares a pipeline with workers to one without."""

    def __init__(self, files):
        order = {"random_shuffle": True}
        self.plain, self.pipe, self.made = pictures(files, **order), pictures(files, **order, workers="auto"), 0

    def run(self, n=1):
        for _ in range(n):
            assert_same(values(self.plain.run()), values(self.pipe.run()), self.made)
            assert self.plain.checkpoint() == self.pipe.checkpoint()
            self.made += 1

    def run_until(self, condition):
        def met():
            self.run(5)
            return condition()

        wait_until(met, SECONDS)


def test_machines_join_and_are_taken_away(cluster, files):
    """The workers follow the available machines, and each batch still arrives exactly once, in order."""
    rng, both = np.random.default_rng(0), Compared(files)
    all_ready(both.pipe)
    assert pool_of(both.pipe).size == 1
    others = []
    for _ in range(2):
        others.append(cluster.add_node(num_cpus=2, **NODE))
        both.run_until(lambda: pool_of(both.pipe).size == 1 + 2 * len(others))
    both.run_until(lambda: all(m.state == "ready" for m in pool_of(both.pipe).slots))
    both.run(20)
    assert sorted(w.__name__ for w in ways(both.pipe)) == [Shared.__name__] + 4 * [Streamed.__name__]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        while others:
            cluster.remove_node(others.pop(int(rng.integers(len(others)))), allow_graceful=False)  # SIGKILL
            both.run(20)
            both.run_until(lambda: pool_of(both.pipe).size == 1 + 2 * len(others))
    both.run(20)
    both.pipe.close()


def test_more_workers_than_there_is_room_for_wait_for_a_machine(cluster, files):
    """As when Ray's autoscaler starts one. The others keep working."""
    plain, pipe = pictures(files), pictures(files, workers="auto", min_workers=2, max_workers=2)
    pool_of(pipe)
    wait_until(lambda: [m.state for m in pool_of(pipe).slots].count("ready") == 1, SECONDS)
    for i in range(20):
        assert_same(values(plain.run()), values(pipe.run()), i)
    assert sorted(m.state for m in pool_of(pipe).slots) == ["ready", "starting"]
    node = cluster.add_node(num_cpus=1, **NODE)
    wait_until(lambda: all(m.state == "ready" for m in pool_of(pipe).slots), SECONDS)
    for i in range(20):
        assert_same(values(plain.run()), values(pipe.run()), i)
    pipe.close()
    cluster.remove_node(node)
