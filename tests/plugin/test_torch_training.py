# SPDX-License-Identifier: Apache-2.0
"""The iterators in real trainings: data-parallel on two processes, and in a Lightning trainer."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from penstock import fn, pipeline_def  # noqa: E402
from penstock.plugin.pytorch import DALIClassificationIterator, LastBatchPolicy  # noqa: E402

ROOT = Path(__file__).parents[2]
IMAGES = str(ROOT / "examples" / "data")


@pytest.mark.slow
def test_data_parallel(files):
    """Seven files on two ranks with batches of two, started by torchrun: in every epoch, both ranks do the same number
    of steps, have the same weights afterwards, and together read each file once."""
    program = ROOT / "tests" / "as_dali" / "programs" / "ddp.py"
    command = ["-m", "penstock.as_dali", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", program]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, *command, *files[:7]], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    rows = [re.fullmatch(r"(\d) (\d) (\d+) (\[.*\]) (\S+) (\S+)", line) for line in done.stdout.splitlines()]
    assert len(rows) == 6 and all(rows), done.stdout
    by_epoch = {e: sorted((r for r in rows if r[1] == e), key=lambda r: r[2]) for e in "012"}
    for a, b in by_epoch.values():
        assert a[3] == b[3] == "2" and a[5] == b[5] and a[6] == b[6]
        assert sorted(ast.literal_eval(a[4]) + ast.literal_eval(b[4])) == list(range(7))
    losses = [float(by_epoch[e][0][5]) for e in "012"]
    assert losses[2] < losses[0]


@pipeline_def(batch_size=4, num_threads=2, device_id=0, seed=3)
def photographs(shuffle):
    jpegs, labels = fn.readers.file(file_root=IMAGES, name="reader", random_shuffle=shuffle)
    images = fn.resize(fn.decoders.image(jpegs), size=(16, 16))
    return fn.crop_mirror_normalize(images, mean=[128.0], std=[64.0]), labels


@pytest.mark.slow
def test_lightning(tmp_path):
    lightning = pytest.importorskip("lightning")
    seen = {"fit": [], "val": []}

    class Model(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(3 * 16 * 16, 8)

        def step(self, batch, name):
            x, y = batch[0]["data"], batch[0]["label"].squeeze(-1).long()
            seen[name].append(len(x))
            return torch.nn.functional.cross_entropy(self.layer(x.flatten(1)), y)

        def training_step(self, batch, i):
            return self.step(batch, "fit")

        def validation_step(self, batch, i):
            self.step(batch, "val")

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.001)

    def loader(shuffle):
        return DALIClassificationIterator(
            photographs(shuffle), reader_name="reader", auto_reset=True, last_batch_policy=LastBatchPolicy.PARTIAL
        )

    validation = loader(False)

    class AfterSanityCheck(lightning.Callback):
        def on_sanity_check_end(self, trainer, module):
            seen["val"].clear()
            validation.reset()

    trainer = lightning.Trainer(
        max_epochs=2,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_model_summary=False,
        callbacks=[AfterSanityCheck()],
        default_root_dir=tmp_path,
    )
    trainer.fit(Model(), loader(True), validation)
    n = len(list(Path(IMAGES).rglob("*.jpg")))
    epoch = [4] * (n // 4) + [n % 4] * (n % 4 > 0)
    assert seen == {"fit": epoch * 2, "val": epoch * 2}
    assert trainer.global_step == 2 * len(epoch)
