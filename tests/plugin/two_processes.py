# SPDX-License-Identifier: Apache-2.0
"""One of the two processes of a JAX program that reads a data set together: `two_processes.py RANK PORT FOLDER`. Run by
test_jax_devices.py."""

import sys

import jax

RANK, PORT, FOLDER = int(sys.argv[1]), sys.argv[2], sys.argv[3]
jax.config.update("jax_cpu_collectives_implementation", "gloo")
jax.distributed.initialize(f"127.0.0.1:{PORT}", 2, RANK)

import numpy as np  # noqa: E402
from jax.sharding import Mesh, NamedSharding  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

from penstock import fn  # noqa: E402
from penstock.plugin.jax.clu import peekable_data_iterator  # noqa: E402

assert jax.process_count() == 2 and len(jax.devices()) == 4 and len(jax.local_devices()) == 2
sharding = NamedSharding(Mesh(jax.devices(), ("batch",)), P("batch"))


@peekable_data_iterator(output_map=["data", "label"], reader_name="reader", sharding=sharding)
def files(num_shards=1, shard_id=0):
    return fn.readers.file(file_root=FOLDER, num_shards=num_shards, shard_id=shard_id, name="reader")


it = files(batch_size=8)
assert len(it._pipes) == 2 and it.element_spec["data"].shape == (8, 4)
total = jax.jit(lambda x: x.astype("i4").sum())
sums = []
for batch in it:
    data = batch["data"]
    assert data.shape == (8, 4) and data.sharding == sharding and len(data.addressable_shards) == 2
    mine = np.concatenate([s.data[:, 0] for s in data.addressable_shards]).tolist()
    step = len(sums)
    want = [4 * shard + 2 * step + i for shard in (2 * RANK, 2 * RANK + 1) for i in range(2)]
    assert mine == want, (mine, want)
    assert it.is_nonpadding.shape == (8,) and bool(total(it.is_nonpadding) == 8)
    sums.append(int(total(data)))  # over both processes
assert sums == [4 * sum(4 * s + 2 * k + i for s in range(4) for i in range(2)) for k in range(2)], sums
print("done")
