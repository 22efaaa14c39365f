# SPDX-License-Identifier: Apache-2.0
"""Error texts about a worker that died or hangs, or whose source raised."""

from __future__ import annotations

import os
import pickle
import signal
from typing import TYPE_CHECKING

from ..core.errors import DataError, WorkerError

if TYPE_CHECKING:
    from .task import Failed, Task

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


class RemoteTraceback(Exception):
    """The traceback of an exception raised in a worker, as the cause of the same exception here."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


def doing(task: Task | None, name: str, row: int | None = None) -> str:
    """What a worker was doing."""
    if task is None:
        return "while it waited for work"
    if task.n == 0:
        return f"while it made the batch of iteration {task.iteration}, epoch {task.epoch}, by {name}"
    row = task.first if row is None else row
    if task.indices:
        return f"while it made sample {task.place(row)} of {name}"
    return (
        f"while it made sample {row} of iteration {task.iteration}, epoch {task.epoch} (idx_in_epoch "
        f"{task.in_epoch + row}), by {name}"
    )


def how_it_ended(code: int | None) -> str:
    if code is None:
        return "closed its connection"
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    hint = {
        "SIGKILL": " (by `kill -9`, or by the kernel because memory is short: see dmesg)",
        "SIGSEGV": " (a crash in native code)",
        "SIGBUS": " (no memory left for shared pages, or a crash in native code)",
    }.get(name, "")
    return f"was killed by {name}{hint}"


def reason(error: Exception, longest: int = 1000) -> str:
    """The reason why a sample could not be made, with the line of the source that failed."""
    text = str(error) if isinstance(error, DataError) else f"{type(error).__name__}: {error}{_line_of(error)}"
    return text if len(text) <= longest else f"{text[: max(longest, 40) - 3]}..."


def _line_of(error: Exception) -> str:
    """The first line outside of this package."""
    frame = error.__traceback__
    while frame is not None and frame.tb_frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.tb_next
    if frame is None:
        return ""
    code = frame.tb_frame.f_code
    return f" ({os.path.basename(code.co_filename)}, line {frame.tb_lineno}, in {code.co_name})"


def as_exception(failed: Failed, worker: str, task: Task, name: str) -> Exception:
    """The exception to raise if a source raised: its own exception, with the worker's traceback as the cause."""
    where = f"{worker} {doing(task, name, failed.row)}"
    if failed.is_data:
        kind = DataError if failed.exception is None else type(pickle.loads(failed.exception))
        return kind(f"{failed.text}\nfrom {where.replace(' while it made', ', which made')}")
    cause = RemoteTraceback(f"In {where}:\n{failed.traceback}")
    error: BaseException | None = None
    if failed.exception is not None:
        try:
            error = pickle.loads(failed.exception)
        except Exception:  # its class is only defined in the worker
            error = None
    if not isinstance(error, Exception):
        error = WorkerError(f"{failed.traceback.strip().splitlines()[-1]}\nIn {where}")
    error.__cause__ = cause
    return error
