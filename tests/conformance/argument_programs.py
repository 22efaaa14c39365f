# SPDX-License-Identifier: Apache-2.0
"""A program for each argument of each of DALI's CPU operators: the operator on small data, with that argument and those
it requires. Operators with their own cases use the first of them; the others are defined here."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image as PillowImage

from conformance import grid
from conformance.recipes import RECIPES
from conformance.test_operators import DECLARED
from harness import class_path
from penstock.core.op import REGISTRY

EXAMPLES = Path(__file__).parents[2] / "examples" / "data"


class Program(NamedTuple):
    """Inputs are (samples, layout); `random` results are compared by type and number of dimensions only."""

    inputs: list[tuple[list[np.ndarray], str | None]]
    arguments: dict[str, Any]
    random: bool = False
    more: Any = {}  # noqa: RUF012  (arguments that are data: samples by name)
    fed: Any = {}  # noqa: RUF012  (what `feed_input` gives: by name)


# Former names, with the current operators.
FORMER = {
    "AudioDecoder": "decoders__Audio",
    "COCOReader": "readers__COCO",
    "Caffe2Reader": "readers__Caffe2",
    "CaffeReader": "readers__Caffe",
    "CoinFlip": "random__CoinFlip",
    "FastResizeCropMirror": "ResizeCropMirror",
    "FileReader": "readers__File",
    "ImageDecoder": "decoders__Image",
    "ImageDecoderCrop": "decoders__ImageCrop",
    "ImageDecoderRandomCrop": "decoders__ImageRandomCrop",
    "ImageDecoderSlice": "decoders__ImageSlice",
    "MXNetReader": "readers__MXNet",
    "NemoAsrReader": "readers__NemoAsr",
    "NormalDistribution": "random__Normal",
    "NumpyReader": "readers__Numpy",
    "TFRecordReader": "readers__TFRecord",
    "experimental__decoders__Video": "decoders__Video",
    "SequenceReader": "readers__Sequence",
    "TransformTranslation": "transforms__Translation",
    "Uniform": "random__Uniform",
}
_IMAGE = np.arange(6 * 7 * 3, dtype="u1").reshape(6, 7, 3)
_IMAGES = [(_IMAGE + 3 * i).astype("u1") for i in range(3)]
_FILE = np.frombuffer(next(EXAMPLES.rglob("*.jpg")).read_bytes(), np.uint8)
_FILES = [([_FILE] * 3, None)]
_MASKS = [((np.indices((9, 11)).sum(0) // 4 + i) % 3).astype("i4")[..., None] for i in range(3)]
_BOXES = [np.float32([[0.1, 0.2, 0.6, 0.7], [0.3, 0.3, 0.6, 0.6]])] * 3
_LABELS = [np.int32([1, 2])] * 3
_INDICES = np.int32([2, 0, 1])


def _images(layout="HWC"):
    return [(_IMAGES, layout)]


def made_up() -> dict[str, Program]:
    """Programs by DALI's name of the operator."""
    pastes = {"in_ids": [np.int32([i, 0]) for i in range(3)]}
    return {
        "BatchPermutation": Program([], {}, True),
        "CoordFlip": Program([([np.float32([[0.1, 0.2]])] * 3, None)], {}),
        "Constant": Program([], {"fdata": [1.0, 2.0]}),
        "Zeros": Program([], {"shape": [2, 3]}),
        "Ones": Program([], {"shape": [2, 3]}),
        "ExternalSource": Program([], {}),
        "MultiPaste": Program(_images(), {"output_size": [20, 30]}, more=pastes),
        "PermuteBatch": Program(_images(), {"indices": [2, 0, 1]}),
        "ROIRandomCrop": Program([], {"crop_shape": [2, 3], "roi_start": [1, 1], "roi_shape": [3, 3]}, True),
        "RandomBBoxCrop": Program([(_BOXES, None), (_LABELS, None)], {"thresholds": [0.0], "num_attempts": 3}, True),
        "RandomCropGenerator": Program([([np.int64([60, 70, 3])] * 3, None)], {}, True),
        "RandomResizedCrop": Program(_images(), {"size": [4, 5]}, True),
        "SSDRandomCrop": Program([*_images(), (_BOXES, None), (_LABELS, None)], {}, True),
        "decoders__Audio": Program([([_sound()] * 3, None)], {}),
        "decoders__Image": Program(_FILES, {}),
        "decoders__ImageCrop": Program(_FILES, {"crop": [20, 30]}),
        "decoders__ImageSlice": Program(_FILES, {"start": [5, 6], "shape": [20, 30]}),
        "decoders__ImageRandomCrop": Program(_FILES, {}, True),
        "PeekImageShape": Program(_FILES, {}),
        "noise__Gaussian": Program(_images(), {"stddev": 3.0}, True),
        "noise__SaltAndPepper": Program(_images(), {}, True),
        "noise__Shot": Program(_images(), {"factor": 3.0}, True),
        "random__Beta": Program([], {}, True),
        "random__Choice": Program([([np.int32([3, 4, 5])] * 3, None)], {}, True),
        "random__CoinFlip": Program([], {}, True),
        "random__Normal": Program([], {}, True),
        "random__Uniform": Program([], {}, True),
        "segmentation__RandomMaskPixel": Program([(_MASKS, "HWC")], {}, True),
        "segmentation__RandomObjectBBox": Program([(_MASKS, "HWC")], {}, True),
        "DumpImage": Program(_images(), {"suffix": "of_arguments"}),
        "io__file__Read": Program([([_path(EXAMPLES)] * 3, None)], {}),
    }


