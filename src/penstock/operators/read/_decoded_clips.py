# SPDX-License-Identifier: Apache-2.0
"""Video readers are compositions of two operators: one reads clips, one decodes their frames."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.op import REGISTRY


def decode_clips(
    clips: str, kwargs: dict[str, Any], call: Callable[..., Any], then: Callable[[Any], Any] = lambda frames: frames
) -> Any:
    """The outputs of a reader: decoded frames of the operator `clips`, processed by `then`, and its other outputs."""
    kwargs = dict(kwargs)
    on_gpu = kwargs.pop("device", None) == "gpu"
    decoding: dict[str, Any] = {k: kwargs[k] for k in ("fill_value", "image_type") if k in kwargs}
    kwargs.pop("fill_value", None)
    clip, order, *others = call(REGISTRY[clips], (), kwargs)
    if on_gpu:
        decoding["device"] = "mixed"
    frames = call(REGISTRY["decoders.video"], (clip,), {"frames": order, **decoding})
    outputs = [then(frames), *(x.gpu() if on_gpu else x for x in others)]
    return outputs if others else outputs[0]
