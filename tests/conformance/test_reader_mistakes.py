# SPDX-License-Identifier: Apache-2.0
"""Invalid arguments and missing files of readers raise RuntimeError in both libraries before the first batch."""

import warnings

import numpy as np
import pytest

NOWHERE = "/nonexistent"
MISTAKES = [
    ("file", {"file_root": NOWHERE}),
    ("file", {"file_root": "EMPTY"}),
    ("file", {"file_list": NOWHERE}),
    ("file", {}),
    ("file", {"files": []}),
    ("file", {"files": ["FILE"], "labels": [1, 2]}),
    ("file", {"files": ["FILE"], "num_shards": 5}),
    ("file", {"files": ["FILE"], "num_shards": 2, "shard_id": 3}),
    ("file", {"files": ["FILE"], "shuffle_after_epoch": True, "random_shuffle": True}),
    ("numpy", {"file_root": NOWHERE}),
    ("numpy", {"files": []}),
    ("coco", {"file_root": "EMPTY", "annotations_file": NOWHERE}),
    ("coco", {"file_root": "EMPTY", "annotations_file": "FILE"}),
    ("coco", {"file_root": "EMPTY"}),
    ("webdataset", {"paths": [NOWHERE], "ext": ["jpg"]}),
    ("webdataset", {"paths": ["FILE"], "ext": ["jpg"]}),
    ("mxnet", {"path": [NOWHERE], "index_path": [NOWHERE]}),
    ("caffe", {"path": NOWHERE}),
    ("sequence", {"file_root": NOWHERE, "sequence_length": 2}),
    ("sequence", {"file_root": "EMPTY", "sequence_length": 2}),
    ("nemo_asr", {"manifest_filepaths": [NOWHERE]}),
    ("nemo_asr", {"manifest_filepaths": []}),
]


@pytest.mark.parametrize(("name", "kwargs"), MISTAKES)
def test_mistakes(name, kwargs, tmp_path):
    import nvidia.dali as dali

    import penstock

    there = {"EMPTY": str(tmp_path / "empty"), "FILE": str(tmp_path / "file.npy")}
    (tmp_path / "empty").mkdir()
    np.save(there["FILE"], np.arange(3))

    def real(value):
        return [real(v) for v in value] if isinstance(value, list) else there.get(value, value)

    for lib in (dali, penstock):
        with pytest.raises(RuntimeError), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pipe = lib.Pipeline(batch_size=2, num_threads=1, device_id=None, prefetch_queue_depth=1)
            with pipe:
                out = getattr(lib.fn.readers, name)(**{k: real(v) for k, v in kwargs.items()})
                pipe.set_outputs(*(out if isinstance(out, (list, tuple)) else (out,)))
            pipe.build()


@pytest.mark.parametrize(
    ("name", "kwargs"),
    [
        ("file", {"file_root": NOWHERE}),
        ("file", {"file_list": NOWHERE}),
        ("file", {"files": [NOWHERE], "num_shards": 5}),
        ("numpy", {"file_root": NOWHERE}),
        ("webdataset", {"paths": [NOWHERE], "ext": ["jpg"]}),
        ("caffe", {"path": NOWHERE}),
    ],
)
@pytest.mark.parametrize("ask", ["reader_meta", "epoch_size", "run"])
def test_mistakes_found_later(name, kwargs, ask):
    """With `lazy_init`, by what needs the data first; ours tells the reader and its line."""
    import nvidia.dali as dali

    import penstock

    for lib in (dali, penstock):
        pipe = lib.Pipeline(batch_size=2, num_threads=1, device_id=None)
        with pipe:
            out = getattr(lib.fn.readers, name)(name="r", lazy_init=True, **kwargs)
            pipe.set_outputs(*(out if isinstance(out, (list, tuple)) else (out,)))
        pipe.build()
        with pytest.raises(RuntimeError) as error:
            getattr(pipe, ask)()
    assert f"readers.{name}" in str(error.value) and "test_reader_mistakes.py" in str(error.value)
