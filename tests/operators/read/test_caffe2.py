# SPDX-License-Identifier: Apache-2.0
"""readers.caffe2: tensors of handmade records, and errors for damaged ones."""

import numpy as np
import pytest

from operators.read.test_caffe import field, write
from optional_packages import needs
from penstock import fn, pipeline_def

pytestmark = needs("lmdb")


FLOAT, INT32, BYTE, STRING, INT64 = 1, 2, 3, 4, 10


def tensor(kind, values, packed=True, dims=()):
    out = b"".join(field(1, n) for n in dims) + field(2, kind)
    if kind == STRING:
        return out + field(6, values)
    if kind == BYTE:
        return out + field(5, values)
    number = {FLOAT: 3, INT32: 4, INT64: 10}[kind]
    if kind == FLOAT:
        bits = [np.float32(v).tobytes() for v in values]
        return out + (field(number, b"".join(bits)) if packed else b"".join(bytes([number << 3 | 5]) + b for b in bits))
    if packed:
        return out + field(number, b"".join(field(1, v)[1:] for v in values))
    return out + b"".join(field(number, v) for v in values)


def record(*tensors):
    return b"".join(field(1, t) for t in tensors)


def build(path, batch_size=1, on_error="raise", **kwargs):
    @pipeline_def(batch_size=batch_size, num_threads=2, on_error=on_error)
    def pipe():
        outputs = fn.readers.caffe2(name="r", path=path, **kwargs)
        return tuple(outputs) if isinstance(outputs, list) else outputs

    return pipe()


def read(tmp_path, *tensors, **kwargs):
    return [np.array(x.at(0)) for x in build(write(tmp_path / "db", [(b"a", record(*tensors))]), **kwargs).run()]


PICTURE = tensor(STRING, b"encoded")


def assert_same(got, wanted):
    assert got.dtype == wanted.dtype and got.shape == wanted.shape
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kind, dtype, value", [(INT32, "i4", -5), (FLOAT, "f4", 2.5)])
def test_single_label(tmp_path, kind, dtype, value, packed):
    picture, label = read(tmp_path, PICTURE, tensor(kind, [value], packed))
    assert bytes(picture) == b"encoded"
    assert_same(label, np.array([value], dtype))


@pytest.mark.parametrize("shape", [(4, 5, 3), (4, 5)])
def test_pictures_as_they_are(tmp_path, shape):
    x = np.random.default_rng(0).integers(0, 255, shape, "u1")
    (picture,) = read(tmp_path, tensor(BYTE, x.tobytes(), dims=shape), label_type=4)
    assert_same(picture, x.reshape(4, 5, -1))


@pytest.mark.parametrize("kind, dtype", [(INT32, "i4"), (FLOAT, "f4")])
def test_labels(tmp_path, kind, dtype):
    sparse = np.zeros(9, dtype)
    sparse[[2, 8, 0]] = 1
    (tmp_path / "a").mkdir()
    _, got = read(tmp_path / "a", PICTURE, tensor(kind, [2, 8, 0]), label_type=1, num_labels=9)
    assert_same(got, sparse)
    (tmp_path / "b").mkdir()
    _, got = read(tmp_path / "b", PICTURE, tensor(kind, [2, 8, 0]), label_type=2)
    assert_same(got, np.array([2, 8, 0], dtype))
    weights = np.zeros(9, "f4")
    weights[[2, 8, 0]] = [0.5, 0.25, 3]
    (tmp_path / "c").mkdir()
    tensors = PICTURE, tensor(kind, [2, 8, 0]), tensor(FLOAT, [0.5, 0.25, 3])
    _, got = read(tmp_path / "c", *tensors, label_type=3, num_labels=9)
    assert_same(got, weights)


