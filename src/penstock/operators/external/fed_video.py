# SPDX-License-Identifier: Apache-2.0
"""Encoded videos passed to `Pipeline.feed_input`, and the frames of each batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.batch import Batch
from ...core.errors import DataError
from ...core.kernels import Pool
from ...core.op import Arg
from ...core.picks import Picks
from ...core.source import Source
from ...external import samples
from ..decode.video import frames_in
from ._by_sample import Made
from ._fed import Feed
from ._picks import Given


class FedVideo(Source):
    """Selects what `experimental.inputs.video` decodes: for each sequence the encoded video, which is not copied, and
    the numbers of its frames.

    >>> import numpy as np
    >>> from penstock import fn, pipeline_def
    >>> @pipeline_def(batch_size=2)
    ... def pipe():
    ...     return fn.experimental.inputs.video(name="video", sequence_length=8)
    >>> p = pipe()
    >>> p.feed_input("video", np.fromfile("examples/clips/clock.mp4", np.uint8)[None])
    >>> p.run()[0].shape()
    [(8, 48, 64, 3), (4, 48, 64, 3)]
    """

    module = "_video"
    sets_batch_size = True
    is_prompt = True
    sequence_length = Arg(int, doc="Number of frames per sequence.")
    last_sequence_policy = Arg(
        str,
        "partial",
        "What happens to a last sequence for which the video is too short: 'partial' (it has fewer frames) or 'pad' "
        "(it is filled with black frames).",
    )
    blocking = Arg(bool, False, "Whether to wait if there is no data. By default an error is raised.")
    no_copy = Arg(bool, False, "Does not copy the data, which then must not change until it has been decoded.")
    affine = Arg(bool, True, "Accepted for compatibility.", hidden=True)

    @classmethod
    def display_name(cls) -> str:
        return "fn.experimental.inputs.video"  # the operator with these arguments

    def setup(self) -> None:
        v = self.values
        if v["sequence_length"] < 1:
            raise ValueError(f"sequence_length takes at least 1; got {v['sequence_length']}")
        if v["last_sequence_policy"] not in ("partial", "pad"):
            raise ValueError(f"last_sequence_policy takes 'partial' or 'pad'; got {v['last_sequence_policy']!r}")
        self.feeding = Feed(v["name"], False, v["blocking"])
        self.is_prompt = not v["blocking"]
        self.room = 0

    def n_outputs(self) -> int:
        return 2

    def open(self, max_batch_size: int, seed: int) -> None:
        self.room = max_batch_size

    def restarts(self) -> bool:
        return False

    def is_fed(self) -> bool:
        return True

    def feed(self, data: Any, layout: str | None, stream: Any = None) -> None:
        """One encoded video, for as many iterations as it has batches of sequences."""
        (given,) = samples.samples_of([data], [None], stream)
        (video,) = samples.batches_of([given], not self.values["no_copy"], self.copier, {})
        if len(video) != 1 or video.spec.ndim != 1 or video.spec.dtype.name not in ("uint8", "int8"):
            raise DataError(
                f"{self.display_name()} is fed with one encoded video at a time: a list with its bytes (uint8), or an "
                f"array (1, bytes); got {len(video)} samples of {video.spec.ndim} dimensions of {video.spec.dtype.name}"
            )
        total, length = frames_in(video), self.values["sequence_length"]
        starts = np.arange(0, total, length)
        for begin in range(0, len(starts), self.room):
            numbers = [np.arange(s, s + length, dtype="i4") for s in starts[begin : begin + self.room]]
            if self.values["last_sequence_policy"] == "pad":
                numbers = [np.where(n < total, n, -1).astype("i4") for n in numbers]
            else:
                numbers = [n[n < total] for n in numbers]
            self.feeding.put([video.take(np.zeros(len(numbers), "i8")), Batch.from_samples(numbers)])

    def has_data(self) -> bool:
        return len(self.feeding) > 0

    def ask(self) -> None:
        self.feeding.ask()

    def take(self, n: int, iteration: int) -> Picks:
        batches = self.feeding.take(iteration, lambda: self.closing)
        return Given(Made(batches, {}))

    def load(self, picks: Picks, io: Pool) -> tuple[Batch, ...]:
        assert isinstance(picks, Given)
        self.feeding.taken = None
        return tuple(b.take(picks.columns["row"]) for b in picks.batches)
