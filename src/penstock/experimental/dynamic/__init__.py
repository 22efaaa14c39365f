# SPDX-License-Identifier: Apache-2.0
"""The imperative mode: operators are called on tensors and batches, without a pipeline.

>>> import numpy as np
>>> from penstock.experimental import dynamic as ndd
>>> images = ndd.as_batch([np.full((40, 60, 3), 100, np.uint8), np.full((50, 30, 3), 200, np.uint8)], layout="HWC")
>>> small = ndd.resize(images, size=(20, 20))
>>> np.asarray(ndd.crop_mirror_normalize(small, mean=[100.0] * 3, std=[50.0] * 3)).mean((1, 2, 3)).tolist()
[0.0, 2.0]
"""

from . import capture, checkpoint, math, pytorch, random
from ._batch import Batch
from ._context import EvalContext, ThreadPool, get_num_threads, set_num_threads
from ._device import Device, device
from ._dtype import (
    DataType,
    DType,
    ImageType,
    InterpType,
    bfloat16,
    dtype,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    type_id,
    uint8,
    uint16,
    uint32,
    uint64,
)
from ._dtype import bool_ as bool
from ._external_source import ExternalSource
from ._imread import imread
from ._making import as_batch, as_tensor, batch, tensor
from ._mode import EvalMode
from ._namespace import fill as _fill
from ._stream import (
    Stream,
    get_current_stream,
    get_default_stream,
    set_current_stream,
    set_default_stream,
    stream,
)
from ._tensor import Tensor

__all__ = [
    "Batch",
    "DType",
    "DataType",
    "Device",
    "EvalContext",
    "EvalMode",
    "ExternalSource",
    "ImageType",
    "InterpType",
    "Stream",
    "Tensor",
    "ThreadPool",
    "as_batch",
    "as_tensor",
    "batch",
    "bfloat16",
    "bool",
    "capture",
    "checkpoint",
    "device",
    "dtype",
    "float16",
    "float32",
    "float64",
    "get_current_stream",
    "get_default_stream",
    "get_num_threads",
    "imread",
    "int16",
    "int32",
    "int64",
    "int8",
    "math",
    "pytorch",
    "random",
    "set_current_stream",
    "set_default_stream",
    "set_num_threads",
    "stream",
    "tensor",
    "type_id",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
]

_fill(__name__)
