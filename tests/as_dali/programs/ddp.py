# SPDX-License-Identifier: Apache-2.0
"""Data-parallel training as launchers start it: each rank reads its shard of uneven size. `ddp.py FILE ...`; the rank
prints its losses and what it has seen."""

import os
import sys
import time

import torch
import torch.distributed as dist
from nvidia.dali import fn, pipeline_def
from nvidia.dali.plugin.pytorch import DALIGenericIterator, LastBatchPolicy

files = sys.argv[1:]


@pipeline_def
def numbers(shard_id, num_shards):
    data, label = fn.readers.file(
        files=files,
        labels=list(range(len(files))),
        shard_id=shard_id,
        num_shards=num_shards,
        pad_last_batch=True,
        name="reader",
    )
    return data, label


dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(rank)  # DDP makes the models alike
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
pipe = numbers(rank, world, batch_size=2, num_threads=1, device_id=int(os.environ["LOCAL_RANK"]), seed=rank)
loader = DALIGenericIterator(pipe, ["x", "y"], reader_name="reader", last_batch_policy=LastBatchPolicy.PARTIAL)
for epoch in range(3):
    seen, losses = [], []
    for batch in loader:
        x, y = batch[0]["x"].float() / 16, batch[0]["y"].float() / len(files)
        loss = (model(x) - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen += (y * len(files)).round().int().flatten().tolist()
        losses.append(loss.item())
    loader.reset()
    total = torch.tensor(sum(losses) / len(losses))
    mine = sys.getrefcount(total)
    dist.all_reduce(total)
    while sys.getrefcount(total) > mine:  # gloo's thread, let go of a tensor after Python's end, kills the process
        time.sleep(0.001)
    weights = [w.item() for w in model.module.weight.flatten()]
    sys.stdout.write(f"{epoch} {rank} {len(losses)} {seen} {total.item():.6f} {sum(weights):.6f}\n")
    sys.stdout.flush()
dist.destroy_process_group()
