# SPDX-License-Identifier: Apache-2.0
"""The process of a library that bench/operators.py measures: builds the pipeline of a case and times it."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import pickle
import sys
import time
from pathlib import Path
from typing import Any

import gpu_time
import numpy as np
from operator_cases import CASES, KINDS, Case, shuffled

ROOT = Path(__file__).parents[1]
WARM_UP, WARM_UP_FRESH = 16, 64  # batches before the measurement; for sizes that are never repeated
WARM_UP_SECONDS = {"cpu": 2.0, "gpu": 0.5}  # after the second batch


class Absent(Exception):
    """A library lacks the operator, or has none for this device."""


def times_of(c: Case, options: argparse.Namespace) -> int:
    """On the CPU, one application to photographs takes long enough; on the GPU, even several take little time compared
    to the pipeline's work per batch."""
    return options.times or ((1 if c.times <= 4 else c.times) if options.device == "cpu" else min(4 * c.times, 16))


class Library:
    def __init__(self, name: str, options: argparse.Namespace):
        CASES[:] = [dataclasses.replace(c, times=times_of(c, options)) for c in CASES]
        self.name, self.options, self.gpu = name, options, options.device == "gpu"
        if name == "DALI":
            from nvidia.dali import fn, ops, pipeline_def, types

            self.known = {"cpu": ops.cpu_ops() | ops.mixed_ops(), "gpu": ops.gpu_ops()}[options.device]
        else:
            sys.path.insert(0, str((ROOT if name == "penstock" else Path(options.against)) / "src"))
            from penstock import fn, pipeline_def, types
            from penstock.core.op import REGISTRY

            self.registry = REGISTRY
        self.fn, self.types, self.pipeline_def = fn, types, pipeline_def
        with open(options.photos, "rb") as f:
            photos = pickle.load(f)
        self.photos = [photos[i % len(photos)] for i in range(options.batch)]
        self.cache: dict[str, list[np.ndarray]] = {}
        self.pipe: Any = None
        self.copy_speed = 0.0
        self.synchronize = gpu_time.synchronize() if self.gpu else lambda: None

    def inputs(self, kind: str) -> list[np.ndarray]:
        if kind not in self.cache:
            if len(self.cache) > 6:
                self.cache.clear()
            self.cache[kind] = KINDS[kind][1](self.photos)
        return self.cache[kind]

    def check(self, c: Case) -> None:
        device = self.options.device
        if self.name != "DALI":
            cls = self.registry.get(c.name.removeprefix("experimental.")) or self.registry.get(c.name)
            if cls is None:
                raise Absent("not there")
            if device not in cls.devices:
                raise Absent(f"no {device.upper()} form")
        elif c.call is None:
            *modules, last = c.name.split(".")
            name = ".".join([*modules, "".join(w.capitalize() for w in last.split("_"))]).lower()
            if name not in {k.replace("__", ".").lower() for k in self.known}:
                raise Absent(f"no {device.upper()} form")

    def build(self, c: Case) -> None:
        """Makes the pipeline of a case and runs it until it is warm."""
        self.check(c)
        fn, types, feeds = self.fn, self.types, {}

        def fed(kind: str, device: str) -> Any:
            if c.fresh:
                layout = KINDS[kind][0]
                return fn.external_source(source=shuffled(self.inputs(kind)), device=device, layout=layout)
            feeds[f"input{len(feeds)}"] = kind
            layout = KINDS[kind][0]
            return fn.external_source(
                name=f"input{len(feeds) - 1}",
                repeat_last=True,
                no_copy=True,
                device=device,
                **({"layout": layout} if layout else {}),
            )

        def value(v: Any) -> Any:
            if isinstance(v, str) and v in KINDS:
                return fed(v, "cpu")
            return getattr(types, v.removeprefix("types.")) if isinstance(v, str) and v.startswith("types.") else v

        @self.pipeline_def(
            batch_size=self.options.batch,
            num_threads=self.options.threads,
            device_id=0 if self.gpu else None,
            seed=1,
            enable_conditionals=c.conditionals,
        )
        def define() -> Any:
            on = ["gpu" if self.gpu and i not in c.host else "cpu" for i in range(len(c.inputs))]
            inputs = [fed(kind, d) for kind, d in zip(c.inputs, on)]
            args = {k: value(v) for k, v in c.args.items()}
            if self.gpu and not inputs:
                args["device"] = "gpu"
            out: list[Any] = []
            for i in range(c.times):
                if c.call is not None:
                    made = c.call(fn, types, inputs, i)
                else:
                    function: Any = fn
                    for part in c.name.split("."):
                        function = getattr(function, part)
                    # `preserve` keeps DALI from merging the applications.
                    made = function(*inputs, preserve=True, **args)
                out += made if isinstance(made, (tuple, list)) else [made]
            return tuple(out)

        self.pipe = define()
        self.pipe.build()
        for name, kind in feeds.items():
            self.pipe.feed_input(name, self.inputs(kind))
        begin = 0.0
        for k in range(WARM_UP_FRESH if c.fresh else WARM_UP):
            self.pipe.run()
            if k == 1:  # kernels are compiled now
                begin = time.perf_counter()
            elif k > 1 and not c.fresh and time.perf_counter() > begin + WARM_UP_SECONDS[self.options.device]:
                break

    def time(self, c: Case, seconds: float) -> dict[str, float]:
        """Microseconds per application to a batch: wall time and processor time."""
        self.pipe.run()
        self.synchronize()
        n, cpu, begin = 0, time.process_time(), time.perf_counter()
        while n < 2 or time.perf_counter() < begin + seconds:
            self.pipe.run()
            n += 1
        self.synchronize()
        wall, cpu = time.perf_counter() - begin, time.process_time() - cpu
        _settle()
        reply = {"wall": wall / n / c.times * 1e6, "cpu": cpu / n / c.times * 1e6}
        return reply | self.gpu_time(c) if self.gpu and self.name == "penstock" else reply

    def gpu_time(self, c: Case) -> dict[str, float]:
        """GPU microseconds per application, and its rate of bytes read and written as a share of a plain copy's."""
        device = self.pipe._plan.session.device
        self.copy_speed = self.copy_speed or gpu_time.copy_speed(device)
        us = gpu_time.of_a_batch(self.pipe) / c.times
        kinds = [k for i, k in enumerate(c.inputs) if i not in c.host]
        read = sum(x.nbytes for kind in kinds for x in self.inputs(kind))
        written = gpu_time.bytes_of_outputs(self.pipe.run()) / c.times
        return {"gpu": us, "share": (read + written) / us / self.copy_speed if us else 0.0}


