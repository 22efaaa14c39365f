# SPDX-License-Identifier: Apache-2.0
"""readers.caffe and readers.caffe2 against the real DALI.

Deliberate differences: a record without a requested field is a bad sample, while DALI does not change the output;
images that are not encoded must match their shape; sparse labels are one output, while DALI declares a second, unused
one.
"""

import pytest

pytest.importorskip("lmdb")

from conformance.reader_runs import ORDERS, compare, refuses  # noqa: E402
from operators.read.test_caffe import datum, write  # noqa: E402
from operators.read.test_caffe2 import BYTE, FLOAT, INT32, INT64, PICTURE, record, tensor  # noqa: E402


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("caffe")
    write(root / "a", [(b"%08d" % i, datum(b"picture %d" % i * (i * 100 + 1), i - 3)) for i in range(7)])
    write(root / "b", [(b"key %d" % i, datum(b"other %d" % i, i, True)) for i in range(4)])
    write(root / "raw", [(b"%d" % i, datum(bytes(range(24)), i, False, (2, 4, 3))) for i in range(3)])
    return root


@pytest.mark.parametrize(
    "kwargs",
    [
        {"path": "a"},
        {"path": ["a", "b"]},
        {"path": "raw"},
        {"path": "a", "label_available": False},
        {"path": "a", "image_available": False},
    ],
    ids=str,
)
def test_caffe(root, kwargs):
    paths = kwargs["path"] if isinstance(kwargs["path"], list) else [kwargs["path"]]
    sources = "first" if kwargs.get("image_available", True) else False  # labels have none in DALI
    compare("readers.caffe", kwargs | {"path": [str(root / p) for p in paths]}, sources=sources)


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_order(root, order):
    compare("readers.caffe", {"path": [str(root / "a"), str(root / "b")], **order}, iterations=9, sources="first")


CASES = [
    ((PICTURE, tensor(INT32, [3])), {}),
    ((PICTURE, tensor(FLOAT, [2.5])), {}),
    ((tensor(BYTE, bytes(range(24)), dims=(2, 4, 3)), tensor(INT32, [3])), {}),
    ((tensor(BYTE, bytes(range(24)), dims=(4, 6)), tensor(INT32, [3])), {}),
    ((PICTURE, tensor(INT32, [3, 4, 5])), {"label_type": 2}),
    ((PICTURE, tensor(FLOAT, [3, 4.5])), {"label_type": 2}),
    ((PICTURE,), {"label_type": 4}),
    ((tensor(INT32, [3]),), {"image_available": False}),
    (
        (PICTURE, tensor(INT32, [3]), tensor(FLOAT, [1, 2]), tensor(INT64, [2**40]), tensor(INT32, [1, 2, 3, 4])),
        {"additional_inputs": 2, "bbox": True},
    ),
    ((PICTURE, tensor(INT32, [3]), tensor(INT32, [1, 2, 3, 4])), {"bbox": True}),
]


@pytest.mark.parametrize("tensors, kwargs", CASES, ids=range(len(CASES)))
def test_caffe2(tmp_path, tensors, kwargs):
    path = write(tmp_path / "db", [(b"%d" % i, record(*tensors)) for i in range(5)])
    compare("readers.caffe2", {"path": path, **kwargs}, sources="first" if tensors[0] is PICTURE else False)


@pytest.mark.parametrize("name", ["readers.caffe", "readers.caffe2"])
def test_errors(root, name):
    assert refuses(name, {"path": "/no/such"}) == (True, True)
    assert refuses(name, {"path": str(root / "a"), "num_shards": 2, "shard_id": 2}) == (True, True)
