# SPDX-License-Identifier: Apache-2.0
"""readers.sequence compared with the real DALI: sequences, order, metadata, pixels.

Deliberate differences: sources are the first frames, while DALI has none; images rotated by EXIF data, and grey ones
with ANY_DATA, are decoded, while DALI crashes; a step of 0 is an error, while DALI exhausts memory; there is no
deprecation warning.
"""

import numpy as np
import pytest

from conformance.reader_runs import ORDERS, compare, refuses

NAME = "readers.sequence"
Image = pytest.importorskip("PIL.Image")


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("streams")
    rng = np.random.default_rng(0)
    for stream, n in (("b", 7), ("a", 4), (".hidden", 3), ("short", 1), ("c", 5)):
        (root / stream).mkdir()
        for i in range(n):
            Image.fromarray(rng.integers(0, 255, (6, 8, 3), "u1")).save(root / stream / f"{i:02}.png")
    (root / "a" / "note.txt").write_text("x")
    (root / "c" / "09.PNG").write_bytes((root / "c" / "01.png").read_bytes())
    (root / "c" / ".h.png").write_bytes((root / "c" / "01.png").read_bytes())
    (root / "a" / "deeper").mkdir()
    return root


@pytest.mark.parametrize("length, step, stride", [(1, 1, 1), (3, 1, 1), (2, 3, 1), (2, 1, 3), (3, 2, 2)])
def test_sequences(root, length, step, stride):
    kwargs = {"file_root": str(root), "sequence_length": length, "step": step, "stride": stride}
    compare(NAME, kwargs, iterations=6, sources=False)


@pytest.mark.parametrize("suffix, options", [("png", {}), ("jpg", {}), ("jpg", {"subsampling": 0})], ids=str)
@pytest.mark.parametrize("image_type", ["RGB", "BGR", "GRAY", "ANY_DATA", "YCbCr"])
def test_image_types(tmp_path, image_type, suffix, options):
    from penstock import types

    if (suffix, image_type) == ("png", "GRAY"):
        pytest.skip("DALI's grey of files that aren't JPEG differs from ours by 1, as in test_files.py")
    (tmp_path / "s").mkdir()
    x = np.random.default_rng(0).integers(0, 255, (4, 5, 3), "u1")
    for i in range(3):
        picture = Image.fromarray(np.roll(x, i, 2)).resize((31, 20), Image.BICUBIC)
        picture.save(tmp_path / "s" / f"{i}.{suffix}", **options)
    kwargs = {"file_root": str(tmp_path), "sequence_length": 2, "image_type": int(getattr(types, image_type))}
    if image_type == "YCbCr":
        assert refuses(NAME, kwargs) == (True, True)
    else:
        compare(NAME, kwargs, iterations=2, sources=False)


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_order(root, order):
    compare(NAME, {"file_root": str(root), "sequence_length": 2, **order}, iterations=8, sources=False)


@pytest.mark.parametrize("kwargs", [{"sequence_length": 0}, {"sequence_length": 99}, {"file_root": "/no/such"}])
def test_errors(root, kwargs):
    assert refuses(NAME, {"file_root": str(root), "sequence_length": 2} | kwargs) == (True, True)
