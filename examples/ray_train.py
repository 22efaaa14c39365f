# SPDX-License-Identifier: Apache-2.0
"""Training with Ray Train: each rank reads its own shard, and a run continues where another one stopped.

    python examples/ray_train.py FOLDER [--storage FOLDER] [--epochs N] [--stop-at STEP]

FOLDER has one folder of JPEG files for each class. A checkpoint contains the model, the optimizer, and the position of
each rank's pipeline, even in the middle of an epoch. A run with the same --storage continues from the last one;
--stop-at ends it early, as if the machine was taken away. Requires Ray and PyTorch: pip install 'ray[train]' torch
"""

import argparse
import os
import tempfile
from pathlib import Path

import ray
import torch
import torch.distributed as dist
from ray import train
from ray.train.torch import TorchTrainer, prepare_model
from torch.nn.functional import cross_entropy

from penstock import fn, pipeline_def, types
from penstock.plugin.pytorch import DALIGenericIterator, LastBatchPolicy


@pipeline_def(batch_size=2, num_threads=1, seed=7, enable_checkpointing=True)
def pictures(folder, rank, world):
    files, labels = fn.readers.file(
        file_root=folder, shard_id=rank, num_shards=world, random_shuffle=True, pad_last_batch=True, name="files"
    )
    images = fn.resize(fn.decoders.image(files), size=(32, 32))
    images = fn.crop_mirror_normalize(images, dtype=types.FLOAT, mirror=fn.random.coin_flip(), mean=128.0, std=64.0)
    return images, labels


def work(config):
    """Runs in every rank."""
    rank, world = train.get_context().get_world_rank(), train.get_context().get_world_size()
    torch.manual_seed(0)
    classes = len([p for p in Path(config["folder"]).iterdir() if p.is_dir()])
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 32 * 32, classes))
    model = prepare_model(net)
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    step, where = 0, None
    path = Path(config["storage"], "checkpoint.pt")
    if path.exists():
        saved = torch.load(path, weights_only=False)
        net.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        step, where = saved["step"], saved["where"]
    batches = DALIGenericIterator(
        # Of all ranks: so another number of them can go on, too.
        pictures(config["folder"], rank, world, checkpoint=where),
        ["image", "label"],
        reader_name="files",
        last_batch_policy=LastBatchPolicy.PARTIAL,
    )
    steps = config["epochs"] * len(batches)
    while step < min(steps, config["stop_at"] or steps):
        for (batch,) in batches:
            loss = cross_entropy(model(batch["image"]), batch["label"].squeeze(1).long())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            places = [None] * world
            dist.all_gather_object(places, batches.checkpoints()[0])
            if rank == 0:
                state = {"model": net.state_dict(), "optimizer": optimizer.state_dict(), "step": step, "where": places}
                with tempfile.NamedTemporaryFile(dir=config["storage"], delete=False) as file:
                    torch.save(state, file)
                os.replace(file.name, path)  # whole, or not at all
            train.report({"step": step, "loss": loss.item()})
            if step == config["stop_at"]:
                break
        else:
            batches.reset()
    if rank == 0:
        total = sum(float(p.detach().double().abs().sum()) for p in net.parameters())
        Path(config["storage"], "result.txt").write_text(f"{step} {total!r}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--storage", default="ray_train_runs", help="folder of checkpoints, accessible by all machines")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--stop-at", type=int, default=0, help="the step after which to end")
    args = parser.parse_args()
    storage = Path(args.storage).resolve()
    storage.mkdir(parents=True, exist_ok=True)
    config = {**vars(args), "folder": str(Path(args.folder).resolve()), "storage": str(storage)}
    if not ray.is_initialized():
        ray.init(log_to_driver=False, include_dashboard=False)
    TorchTrainer(
        work,
        train_loop_config=config,
        scaling_config=train.ScalingConfig(num_workers=args.ranks, use_gpu=False),
        run_config=train.RunConfig(storage_path=str(storage)),
    ).fit()
    step, total = Path(storage, "result.txt").read_text().split()
    print(f"{step} steps; the weights add up to {float(total):.9g}", flush=True)


if __name__ == "__main__":
    main()
