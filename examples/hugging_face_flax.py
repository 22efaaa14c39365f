# SPDX-License-Identifier: Apache-2.0
"""Reads a data set of Hugging Face (Parquet files with encoded images) into Flax.

    python examples/hugging_face_flax.py [--parquet PATTERN] [--image COLUMN] [--label COLUMN] [--classes N] [--steps N]

PATTERN names files written by `datasets.Dataset.to_parquet`, the format of data sets on the Hub, such as
"imagenet-1k/data/train-*.parquet". Without it, the photographs of examples/data are written as such a file, and the
model memorises them: the loss falls. Requires pyarrow, jax, flax and optax.
"""

import argparse
import tempfile
from pathlib import Path

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
import pyarrow
import pyarrow.parquet

import penstock.fn as fn
import penstock.types as types
from penstock.plugin.jax import data_iterator

DATA = Path(__file__).resolve().parent / "data"


def write_parquet(path):
    """Returns the photographs of examples/data in the form of Hugging Face's images: {bytes, path}."""
    rows = [
        {"image": {"bytes": picture.read_bytes(), "path": picture.name}, "label": label}
        for label, folder in enumerate(sorted(p for p in DATA.iterdir() if p.is_dir()))
        for picture in sorted(folder.glob("*.jpg"))
    ]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path, row_group_size=4)


@data_iterator(output_map=["image", "label"], reader_name="reader", auto_reset=True)
def training(files, columns, size):
    jpegs, labels = fn.readers.parquet(path=files, columns=columns, shuffle="windows", name="reader")
    images = fn.decoders.image_random_crop(jpegs, random_area=[0.25, 1.0])
    images = fn.resize(images, size=[size, size])
    images = fn.flip(images, horizontal=fn.random.coin_flip())
    return fn.cast(images, dtype=types.FLOAT) / 127.5 - 1.0, labels


class Classifier(nn.Module):
    classes: int

    @nn.compact
    def __call__(self, x):
        for channels in (16, 32, 64):
            x = nn.relu(nn.GroupNorm(4)(nn.Conv(channels, (3, 3), strides=2)(x)))
        return nn.Dense(self.classes)(x.mean(axis=(1, 2)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parquet")
    parser.add_argument("--image", default="image")
    parser.add_argument("--label", default="label")
    parser.add_argument("--classes", type=int, default=5)
    parser.add_argument("--steps", type=int, default=61)
    parser.add_argument("--batch", type=int, default=21)
    parser.add_argument("--size", type=int, default=64)
    args = parser.parse_args()
    model, optimizer = Classifier(args.classes), optax.adamw(3e-3)
    parameters = jax.jit(model.init)(jax.random.key(0), jnp.zeros((1, args.size, args.size, 3)))
    # On the device explicitly, as batches are: otherwise the second step, with results of the first, is compiled anew.
    parameters, state = jax.device_put((parameters, optimizer.init(parameters)), jax.devices()[0])

    @jax.jit
    def step(parameters, state, images, labels):
        def loss_of(parameters):
            logits = model.apply(parameters, images)
            return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

        loss, gradients = jax.value_and_grad(loss_of)(parameters)
        updates, state = optimizer.update(gradients, state, parameters)
        return optax.apply_updates(parameters, updates), state, loss

    with tempfile.TemporaryDirectory() as folder:
        files = args.parquet
        if files is None:
            files = f"{folder}/train.parquet"
            write_parquet(files)
        batches = training(files, [args.image, args.label], args.size, batch_size=args.batch, num_threads=2, seed=7)
        done = 0
        while done < args.steps:
            for batch in batches:
                parameters, state, loss = step(parameters, state, batch["image"], batch["label"].ravel())
                if done % 20 == 0:
                    print(f"step {done}: loss {loss:.3f}")
                done += 1


if __name__ == "__main__":
    main()
