# SPDX-License-Identifier: Apache-2.0
"""A worker process, managed by the main process."""

from __future__ import annotations

import itertools
import os
import signal
import socket
import time
from typing import Any

from . import launch
from .job import Job
from .task import Task

EXIT_SECONDS = 1.0
_TRACE_SECONDS = 0.3


class WorkerProcess:
    """One process, its socket, and its unanswered tasks, oldest first."""

    def __init__(self, index: int):
        self.index = index
        self.process: launch.Process | None = None
        self.sock: socket.socket | None = None
        self.trace_fd = os.memfd_create("penstock-traceback", os.MFD_CLOEXEC)
        self.waiting: dict[int, tuple[Job, Task, float]] = {}  # by number, with their estimated times
        self.load_ns = 0.0
        self.ready = False
        self.warned = 0.0  # duration of one call at which the next warning is due
        self.spilled_to = 0  # end of the part of its arena zone that batches may still use

    @property
    def alive(self) -> bool:
        return self.sock is not None

    @property
    def name(self) -> str:
        return f"worker process {self.index} (pid {self.process.pid if self.process else '-'})"

    def fileno(self) -> int:
        assert self.sock is not None
        return self.sock.fileno()

    def start(self, method: str, n_workers: int, arena_fd: int, sources: Any) -> int:
        """Starts the process; returns the descriptor to poll for its messages."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        launch.SOCKETS.add(ours)
        try:
            setup = launch.Setup(self.index, n_workers, theirs, arena_fd, self.trace_fd, sources)
            setup.spills_from = self.spilled_to  # after what its predecessor has left there
            self.process = launch.Process(method, setup)
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        self.sock, self.ready, self.waiting, self.load_ns, self.warned = ours, False, {}, 0.0, 0.0
        return ours.fileno()

    def stack(self) -> str:
        """Its current stack, printed by the worker itself."""
        assert self.process is not None
        before = os.fstat(self.trace_fd).st_size
        try:
            os.kill(self.process.pid, signal.SIGUSR1)
        except ProcessLookupError:
            return ""
        size, end = before, time.monotonic() + _TRACE_SECONDS
        while time.monotonic() < end:
            time.sleep(0.02)
            size, last = os.fstat(self.trace_fd).st_size, size
            if size == last > before:
                break
        text = os.pread(self.trace_fd, 1 << 16, before).decode("utf-8", "replace")
        own = os.path.dirname(os.path.abspath(__file__))
        frames = itertools.takewhile(lambda line: own not in line, text.splitlines())
        lines = [line for line in frames if line.startswith("  File")][:8]
        return "\nIt is at, innermost first:\n" + "\n".join(lines) if lines else ""

    def hang_up(self) -> None:
        """Closes the connection; a worker that waits for work then ends."""
        if self.sock is not None:
            self.sock.close()
            self.sock = None

    def end(self, until: float | None) -> None:
        """Waits until a time for it to end, then kills it; None if it is another process's child."""
        if until is not None and self.process is not None:
            self.process.end(until)
        if self.trace_fd >= 0:
            os.close(self.trace_fd)
            self.trace_fd = -1
