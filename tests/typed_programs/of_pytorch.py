# SPDX-License-Identifier: Apache-2.0
# requires: torch
"""Iterators for PyTorch, and functions of it in the graph."""

import torch

from penstock import DataNode, Pipeline, fn
from penstock.plugin.pytorch import (
    DALIClassificationIterator,
    DALIGenericIterator,
    DALIRaggedIterator,
    LastBatchPolicy,
    TorchPythonFunction,
    feed_ndarray,
)
from penstock.plugin.pytorch.fn import torch_python_function


def graph(x: DataNode) -> tuple[DataNode, ...]:
    two, three = torch_python_function(x, x, function=lambda a, b: (a, b), num_outputs=2, device="gpu")
    one: DataNode = torch_python_function(x, function=torch.relu, batch_processing=False, output_layouts="HWC")
    return one, two, three, TorchPythonFunction(torch.relu, 1, "cpu")(x)


def train(pipe: Pipeline) -> torch.Tensor:
    loader = DALIGenericIterator(
        [pipe, pipe], output_map=["x", "y"], reader_name="reader", last_batch_policy=LastBatchPolicy.PARTIAL
    )
    print(len(loader), loader.size, loader.batch_size, loader)
    total = torch.zeros(())
    for batch in loader:
        total += batch[0]["x"].float().mean()
    loader.reset()
    second: list[dict[str, torch.Tensor]] = loader.next()
    for batch in DALIClassificationIterator(pipelines=pipe, size=100, auto_reset=True, last_batch_policy="DROP"):
        total += batch[0]["data"].sum() + second[0]["x"].sum()
    tags = [DALIRaggedIterator.SPARSE_LIST_TAG]
    ragged = DALIRaggedIterator(pipe, ["x"], output_types=tags, prepare_first_batch=False)
    tensors: list[torch.Tensor] = next(ragged)[0]["x"]
    feed_ndarray(pipe.run()[0].as_tensor(), tensors[0])
    states: list[bytes] = loader.checkpoints()
    return total + len(states)


def wrong(pipe: Pipeline, x: DataNode) -> None:
    loader = DALIGenericIterator(pipe, ["x"], reader_nme="reader")  # found: call-arg
    DALIGenericIterator(pipe, 3)  # found: arg-type
    DALIGenericIterator(fn, ["x"])  # found: arg-type
    DALIGenericIterator(pipe, ["x"], last_batch_policy=3)  # found: arg-type
    DALIClassificationIterator(pipe, reader_name=3)  # found: arg-type
    DALIClassificationIterator(pipe, dynamic_shapes=True)  # found: call-arg
    DALIRaggedIterator(pipe, ["x"], output_type=["dense"])  # found: call-arg
    loader.rest()  # found: attr-defined
    next(loader)["x"]  # found: call-overload
    LastBatchPolicy.PARTLY  # found: attr-defined
    torch_python_function(x, function=torch.relu, num_output=2)  # found: call-arg
    torch_python_function(x, function=3)  # found: arg-type
    TorchPythonFunction(torch.relu, batch_procesing=True)  # found: call-arg
