# SPDX-License-Identifier: Apache-2.0
"""One of the two processes of a JAX program that reads a data set together: `two_processes.py RANK PORT FOLDER [gpu]`.
Run by test_jax_devices.py with two CPU devices each, by tests/gpu/test_two_gpus.py with a GPU each."""

import sys

import jax

RANK, PORT, FOLDER, GPU = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4:] == ["gpu"]
MINE = 1 if GPU else 2  # devices of a process
if GPU:
    jax.distributed.initialize(f"127.0.0.1:{PORT}", 2, RANK, local_device_ids=[RANK])
else:
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(f"127.0.0.1:{PORT}", 2, RANK)

import numpy as np  # noqa: E402
from jax.sharding import Mesh, NamedSharding  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

from penstock import fn  # noqa: E402
from penstock.plugin.jax.clu import peekable_data_iterator  # noqa: E402

assert jax.process_count() == 2 and len(jax.devices()) == 2 * MINE and len(jax.local_devices()) == MINE
sharding = NamedSharding(Mesh(jax.devices(), ("batch",)), P("batch"))


@peekable_data_iterator(output_map=["data", "label"], reader_name="reader", sharding=sharding)
def files(num_shards=1, shard_id=0):
    data, label = fn.readers.file(file_root=FOLDER, num_shards=num_shards, shard_id=shard_id, name="reader")
    return (data.gpu(), label.gpu()) if GPU else (data, label)


it = files(batch_size=8)
assert len(it._pipes) == MINE and it.element_spec["data"].shape == (8, 4)
total = jax.jit(lambda x: x.astype("i4").sum())
sums = []
for batch in it:
    data = batch["data"]
    assert data.shape == (8, 4) and data.sharding == sharding and len(data.addressable_shards) == MINE
    mine = np.concatenate([s.data[:, 0] for s in data.addressable_shards]).tolist()
    step = len(sums)
    local = 8 // (2 * MINE)  # samples of a device in each batch
    mine_of_all = range(MINE * RANK, MINE * (RANK + 1))
    want = [16 // (2 * MINE) * shard + local * step + i for shard in mine_of_all for i in range(local)]
    assert mine == want, (mine, want)
    assert it.is_nonpadding.shape == (8,) and bool(total(it.is_nonpadding) == 8)
    sums.append(int(total(data)))  # over both processes
size, local = 16 // (2 * MINE), 8 // (2 * MINE)
assert sums == [4 * sum(size * s + local * k + i for s in range(2 * MINE) for i in range(local)) for k in range(2)], (
    sums
)
print("done")
