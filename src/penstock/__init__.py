# SPDX-License-Identifier: Apache-2.0
"""penstock reads, decodes and augments images, video and audio for training, and returns the batches to PyTorch, JAX,
TensorFlow, PaddlePaddle and NumPy.

The names are those of NVIDIA DALI: `pipeline_def`, `fn`, `ops`, `types`, `Pipeline`, `plugin`.
"""

from typing import TYPE_CHECKING

from . import data_node, fn, math, ops, pipeline, tensors, types
from .core.errors import PipelineError, SampleError
from .core.errors import no_attribute as _no_attribute
from .graph.node import DataNode
from .graph.subscript import newaxis
from .pipeline import Pipeline, do_not_convert, pipeline_def
from .pipeline.policies import OperatorConcurrency, StreamPolicy
from .tensors import TensorCPU, TensorListCPU

__version__ = "0.1.0"
__all__ = [
    "DataNode",
    "OperatorConcurrency",
    "Pipeline",
    "PipelineError",
    "SampleError",
    "StreamPolicy",
    "TensorCPU",
    "TensorListCPU",
    "data_node",
    "do_not_convert",
    "fn",
    "math",
    "newaxis",
    "ops",
    "pipeline",
    "pipeline_def",
    "tensors",
    "types",
]


if TYPE_CHECKING:
    from . import backend as backend
    from . import external_source as external_source
    from . import internal as internal
    from . import pickling as pickling
    from . import plugin_manager as plugin_manager
    from . import reducers as reducers
    from . import sysconfig as sysconfig
    from . import tfrecord as tfrecord
else:
    _WITHOUT_IMPORT = frozenset(
        "backend external_source internal pickling plugin_manager reducers sysconfig tfrecord".split()
    )
    _WITH_IMPORT = frozenset("auto_aug experimental metrics plugin transforms video".split())

    def __getattr__(name):
        """Imports modules such as `penstock.tfrecord` on first use, as in DALI."""
        if name in _WITHOUT_IMPORT:
            import importlib

            return importlib.import_module(f"{__name__}.{name}")
        if name == "__cuda_version__":
            from .backend import __cuda_version__

            return __cuda_version__
        if name in _WITH_IMPORT:
            raise AttributeError(f"module '{__name__}' has no attribute '{name}' yet; write import {__name__}.{name}")
        raise _no_attribute(__name__, name)
