# SPDX-License-Identifier: Apache-2.0
"""Records written and read by the formats' own libraries: protobuf for TFRecord, webdataset for tar archives."""

import io
import json
import struct
import tarfile

import numpy as np
import pytest
import tfrecord_files

from penstock import fn, pipeline_def, tfrecord


@pytest.fixture(scope="module")
def example_class():
    """tensorflow.train.Example, created by protobuf from its definition."""
    pytest.importorskip("google.protobuf", reason="protobuf is not installed")
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(name="example.proto", package="t", syntax="proto3")
    field = descriptor_pb2.FieldDescriptorProto

    def message(name, *fields):
        m = file.message_type.add(name=name)
        for number, (key, kind, label, type_name) in enumerate(fields, 1):
            m.field.add(name=key, number=number, type=kind, label=label, type_name=type_name)
        return m

    many, one = field.LABEL_REPEATED, field.LABEL_OPTIONAL
    message("BytesList", ("value", field.TYPE_BYTES, many, None))
    message("FloatList", ("value", field.TYPE_FLOAT, many, None))
    message("Int64List", ("value", field.TYPE_INT64, many, None))
    lists = [(f"{k}_list", field.TYPE_MESSAGE, one, f".t.{k.title()}List") for k in ("bytes", "float", "int64")]
    feature = message("Feature", *lists)
    feature.oneof_decl.add(name="kind")
    for f in feature.field:
        f.oneof_index = 0
    features = message("Features", ("feature", field.TYPE_MESSAGE, many, ".t.Features.FeatureEntry"))
    entry = features.nested_type.add(name="FeatureEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=field.TYPE_STRING, label=one)
    entry.field.add(name="value", number=2, type=field.TYPE_MESSAGE, label=one, type_name=".t.Feature")
    message("Example", ("features", field.TYPE_MESSAGE, one, ".t.Features"))
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("t.Example"))


def random_examples(example_class, n=200):
    rng = np.random.default_rng(0)
    for i in range(n):
        example = example_class()
        feature = example.features.feature
        feature["i"].int64_list.value.extend(rng.integers(-(2**63), 2**63 - 1, rng.integers(0, 5)).tolist())
        feature["f"].float_list.value.extend(rng.normal(0, 1e10, rng.integers(0, 5)).astype("f4").tolist())
        feature["s"].bytes_list.value.extend([rng.bytes(int(rng.integers(0, 300))) for _ in range(rng.integers(1, 4))])
        feature["ü" * (i % 3)].int64_list.value.append(i)
        if i % 5 == 0:
            feature["i"].Clear()
        yield example


def test_examples_that_protobuf_writes(example_class, tmp_path):
    examples = list(random_examples(example_class))
    path = tmp_path / "a.tfrecord"
    path.write_bytes(b"".join(tfrecord_files.record(e.SerializeToString()) for e in examples))
    for example, (i, f, s) in zip(examples, read_all(path, len(examples))):
        feature = example.features.feature
        np.testing.assert_array_equal(i, np.array(feature["i"].int64_list.value, "i8"))
        np.testing.assert_array_equal(f, np.array(feature["f"].float_list.value, "f4"))
        assert bytes(s) == feature["s"].bytes_list.value[0]


def test_examples_that_protobuf_reads(example_class, tmp_path):
    """Unpacked lists, as written by older writers, and features and lists split into parts."""
    t = tfrecord_files
    records = [
        t.example({"i": t.integers(1, -5, 1 << 40), "f": t.floats(1, 2.5), "s": t.strings(b"abc")}),
        t.example({"i": t.integers(1, 2, packed=False), "f": t.floats(3, packed=False), "s": t.strings(b"")}),
        t.example(
            {"i": t.integers(1) + t.integers(2, 3, packed=False), "f": t.floats(1) + t.floats(2), "s": t.strings(b"x")}
        ),
        t.example({"i": t.integers(7), "f": b"", "s": t.strings(b"y")}) + t.example({"i": t.integers(8)}),
    ]
    path = tmp_path / "a.tfrecord"
    path.write_bytes(b"".join(map(t.record, records)))
    for record, (i, f, s) in zip(records, read_all(path, len(records))):
        feature = example_class.FromString(record).features.feature
        np.testing.assert_array_equal(i, np.array(feature["i"].int64_list.value, "i8"))
        np.testing.assert_array_equal(f, np.array(feature["f"].float_list.value, "f4"))
        assert bytes(s) == feature["s"].bytes_list.value[0]


