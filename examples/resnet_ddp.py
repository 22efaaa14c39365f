# SPDX-License-Identifier: Apache-2.0
"""A ResNet in PyTorch, from files to accuracy, in one process or data-parallel in several.

    python examples/resnet_ddp.py [--mix mixup|cutmix] [--epochs N] [--model resnet50] [--gpu]
    torchrun --nproc-per-node=2 examples/resnet_ddp.py

It learns handwritten digits (see digits.py; requires scikit-learn and Pillow) with a small ResNet, or with a
torchvision model given by name. Each process reads its own shard. The last line states how long the training waited for
data.
"""

import argparse
import os
import tempfile

import digits
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

from penstock.plugin.progress import LoaderSpeed
from penstock.plugin.pytorch import DALIGenericIterator, LastBatchPolicy


class Block(nn.Module):
    def __init__(self, channels, more, stride):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, more, 3, stride, 1, bias=False),
            nn.BatchNorm2d(more),
            nn.ReLU(),
            nn.Conv2d(more, more, 3, 1, 1, bias=False),
            nn.BatchNorm2d(more),
        )
        self.past = nn.Conv2d(channels, more, 1, stride, bias=False) if stride > 1 else nn.Identity()

    def forward(self, x):
        return torch.relu(self.body(x) + self.past(x))


def resnet(name):
    if name != "small":
        import torchvision

        return getattr(torchvision.models, name)(num_classes=digits.CLASSES)
    stem = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
    blocks = [Block(16, 16, 1), Block(16, 32, 2), Block(32, 64, 2)]
    return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, digits.CLASSES))


def loader(args, part, rank, world, **kwargs):
    pipe = digits.pipeline(
        f"{args.data}/{part}",
        decoder="mixed" if args.gpu else "cpu",
        shard_id=rank,
        num_shards=world,
        batch_size=args.batch,
        num_threads=args.threads,
        device_id=int(os.environ.get("LOCAL_RANK", 0)) if args.gpu else None,
        seed=7,
        **kwargs,
    )
    policy = LastBatchPolicy.DROP if kwargs else LastBatchPolicy.PARTIAL
    return DALIGenericIterator(
        pipe, ["image", "target"], reader_name="reader", last_batch_policy=policy, auto_reset=True
    )


def train(args, rank, world):
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0))) if args.gpu else torch.device("cpu")
    torch.manual_seed(0)
    model = resnet(args.model).to(device)
    if world > 1:
        model = DistributedDataParallel(model, device_ids=[device.index] if args.gpu else None)
    mix = {"mixup": digits.mixup, "cutmix": digits.cutmix, None: None}[args.mix]
    batches = loader(args, "train", rank, world, training=True, mix=mix)
    validation = loader(args, "val", rank, world)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=1e-4, nesterov=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=args.epochs * len(batches))
    speed = LoaderSpeed(batches)
    for epoch in range(args.epochs):
        total = torch.zeros(1, device=device)
        model.train()
        for (batch,) in batches:
            loss = cross_entropy(model(batch["image"]), batch["target"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.detach()
        figures = speed.read()
        right = torch.zeros(2, device=device)
        model.eval()
        with torch.no_grad():
            for (batch,) in validation:
                hits = model(batch["image"]).argmax(1) == batch["target"].argmax(1)
                right += torch.tensor([hits.sum(), len(hits)], device=device)
        if world > 1:
            dist.all_reduce(right)
        if rank == 0:
            loss, accuracy = total.item() / len(batches), (right[0] / right[1]).item()
            print(f"epoch {epoch}: loss {loss:.3f}, accuracy {accuracy:.3f} of {int(right[1])}", flush=True)
    if rank == 0:
        print(f"the training waited {figures['waited_share']:.1%} of the last epoch for its data")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="a folder with train/ and val/; by default the digits are written and used")
    parser.add_argument("--mix", choices=["mixup", "cutmix"])
    parser.add_argument("--model", default="small")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--gpu", action="store_true")
    args = parser.parse_args()
    rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    if world > 1:
        if args.gpu:
            torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        dist.init_process_group("nccl" if args.gpu else "gloo")
    with tempfile.TemporaryDirectory() as folder:
        if args.data is None:
            digits.write(folder)
            args.data = folder
        train(args, rank, world)
    if world > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
