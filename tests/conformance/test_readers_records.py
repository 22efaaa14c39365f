# SPDX-License-Identifier: Apache-2.0
"""readers.tfrecord and readers.mxnet against the real DALI.

Deliberate differences: for missing features, penstock returns the default, or no elements for a VarLenFeature, while
DALI returns the previous content of memory; wrong types and numbers of values are bad samples, which DALI returns as
zeros or previous content; several strings per feature are supported, of which DALI accepts only the first; there may be
a RecordIO index per file, while DALI accepts only one.
"""

import numpy as np
import pytest

from conformance.reader_runs import ORDERS, compare
from operators.read import tfrecord_files as tf
from operators.read.test_mxnet import MAGIC, image
from operators.read.test_mxnet import write as write_recordio


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("records")
    rng = np.random.default_rng(0)
    examples = [
        tf.example(
            {
                "image": tf.strings(rng.bytes(100 * i)),
                "label": tf.integers(i - 5),
                "texts": tf.strings(b"first", b"second"),
                "boxes": tf.floats(*rng.standard_normal(4 * (i % 3)).tolist()),
                "ids": tf.integers(*range(i, 2 * i), packed=bool(i % 2)),
                "pair": tf.floats(1.5, i),
            }
        )
        for i in range(11)
    ]
    tf.write(root / "a", examples[:7], root / "a.idx")
    tf.write(root / "b", examples[7:], root / "b.idx")
    labels = [[1.0], [2.0, 3.0], [-1.0], [0.5, 0.25, 0.0]]
    contents = [image(rng.bytes(4 * i) + MAGIC * (i % 3) + rng.bytes(i), *labels[i % 4]) for i in range(11)]
    _, begins = write_recordio(root / "rec", contents)
    lines = [f"{i}\t{b}\n" for i, b in enumerate(begins[:-1])]
    (root / "rec.idx").write_text("".join(lines))
    (root / "other.idx").write_text("".join(lines[::-2]))
    return root


FEATURES = {
    "image": ("FixedLenFeature", (), "string", ""),
    "label": ("FixedLenFeature", [1], "int64", -1),
    "texts": ("FixedLenFeature", [], "string", ""),
    "boxes": ("VarLenFeature", [4], "float32", 0.0),
    "ids": ("VarLenFeature", "int64", 0),
    "pair": ("FixedLenFeature", [2], "float32", 0.0),
}
SHAPES = {
    "boxes": [("VarLenFeature", [2, 2], "float32", 0.0), ("VarLenFeature", "float32", 0.0)],
    "label": [("FixedLenFeature", [], "int64", -1), ("VarLenFeature", [1, 1], "int64", 0)],
    "pair": [("FixedLenFeature", [1, 2], "float32", 0.0), ("VarLenFeature", [], "float32", 0.0)],
    "image": [("FixedLenFeature", [1], "string", "")],
}


class Reader:
    """Creates `features` with the current library, as `compare` passes the same arguments to both."""

    def __init__(self, features):
        self.features = features

    def made(self, module):
        return {n: getattr(module, f[0])(*(getattr(module, x) if x in ("string", "int64", "float32") else x
                                           for x in f[1:])) for n, f in self.features.items()}  # fmt: skip


def run_tfrecord(dali, root, features, batch_size, iterations, **kwargs):
    if dali:
        from nvidia.dali import fn, pipeline_def, tfrecord

        options = {"device_id": None}
    else:
        from penstock import fn, pipeline_def, tfrecord

        options = {}

    @pipeline_def(batch_size=batch_size, num_threads=2, **options)
    def pipe():
        paths = {"path": [str(root / "a"), str(root / "b")], "index_path": [str(root / "a.idx"), str(root / "b.idx")]}
        outputs = fn.readers.tfrecord(name="r", features=Reader(features).made(tfrecord), **paths, **kwargs)
        assert list(outputs) == list(features)
        return tuple(outputs.values())

    p = pipe()
    p.build()
    batches = []
    for _ in range(iterations):
        for o in p.run():
            arrays = [np.array(o.at(i)) for i in range(len(o))]
            batches.append([(x.dtype.name, x.shape, x.tobytes(), o[i].source_info()) for i, x in enumerate(arrays)])
    return batches, dict(p.reader_meta("r"))


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_tfrecord(root, order):
    assert run_tfrecord(False, root, FEATURES, 4, 6, **order) == run_tfrecord(True, root, FEATURES, 4, 6, **order)


@pytest.mark.parametrize("name, feature", [(n, f) for n, forms in SHAPES.items() for f in forms], ids=str)
def test_shapes_of_features(root, name, feature):
    given = root, {name: feature}, 11, 1
    assert run_tfrecord(False, *given) == run_tfrecord(True, *given)


@pytest.mark.parametrize("order", ORDERS, ids=str)
@pytest.mark.parametrize("index", ["rec.idx", "other.idx"])
def test_mxnet(root, index, order):
    kwargs = {"path": [str(root / "rec")], "index_path": [str(root / index)]}
    if index == "rec.idx" or order["num_shards"] < 3:
        compare("readers.mxnet", kwargs | order, sources="first")
