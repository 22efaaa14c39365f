# SPDX-License-Identifier: Apache-2.0
# requires: jax, clu
"""Iterators for JAX, functions of it in the graph, and iterators that can be peeked at."""

import jax
from jax.sharding import Sharding

from penstock import DataNode, Pipeline, fn
from penstock.plugin.jax import DALIGenericIterator, data_iterator
from penstock.plugin.jax.clu import DALIGenericPeekableIterator, peekable_data_iterator
from penstock.plugin.jax.fn import jax_function


@jax_function(num_outputs=2, output_layouts="HWC")
def halves(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    return x[:, :2], x[:, 2:]


@jax_function
@jax.jit
def brighter(x: jax.Array) -> jax.Array:
    return x + 1


@data_iterator(output_map=["x"], reader_name="reader", last_batch_policy="DROP", prepare_first_batch=False)
def training(folder: str) -> DataNode:
    jpegs, _ = fn.readers.file(file_root=folder, name="reader")
    left, right = halves(brighter(fn.decoders.image(jpegs)))
    return fn.cat(left, right) + brighter(left)


def spread(sharding: Sharding, num_shards: int) -> dict[str, jax.Array]:
    made = data_iterator(training, ["x"], sharding=sharding, auto_reset=True)(batch_size=8)
    return made.next()


@peekable_data_iterator(output_map=["x"], size=100)
def peekable() -> DataNode:
    return fn.external_source(name="x")


iterator = training("folder", batch_size=8, num_threads=2)
total = sum(batch["x"].sum() for batch in iterator)
print(len(iterator), total)
peeked = peekable(batch_size=2)
first: jax.Array = peeked.peek()["x"] + peeked.peek_async().result()["x"] + next(peeked)["x"]
shape: tuple[int | None, ...] = peeked.element_spec["x"].shape
peeked.save("state")
count: jax.Array = peeked.is_nonpadding.sum()


def wrong(pipe: Pipeline) -> None:
    data_iterator(output_mop=["x"])  # found: call-overload
    data_iterator(3)  # found: call-overload
    iterator.nekst()  # found: attr-defined
    next(iterator)[0]  # found: index
    DALIGenericIterator(pipe, ["x"], devises=jax.devices())  # found: call-arg
    DALIGenericIterator(pipe, ["x"], size="large")  # found: arg-type
    DALIGenericPeekableIterator(pipe, ["x"], reader="reader")  # found: call-arg
    peeked.peekk()  # found: attr-defined
    peeked.element_spec["x"].shap  # found: attr-defined
    jax_function(halves, num_output=2)  # found: call-overload
    jax_function(halves, output_layouts=3)  # found: call-overload
