# SPDX-License-Identifier: Apache-2.0
"""Resampling: tiles in shared memory for images; pixel by pixel for volumes and kinds without unit pixels."""

from __future__ import annotations

import numpy as np

from penstock.core.traced import Traced
from penstock.core.tracing import IMMEDIATE
from penstock.gpu.launch import Phase, Task, grid_of, plain_spec

_POOL_BYTES = 4 * 10752  # kPoolWords of kernels/resample/resample.cu
_ROWS, _COLUMNS = 32, 256  # the largest tile
_MOST_TAPS = 768  # more do not fit in shared memory


def plan(task: Task) -> list[Phase]:
    if task.call.args is not None and task.call.args["rule"][0]:
        raise ValueError('rule="pillow" and rule="torch" are there on the CPU only; use device="cpu" or rule="dali"')
    kind, last = task.kind, task.last_kind
    sizes = len(task.outs) > 1
    at_input = len(task.outs)
    out, in_ = plain_spec(task.last), plain_spec(task.ins[0])  # only used for decisions about speed
    extents = out.stored if not last.unit else np.delete(out.stored, last.axis, axis=1)
    if kind.n == last.n == 2 and kind.unit and last.unit and _has_few_taps(task):
        height, width = extents[:, 0], extents[:, 1]
        across = -(-width // _COLUMNS)
        widest = int((-(-width // np.maximum(across, 1))).max(initial=1))
        threads = min(_COLUMNS, max(128, -(-widest // 32) * 32))
        # Strong shrinking makes narrower tiles.
        shrink = np.maximum(1, in_.stored.max(axis=1) // np.maximum(1, 4 * extents.max(axis=1)))
        blocks = -(-height // _ROWS) * across * shrink
        body = f"resample_tiles<To0, From0, Chain, {at_input}, {'true' if sizes else 'false'}>(l);"
        return [Phase(body, grid_of(blocks, task.n), (threads, 1, 1), _POOL_BYTES, resident=4)]
    blocks = -(-extents.prod(axis=1) // 256)
    body = f"resample_places<To0, From0, Chain, {at_input}, {'true' if sizes else 'false'}>(l);"
    return [Phase(body, grid_of(blocks, task.n))]


def _has_few_taps(task: Task) -> bool:
    """Whether tables of taps fit into shared memory."""
    args = task.call.args
    assert args is not None
    native = args.tracer if isinstance(args, Traced) else IMMEDIATE
    return bool(native.call("few_taps", args, len(args), _MOST_TAPS))
