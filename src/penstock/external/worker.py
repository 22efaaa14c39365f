# SPDX-License-Identifier: Apache-2.0
"""A worker process: takes tasks, calls the source, writes samples into shared memory."""

from __future__ import annotations

import faulthandler
import gc
import os
import pickle
import random
import signal
import socket
import struct
import sys
import threading
import time
import traceback
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core import dtypes
from ..core.batch import Spec
from ..core.errors import DataError
from ..core.kernels import MAX_DIMS, TENSOR
from . import arena, failure, launch, samples
from .calling import Calling
from .task import MAX_MESSAGE, MAX_TEXT, Done, Ended, Failed, Ready, Task

_ORPHANED = 3  # exit code
_ROW = struct.Struct(f"=Q{MAX_DIMS}qii")  # same layout as kernels.TENSOR; faster to fill row by row
_ZEROS = (0,) * MAX_DIMS
_DTYPES = {np.dtype(t): int(dtypes.from_numpy(t)) for t in dtypes._NUMPY}


def main(setup: launch.Setup) -> None:
    """Runs until the main process closes the socket or is gone."""
    gc.freeze()  # inherited objects stay shared, and are not collected here
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is handled by the main process
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _watch_parent(setup)
    sock, arena_fd, trace_fd = setup.open()
    try:
        _work(setup, sock, arena_fd, trace_fd)
    except ConnectionError:  # the main process has closed the connection
        pass


def _work(setup: launch.Setup, sock: socket.socket, arena_fd: int, trace_fd: int) -> None:
    try:
        faulthandler.register(signal.SIGUSR1, file=trace_fd, all_threads=False)
        _seed(setup.seed, setup.index)
        worker = _Worker(setup, arena_fd)
    except BaseException as e:
        _send(sock, Ready(f"{type(e).__name__}: {e}\n{traceback.format_exc()[-MAX_TEXT:]}"))
        return
    _send(sock, Ready())
    while message := sock.recv(MAX_MESSAGE):
        _send(sock, worker.serve(Task(*pickle.loads(message))))


def _send(sock: socket.socket, reply: Any) -> None:
    sock.send(pickle.dumps(reply, 5))


def _watch_parent(setup: launch.Setup) -> None:
    """Starts a thread that ends this process when the main process is gone, whatever other threads are doing."""
    # SIGUSR1 must reach the thread that calls the source, as the main process requests its traceback.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    threading.Thread(target=_wait_for_end, args=(setup.parent,), name="penstock-parent", daemon=True).start()
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR1})
    if setup.dies_with_thread:
        launch.die_with_parent()


def _wait_for_end(pid: int) -> None:
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        os._exit(_ORPHANED)
    except (AttributeError, OSError):
        while os.path.exists(f"/proc/{pid}"):
            time.sleep(0.5)
        os._exit(_ORPHANED)
    import select

    poll = select.poll()
    poll.register(fd, select.POLLIN)
    poll.poll()
    os._exit(_ORPHANED)


def _seed(seed: int, index: int) -> None:
    """Seeds each worker differently, as forked workers would all draw the same random numbers."""
    value = (seed * 0x9E3779B1 + index * 0x85EBCA77 + 1) & 0xFFFFFFFF
    random.seed(value)
    np.random.seed(value)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(value)


