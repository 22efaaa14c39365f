# SPDX-License-Identifier: Apache-2.0
"""Errors in joined chains of conditionals are reported as with separate stages."""

import struct
import zlib
from pathlib import Path

import pytest
from test_joined import PHOTOS, apart, coin, fed, is_joined, pipeline, run, same

from penstock import PipelineError, fn, types

__all__ = ("apart",)  # a fixture


def test_branches_of_different_types():
    def define():
        x = fn.flip(fed())
        if coin() == 1:
            y = fn.cast(x, dtype=types.FLOAT)
        else:
            y = x
        return fn.cast(y, dtype=types.INT32)

    assert is_joined(define)
    with pytest.raises(PipelineError, match="different types: float32 where the condition is true, uint8"):
        run(define)


def test_bad_samples_have_their_names_and_lines():
    """A crop that is too large for a sample in one branch; then an invalid image before the branch."""

    def define():
        x = fn.flip(fed())
        if coin() == 1:
            x = fn.crop(x, crop=(9, 8))
        return fn.cast(x, dtype=types.FLOAT)

    assert is_joined(define)
    with pytest.raises(PipelineError, match=r"fn\.crop[\s\S]*Sample 2 of iteration 0"):
        run(define)


def png_without_pixels():
    """Its header is valid, so it fails while the chain runs."""

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = struct.pack(">IIBBBBB", 40, 30, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", b"rubbish") + chunk(b"IEND", b"")


@pytest.mark.parametrize("on_error", ["raise", "skip", "replace"])
@pytest.mark.parametrize("damaged", [b"no image", png_without_pixels()], ids=["header", "pixels"])
def test_files_that_are_damaged(on_error, damaged, tmp_path, apart):
    whole = Path(PHOTOS[0]).read_bytes()
    names = []
    for i in range(12):
        path = tmp_path / f"{i:02}.img"
        path.write_bytes(damaged if i == 4 else whole)
        names.append(str(path))

    def define():
        jpegs, labels = fn.readers.file(files=names, labels=list(range(12)))
        x = fn.decoders.image(jpegs)
        if coin() == 1:
            x = fn.flip(x)
        return fn.resize(x, size=[20, 30]), labels

    assert is_joined(define)
    if on_error == "raise":
        for how in (run, apart):
            with pytest.raises(PipelineError, match=r"04\.img"):
                how(define, on_error=on_error)
        return
    same(run(define, 2, on_error=on_error), apart(define, 2, on_error=on_error))
    p = pipeline(define, on_error=on_error)
    p.run()
    assert [e.source for e in p.errors()] == [names[4]]
