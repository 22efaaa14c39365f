# SPDX-License-Identifier: Apache-2.0
"""A vision transformer in Flax, from files to accuracy: handwritten digits, see digits.py.

    python examples/vit_digits_flax.py [--epochs N] [--mix mixup|cutmix] [--gpu]

The pipeline returns jax.Array, on the CPU or the GPU, channels last. The last line states how long the training waited.
"""

import argparse
import tempfile

import digits
import flax.linen as nn
import jax
import optax

from penstock.plugin.jax import DALIGenericIterator
from penstock.plugin.progress import LoaderSpeed

PATCH, WIDTH, DEPTH, HEADS = 4, 64, 3, 4


class Block(nn.Module):
    @nn.compact
    def __call__(self, x):
        y = nn.LayerNorm()(x)
        x = x + nn.MultiHeadDotProductAttention(num_heads=HEADS)(y, y)
        y = nn.gelu(nn.Dense(2 * WIDTH)(nn.LayerNorm()(x)))
        return x + nn.Dense(WIDTH)(y)


class ViT(nn.Module):
    @nn.compact
    def __call__(self, images):
        x = nn.Conv(WIDTH, (PATCH, PATCH), strides=(PATCH, PATCH))(images)
        x = x.reshape(x.shape[0], -1, WIDTH)
        x = x + self.param("place", nn.initializers.normal(0.02), (1, x.shape[1], WIDTH))
        for _ in range(DEPTH):
            x = Block()(x)
        return nn.Dense(digits.CLASSES)(nn.LayerNorm()(x).mean(axis=1))


def loader(args, part, **kwargs):
    pipe = digits.pipeline(
        f"{args.data}/{part}",
        layout="HWC",
        decoder="mixed" if args.gpu else "cpu",
        batch_size=args.batch,
        num_threads=args.threads,
        device_id=0 if args.gpu else None,
        seed=7,
        **kwargs,
    )
    return DALIGenericIterator(
        pipe, ["image", "target"], reader_name="reader", last_batch_policy="drop", auto_reset=True
    )


def train(args):
    mix = {"mixup": digits.mixup, "cutmix": digits.cutmix, None: None}[args.mix]
    batches, validation = loader(args, "train", training=True, mix=mix), loader(args, "val")
    model = ViT()
    params = jax.jit(model.init)(jax.random.key(0), jax.numpy.zeros((1, digits.SIZE, digits.SIZE, 3)))
    optimizer = optax.adamw(optax.cosine_onecycle_schedule(args.epochs * len(batches), 3e-3))
    state = jax.jit(optimizer.init)(params)
    # On the device explicitly, as batches are: otherwise the second step, with results of the first, is compiled anew.
    params, state = jax.device_put((params, state), jax.devices()[0])

    def loss_of(params, batch):
        return optax.softmax_cross_entropy(model.apply(params, batch["image"]), batch["target"]).mean()

    @jax.jit
    def step(params, state, batch):
        loss, gradient = jax.value_and_grad(loss_of)(params, batch)
        updates, state = optimizer.update(gradient, state, params)
        return optax.apply_updates(params, updates), state, loss

    @jax.jit
    def hits(params, batch):
        return (model.apply(params, batch["image"]).argmax(1) == batch["target"].argmax(1)).sum()

    speed = LoaderSpeed(batches)
    for epoch in range(args.epochs):
        losses = []
        for batch in batches:
            params, state, loss = step(params, state, batch)
            losses.append(loss)
        mean = float(sum(losses)) / len(losses)
        figures = speed.read()
        found = [(int(hits(params, batch)), len(batch["image"])) for batch in validation]
        right, n = map(sum, zip(*found))
        print(f"epoch {epoch}: loss {mean:.3f}, accuracy {right / n:.3f} of {n}", flush=True)
    print(f"the training waited {figures['waited_share']:.1%} of the last epoch for its data")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="a folder with train/ and val/; by default the digits are written and used")
    parser.add_argument("--mix", choices=["mixup", "cutmix"])
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--batch", type=int, default=40)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--gpu", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if args.data is None:
            digits.write(folder)
            args.data = folder
        train(args)


if __name__ == "__main__":
    main()