class _Worker:
    def __init__(self, setup: launch.Setup, arena_fd: int):
        self.callings: list[Calling] = setup.load()
        self.memory = arena.WorkerMemory(arena_fd, setup.index, setup.spills_from)
        self.status = arena.Status(arena_fd, setup.n_workers).of(setup.index)

    def serve(self, task: Task) -> Done | Ended | Failed:
        row = task.first
        status, calling = self.status, self.callings[task.source]
        status[1], status[2] = row, time.monotonic_ns()
        status[0] = task.number
        begin = time.perf_counter_ns()
        writer = _Writer(self.memory, task, calling.number_types)
        bad: dict[int, str] = {}
        try:
            if task.n == 0:
                n = writer.write_batch(calling.outputs(calling.batch(task.iteration, task.epoch)), task.room)
            else:
                n = task.n
                for row in range(task.first, task.first + n):
                    status[1], status[2] = row, time.monotonic_ns()
                    writer.left = task.first + n - row
                    try:
                        writer.write_sample(row, calling, task)
                    except StopIteration:
                        raise
                    except Exception as e:
                        if not calling.leaves_out:
                            raise
                        bad[row] = failure.reason(e, MAX_TEXT // n)
            sizes = tuple((lo, hi) for lo, hi in writer.sizes) if len(bad) < n else ()
            ns = time.perf_counter_ns() - begin
            return Done(task.number, n, sizes, tuple(writer.spilled), ns, bad)
        except StopIteration:
            return Ended(task.number, row, tuple(writer.spilled), bad)
        except BaseException as e:
            return _failure(task.number, row, e)
        finally:
            status[0] = 0


class _Writer:
    """Writes the samples of one task to shared memory."""

    def __init__(self, memory: arena.WorkerMemory, task: Task, number_types: Sequence[np.dtype | None]):
        self.memory, self.task, self.number_types = memory, task, number_types
        self.region = memory.region(task.offset, task.capacity)
        self.at = [c.begin for c in task.columns]
        self.sizes = [[1 << 62, 0] for _ in task.columns]
        self.spilled: list[tuple[int, int]] = []
        self.left = task.n  # remaining samples, including this one
        self._block: Any = None  # the region for spilled samples
        self._block_at = self._block_end = self._block_offset = 0

    def write_sample(self, row: int, calling: Calling, task: Task) -> None:
        """Calls the source for a sample and writes it. Keeps no reference to it while the next one is made."""
        data = calling.sample(task.place(row), row, task.iteration, task.epoch)
        if calling.n_outputs is None:
            self.write(0, row, data)
            return
        for o, item in enumerate(calling.outputs(data)):
            self.write(o, row, item)

    def write(self, o: int, row: int, data: Any) -> None:
        array = samples.as_array(data, self.number_types[o])
        self._row(o, row, array.shape, array.dtype, self._place(o, array))

    def _row(self, o: int, row: int, shape: tuple[int, ...], dtype: np.dtype, offset: int) -> None:
        if len(shape) > MAX_DIMS:
            raise DataError(f"the source gave an array of {len(shape)} dimensions; at most {MAX_DIMS} are possible")
        at, ndim = self.task.columns[o].rows + row * _ROW.size, len(shape)
        _ROW.pack_into(self.region, at, offset, *shape, *_ZEROS[ndim:], ndim, _DTYPES[dtype])

    def _place(self, o: int, array: np.ndarray) -> int:
        """Copies an array to the next free place; returns its arena offset."""
        column, nbytes, sizes = self.task.columns[o], array.nbytes, self.sizes[o]
        sizes[0], sizes[1] = min(sizes[0], nbytes), max(sizes[1], nbytes)
        at = arena.align(self.at[o], column.step)
        if at + nbytes <= column.end:
            self.at[o] = at + nbytes
            self.memory.reserve(self.task.offset + column.begin, self.at[o] - column.begin)
            self._copy(self.region, at, array)
            return self.task.offset + at
        at = arena.align(self._block_at)
        if self._block is None or at + nbytes > self._block_end:
            size = max(nbytes * max(self.left, 1), 1 << 16)
            self._block_offset, self._block = self.memory.spill(size)
            self.spilled.append((self._block_offset, len(self._block)))
            at, self._block_end = 0, size
        self._block_at = at + nbytes
        self.memory.reserve(self._block_offset, self._block_at)
        self._copy(self._block, at, array)
        return self._block_offset + at

    def _copy(self, memory: Any, at: int, array: np.ndarray) -> None:
        if array.nbytes:
            np.copyto(np.ndarray(array.shape, array.dtype, memory, at), array)

    def write_batch(self, outputs: list[Any], room: int) -> int:
        """Writes all samples of a batch, output by output; returns their number."""
        sizes = []
        for o, data in enumerate(samples.samples_of(outputs, self.number_types)):
            if len(data) > room:
                raise DataError(f"the source gave a batch of {len(data)} samples; at most {room} are possible")
            sizes.append(len(data))
            if isinstance(data, np.ndarray):
                self._write_array(o, data)
                continue
            for row, array in enumerate(data):
                self.left = len(data) - row
                self._row(o, row, array.shape, array.dtype, self._place(o, array))
        if len(set(sizes)) > 1:
            raise DataError(f"the source gave batches of {sizes} samples; all outputs need the same number")
        return sizes[0]

    def _write_array(self, o: int, array: np.ndarray) -> None:
        """Writes a dense batch in one copy."""
        n = len(array)
        if not n:
            return
        self.left = 1
        begin = self._place(o, array)
        nbytes = array.nbytes // n
        self.sizes[o][:] = nbytes, nbytes
        rows = Spec.uniform(n, array.shape[1:], array.dtype).packed()
        rows["data"] = begin + nbytes * np.arange(n, dtype="u8")
        np.ndarray((n,), TENSOR, self.region, self.task.columns[o].rows)[...] = rows


def _failure(number: int, row: int, error: BaseException) -> Failed:
    # Frames of this package do not help the author of the source.
    inner = error.__traceback__
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    while inner is not None and inner.tb_frame.f_code.co_filename.startswith(package):
        inner = inner.tb_next
    text = "".join(traceback.format_exception(type(error), error, inner))[-MAX_TEXT:]
    pickled: bytes | None
    try:
        pickled = pickle.dumps(error, 5)
        if len(pickled) > MAX_TEXT or type(pickle.loads(pickled)) is not type(error):
            pickled = None
    except Exception:
        pickled = None
    return Failed(number, row, isinstance(error, DataError), str(error)[:MAX_TEXT], text, pickled)
