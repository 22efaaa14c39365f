# SPDX-License-Identifier: Apache-2.0
"""readers.file compared with the real DALI: order of files, for shards, epochs and ways to specify files."""

import numpy as np
import pytest

import penstock
from conformance import oracle, report

BATCH, ITERATIONS = 4, 12


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Eleven small files in three class folders, and lists of them."""
    root = tmp_path_factory.mktemp("files")
    names = [("b", "x.jpg"), ("b", "y.JPG"), ("b", "z.png"), ("a", "1.jpg"), ("a", "10.jpg"), ("a", "2.jpeg")]
    names += [("c d", "p.bmp"), ("c d", "q.txt"), ("c d", "r.webp"), ("c d", "s.wav"), ("c d", "t t.jpg")]
    for i, (cls, name) in enumerate(names):
        (root / cls).mkdir(exist_ok=True)
        (root / cls / name).write_bytes(bytes([i]) * (10 + i))
    (root / "list.txt").write_text("a/1.jpg 7\nb/x.jpg 3\nc d/t t.jpg 5\n\nb/z.png 0\n")
    return root


def cases(root):
    everything = [str(p) for p in sorted(root.glob("*/*"))]
    yield {"file_root": str(root)}
    for shards in (2, 3):
        for shard in range(shards):
            for stick in (False, True):
                for pad in (False, True):
                    yield {
                        "file_root": str(root),
                        "num_shards": shards,
                        "shard_id": shard,
                        "stick_to_shard": stick,
                        "pad_last_batch": pad,
                    }
    yield {"file_root": str(root), "pad_last_batch": True}
    yield {"file_root": str(root), "file_filters": ["*.jpg", "*.txt"]}
    yield {"file_root": str(root), "file_filters": ["*.jpg"], "case_sensitive_filter": True}
    yield {"file_root": str(root), "file_filters": ["[a-q].*"]}
    yield {"file_root": str(root), "dir_filters": ["a", "c*"]}
    yield {"file_root": str(root), "file_list": str(root / "list.txt")}
    yield {"file_list": str(root / "list.txt")}
    yield {"files": everything}
    yield {"files": everything, "labels": list(range(len(everything), 0, -1))}
    yield {"files": ["a/1.jpg", "b/x.jpg"], "file_root": str(root)}
    yield {"files": everything, "labels": [1]}
    yield {"files": everything, "file_list": str(root / "list.txt")}
    yield {"file_root": str(root / "nothing")}
    yield {"file_root": str(root), "file_filters": ["*.none"]}
    yield {"file_root": str(root), "num_shards": 2, "shard_id": 2}
    yield {}


def read(side, kwargs):
    fn, define, options = (
        (oracle.dali_fn, oracle.pipeline_def, {"device_id": None})
        if side == "dali"
        else (penstock.fn, penstock.pipeline_def, {})
    )

    @define(batch_size=BATCH, num_threads=2, seed=1, **options)
    def pipe():
        return tuple(fn.readers.file(name="reader", **kwargs))

    try:
        p = pipe()
        p.build()
        seen = []
        for _ in range(ITERATIONS):
            data, labels = p.run()
            seen.append(
                [
                    (bytes(np.array(data.at(i)))[:1].hex(), len(data.at(i)), int(np.array(labels.at(i)).item()))
                    for i in range(len(data))
                ]
            )
        return seen, p.reader_meta("reader"), str(labels.dtype), ""
    except Exception as e:
        return [], {}, "", oracle._cause(e)


def test_order(folder):
    tally = report.tally("readers.file")
    before = len(tally.failures)
    for kwargs in cases(folder):
        theirs, ours = read("dali", kwargs), read("penstock", kwargs)
        tally.cases += 1
        text = str({k: str(v).replace(str(folder), "ROOT") for k, v in kwargs.items()})
        if theirs[3] and ours[3]:
            tally.both_raise += 1
        elif theirs[3] or ours[3]:
            tally.failures.append(f"{text}: DALI {theirs[3]!r}, penstock {ours[3]!r}")
        elif theirs != ours:
            what = ("samples", "reader_meta", "label type")
            i = next(i for i in range(3) if theirs[i] != ours[i])
            tally.failures.append(f"{text}: {what[i]} {str(ours[i])[:300]}, DALI has {str(theirs[i])[:300]}")
    assert tally.failures[before:] == []


def test_shuffling_is_a_permutation_on_both_sides(folder):
    """The shuffled order differs between the libraries; the contents of an epoch do not."""
    for kwargs in ({"random_shuffle": True, "initial_fill": 5}, {"shuffle_after_epoch": True}):
        for side in ("dali", "penstock"):
            seen, meta, _, error = read(side, {"file_root": str(folder), **kwargs})
            assert not error
            flat = [s for batch in seen for s in batch]
            n = meta["epoch_size"]
            first, second = flat[:n], flat[n : 2 * n]
            if "shuffle_after_epoch" in kwargs or side == "penstock":
                assert sorted(first) == sorted(second) and len(set(first)) == n, (side, kwargs)
