# SPDX-License-Identifier: Apache-2.0
"""For the Triton Inference Server: marks the pipeline that its backend serialises."""

from __future__ import annotations

import inspect
import os
from types import ModuleType
from typing import Any

__all__ = ["autoserialize", "invoke_autoserialize"]


def autoserialize(dali_pipeline: Any) -> Any:
    """Marks a function decorated with `@pipeline_def` as the pipeline of a model.

    >>> from penstock import fn, pipeline_def
    >>> @autoserialize
    ... @pipeline_def(batch_size=2)
    ... def pipe():
    ...     return fn.external_source(name="x")
    """
    if not getattr(dali_pipeline, "_is_pipeline_def", False):
        raise TypeError("@autoserialize decorates a pipeline definition; put it above @pipeline_def")
    dali_pipeline._is_autoserialize = True
    return dali_pipeline


def invoke_autoserialize(head_module: ModuleType, filename: str | os.PathLike) -> None:
    """Serialises the one pipeline of a module that is marked with `autoserialize` to a file."""
    marked = {id(v): v for _, v in inspect.getmembers(head_module) if getattr(v, "_is_autoserialize", False)}
    if len(marked) != 1:
        raise RuntimeError(
            f"{head_module.__name__} has {len(marked)} pipelines marked with @autoserialize; exactly one is needed"
        )
    next(iter(marked.values()))().serialize(filename=filename)
