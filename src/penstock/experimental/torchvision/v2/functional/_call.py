# SPDX-License-Identifier: Apache-2.0
"""Calls of single transforms. Their graphs are cached for further calls with the same arguments."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from functools import cache
from typing import Any, Literal

import numpy as np
import torch

from .....core import kernels
from .....pipeline import DataNode
from .. import _interchange
from .._graph import Graph
from .._picture import Picture
from ..operator import Operator

_KEPT = 64
_graphs: OrderedDict[tuple, Graph] = OrderedDict()
_lock = threading.Lock()


def device_of(device: Any) -> Literal["cpu", "gpu"]:
    """ "cpu" or "gpu" for a name or a `torch.device`."""
    name = getattr(device, "type", getattr(device, "device_type", device))
    if name == "cpu":
        return "cpu"
    if name in ("gpu", "cuda"):
        return "gpu"
    raise ValueError(f"device takes 'cpu', 'gpu' or a torch.device, got {device!r}")


def call(op: Operator, inpt: Any, columns: Mapping[str, np.ndarray] | None = None) -> Any:
    """Applies a transform. `columns`: further inputs, as data."""
    taken = _interchange.take(inpt)
    key = type(op), taken.kind, tuple(op.__dict__.items())
    with _lock:
        graph = _graphs.get(key)
        if graph is None:
            graph = _graphs[key] = _made(op, taken.kind, tuple(columns or ()))
            if len(_graphs) > _KEPT:
                _graphs.popitem(last=False)
        else:
            _graphs.move_to_end(key)
    return graph.run(taken, columns)


def _made(op: Operator, kind: _interchange.Kind, columns: tuple[str, ...]) -> Graph:
    def apply(picture: Picture, given: dict[str, DataNode]) -> Picture:
        picture = picture.on(op.device)
        return op.add(picture, **given) if columns else op._invoke(picture)  # type: ignore[attr-defined]

    threads = torch.get_num_threads()
    return Graph(apply, kind, kind.form, {"batch_size": 1, "num_threads": threads}, columns, _pool(threads))


@cache
def _pool(num_threads: int) -> kernels.Pool:
    return kernels.Pool(num_threads)
