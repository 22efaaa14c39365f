# SPDX-License-Identifier: Apache-2.0
"""Mixed decoders: encoded images in host memory, pixels on the GPU, decoded completely by kernels. If the user allows
it (`hw_decoder_load`), the GPU's JPEG engine decodes a share of each batch. Fallbacks, in this order: entropy decoding
by CPU threads with kernels for the rest; the CPU alone."""

from __future__ import annotations

import queue
import threading
import weakref
from collections import deque

import numpy as np

from ....core import kernels
from ....core.batch import Batch
from ....core.clocks import clocks
from ....core.dtypes import to_numpy
from ....core.idle_pool import IdlePool
from ....core.op import Operator
from ....gpu.batch import DeviceBatch
from ....gpu.copies import copy_samples
from ....gpu.deferred_errors import Memory
from ....gpu.driver import CudaError, Device
from ....gpu.memory import Block
from ....gpu.nvjpeg import BGR, RGB, HardwareDecoder, Refused
from ....gpu.session import GpuPass, Session
from ....gpu.sharing import Sharing, spread
from ....gpu.stage import GpuStage, StageBatch, StageCall
from ....gpu.stream import Event, Stream
from .jpeg_halves import decode_halves
from .jpeg_scans import Scans, decode_scans
from .pictures import Pictures, Planner

HARDWARE, KERNELS, HYBRID, CPU = "hardware engine", "GPU", "CPU and GPU", "CPU"
_ENGINES = "decoders"  # key in the session
_FORMATS = {0: RGB, 1: BGR}  # by value of types.DALIImageType
_AT_ONCE = 4  # measurements to collect before they are evaluated
_KEPT_SIZES, _KEPT_EACH = 32, 4  # `Scans`: limits on different batch sizes, and on objects of each size


class Decoding(GpuStage):
    """Runs a mixed decoder."""

    @classmethod
    def title(cls, op: Operator) -> str:
        return "decoding by CPU and GPU" if op.mixed_on_cpu() else "decoding by CPU, GPU and its JPEG engine"

    def __init__(self, call: StageCall):
        super().__init__(call)
        self._planner = Planner(call)
        self._scans: IdlePool[int, Scans] = IdlePool(_KEPT_EACH, _KEPT_SIZES)  # by number of pictures
        values = call.op.values
        self._format: int | None = None  # output format of the JPEG engine; None: not used
        if not call.op.mixed_on_cpu() and to_numpy(values["dtype"]) == np.uint8:
            self._format = _FORMATS.get(int(values["output_type"]))

    def run(self, batch: StageBatch) -> DeviceBatch:
        encoded = batch.inputs[0]
        plan = self._planner.plan(batch)
        pictures: Pictures = plan.made
        out = pictures.allocate(batch.gpu, encoded, self._format is not None)
        batch.begin_native()
        self._share(batch, pictures, encoded, out)
        self._planner.plans.done(plan)
        return out

    def _share(self, batch: StageBatch, pictures: Pictures, files: Batch, out: DeviceBatch) -> None:
        gpu, pool = batch.gpu, batch.pool
        engines = engines_of(gpu.session)
        engines.collect()
        doubted, share, todo = batch.doubted, 0.0, np.ones(batch.n, bool)
        on_cpu = gpu.decodes_on_cpu and self.call.op.mixed_on_cpu()
        if self._format is not None and engines.open_hardware():
            share = engines.sharing.share(pictures.file_bytes)
        # The common case: one engine decodes the whole batch.
        if share >= 1 and pictures.all_fit_hardware:
            assert self._format is not None
            if engines.submit(gpu, files, out, self._format).wait(gpu):
                return
            share = 0.0
        if not (share or on_cpu) and doubted is None and pictures.all_fit_kernels:
            undone = self._all_by_kernels(gpu, pool, pictures, files, out, engines)
            if undone is None:
                return
            doubted = todo = undone
        # Without source names: selecting them would create all names from paths.
        encoded = files.with_rows(files.spec, files.rows, files.owners)
        part = _Part(batch, self.call.number, pictures, encoded, out, engines, doubted)
        if on_cpu:
            return part.by_cpu(np.arange(batch.n), pictures.args, encoded, out)
        hardware = job = None
        if share and pictures.any_fits_hardware:
            assert self._format is not None
            hardware = pictures.fit_hardware()
            hardware[hardware] = spread(int(hardware.sum()), share)
            if hardware.any():
                mine = np.flatnonzero(hardware)
                job = engines.submit(gpu, encoded.take(mine), out.take(mine), self._format)
        try:
            part.decode(todo if job is None or hardware is None else ~hardware)
        finally:
            refused = job is not None and not job.wait(gpu)
        if refused and hardware is not None:
            part.decode(hardware)

    def _all_by_kernels(
        self, gpu: GpuPass, pool: kernels.Pool, pictures: Pictures, files: Batch, out: DeviceBatch, engines: Engines
    ) -> np.ndarray | None:
        """Returns which pictures (n,) the GPU refused (None: no picture)."""
        scans = self._scans.take(pictures.n) or Scans(pictures.n)
        memory = Memory.of(gpu.session, self.call.number)
        undone, deferred = scans.decode(gpu, pool, pictures.at_args, files.rows_address, out, memory)
        if deferred is not None:
            gpu.deferred_errors.append((self.call.number, None, pictures.n, deferred))
            nbytes, taken = pictures.file_bytes, pictures.n
            if undone is not None:
                nbytes, taken = int(files.spec.volumes()[~undone].sum()), taken - int(undone.sum())
            engines.measured[KERNELS].append((deferred.begin, deferred.end, nbytes, taken))
        self._scans.give(pictures.n, scans)
        return undone


