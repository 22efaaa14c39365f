# SPDX-License-Identifier: Apache-2.0
"""Mixed decoders: encoded images on the CPU become pixels on the GPU. Two engines share each batch: the GPU's JPEG
engine, and kernels that do all of the decoding. What one refuses goes to the next: CPU threads for entropy decoding
with kernels for the rest; the CPU alone."""

from __future__ import annotations

import queue
import threading
import time
from collections import deque

import numpy as np

from ..core import kernels
from ..core.batch import Batch, Spec
from ..core.op import Arguments
from ..gpu.batch import DeviceBatch, copy_samples
from ..gpu.driver import CudaError
from ..gpu.memory import Block
from ..gpu.nvjpeg import BGR, RGB, HardwareDecoder, Refused
from ..gpu.sharing import Sharing, spread
from ..gpu.stream import Event, Stream
from ..graph.node import Node
from .arguments import Resolver
from .context import Context, Timing, explain_failure
from .gpu import GpuPass, Session
from .jpeg_halves import decode_halves, fits
from .jpeg_scans import decode_scans

HARDWARE, KERNELS, HYBRID, CPU = "hardware engine", "GPU", "CPU and GPU", "CPU"
_FORMATS = {0: RGB, 1: BGR}  # by the number of types.DALIImageType


def decode(ctx: Context, pool: kernels.Pool, node: Node, resolver: Resolver) -> None:
    """Runs the mixed decoder `node` for one batch."""
    begin = time.monotonic_ns()
    gpu: GpuPass = ctx.gpu
    inputs = [ctx.values[d.source.number, d.index] for d in node.inputs]
    try:
        a = resolver.resolve(ctx.n, ctx.epoch, ctx.position, ctx.values)
        a.batches = [b if i in node.op.peeks else None for i, b in enumerate(inputs)]
        specs = [b.spec for b in inputs]
        node.op.plan(a, *specs)
        spec = node.op.outputs(a, *specs)
        assert isinstance(spec, Spec)
        out = gpu.allocate(spec)
        native = time.monotonic_ns()
        _share(ctx, pool, node, a, inputs, out)
    except Exception as e:
        raise explain_failure(ctx, node, e) from (e if "[internal" in str(e) else None)
    out.sources = inputs[0].sources
    ctx.values[node.number, 0] = out
    ctx.timings.append(Timing("gpu", [node.number], begin, time.monotonic_ns(), native))


def _share(ctx: Context, pool: kernels.Pool, node: Node, a: Arguments, inputs: list[Batch], out: DeviceBatch) -> None:
    gpu: GpuPass = ctx.gpu
    engines = engines_of(gpu.session)
    engines.collect()
    # Names of sources are made from paths when they are read: parts of the batch go without them.
    encoded = inputs[0].with_rows(inputs[0].spec, inputs[0].rows, inputs[0].owners)
    kernel, n = kernels.kernel("decode/decode"), ctx.n
    rows = gpu.session.rows.take(kernel, n)
    rows.fill(node.op.params(a, *[b.spec for b in inputs], out.spec))
    args = rows.array
    todo = job = None  # None: all
    if engines.hardware is not None and a.hw_decoder_load > 0 and (share := engines.share(encoded.spec)):
        hardware = _fits_hardware(a, args, out.spec)
        hardware[hardware] = spread(int(hardware.sum()), share)
        if hardware.any():
            mine, todo = np.flatnonzero(hardware), ~hardware
            job = engines.submit(gpu, encoded.take(mine), out.take(mine), int(args["output_type"][0]))
    try:
        _by_cpu(ctx, pool, node, args, encoded, out, todo, engines)
    finally:
        refused = job is not None and not job.wait(gpu)
    if refused:
        _by_cpu(ctx, pool, node, args, encoded, out, hardware, engines)
    gpu.session.rows.give(kernel, n, rows)


