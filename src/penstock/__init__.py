# SPDX-License-Identifier: Apache-2.0
"""penstock feeds training: it reads, decodes and augments images, and hands ready batches to PyTorch, JAX and NumPy.

The names are those of NVIDIA DALI: `pipeline_def`, `fn`, `ops`, `types`, `Pipeline`, `plugin`.
"""

from . import fn, math, ops, types
from .core.errors import PipelineError, SampleError
from .graph.node import DataNode
from .pipeline import Pipeline, do_not_convert, pipeline_def
from .tensors import TensorCPU, TensorListCPU

__version__ = "0.1.0"
__all__ = [
    "DataNode",
    "Pipeline",
    "PipelineError",
    "SampleError",
    "TensorCPU",
    "TensorListCPU",
    "do_not_convert",
    "fn",
    "math",
    "ops",
    "pipeline_def",
    "types",
]
