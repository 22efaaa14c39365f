# SPDX-License-Identifier: Apache-2.0
"""Ranges around stages for attached profilers: PyTorch's `record_function`, and NVTX for Nsight Systems."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from ..graph.passes import Stage

if TYPE_CHECKING:
    from .nvtx import Nvtx

_NOTHING = nullcontext()
_lock = threading.Lock()
_tool: list[Nvtx | None] = []  # the NVTX tool or None; empty until looked for

Watch = Callable[[str], AbstractContextManager[object]]


def watching() -> Watch | None:
    """Returns a function that makes a named range for the attached profilers; None if there are none."""
    torch = sys.modules.get("torch.autograd.profiler")
    is_profiling = torch is not None and getattr(torch, "_is_profiler_enabled", False)
    tool = _tool[0] if _tool else _find_tool()
    if tool is None:
        return torch.record_function if is_profiling else None  # type: ignore[union-attr]
    record = torch.record_function if is_profiling else None  # type: ignore[union-attr]
    return lambda name: _NvtxRange(tool, name, record)


def in_range(name: str) -> AbstractContextManager[object]:
    """A range in this thread; does nothing if no profiler is attached."""
    watch = watching()
    return _NOTHING if watch is None else watch(f"penstock: {name}")


def name_of(stage: Stage) -> str:
    """The range name of a stage: its operators."""
    return "penstock: " + " -> ".join(node.op.fn_name for node in stage.nodes)


def _find_tool() -> Nvtx | None:
    with _lock:
        if not _tool:
            _tool.append(_attached() if "NVTX_INJECTION64_PATH" in os.environ else None)
        return _tool[0]


def _attached() -> Nvtx | None:
    from . import nvtx  # slow to import

    return nvtx.attached()


class _NvtxRange:
    """A range in NVTX, and in PyTorch's profiler if that is active."""

    __slots__ = ("_name", "_record", "_tool")

    def __init__(self, tool: Nvtx, name: str, record: Callable[[str], Any] | None):
        self._tool, self._name = tool, name
        self._record = None if record is None else record(name)

    def __enter__(self) -> None:
        self._tool.push(self._name)
        if self._record is not None:
            self._record.__enter__()

    def __exit__(self, *exception: object) -> None:
        if self._record is not None:
            self._record.__exit__(*exception)
        self._tool.pop()
