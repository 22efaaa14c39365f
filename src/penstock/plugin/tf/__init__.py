# SPDX-License-Identifier: Apache-2.0
"""Pipelines as TensorFlow datasets and operators. Nothing is compiled against TensorFlow, and nothing is copied:
tensors share the memory of the batch."""

from typing import TYPE_CHECKING, Any

from ...core.constructors import no_attribute
from ...pipeline import Pipeline
from . import experimental
from .dataset import DALIDataset, dataset_options
from .operator import DALIIterator, DALIIteratorWrapper, DALIRawIterator

__all__ = [
    "DALIDataset",
    "DALIIterator",
    "DALIIteratorWrapper",
    "DALIRawIterator",
    "dataset_compatible_tensorflow",
    "dataset_distributed_compatible_tensorflow",
    "dataset_inputs_compatible_tensorflow",
    "dataset_options",
    "experimental",
    "serialize_pipeline",
]


def serialize_pipeline(pipeline: Pipeline, *args: Any, **kwargs: Any) -> bytes:
    """`pipeline.serialize()`: what `DALIIterator()(serialized_pipeline=...)` takes."""
    return pipeline.serialize(*args, **kwargs)


def dataset_compatible_tensorflow() -> bool:
    """Returns whether `DALIDataset` works with this TensorFlow: always True."""
    return True


def dataset_inputs_compatible_tensorflow() -> bool:
    """Returns whether `experimental.DALIDatasetWithInputs` works with this TensorFlow: always True."""
    return True


def dataset_distributed_compatible_tensorflow() -> bool:
    """Returns whether datasets work with `tf.distribute` of this TensorFlow: always True."""
    return True


if not TYPE_CHECKING:

    def __getattr__(name):
        raise no_attribute(__name__, name)
