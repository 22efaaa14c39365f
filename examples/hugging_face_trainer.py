# SPDX-License-Identifier: Apache-2.0
"""The Trainer of Hugging Face's transformers: handwritten digits (see digits.py) with a small ViT.

    python examples/hugging_face_trainer.py [--epochs N]

The Trainer gets its loaders from two methods; here they return iterators of penstock, whose batches have the names of
the model's arguments. With several processes (torchrun), each reads its own shard.
"""

import argparse
import os
import tempfile

import digits
import torch
from transformers import Trainer, TrainingArguments, ViTConfig, ViTForImageClassification

from penstock.plugin.pytorch import DALIGenericIterator, LastBatchPolicy


class Loader:
    """Replaces a DataLoader for the Trainer: dictionaries of tensors, a length, and that of the data set."""

    def __init__(self, pipe, policy):
        self.batches = DALIGenericIterator(
            pipe, ["pixel_values", "labels"], reader_name="reader", last_batch_policy=policy, auto_reset=True
        )
        self.batch_size = pipe.max_batch_size
        self.dataset = range(pipe.epoch_size("reader"))  # only its length counts

    def __len__(self):
        return len(self.batches)

    def __iter__(self):
        for (batch,) in self.batches:
            yield batch


class PenstockTrainer(Trainer):
    def __init__(self, *args, folder, **kwargs):
        super().__init__(*args, **kwargs)
        self.folder = folder

    def loader(self, part, batch, policy, **kwargs):
        gpu = self.args.device.type == "cuda"
        pipe = digits.pipeline(
            f"{self.folder}/{part}",
            decoder="mixed" if gpu else "cpu",
            shard_id=self.args.process_index,
            num_shards=self.args.world_size,
            batch_size=batch,
            num_threads=2,
            device_id=self.args.device.index if gpu else None,
            seed=self.args.seed,
            **kwargs,
        )
        return Loader(pipe, policy)

    def get_train_dataloader(self):
        batch = self.args.per_device_train_batch_size
        return self.loader("train", batch, LastBatchPolicy.DROP, training=True)

    def get_eval_dataloader(self, eval_dataset=None):
        return self.loader("val", self.args.per_device_eval_batch_size, LastBatchPolicy.PARTIAL)

    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        outputs = model(pixel_values=inputs["pixel_values"])
        loss = torch.nn.functional.cross_entropy(outputs.logits, inputs["labels"])  # a share for each class
        return (loss, outputs) if return_outputs else loss


def accuracy(predicted):
    hits = predicted.predictions.argmax(1) == predicted.label_ids.argmax(1)
    return {"accuracy": float(hits.mean()), "digits": len(hits)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=4)
    epochs = parser.parse_args().epochs
    config = ViTConfig(
        hidden_size=64,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=128,
        image_size=digits.SIZE,
        patch_size=4,
        num_labels=digits.CLASSES,
        initializer_range=0.1,  # of a model this small
    )
    with tempfile.TemporaryDirectory() as folder:
        digits.write(folder)
        arguments = TrainingArguments(
            output_dir=os.path.join(folder, "out"),
            num_train_epochs=epochs,
            per_device_train_batch_size=32,
            per_device_eval_batch_size=60,
            learning_rate=2e-3,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
        )
        trainer = PenstockTrainer(ViTForImageClassification(config), arguments, folder=folder, compute_metrics=accuracy)
        trainer.train()
        found = trainer.evaluate()
        print(f"accuracy {found['eval_accuracy']:.3f} of {found['eval_digits']}")


if __name__ == "__main__":
    main()
