# SPDX-License-Identifier: Apache-2.0
"""Lightning: handwritten digits (see digits.py) with a LightningModule and a LightningDataModule.

    python examples/lightning_digits.py [--epochs N] [--devices N] [--gpu]

Pipelines are created after the trainer has started its processes, so that each reads its own shard.
"""

import argparse
import tempfile

import digits
import lightning
import torch
from torch import nn

from penstock.plugin.lightning import LoaderProgress
from penstock.plugin.pytorch import DALIGenericIterator, LastBatchPolicy


class Digits(lightning.LightningDataModule):
    def __init__(self, folder, batch, gpu):
        super().__init__()
        self.folder, self.batch, self.gpu = folder, batch, gpu

    def loader(self, part, policy, **kwargs):
        pipe = digits.pipeline(
            f"{self.folder}/{part}",
            decoder="mixed" if self.gpu else "cpu",
            shard_id=self.trainer.global_rank,
            num_shards=self.trainer.world_size,
            batch_size=self.batch,
            num_threads=2,
            device_id=self.trainer.local_rank if self.gpu else None,
            seed=7,
            **kwargs,
        )
        return DALIGenericIterator(
            pipe, ["image", "target"], reader_name="reader", last_batch_policy=policy, auto_reset=True
        )

    def train_dataloader(self):
        return self.loader("train", LastBatchPolicy.DROP, training=True, mix=digits.mixup)

    def val_dataloader(self):
        return self.loader("val", LastBatchPolicy.PARTIAL)


class Classifier(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        layers = [nn.Conv2d(3, 32, 3, 2, 1), nn.BatchNorm2d(32), nn.ReLU()]
        layers += [nn.Conv2d(32, 64, 3, 2, 1), nn.BatchNorm2d(64), nn.ReLU()]
        self.model = nn.Sequential(*layers, nn.Flatten(), nn.Linear(64 * 16, digits.CLASSES))

    def training_step(self, batch, i):
        (batch,) = batch  # one dictionary for each pipeline
        return nn.functional.cross_entropy(self.model(batch["image"]), batch["target"])

    def validation_step(self, batch, i):
        (batch,) = batch
        hits = self.model(batch["image"]).argmax(1) == batch["target"].argmax(1)
        self.log("accuracy", hits.float().mean(), batch_size=len(hits), sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), 3e-3)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--devices", type=int, default=1)
    parser.add_argument("--gpu", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        digits.write(folder)
        trainer = lightning.Trainer(
            max_epochs=args.epochs,
            accelerator="gpu" if args.gpu else "cpu",
            devices=args.devices,
            num_sanity_val_steps=0,  # or reset() the iterator in on_sanity_check_end: the check stops in the middle
            callbacks=[LoaderProgress(every_n_steps=10)],
            logger=False,
            enable_checkpointing=False,
            use_distributed_sampler=False,  # the readers have shards
        )
        trainer.fit(Classifier(), Digits(folder, args.batch, args.gpu))
    if trainer.is_global_zero:
        figures = {name: float(value) for name, value in trainer.callback_metrics.items()}
        print(f"accuracy {figures['accuracy']:.3f}, waited {figures['loader/waited_share']:.1%} for data")


if __name__ == "__main__":
    main()