def engines_of(session: Session) -> Engines:
    """The engines of the pipeline, created at the first batch."""
    return session.keep(_ENGINES, Engines, lambda: Engines(session))


class _Part:
    """Decodes some pictures of a batch."""

    def __init__(
        self,
        batch: StageBatch,
        number: int,
        pictures: Pictures,
        encoded: Batch,
        out: DeviceBatch,
        engines: Engines,
        doubted: np.ndarray | None,
    ):
        """`doubted` (n,): pictures that the GPU refused, or found irregular."""
        self.batch, self.number, self.args = batch, number, pictures.args
        self.gpu, self.pool = batch.gpu, batch.pool
        self.encoded, self.out, self.engines = encoded, out, engines
        self._fitting = pictures.fit_kernels()
        self._for_kernels = self._fitting if doubted is None else self._fitting & ~doubted

    def decode(self, todo: np.ndarray) -> None:
        """Decodes the pictures `todo` (n,) without the JPEG engine: plain JPEG by the GPU, other JPEG in two halves,
        the rest by the CPU alone."""
        todo = todo.copy()
        for fitting, way in ((self._for_kernels, self._by_kernels), (self._fitting, self._by_halves)):
            rows = np.flatnonzero(todo & fitting)
            if len(rows):
                undone = way(rows, self.args[rows], self.encoded.take(rows), self.out.take(rows))
                todo[rows if undone is None else rows[~undone]] = False
        rows = np.flatnonzero(todo)
        if len(rows):
            self.by_cpu(rows, self.args[rows], self.encoded.take(rows), self.out.take(rows))

    def _by_kernels(self, rows: np.ndarray, args: np.ndarray, part: Batch, out: DeviceBatch) -> np.ndarray | None:
        """Decodes on the GPU. Returns which pictures it refused (None: no picture)."""
        undone, deferred = decode_scans(self.gpu, self.pool, args, part, out)
        if deferred is not None:
            self.gpu.deferred_errors.append((self.number, rows, self.batch.n, deferred))
            sizes = part.spec.volumes()
            sizes = sizes if undone is None else sizes[~undone]
            self.engines.measured[KERNELS].append((deferred.begin, deferred.end, int(sizes.sum()), len(sizes)))
        return undone

    def _by_halves(self, rows: np.ndarray, args: np.ndarray, part: Batch, out: DeviceBatch) -> np.ndarray:
        undone, _ = decode_halves(self.gpu, self.pool, args, part, out)
        self.engines.sharing.decoded[HYBRID] += len(rows) - int(undone.sum())
        return undone

    def by_cpu(self, rows: np.ndarray, args: np.ndarray, part: Batch, out: DeviceBatch) -> None:
        """Decodes on the CPU and copies to the GPU. The CPU's errors for bad files are final."""
        gpu, n = self.gpu, len(rows)
        staged = Batch.allocate(out.spec, None, gpu.pinned)
        outcome = kernels.Outcome(np.zeros(n, "i4"), n, 1)
        kernel = kernels.kernel("decode/decode")
        step = kernels.Step(kernel, np.ascontiguousarray(args), [(staged.rows, -1)], [(part.rows, -1)])
        self.pool.run([step], n, outcome)
        copy_samples(staged, out, gpu.stream.upload)
        self.engines.sharing.decoded[CPU] += n
        for i in np.flatnonzero(outcome.status):
            self.batch.failed[int(rows[i])] = outcome.reason(int(i))


class _Job:
    """A batch's part for the JPEG engine."""

    def __init__(self, gpu: GpuPass, encoded: Batch, out: DeviceBatch, format: int):
        self.encoded, self.out, self.format = encoded, out, format
        self.nbytes = int(encoded.spec.volumes().sum())
        self.writable = gpu.stream.mark()  # previous use of the memory is complete
        self.done = threading.Event()
        self.ready: Event | None = None  # after decoding; None: refused

    def wait(self, gpu: GpuPass) -> bool:
        """Makes the batch's stream wait for the pixels; False if the engine refused."""
        self.done.wait()
        if self.ready is None:
            return False
        gpu.stream.wait(self.ready)
        return True