def read_all(path, n):
    features = {
        "i": tfrecord.VarLenFeature([], tfrecord.int64, 0),
        "f": tfrecord.VarLenFeature([], tfrecord.float32, 0.0),
        "s": tfrecord.FixedLenFeature([], tfrecord.string, ""),
    }

    @pipeline_def(batch_size=n, num_threads=2)
    def pipe():
        out = fn.readers.tfrecord(path=str(path), features=features)
        return out["i"], out["f"], out["s"]

    outputs = pipe().run()
    return [tuple(np.array(o.at(k)) for o in outputs) for k in range(n)]


def read_archives(paths, n, ext, **kwargs):
    @pipeline_def(batch_size=n, num_threads=2)
    def pipe():
        return tuple(fn.readers.webdataset(paths=[str(p) for p in paths], ext=ext, **kwargs))

    outputs = pipe().run()
    return [tuple(bytes(np.array(o.at(k))) for o in outputs) for k in range(n)]


def samples_of_webdataset(paths):
    wds = pytest.importorskip("webdataset", reason="webdataset is not installed")
    return list(wds.WebDataset([str(p) for p in paths], shardshuffle=False))


def test_archives_that_webdataset_writes(tmp_path):
    wds = pytest.importorskip("webdataset", reason="webdataset is not installed")
    rng, paths = np.random.default_rng(0), []
    for k in range(2):
        paths.append(tmp_path / f"{k}.tar")
        with wds.TarWriter(str(paths[-1])) as writer:
            for i in range(20):
                sample = {
                    "__key__": f"folder/{'long' * (i % 40)}{k}_{i:03}",
                    "jpg": rng.bytes(int(rng.integers(1, 3000))),
                }
                writer.write({**sample, "cls": i, "meta.json": {"a": i}})
    samples = samples_of_webdataset(paths)
    got = read_archives(paths, 40, ["jpg", "cls", "meta.json"])
    assert len(samples) == 40
    for (jpg, cls, meta), sample in zip(got, samples):
        assert (jpg, cls, meta) == (sample["jpg"], sample["cls"], sample["meta.json"])
        assert json.loads(meta)["a"] == int(cls)


@pytest.mark.parametrize("kind", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_archives_as_webdataset_groups_them(tmp_path, kind):
    """A sample consists of adjacent files with the same name up to the first dot, in any folder."""
    names = ["a/1.jpg", "a/1.cls", "b/1.jpg", "b/1.cls", "b.x/2.jpg", "b.x/2.cls", "c.jpg", "c.cls", "ü.jpg", "ü.cls"]
    names += [] if kind == tarfile.USTAR_FORMAT else ["n" * 200 + ".jpg", "n" * 200 + ".cls"]
    with tarfile.open(tmp_path / "a.tar", "w", format=kind) as archive:
        for i, name in enumerate(names):
            member = tarfile.TarInfo(name)
            member.size = 10 + i
            archive.addfile(member, io.BytesIO(struct.pack("<I", i) + bytes(6 + i)))
    samples = samples_of_webdataset([tmp_path / "a.tar"])
    got = read_archives([tmp_path / "a.tar"], len(names) // 2, ["jpg", "cls"])
    assert len(samples) == len(names) // 2
    assert got == [(s["jpg"], s["cls"]) for s in samples]
