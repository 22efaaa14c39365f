# SPDX-License-Identifier: Apache-2.0
# requires: tensorflow
"""Pipelines as datasets of TensorFlow."""

import tensorflow as tf

from penstock import Pipeline
from penstock.plugin import tf as plugin
from penstock.plugin.tf.experimental import DALIDatasetWithInputs, Input


def train(pipe: Pipeline, files: tf.data.Dataset[tf.Tensor]) -> int:
    dataset = plugin.DALIDataset(
        pipe, (tf.float32, tf.int32), ((None, 3), (None,)), batch_size=8, device_id=0, reader_name="reader"
    )
    fed = DALIDatasetWithInputs(pipe, tf.uint8, input_datasets={"x": files, "y": Input(files, layout="HWC")})
    for batch in fed.take(3):
        print(batch)
    return len(dataset)


def wrong(pipe: Pipeline, files: tf.data.Dataset[tf.Tensor]) -> None:
    plugin.DALIDataset(pipe, batch_sise=3)  # found: call-arg
    plugin.DALIDataset(3)  # found: arg-type
    plugin.DALIDatset  # found: attr-defined
    DALIDatasetWithInputs(pipe, tf.uint8, input_dataset={})  # found: call-arg
    DALIDatasetWithInputs(pipe, tf.uint8, input_datasets=[files])  # found: arg-type
    Input(files, layouts="HWC")  # found: call-arg