class Engines:
    """The decoders of a pipeline. The JPEG engine is opened at its first use and has its own thread, which sleeps while
    there are no jobs."""

    def __init__(self, session: Session):
        self.session: Session = weakref.proxy(session)  # the owner; a proxy avoids a cycle
        self.sharing = Sharing(HARDWARE, KERNELS, (HYBRID, CPU))
        self.hardware: HardwareDecoder | None = None
        self.why_not = ""
        # By engine: events before and after decoding, bytes, number of files.
        self.measured: dict[str, deque[tuple[Event, Event, int, int]]] = {HARDWARE: deque(), KERNELS: deque()}
        self._ends: dict[str, Event] = {}
        self._collecting = threading.Lock()
        self._enough = 1  # measurements to collect before evaluation, which is cheaper for several at once
        self._was_opened = False
        self._last: Event | None = None
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()

    def open_hardware(self) -> bool:
        """Whether there is a JPEG engine. Called inside `with device:`."""
        if not self._was_opened:
            with self.session.lock:
                if not self._was_opened:
                    self._open_hardware()
                    self._was_opened = True
        return self.hardware is not None

    def _open_hardware(self) -> None:
        device = self.session.device
        try:
            hardware = HardwareDecoder(device)
        except (CudaError, Refused, OSError) as e:
            self.why_not = str(e)
            return
        self._stream = Stream(device)
        # While idle, the thread has no strong reference to the engines, so that an unused pipeline can be freed.
        arguments = weakref.ref(self), self._jobs, device
        thread = threading.Thread(target=_work, args=arguments, name="penstock-jpeg-engine", daemon=True)
        self._end = weakref.finalize(self, _end, self._jobs, thread, self._stream, hardware)
        self._end.atexit = False
        thread.start()
        self.hardware = hardware
        self.sharing.has_engine = True

    def submit(self, gpu: GpuPass, encoded: Batch, out: DeviceBatch, format: int) -> _Job:
        job = _Job(gpu, encoded, out, format)
        self._jobs.put(job)
        return job

    def decode(self, job: _Job) -> None:
        assert self.hardware is not None
        stream = self._stream
        if self._last is not None:
            self._last.wait()  # nvJPEG hangs if a batch starts before the previous one is complete
        stream.wait(job.writable)
        begin = self.session.timer(stream)
        out, encoded = job.out, job.encoded
        pitches = out.spec.shape[:, 1] * out.spec.shape[:, 2]
        sizes = encoded.spec.volumes()
        self.hardware.decode(encoded.rows["data"], sizes, out.rows["data"], pitches, job.format, stream)
        stream.asked()
        end = self._last = self.session.timer(stream)
        self.measured[HARDWARE].append((begin, end, job.nbytes, len(sizes)))
        for owner in out.owners:
            if isinstance(owner, Block):
                owner.used_on(stream)
        job.ready = end

    def collect(self) -> None:
        """Evaluates completed measurements of both engines' speed. Called inside `with device:`."""
        if sum(map(len, self.measured.values())) < self._enough or not self._collecting.acquire(blocking=False):
            return
        try:
            for engine, measured in self.measured.items():
                while measured and measured[0][1].done():
                    begin, end, nbytes, n = measured.popleft()
                    seconds, between, last = end.since(begin) / 1000, 0.0, self._ends.get(engine)
                    if last is not None:  # overlapping work on several streams counts once
                        between = max(end.since(last) / 1000, 0.0)
                        seconds = min(seconds, between)
                    self.sharing.measured(engine, nbytes, seconds, n, between if engine == KERNELS else 0.0)
                    self._ends[engine] = end
            self._enough = _AT_ONCE if self.sharing.knows_both else 1
        finally:
            self._collecting.release()

    def decoded(self) -> dict[str, int]:
        return dict(self.sharing.decoded)

    def close(self) -> None:
        """Ends the thread, then frees stream and decoder, in this order."""
        if self.hardware is not None:
            self._end()
            self.hardware = None


def _work(reference: weakref.ref[Engines], jobs: queue.SimpleQueue[_Job | None], device: Device) -> None:
    while (job := jobs.get()) is not None:
        begin, engines = clocks(), reference()
        assert engines is not None  # kept alive by the batch that waits for the job
        try:
            with device:
                engines.decode(job)
        except BaseException as e:  # the batch uses a fallback
            engines.why_not = str(e)
        engines.session.worked(begin)
        job.done.set()
        job = engines = None  # possibly the last references


def _end(
    jobs: queue.SimpleQueue[_Job | None], thread: threading.Thread, stream: Stream, hardware: HardwareDecoder
) -> None:
    jobs.put(None)
    if thread is not threading.current_thread():
        thread.join()
    try:
        with stream.device:
            stream.synchronize()
            hardware.close()
    except CudaError:  # the GPU is lost, which was reported by the pipeline's run
        pass