def _path(folder: Path) -> np.ndarray:
    return np.frombuffer(str(next(folder.rglob("*.jpg"))).encode(), np.uint8)


def _sound() -> np.ndarray:
    import io
    import wave

    memory = io.BytesIO()
    with wave.open(memory, "wb") as f:
        f.setnchannels(2)
        f.setsampwidth(2)
        f.setframerate(16000)
        f.writeframes((8000 * np.sin(np.arange(2000) / 9)).astype("<i2").tobytes())
    return np.frombuffer(memory.getvalue(), np.uint8)


def readers(root: Path) -> dict[str, Program]:
    """Programs of readers, with data created in `root`."""
    images = root / "images"
    for k, color in enumerate((30, 90, 150, 210)):
        folder = images / f"class{k % 2}"
        folder.mkdir(parents=True, exist_ok=True)
        PillowImage.fromarray(np.full((12, 16, 3), color, "u1")).save(folder / f"{k}.png")
    arrays, frames = root / "arrays", root / "frames" / "one"
    (root / "meta").mkdir()
    arrays.mkdir(), frames.mkdir(parents=True)
    for k in range(4):
        np.save(arrays / f"{k}.npy", np.arange(20, dtype="f4").reshape(4, 5) + k)
        PillowImage.fromarray(np.full((12, 16, 3), 50 * k, "u1")).save(frames / f"{k}.png")
    (root / "list.txt").write_text("".join(f"class{k % 2}/{k}.png {k}\n" for k in range(4)))
    (root / "arrays.txt").write_text("".join(f"{k}.npy\n" for k in range(4)))
    annotations = {
        "images": [{"id": k, "file_name": f"class{k % 2}/{k}.png", "height": 12, "width": 16} for k in range(4)],
        "categories": [{"id": 3, "name": "a"}, {"id": 7, "name": "b"}],
        "annotations": [
            {
                "id": k,
                "image_id": k,
                "category_id": 3 + 4 * (k % 2),
                "bbox": [1.0, 2.0, 8.0, 6.0],
                "area": 48.0,
                "iscrowd": 0,
                "segmentation": [[1.0, 2.0, 9.0, 2.0, 9.0, 8.0, 1.0, 8.0]],
            }
            for k in range(4)
        ],
    }
    (root / "coco.json").write_text(json.dumps(annotations))
    (root / "sound.wav").write_bytes(_sound().tobytes())
    entry = {"audio_filepath": str(root / "sound.wav"), "duration": 0.125, "text": "A word"}
    (root / "manifest.json").write_text("".join(json.dumps(entry) + "\n" for _ in range(4)))
    return {
        "readers__File": Program([], {"file_root": str(images)}),
        "readers__Numpy": Program([], {"file_root": str(arrays)}),
        "readers__Sequence": Program([], {"file_root": str(frames.parent), "sequence_length": 2}),
        "readers__COCO": Program([], {"file_root": str(images), "annotations_file": str(root / "coco.json")}),
        "readers__NemoAsr": Program([], {"manifest_filepaths": [str(root / "manifest.json")]}),
    }


def of_cases(path: str) -> Iterator[Program]:
    """The first cases of an operator's recipe and of its own test."""
    for name in (r for r in RECIPES if r.split()[0] == path):
        for case in itertools.islice(grid.cases(RECIPES[name], REGISTRY[path].schema), 4):
            yield _of_case(case, *grid.data(RECIPES[name], case))
    for test in DECLARED.get(path, []):
        for case in test.cases[:4]:
            yield _of_case(case, *test.data(case))


def _of_case(case, samples, extra, columns) -> Program:
    keep = [i for i, s in enumerate(samples) if s.size] or [0]
    inputs = [([samples[i] for i in keep], case.layout or None)] + [([e[i] for i in keep], None) for e in extra]
    constants = {k: v for k, v in case.kwargs.items() if k not in columns}
    return Program(inputs, constants, more={k: [v[i] for i in keep] for k, v in columns.items()})


def used_by_cases(path: str) -> set[str]:
    """The arguments that the operator's cases have, which the whole comparison runs."""
    cases = [c for t in DECLARED.get(path, []) for c in t.cases]
    for name in (r for r in RECIPES if r.split()[0] == path):
        cases += grid.cases(RECIPES[name], REGISTRY[path].schema)
    return {k for c in cases for k in c.kwargs}


PATHS = {class_path(name).replace(".", "__").lower(): name for name in REGISTRY}
