# SPDX-License-Identifier: Apache-2.0
"""readers.tfrecord, compared with tf.data on records written by tf.io. Run by `make frameworks`."""

import numpy as np
import pytest

from optional_packages import Package, needs
from penstock import fn, pipeline_def, tfrecord

tf = Package("tensorflow")
pytestmark = needs("tensorflow")

N = 60


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """Numbers of every sign and size, in lists of any length. Every fifth record lacks the list."""
    path = str(tmp_path_factory.mktemp("tf") / "a.tfrecord")
    rng = np.random.default_rng(1)
    with tf.io.TFRecordWriter(path) as writer:
        for i in range(N):
            some = rng.integers(-(2**63), 2**63 - 1, i % 7).tolist()
            feature = {
                "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[rng.bytes(i * 37)])),
                "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[i - 20])),
                "box": tf.train.Feature(float_list=tf.train.FloatList(value=rng.normal(0, 1e9, 4))),
            }
            if i % 5:
                feature["list"] = tf.train.Feature(int64_list=tf.train.Int64List(value=some))
            writer.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())
    return path


def test_as_tf_data_reads_them(path):
    features = {
        "image": tf.io.FixedLenFeature([], tf.string),
        "label": tf.io.FixedLenFeature([1], tf.int64),
        "box": tf.io.FixedLenFeature([2, 2], tf.float32),
        "list": tf.io.VarLenFeature(tf.int64),
    }
    data = tf.data.TFRecordDataset([path]).map(lambda x: tf.io.parse_single_example(x, features))

    @pipeline_def(batch_size=7, num_threads=2, device_id=None)
    def pipe():
        names = {
            "image": tfrecord.FixedLenFeature([], tfrecord.string, ""),
            "label": tfrecord.FixedLenFeature([1], tfrecord.int64, 0),
            "box": tfrecord.FixedLenFeature([2, 2], tfrecord.float32, 0.0),
            "list": tfrecord.VarLenFeature(tfrecord.int64, 0),
        }
        return tuple(fn.readers.tfrecord(path=[path], features=names).values())

    p, got = pipe(), []
    while len(got) < N:
        batch = p.run()
        got += [[np.array(output.at(i)) for output in batch] for i in range(len(batch[0]))]
    wanted = list(data)
    assert len(wanted) == N
    for (image, label, box, some), row in zip(got, wanted):
        assert image.tobytes() == row["image"].numpy()
        np.testing.assert_array_equal(label, row["label"].numpy())
        np.testing.assert_array_equal(box, row["box"].numpy())
        assert some.tolist() == row["list"].values.numpy().tolist()
