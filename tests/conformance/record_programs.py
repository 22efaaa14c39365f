# SPDX-License-Identifier: Apache-2.0
"""Programs of operators that need prepared data: readers of records and videos, and operators that call functions."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import numpy as np

from conformance.argument_programs import Program
from encoded_videos import clip
from operators.read import tfrecord_files as tf
from operators.read.test_caffe import datum
from operators.read.test_caffe import write as write_lmdb
from operators.read.test_caffe2 import FLOAT, INT32, INT64, PICTURE, record, tensor
from operators.read.test_mxnet import image
from operators.read.test_mxnet import write as write_recordio


class Made:
    """An argument created separately for each library: `make(library)`."""

    def __init__(self, make):
        self.make = make


def _features(library):
    t = library.tfrecord
    return {"image": t.FixedLenFeature((), t.string, ""), "label": t.FixedLenFeature([1], t.int64, -1)}


def _records(root: Path) -> dict[str, Program]:
    from wds2idx import IndexCreator  # DALI's module

    write_lmdb(root / "caffe", [(b"%08d" % i, datum(b"picture %d" % i * 9, i)) for i in range(7)])
    label, box = tensor(INT32, [3]), tensor(INT32, [1, 2, 3, 4])
    for name, stored in (
        ("", (PICTURE, label)),
        (" of several", (PICTURE, tensor(INT32, [3, 4, 5]))),
        (" of labels", (label,)),
        (" with boxes", (PICTURE, label, box)),
        (" with more", (PICTURE, label, tensor(FLOAT, [1, 2]), tensor(INT64, [2**40]), box)),
    ):
        write_lmdb(root / f"caffe2{name}", [(b"%d" % i, record(*stored)) for i in range(5)])
    _, begins = write_recordio(root / "rec", [image(bytes(range(4 * i)), 1.0 * i) for i in range(7)])
    (root / "rec.idx").write_text("".join(f"{i}\t{b}\n" for i, b in enumerate(begins[:-1])))
    examples = [tf.example({"image": tf.strings(bytes(9 * i)), "label": tf.integers(i)}) for i in range(7)]
    tf.write(root / "tf", examples, root / "tf.idx")
    with tarfile.open(root / "wds.tar", "w") as archive:
        for i in range(7):
            for extension in ("jpg", "cls", "CLS"):
                member = tarfile.TarInfo(f"{i}.{extension}")
                content = f"{extension}{i}".encode() * 4
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    with IndexCreator(str(root / "wds.tar"), str(root / "wds.idx"), verbose=False) as creator:
        creator.create_index()
    made = {"index_path": [str(root / "rec.idx")], "path": [str(root / "rec")]}
    table = {"path": [str(root / "tf")], "index_path": [str(root / "tf.idx")], "features": Made(_features)}
    return {
        "readers__Caffe": Program([], {"path": str(root / "caffe")}),
        "readers__Caffe2": Program([], {"path": str(root / "caffe2")}),
        "readers__MXNet": Program([], made),
        "readers__TFRecord": Program([], table),
        "readers__Webdataset": Program([], {"paths": str(root / "wds.tar"), "ext": ["jpg", "cls"]}),
    }


def _videos(root: Path) -> dict[str, Program]:
    # Gray, as DALI assumes that chroma lies between two pixels.
    data = clip(codec="libvpx-vp9", container="webm", codec_options=(("g", "6"),), gray=True)
    (root / "videos").mkdir()
    names = [str(root / "videos" / f"{i}.webm") for i in range(2)]
    for name in names:
        Path(name).write_bytes(data)
    (root / "videos.txt").write_text("".join(f"{name} {i} 0.2 0.9\n" for i, name in enumerate(names)))
    (root / "frames.txt").write_text("".join(f"{name} {i} 2 9\n" for i, name in enumerate(names)))
    for k, folder in enumerate("ab"):
        (root / "videos of classes" / folder).mkdir(parents=True)
        (root / "videos of classes" / folder / f"{k}.webm").write_bytes(data)
    file = np.frombuffer(data, "u1")
    return {
        "experimental__inputs__Video": Program([], {"name": "video", "sequence_length": 7}, fed={"video": file[None]}),
        "decoders__Video": Program([([file] * 2, None)], {}),
        "readers__Video": Program([], {"filenames": names, "sequence_length": 3}),
    }


def reverse(x):
    """Reverses a sample, or each sample of a batch."""
    return [s[::-1].copy() for s in x] if isinstance(x, list) else x[::-1].copy()


def two_arrays(x):
    return x[::-1].copy(), x + 1


def _by_torch(work):
    from torch.utils import dlpack

    def changed(x):
        return dlpack.to_dlpack(work(dlpack.from_dlpack(x)))

    return lambda x: [changed(s) for s in x] if isinstance(x, list) else changed(x)


def double(x):
    return _by_torch(lambda t: t * 2)(x)


def two_capsules(x):
    from torch.utils import dlpack

    t = [dlpack.from_dlpack(s) for s in x]
    return [dlpack.to_dlpack(s * 2) for s in t], [dlpack.to_dlpack(s + 1) for s in t]


def _functions() -> dict[str, Program]:
    images = [(np.arange(24, dtype="u1") + i).astype("u1").reshape(2, 4, 3) for i in range(3)]
    return {
        "PythonFunction": Program([(images, "HWC")], {"function": reverse}),
        "DLTensorPythonFunction": Program([(images, "HWC")], {"function": double}),
    }


def made(root: Path) -> dict[str, Program]:
    return {**_records(root), **_videos(root), **_functions()}


# Non-default values, as in test_every_argument.py, with arguments that must be omitted or added.
_LIST = {"filenames": None, "file_list": "{root}/videos.txt"}
VALUES = {
    "Caffe.image_available": False,
    "Caffe2.additional_inputs": 2,
    "Caffe2.bbox": True,
    "Caffe2.image_available": False,
    "Caffe2.label_type": 2,
    "Caffe2.num_labels": 3,
    "Webdataset.case_sensitive_extensions": False,
    "Webdataset.dtypes": Made(lambda library: [library.types.INT32, library.types.INT8]),
    "Webdataset.index_paths": "{root}/wds.idx",
    "Webdataset.missing_component_behavior": "skip",
    "decoders__Video.end_frame": 9,
    "decoders__Video.fill_value": [1, 2, 3],
    "decoders__Video.frames": [0, 7, 7, 3],
    "decoders__Video.pad_mode": "edge",
    "decoders__Video.sequence_length": 5,
    "decoders__Video.start_frame": 3,
    "decoders__Video.stride": 2,
    "readers__Video.enable_frame_num": True,
    "readers__Video.file_list": "{root}/videos.txt",
    "readers__Video.file_list_format": "frames",
    "readers__Video.file_list_rounding": "all_up",
    "readers__Video.file_root": "{root}/videos of classes",
    "readers__Video.fill_value": [1, 2, 3],
    "readers__Video.image_type": "RGB",
    "readers__Video.labels": [3, 4],
    "readers__Video.pad_mode": "edge",
    "readers__Video.step": 2,
    "readers__Video.stride": 2,
    "inputs__Video.blocking": True,
    "inputs__Video.last_sequence_policy": "pad",
    "inputs__Video.sequence_length": 3,
    "PythonFunction.output_layouts": "CWH",
    "DLTensorPythonFunction.output_layouts": "CWH",
    "PythonFunction.num_outputs": 2,
    "DLTensorPythonFunction.num_outputs": 2,
}
WITH = {
    "Caffe2.label_type": {"path": "{root}/caffe2 of several"},
    "Caffe2.additional_inputs": {"bbox": True, "path": "{root}/caffe2 with more"},
    "Caffe2.bbox": {"path": "{root}/caffe2 with boxes"},
    "TFRecord.use_o_direct": {"dont_use_mmap": True},
    "Caffe2.image_available": {"path": "{root}/caffe2 of labels"},
    "decoders__Video.fill_value": {"sequence_length": 25},
    "decoders__Video.pad_mode": {"sequence_length": 25},
    "decoders__Video.start_frame": {"sequence_length": 5},
    "readers__Video.file_list": {"filenames": None},
    "readers__Video.file_list_format": {"filenames": None, "file_list": "{root}/frames.txt"},
    "readers__Video.file_list_include_end": _LIST,
    "readers__Video.file_list_rounding": _LIST,
    "readers__Video.file_root": {"filenames": None},
    "readers__Video.fill_value": {"pad_mode": "constant", "sequence_length": 15},
    "readers__Video.pad_mode": {"sequence_length": 15},
    "PythonFunction.num_outputs": {"function": two_arrays},
    "DLTensorPythonFunction.num_outputs": {"function": two_capsules},
}