def engines_of(session: Session) -> Engines:
    """Those of the pipeline, made at the first batch."""
    with session.lock:
        if session.engines is None:
            session.engines = Engines(session)
        return session.engines


def _fits_hardware(a: Arguments, args: np.ndarray, spec: Spec) -> np.ndarray:
    """Which files the JPEG engine decodes as they are wanted: whole, upright, 8 bits, RGB or BGR."""
    info = a.info
    if spec.dtype != np.uint8 or int(args["output_type"][0]) not in _FORMATS:
        return np.zeros(len(args), bool)
    whole = (args["y"] == 0) & (args["x"] == 0) & (spec.shape[:, 0] == info["height"])
    whole &= (spec.shape[:, 1] == info["width"]) & (args["scale_denom"] == 1)
    return whole & (info["plain"] != 0) & (info["orientation"] <= 1) & (args["fast_idct"] == 0)


def _by_cpu(
    ctx: Context,
    pool: kernels.Pool,
    node: Node,
    args: np.ndarray,
    encoded: Batch,
    out: DeviceBatch,
    todo: np.ndarray | None,
    engines: Engines,
) -> None:
    """What the hardware does not take (None: anything): plain JPEG by the GPU, other JPEG in two halves, the rest by
    the CPU alone."""
    gpu: GpuPass = ctx.gpu
    fitting, doubted = fits(args, out.spec), gpu.doubted.get(node.number)
    if todo is None:
        todo = np.ones(ctx.n, bool)
        if doubted is None and fitting.all():  # as nearly always: nothing has to be picked
            undone = _by_kernels(ctx, pool, node, args, encoded, out, np.arange(ctx.n), engines)
            if undone is None:
                return
            todo, doubted = undone, undone
    else:
        todo = todo.copy()
    for engine in (KERNELS, HYBRID):
        alone = engine == KERNELS
        rows = np.flatnonzero(todo & fitting & ~doubted if alone and doubted is not None else todo & fitting)
        if not len(rows):
            continue
        part = encoded.take(rows)
        if alone:
            undone = _by_kernels(ctx, pool, node, args[rows], part, out.take(rows), rows, engines)
        else:
            undone, _ = decode_halves(gpu, pool, args[rows], part, out.take(rows))
            engines.sharing.decoded[HYBRID] += len(rows) - int(undone.sum())
        todo[rows if undone is None else rows[~undone]] = False
    rows = np.flatnonzero(todo)
    if len(rows):
        _whole(ctx, pool, node, args[rows], encoded.take(rows), out.take(rows), rows, engines)


def _by_kernels(
    ctx: Context,
    pool: kernels.Pool,
    node: Node,
    args: np.ndarray,
    part: Batch,
    out: DeviceBatch,
    rows: np.ndarray,
    engines: Engines,
) -> np.ndarray | None:
    """Lets the GPU decode a part of the batch, the samples `rows`; returns which of them it did not take (None: it took
    all)."""
    gpu: GpuPass = ctx.gpu
    undone, verdict = decode_scans(gpu, pool, args, part, out)
    if verdict is not None:
        gpu.verdicts.append((node.number, rows, ctx.n, verdict))
        sizes = part.spec.volumes()
        sizes = sizes if undone is None else sizes[~undone]
        engines.measured[KERNELS].append((verdict.begin, verdict.end, int(sizes.sum()), len(sizes)))
    return undone


def _whole(
    ctx: Context,
    pool: kernels.Pool,
    node: Node,
    args: np.ndarray,
    encoded: Batch,
    out: DeviceBatch,
    rows: np.ndarray,
    engines: Engines,
) -> None:
    """Decodes on the CPU and copies. Its verdict on a bad file holds."""
    gpu: GpuPass = ctx.gpu
    n = len(rows)
    staged = Batch.allocate(out.spec, None, gpu.pinned)
    outcome = kernels.Outcome(np.zeros(n, "i4"), n, 1)
    kernel = kernels.kernel("decode/decode")
    step = kernels.Step(kernel, np.ascontiguousarray(args), [(staged.rows, -1)], [(encoded.rows, -1)])
    pool.run([step], n, outcome)
    copy_samples(staged, out, gpu.stream.upload)
    engines.sharing.decoded[CPU] += n
    for i in np.flatnonzero(outcome.status):
        row = int(rows[i])
        ctx.status[row] = 1
        ctx.failed[row] = (node, outcome.reason(int(i)), ctx.source_of(node, row))