@pytest.mark.parametrize("n_weights", [0, 3, 1 << 22])
def test_weights_without_labels(tmp_path, n_weights):
    weights = field(2, FLOAT) + field(3, np.ones(n_weights, "f4").tobytes())
    _, got = read(tmp_path, PICTURE, tensor(INT32, []), weights, label_type=3, num_labels=2)
    assert_same(got, np.zeros(2, "f4"))


def test_more_tensors_and_a_box(tmp_path):
    tensors = tensor(INT32, [7]), tensor(FLOAT, [1.5, 2]), tensor(INT64, [2**40, -1]), tensor(INT32, [1, 2, 3, 4])
    label, floats, longs, box = read(tmp_path, *tensors, image_available=False, additional_inputs=2, bbox=True)
    assert_same(label, np.int32([7]))
    assert_same(floats, np.float32([1.5, 2]))
    assert_same(longs, np.int64([2**40, -1]))
    assert_same(box, np.int32([1, 2, 3, 4]))


@pytest.mark.parametrize(
    "tensors, kwargs, error",
    [
        ((PICTURE,), {}, "the record has 1 tensors, none for the labels"),
        ((), {}, "the record has 0 tensors, none for the picture"),
        ((tensor(INT32, [1]), tensor(INT32, [1])), {}, "the picture's tensor has the type 2"),
        ((PICTURE, tensor(INT32, [1, 2])), {}, "the record has 2 labels"),
        ((PICTURE, tensor(INT64, [1])), {}, "the labels have the type 10"),
        (
            (PICTURE, tensor(INT32, [9])),
            {"label_type": 1, "num_labels": 9},
            "label 9 is not in 0 to num_labels - 1 = 8",
        ),
        ((PICTURE, tensor(INT32, [-1])), {"label_type": 1, "num_labels": 9}, "label -1 is not in"),
        ((PICTURE, tensor(FLOAT, [np.nan])), {"label_type": 1, "num_labels": 9}, "label -?nan is not in"),
        (
            (PICTURE, tensor(INT32, [1, 2]), tensor(FLOAT, [1])),
            {"label_type": 3, "num_labels": 9},
            "2 labels, but 1 weights",
        ),
        ((PICTURE, tensor(INT32, [1]), PICTURE), {"additional_inputs": 1}, "additional input 0 has the type 4"),
        ((PICTURE, tensor(INT32, [1]), tensor(INT32, [1])), {"bbox": True}, "the box must be 4 numbers"),
        ((tensor(BYTE, bytes(19), dims=(4, 5)), tensor(INT32, [1])), {}, "has 2 dimensions, the first ones 4 x 5"),
        ((tensor(BYTE, bytes(4), dims=(2**32, 2**32, 1)), tensor(INT32, [1])), {}, "has 3 dimensions"),
        ((tensor(BYTE, bytes(4), dims=(4,)), tensor(INT32, [1])), {}, "has 1 dimensions"),
        ((PICTURE, field(2, 1) + field(3, b"xyz")), {}, "no multiple of 4"),
        ((PICTURE,) * 65, {"label_type": 4}, "more than 64 tensors"),
    ],
    ids=range(16),
)
def test_damaged_records(tmp_path, tensors, kwargs, error):
    path = write(tmp_path / "db", [(b"a", record(*tensors))])
    with pytest.raises(RuntimeError, match=error) as e:
        build(path, **kwargs).run()
    assert "record 0, key 'a'" in str(e.value)


@pytest.mark.parametrize(
    "kwargs, error",
    [
        ({"label_type": 5}, "label_type takes 0 to 4"),
        ({"num_labels": 0}, "num_labels takes at least 1"),
        ({"additional_inputs": -1}, "additional_inputs takes 0 to 60"),
        ({"label_type": 4, "image_available": False}, "nothing is left"),
    ],
    ids=str,
)
def test_errors(tmp_path, kwargs, error):
    path = write(tmp_path / "db", [(b"a", record(PICTURE, tensor(INT32, [1])))])
    with pytest.raises(ValueError, match=error):
        build(path, **kwargs).build()
