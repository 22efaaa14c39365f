# SPDX-License-Identifier: Apache-2.0
"""Transforms as one graph of penstock operators, which is run synchronously for its inputs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from ....core import kernels
from ....core.batch import Batch
from ....exec.direct import Direct
from ....exec.plan import Plan
from ....pipeline import DataNode, Pipeline, runner
from . import _interchange
from ._given import given
from ._interchange import Kind, Taken
from ._picture import Picture

INPUT = "input_data"
Apply = Callable[[Picture, dict[str, DataNode]], Picture]


class Graph:
    """A graph for images of one kind.

    `apply` adds the transforms; `form` is the kind of the result, "image" or "tensor"; `columns` names further inputs,
    with one value or vector per image; `pool` has the threads (None: a new pool). Without a `seed` in the pipeline's
    `arguments`, random numbers are derived from PyTorch's generator in each call.
    """

    def __init__(
        self,
        apply: Apply,
        kind: Kind,
        form: str,
        arguments: dict[str, Any],
        columns: tuple[str, ...] = (),
        pool: kernels.Pool | None = None,
    ):
        self.form, self.arguments = form, dict(arguments)
        own_seed = self.arguments.get("seed")
        self.is_seeded = own_seed is not None and own_seed >= 0
        if self.arguments.get("device_id") is None:
            self.arguments["device_id"] = _gpu(kind)
        if not self.is_seeded:
            self.arguments["seed"] = 0
        self.pipe = Pipeline(**self.arguments)
        gpu = kind.device >= 0
        with self.pipe:
            data = given(INPUT, "gpu" if gpu else "cpu")
            more = {name: given(name) for name in columns}
            wanted = "HWC" if form == "image" else "CHW" if kind.form == "image" else kind.layout
            picture = apply(Picture(data, kind.layout, kind.channels, kind.dtype, kind.form, wanted), more)
            picture = picture.as_layout(wanted)
            picture = picture.on("cpu") if form == "image" else picture
            self.pipe.set_outputs(picture.data)
        self.layout = wanted
        plan = Plan(self.pipe.definition.nodes, [picture.data], [], self.pipe.seed)
        # An operator with its own seed has its own sequence of numbers, which continues from call to call.
        self.is_seeded |= any(node.op.values.get("seed", -1) >= 0 for node in plan.drawing)
        session = runner.open_session(self.pipe._settings, "") if plan.uses_gpu else None
        self._direct = Direct(plan, pool or kernels.Pool(runner.native_threads(self.pipe._settings, plan)), session)
        self._position, self._lock = 0, threading.Lock()

    def _place(self, n: int) -> tuple[int, int]:
        """Epoch and first position for random numbers."""
        if not self._direct.draws:
            return 0, 0
        if not self.is_seeded:
            drawn = int(torch.empty((), dtype=torch.int64).random_())
            return drawn & 0xFFFFFFFF, drawn >> 32 << 20
        with self._lock:
            position = self._position
            self._position += n
        worker = torch.utils.data.get_worker_info()
        return 0 if worker is None else worker.id + 1, position

    def run(self, taken: Taken, columns: Mapping[str, np.ndarray] | None = None) -> Any:
        """Transforms images."""
        batch, lead = taken.batch, taken.lead
        is_empty = not len(batch)
        if is_empty:  # a black image determines the output's shape
            batch = Batch.from_array(np.zeros((1, *batch.array().shape[1:]), taken.kind.dtype), taken.kind.layout)
        inputs = {INPUT: batch}
        for name, column in (columns or {}).items():
            inputs[name] = Batch.from_array(np.broadcast_to(column, (len(batch), *column.shape)))
        (made,) = self._direct.run(inputs, *self._place(len(batch)))
        if is_empty:
            return self._nothing(made, lead)
        return _interchange.give(made, self.layout, self.form, lead)

    def _nothing(self, made: Batch, lead: tuple[int, ...] | None) -> Any:
        if self.form == "image":
            return []
        picture = _interchange.give(made, self.layout, self.form, None)
        return picture.new_empty((*(lead or (0,)), *picture.shape))


def _gpu(kind: Kind) -> int:
    """The GPU of the pictures, or PyTorch's current one."""
    if kind.device >= 0:
        return kind.device
    return torch.cuda.current_device() if torch.cuda.is_initialized() else 0
