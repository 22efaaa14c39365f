# SPDX-License-Identifier: Apache-2.0
"""Stages that operators bring with them: what they do on the GPU when it is more than a kernel in a chain.

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
    inputs: tuple[tuple[int, int], ...]  # node number and output that each comes from
    data_arguments: tuple[str, ...]  # the arguments that are data, not constants
    arguments: Callable[[Any], Arguments]  # resolves the operator's arguments for the context of a batch


class StageBatch:
    """One batch, as a stage sees it."""

    __slots__ = ("arguments", "context", "doubted", "failed", "gpu", "inputs", "n", "native_ns", "pool")

    def __init__(
        self,
        n: int,
        gpu: GpuPass,
        pool: kernels.Pool,
        inputs: list[Batch],
        arguments: Callable[[], Arguments],
        doubted: np.ndarray | None,
        context: Any,
    ):
        self.n, self.gpu, self.pool, self.inputs = n, gpu, pool, inputs
        self.arguments = arguments  # resolves the operator's arguments for this batch
        self.doubted = doubted  # (n,) which samples the GPU found irregular when this batch was made before, or None
        self.context = context  # the executor's, for plans that are used again
        self.failed: dict[int, str] = {}  # samples that can't be processed, and why; others are made all the same
        self.native_ns = 0

    def begin_native(self) -> None:
        """Planning is over: what follows is counted as native time."""
        self.native_ns = time.monotonic_ns()


def stage_of(op: Operator) -> type[GpuStage]:
    """The class that an operator names; imported only now, as only pipelines with a GPU need it."""
    module, _, name = op.gpu_stage.partition(":")
    found: type[GpuStage] = getattr(import_module(module), name)
    return found


class GpuStage:
    """Runs one operator on the GPU. Made when a pipeline is built; batches may come from several threads."""

    def __init__(self, call: StageCall):
        self.call = call

    @classmethod
    def title(cls, op: Operator) -> str:
        """What `Pipeline.explain` calls it."""
        return "a stage of its own on the GPU"

    @classmethod
    def check_device(cls, op: Operator, session: Session) -> None:
        """Raises RuntimeError or ValueError, when the pipeline is built, if the GPU can't do it."""

    def run(self, batch: StageBatch) -> Batch:
        """The output. Raises SampleErrors for samples that can't be processed."""
        raise NotImplementedError