def _settle() -> None:
    """Waits until the batches made ahead are done, so that they don't disturb the other library's measurement."""
    used, limit = -1.0, time.perf_counter() + 5
    while (now := time.process_time()) - used > 1e-3 and time.perf_counter() < limit:
        used = now
        time.sleep(0.01)


def serve(options: argparse.Namespace) -> None:
    """Answers requests, each a line of JSON: [request, index of the case]."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # output of libraries must not mix with answers
    library = Library(options.worker, options)
    print(json.dumps({"ready": True}), file=answers, flush=True)
    for line in sys.stdin:
        what, number = json.loads(line)
        reply: dict[str, Any] = {}
        try:
            if what == "build":
                library.build(CASES[number])
            elif what == "time":
                reply = library.time(CASES[number], options.seconds)
            else:
                library.pipe = None
        except Absent as e:
            reply = {"absent": str(e)}
        except Exception as e:
            lines = [t for t in str(e).splitlines() if t.strip()] or [type(e).__name__]
            reply = {"failed": next((t for t in lines if "Error" in t and len(t) > 30), lines[0]).strip()[:200]}
            library.pipe = None
            print(f"{CASES[number].title}: {options.worker}: {e}", file=sys.stderr)
        print(json.dumps(reply), file=answers, flush=True)
    os._exit(0)
