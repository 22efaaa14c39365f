# SPDX-License-Identifier: Apache-2.0
"""Decodes a long video from memory in sequences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.op import REGISTRY
from .fed_video import FedVideo


class Video(FedVideo):
    """Decodes a video from memory in sequences, for videos that are too long to be decoded at once.

    `Pipeline.feed_input(name, [bytes])` passes an encoded video (uint8, of any kind that `decoders.video` supports),
    and each run returns the next batch of its sequences: frames (FHWC, uint8, RGB). The last batch of a video may have
    fewer sequences, and its last sequence fewer frames. When a video ends, the next one continues; if there is none, a
    run raises an error, or waits with `blocking`. Several videos may be fed in advance.

    Sequences are decoded in parallel. With device="mixed" they are decoded as in `decoders.video`.

    >>> import numpy as np
    >>> from penstock import fn, pipeline_def
    >>> @pipeline_def(batch_size=2, num_threads=2)
    ... def pipe():
    ...     return fn.experimental.inputs.video(name="video", sequence_length=5, last_sequence_policy="pad")
    >>> p = pipe()
    >>> p.feed_input("video", [np.fromfile("examples/clips/clock.mp4", np.uint8)])
    >>> p.run()[0].shape(), p.run()[0].shape()
    ([(5, 48, 64, 3), (5, 48, 64, 3)], [(5, 48, 64, 3)])
    """

    module = "experimental.inputs"
    devices = ("cpu", "mixed")

    def n_outputs(self) -> int:
        return 1

    @classmethod
    def expand(cls, inputs: tuple, kwargs: dict[str, Any], call: Callable[..., Any]) -> Any:
        device = kwargs.get("device", "cpu")
        kwargs = {k: v for k, v in kwargs.items() if k != "device"}
        video, frames = call(REGISTRY["_video.fed_video"], (), kwargs)
        return call(REGISTRY["decoders.video"], (video,), {"frames": frames, "device": device})
