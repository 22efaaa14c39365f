# SPDX-License-Identifier: Apache-2.0
"""Progress bars and logs with the time a loop waits for its pipelines: tqdm's and Lightning's."""

import io
import re

import numpy as np
import pytest

from penstock import fn, pipeline_def
from penstock.plugin.progress import LoaderSpeed, progress_bar

FIGURES = r"samples/s=(\d+), waits=(\d+\.\d)%"


@pipeline_def(batch_size=4, num_threads=2)
def numbers():
    return fn.external_source(source=[np.arange(4, dtype="f4")[:, None]] * 6)


def waited(pipe, seconds):
    """Simulates that the loop has waited for this time."""
    pipe._runner.statistics.waited(int(seconds * 1e9))


def test_speed(monkeypatch):
    now = [10**9]
    monkeypatch.setattr("penstock.plugin.progress.time.monotonic_ns", lambda: now[0])
    a, b = numbers(), numbers()
    speed = LoaderSpeed([a, b])
    for pipe in (a, b):
        statistics = pipe._runner.statistics
        statistics.samples += 300
        waited(pipe, 0.25)
    now[0] += 2 * 10**9
    assert speed.read() == {"samples_per_s": 300.0, "waited_share": 0.25}
    now[0] += 10**9
    assert speed.read() == {"samples_per_s": 0.0, "waited_share": 0.0}
    waited(a, 0.5)
    a.reset_stats()  # changes nothing of it
    now[0] += 10**9
    assert speed.read()["waited_share"] == 0.5
    waited(a, 9.0)
    now[0] += 10**9
    assert speed.read()["waited_share"] == 1.0


def test_what_has_no_pipelines():
    with pytest.raises(TypeError, match="a Pipeline or an iterator of penstock.plugin is needed; got range"):
        LoaderSpeed(range(3))


def test_limit():
    pipe = numbers()
    pipe.build()
    assert LoaderSpeed(pipe).limit() == "Nothing was measured yet."


def test_tqdm():
    pytest.importorskip("tqdm")
    pytest.importorskip("torch")
    from penstock.plugin.pytorch import DALIGenericIterator

    text, pipe = io.StringIO(), numbers()
    batches = DALIGenericIterator(pipe, ["x"], size=24)
    seen = [b[0]["x"].shape for b in progress_bar(batches, desc="epoch 1", file=text, mininterval=0, ascii=True)]
    last = text.getvalue().replace("\n", "\r").split("\r")
    last = [line for line in last if line.strip()][-1]
    assert seen == [(4, 1)] * 6
    assert last.startswith("epoch 1: 100%") and "6/6" in last
    samples_per_s, _ = map(float, re.search(FIGURES, last).groups())
    assert samples_per_s > 0  # of the whole loop, not since the bar was drawn last


def test_tqdm_over_something_else():
    """For example a loader that wraps the pipeline."""
    pytest.importorskip("tqdm")
    text, pipe = io.StringIO(), numbers()
    for _ in progress_bar((pipe.run() for _ in range(5)), pipe, total=5, file=text, ascii=True):
        pass
    assert re.search(FIGURES, text.getvalue())
    with pytest.raises(TypeError, match="got generator"):
        progress_bar(pipe.run() for _ in range(5))


@pytest.mark.slow
def test_lightning(tmp_path):
    torch = pytest.importorskip("torch")
    lightning = pytest.importorskip("lightning")
    from penstock.plugin.lightning import LoaderProgress
    from penstock.plugin.pytorch import DALIGenericIterator

    class Model(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(1, 1)

        def training_step(self, batch, i):
            return self.layer(batch[0]["x"]).square().mean()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.01)

        def log(self, name, value, **kwargs):
            logged.append((trainer.global_step, name, value))
            super().log(name, value, **kwargs)

    logged = []

    trainer = lightning.Trainer(
        max_epochs=1,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_model_summary=False,
        enable_progress_bar=False,
        callbacks=[LoaderProgress(every_n_steps=2)],
        default_root_dir=tmp_path,
    )
    trainer.fit(Model(), DALIGenericIterator(numbers(), ["x"], size=24, auto_reset=True))
    names = ("loader/samples_per_s", "loader/waited_share")
    assert [entry[:2] for entry in logged] == [(step, name) for step in (2, 4, 6) for name in names]
    assert all(value >= 0 for _, _, value in logged)
    assert "loader/waited_share" in trainer.progress_bar_metrics


def test_lightning_takes_a_number_of_steps():
    pytest.importorskip("lightning")
    from penstock.plugin.lightning import LoaderProgress

    with pytest.raises(ValueError, match="every_n_steps takes a number above 0; got 0"):
        LoaderProgress(every_n_steps=0)