class _Job:
    """A batch's part for the JPEG engine."""

    def __init__(self, gpu: GpuPass, encoded: Batch, out: DeviceBatch, output_type: int):
        self.encoded, self.out, self.format = encoded, out, _FORMATS[output_type]
        self.nbytes = int(encoded.spec.volumes().sum())
        self.writable = gpu.stream.mark()  # who had the memory before is through
        self.done = threading.Event()
        self.ready: Event | None = None  # when the pixels are there; None: refused

    def wait(self, gpu: GpuPass) -> bool:
        """Makes the batch's stream wait for the pixels; False if the engine refused."""
        self.done.wait()
        if self.ready is None:
            return False
        gpu.stream.wait(self.ready)
        return True


class Engines:
    """The decoders of a pipeline; the JPEG engine has a thread of its own, which sleeps while there is nothing to
    do."""

    def __init__(self, session: Session):
        self.session = session
        self.sharing = Sharing(HARDWARE, KERNELS, (HYBRID, CPU))
        self.hardware: HardwareDecoder | None = None
        self.why_not = ""
        # Between two events, so many bytes of so many files were decoded.
        self.measured: dict[str, deque[tuple[Event, Event, int, int]]] = {HARDWARE: deque(), KERNELS: deque()}
        self._ends: dict[str, Event] = {}
        self._collecting = threading.Lock()
        try:
            self.hardware = HardwareDecoder(session.device)
        except (CudaError, Refused, OSError) as e:
            self.why_not = str(e)
            self.sharing.has_engine = False
            return
        self._stream = Stream(session.device)
        self._last: Event | None = None
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="penstock-jpeg-engine", daemon=True)
        self._thread.start()

    def submit(self, gpu: GpuPass, encoded: Batch, out: DeviceBatch, output_type: int) -> _Job:
        job = _Job(gpu, encoded, out, output_type)
        self._jobs.put(job)
        return job

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                with self.session.device:
                    self._decode(job)
            except BaseException as e:  # the batch takes another way
                self.why_not = str(e)
            job.done.set()
            job = None

    def _decode(self, job: _Job) -> None:
        assert self.hardware is not None
        stream = self._stream
        if self._last is not None:
            self._last.wait()  # nvJPEG hangs when a batch comes before the last one is through
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

    def share(self, files: Spec) -> float:
        """Which share of a batch the JPEG engine takes."""
        return self.sharing.share(float(files.shape.sum()))

    def collect(self) -> None:
        """Learns how fast both were with what they are through with. Called inside `with device:`."""
        if not self._collecting.acquire(blocking=False):
            return
        try:
            for engine, measured in self.measured.items():
                while measured and measured[0][1].done():
                    begin, end, nbytes, n = measured.popleft()
                    seconds, between, last = end.since(begin) / 1000, 0.0, self._ends.get(engine)
                    if last is not None:  # what was done on another stream meanwhile counts once
                        between = max(end.since(last) / 1000, 0.0)
                        seconds = min(seconds, between)
                    self.sharing.measured(engine, nbytes, seconds, n, between if engine == KERNELS else 0.0)
                    self._ends[engine] = end
                    self.session.timers.append(begin)
        finally:
            self._collecting.release()

    def close(self) -> None:
        """Ends the thread, then frees stream and decoder, in this order. Called inside `with device:`."""
        if self.hardware is None:
            return
        self._jobs.put(None)
        self._thread.join()
        self._stream.synchronize()
        self.hardware.close()
        self.hardware = None
