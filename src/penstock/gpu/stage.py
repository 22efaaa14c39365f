# SPDX-License-Identifier: Apache-2.0
"""Operators' own GPU stages, for work that is more than a kernel in a chain.

An operator names its stage in `Operator.gpu_stage`, as "module:Class". The executor resolves the arguments, explains
errors, measures and keeps the outputs; the stage does the work.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from ..core import kernels
from ..core.batch import Batch
from ..core.op import Arguments, Operator
from .session import GpuPass, Session


class StageCall(NamedTuple):
    """The call of an operator that a stage runs, the same for all batches."""

    op: Operator
    number: int  # of the node
    inputs: tuple[tuple[int, int], ...]  # (node number, output) of each
    data_arguments: tuple[str, ...]  # the arguments that are data, not constants
    arguments: Callable[[Any], Arguments]  # resolves the operator's arguments for the context of a batch


class StageBatch:
    """One batch, as a stage sees it."""

    __slots__ = ("context", "doubted", "failed", "gpu", "inputs", "n", "native_ns", "pool")

    def __init__(self, context: Any, pool: kernels.Pool, inputs: list[Batch], doubted: np.ndarray | None):
        self.context = context  # the executor's, for which the arguments are resolved
        self.gpu: GpuPass = context.gpu
        self.n, self.pool, self.inputs = context.n, pool, inputs
        self.doubted = doubted  # mask (n,) of samples found irregular in a previous run of this batch, or None
        self.failed: dict[int, str] = {}  # reasons by sample that can't be processed; the others are still computed
        self.native_ns = 0

    def begin_native(self) -> None:
        """Marks the end of planning: the time from here on counts as native time."""
        self.native_ns = time.monotonic_ns()


def stage_of(op: Operator) -> type[GpuStage]:
    """The stage class of an operator; imported late, as only pipelines with a GPU need it."""
    module, _, name = op.gpu_stage.partition(":")
    found: type[GpuStage] = getattr(import_module(module), name)
    return found


class GpuStage:
    """Runs one operator on the GPU. Created when a pipeline is built; `run` may be called by several threads."""

    def __init__(self, call: StageCall):
        self.call = call

    @classmethod
    def title(cls, op: Operator) -> str:
        """The name used by `Pipeline.explain`."""
        return "a stage of its own on the GPU"

    @classmethod
    def check_device(cls, op: Operator, session: Session) -> None:
        """Raises RuntimeError or ValueError if the GPU does not support it; called when the pipeline is built."""

    def run(self, batch: StageBatch) -> Batch:
        """Computes the output. Raises SampleErrors for samples that can't be processed."""
        raise NotImplementedError
