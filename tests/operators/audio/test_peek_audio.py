# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest
from sound_files import encoded, noise, pcm, wav

from penstock import fn, pipeline_def


def peek(*files):
    @pipeline_def(batch_size=len(files), num_threads=1)
    def pipe():
        return tuple(fn.peek_audio(fn.external_source(source=lambda i: list(files))))

    outputs = pipe().run()
    assert [np.asarray(o.at(0)).dtype for o in outputs] == ["f4", "i4", "i8"]
    return [tuple(o.at(i).item() for o in outputs) for i in range(len(files))]


def test_peek_audio():
    pytest.importorskip("soundfile")
    files = [wav(pcm(noise(77, 3), 24)[1], 3, 192000, 24)]
    files += [encoded(noise(20001, 2), 48000, f) for f in ("FLAC", "OGG", "AIFF")]
    assert peek(*files) == [(192000, 3, 77), *[(48000, 2, 20001)] * 3]


def test_what_is_no_sound():
    with pytest.raises(RuntimeError, match="not a sound that can be read"):
        peek(np.zeros(50, "u1"))
