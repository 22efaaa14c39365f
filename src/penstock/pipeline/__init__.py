# SPDX-License-Identifier: Apache-2.0
"""`Pipeline` and `pipeline_def`: defining a graph of operators and running it."""

import sys

from ..core.errors import PipelineError as PipelineError
from ..graph.node import DataNode as DataNode
from .definition import do_not_convert as do_not_convert
from .definition import pipeline_def as pipeline_def
from .pipeline import Pipeline as Pipeline
from .policies import OperatorConcurrency as OperatorConcurrency
from .policies import StreamPolicy as StreamPolicy

__all__ = ["DataNode", "OperatorConcurrency", "Pipeline", "StreamPolicy", "do_not_convert", "pipeline_def"]

Pipeline.__module__ = __name__  # the public path, used in messages and by programs
experimental = sys.modules[__name__]  # some programs import it as `nvidia.dali.pipeline.experimental`
