# SPDX-License-Identifier: Apache-2.0
"""readers.file against the real DALI: the same files in the same batches wherever DALI's order is not random."""

import itertools

import numpy as np
import pytest

from penstock import fn, pipeline_def

GRID = [
    (size, shards, batch_size)
    for size, shards, batch_size in itertools.product((1, 2, 3, 5, 10, 13), (1, 2, 3, 5), (1, 2, 4, 7))
    if shards <= size
]


def run(dali, kwargs, batch_size, iterations, output):
    if dali:
        from nvidia.dali import fn as face
        from nvidia.dali import pipeline_def as definition

        options = {"device_id": None}
    else:
        face, definition, options = fn, pipeline_def, {}

    @definition(batch_size=batch_size, num_threads=1, **options)
    def pipe():
        return face.readers.file(name="r", **kwargs)[output]

    p = pipe()
    p.build()
    batches = [[np.array(x).tolist() for x in p.run()[0]] for _ in range(iterations)]
    return batches, dict(p.reader_meta("r"))


@pytest.mark.parametrize("stick", [False, True])
@pytest.mark.parametrize("pad", [False, True])
@pytest.mark.parametrize("size, shards, batch_size", GRID)
def test_order(tmp_path, size, shards, batch_size, pad, stick, is_sample):
    if is_sample and (size + shards + batch_size) % 5:
        pytest.skip("not in the sample")
    (tmp_path / "f").write_bytes(b"x")
    for shard in range(shards):
        kwargs = {"files": [str(tmp_path / "f")] * size, "num_shards": shards, "shard_id": shard}
        kwargs |= {"stick_to_shard": stick, "pad_last_batch": pad}
        n = 4 * -(-size // batch_size) + 5
        assert run(False, kwargs, batch_size, n, 1) == run(True, kwargs, batch_size, n, 1)


@pytest.mark.parametrize(
    "kwargs",
    [
        {},
        {"case_sensitive_filter": True},
        {"file_filters": ["*.txt", "1?.j*"]},
        {"file_filters": ["[0-9]*.jpg"]},
        {"file_filters": ["[!0-9]*"]},
        {"file_filters": [".*"]},
        {"file_filters": ["*"]},
        {"dir_filters": ["A"]},
        {"dir_filters": ["a", "[0-9]*"], "case_sensitive_filter": True},
        {"files": ["a/2.jpg", "b/2.jpg"]},
        {"files": ["a/2.jpg", "b/2.jpg"], "labels": [7, -3]},
        {"file_list": "list.txt"},
    ],
    ids=str,
)
def test_files(tmp_path, kwargs):
    for folder in ("b", "a", "B", "10", "9", "_z", ".hidden"):
        (tmp_path / folder).mkdir()
        for name in ("2.jpg", "10.jpg", "1.JPG", "x.txt", ".h.jpg", "A.jpg", "é.png"):
            (tmp_path / folder / name).write_text(f"{folder}/{name}")
    (tmp_path / "a" / "folder.jpg").mkdir()
    (tmp_path / "a" / "link.jpg").symlink_to("2.jpg")
    (tmp_path / "empty").mkdir()
    (tmp_path / "linked").symlink_to("b")
    (tmp_path / "list.txt").write_text("a/2.jpg\t3\nb/2.jpg   4  \n\n  \n")
    kwargs = {k: str(tmp_path / v) if k == "file_list" else v for k, v in kwargs.items()} | {"file_root": str(tmp_path)}
    for output in (0, 1):
        n = run(False, kwargs, 1, 1, output)[1]["epoch_size"]
        assert run(False, kwargs, 1, n, output) == run(True, kwargs, 1, n, output)
