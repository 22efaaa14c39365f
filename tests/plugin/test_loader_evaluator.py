# SPDX-License-Identifier: Apache-2.0
import json
import time

import pytest

pytest.importorskip("torch")

from penstock.plugin.pytorch.loader_evaluator import LoaderEvaluator


class Slow:
    """A loader of `n` batches that takes time for each."""

    def __init__(self, n, seconds=0.0):
        self.n, self.seconds, self.epochs = n, seconds, 0

    def __len__(self):
        return self.n

    def __iter__(self):
        self.epochs += 1
        for i in range(self.n):
            time.sleep(self.seconds)
            yield i


def test_log_passes_batches_on_and_measures_the_waiting():
    loader = LoaderEvaluator(Slow(4, 0.02))
    seen = []
    for batch in loader:
        time.sleep(0.05)  # the training step: no part of what the loader is blamed for
        seen.append(batch)
    m = loader.get_metrics()
    assert seen == [0, 1, 2, 3] and len(loader) == m["total_batches"] == len(m["batch_times"]) == 4
    assert min(m["batch_times"]) >= 0.02 and sum(m["batch_times"]) <= m["total_time"] - 4 * 0.05
    assert m["min_batch_time"] <= m["avg_batch_time"] <= m["max_batch_time"]
    assert m["mode"] == "log" and m["cached_batches"] == 0 and not m["cache_ready"]


def test_metrics_are_those_of_the_last_epoch_also_if_it_is_left_early():
    loader = LoaderEvaluator(Slow(4))
    list(loader)
    for batch in loader:
        if batch == 1:
            break
    assert loader.get_metrics()["total_batches"] == 2


def test_replay_takes_batches_when_it_is_made_and_costs_nothing():
    slow = Slow(5, 0.5)
    loader = LoaderEvaluator(slow, mode="replay", num_cached_batches=2)
    assert slow.epochs == 1
    for _ in range(2):
        assert list(loader) == [0, 1, 0, 1, 0]
    assert slow.epochs == 1
    m = loader.get_metrics()
    assert sum(m["batch_times"]) < 5 * 0.5 and m["cached_batches"] == 2 and m["cache_ready"]


def test_files_and_summary(tmp_path, capsys):
    path = tmp_path / "m.json"
    loader = LoaderEvaluator(Slow(3), metrics_file=str(path))
    list(loader)
    assert json.loads(path.read_text()) == loader.get_metrics()
    loader.save_metrics(str(tmp_path / "other.json"))
    assert (tmp_path / "other.json").read_text() == path.read_text()
    loader.print_summary()
    assert "3 batches" in capsys.readouterr().out
    with pytest.raises(ValueError, match="give a filename"):
        LoaderEvaluator(Slow(3)).save_metrics()


@pytest.mark.parametrize(
    "kwargs, text",
    [({"mode": "x"}, "'log' or 'replay'; got 'x'"), ({"mode": "replay", "num_cached_batches": 0}, "at least 1; got 0")],
)
def test_wrong_arguments(kwargs, text):
    with pytest.raises(ValueError, match=text):
        LoaderEvaluator(Slow(1), **kwargs)


def test_nothing_to_replay():
    with pytest.raises(ValueError, match="no batch to replay"):
        LoaderEvaluator(Slow(0), mode="replay")


def test_around_an_iterator_of_pipelines():
    import numpy as np

    from penstock import fn, pipeline_def
    from penstock.plugin.pytorch import DALIGenericIterator

    @pipeline_def(batch_size=2)
    def pipe():
        return fn.external_source(source=lambda i: np.full((2, 1), i, "i4"))

    loader = LoaderEvaluator(DALIGenericIterator(pipe(), ["x"], size=6))
    assert [int(b[0]["x"][0]) for b in loader] == [0, 1, 2]
