# SPDX-License-Identifier: Apache-2.0
"""Reads the headers of audio files."""

from __future__ import annotations

from ...core.batch import Batch
from ...core.op import Arguments, Operator
from ._sound_files import read_headers


class PeekAudio(Operator):
    """Reads the sampling rate, number of channels and length of audio files from their headers, without decoding them.

    Outputs, three scalars: the rate in Hz (float32), the number of channels (int32), and the number of samples per
    channel (int64). They describe what `decoders.audio` returns without `sample_rate` and `downmix`.

    >>> from penstock import fn, pipeline_def, types
    >>> import io, wave, numpy as np
    >>> file = io.BytesIO()
    >>> with wave.open(file, "wb") as f:
    ...     f.setparams((2, 2, 16000, 0, "NONE", ""))
    ...     f.writeframes(np.zeros((100, 2), "i2"))
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return tuple(fn.peek_audio(types.Constant(np.frombuffer(file.getvalue(), "u1"))))
    >>> [x.at(0).item() for x in pipe().run()]
    [16000.0, 2, 100]
    """

    by_frame = False

    def n_outputs(self) -> int:
        return 3

    def run(self, a: Arguments, *inputs: Batch) -> tuple[Batch, ...]:
        info = read_headers(inputs[0])
        columns = (info["rate"].astype("f4"), info["channels"].astype("i4"), info["frames"].astype("i8"))
        return tuple(Batch.from_array(c) for c in columns)
