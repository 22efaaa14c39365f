# SPDX-License-Identifier: Apache-2.0
# requires: paddle
"""Iterators for PaddlePaddle."""

import paddle

from penstock import Pipeline
from penstock.plugin.paddle import DALIClassificationIterator, DALIGenericIterator, LastBatchPolicy


def train(pipe: Pipeline) -> paddle.Tensor:
    loader = DALIGenericIterator(pipe, output_map=["x", ("words", 1)], size=10, last_batch_policy=LastBatchPolicy.DROP)
    total = paddle.zeros([1])
    for batch in loader:
        total = total + paddle.to_tensor(batch[0]["x"])
    print(len(loader), DALIClassificationIterator(pipe, reader_name="reader"))
    return total


def wrong(pipe: Pipeline) -> None:
    DALIGenericIterator(pipe, ["x"], auto_rest=True)  # found: call-arg
    DALIGenericIterator(pipe, [("x", "y")])  # found: list-item
    DALIClassificationIterator(pipe, ["x"])  # found: arg-type
    DALIClassificationIterator(pipe, output_map=["x"])  # found: call-arg
