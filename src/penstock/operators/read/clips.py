# SPDX-License-Identifier: Apache-2.0
"""The compressed pictures that sequences of videos need."""

from __future__ import annotations

from ._sequences import Sequences


class Clips(Sequences):
    """What `experimental.readers.video` reads: for each sequence the compressed pictures that it needs, and in which
    order its frames come.

    >>> from penstock import fn, pipeline_def
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return fn.experimental.readers.video(filenames=["examples/clips/clock.mp4"], sequence_length=3)
    >>> pipe().run()[0].shape()
    [(3, 48, 64, 3)]
    """

    module = "_video"
