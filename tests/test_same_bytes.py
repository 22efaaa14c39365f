# SPDX-License-Identifier: Apache-2.0
"""The pipelines of examples/ give the same bytes in every run, with any number of threads and any queue."""

import importlib.util
import zlib

import numpy as np
import pytest

from modules import ROOT, load
from penstock import pipeline_def

DATA = ROOT / "examples" / "data"
SETTINGS = (
    {"num_threads": 1, "prefetch_queue_depth": 1},
    {"num_threads": 2},
    {"num_threads": 5, "prefetch_queue_depth": 4},
)
BATCHES = 6


def example(name, monkeypatch, needs=()):
    for module in needs:
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed")
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    return load(ROOT / "examples" / f"{name}.py")


def batches(run, n=BATCHES):
    """Checksums of all samples of the first batches, with their shapes."""
    found = []
    for _ in range(n):
        samples = [np.asarray(output.as_cpu().at(i)) for output in run() for i in range(len(output))]
        found.append([(x.shape, zlib.crc32(np.ascontiguousarray(x))) for x in samples])
    return found


def once(folder, name, write):
    """A folder written by the first of the tests that need it."""
    made = folder.parent / name
    if not made.exists():
        write(folder)
        folder.rename(made)
        folder.mkdir()
    return made


def shrink(folder):
    """A folder like examples/ with photographs of a third of the width and height, which an emulated GPU decodes in
    less time; they are encoded in the same ways."""
    image, jpeg = pytest.importorskip("PIL.Image"), pytest.importorskip("PIL.JpegImagePlugin")
    for path in DATA.glob("*/*.jpg"):
        whole, small = image.open(path), folder / "data" / path.relative_to(DATA)
        small.parent.mkdir(parents=True, exist_ok=True)
        how = {"subsampling": jpeg.get_sampling(whole), "progressive": "progressive" in whole.info}
        whole.resize([x // 3 for x in whole.size]).save(small, **how)


def demo(folder, patch):
    return example("demo", patch).training, {"root": DATA, "batch_size": 4}


def validation(folder, patch):
    return example("demo", patch).validation, {"root": DATA, "batch_size": 4}


def digits(mix):
    def made(folder, patch):
        program = example("digits", patch, ["sklearn", "PIL"])
        folder = once(folder, "digits", program.write)
        how = {"mix": mix and getattr(program, mix), "training": True, "seed": 1, "batch_size": 32}
        return program.pipeline, {"folder": f"{folder}/train", **how}

    return made


def shards(kind):
    def made(folder, patch):
        program = example("imagenet_shards", patch, ["torch"])
        patch.setattr(program, "DATA", once(folder, "small", shrink) / "data")
        return program.training, {"kind": kind, "paths": program.write_shards(folder, kind), "batch_size": 4}

    return made


def parquet(folder, patch):
    program = example("hugging_face_flax", patch, ["flax", "optax", "pyarrow"])
    program.write_parquet(folder / "a.parquet")
    graph = pipeline_def(program.training.__wrapped__)
    made = {"files": [str(folder / "a.parquet")], "columns": ["image", "label"], "size": 32}
    return graph, {**made, "seed": 1, "batch_size": 4}


def keywords(folder, patch):
    program = example("keywords", patch, ["torch"])
    manifest = program.make_recordings(folder, per_word=8)
    return program.features, {"manifest": manifest, "batch_size": 4, "seed": 1}


def ssd(folder, patch):
    program = example("ssd", patch)
    patch.setattr(program, "HERE", once(folder, "small", shrink))
    return program.training, {"batch_size": 3}


def ssd_coco(folder, patch):
    program, small = example("ssd_coco", patch, ["torch"]), once(folder, "small", shrink)
    patch.setattr(program, "HERE", small)
    program.write_annotations(folder / "instances.json")
    files = {"images": str(small / "data"), "annotations": str(folder / "instances.json")}
    return program.training, {**files, "batch_size": 2}


def action_recognition(folder, patch):
    program = example("action_recognition", patch, ["av", "torch"])
    program.make_videos(folder / "videos", videos=2)
    return program.clips, {"root": str(folder / "videos"), "batch_size": 3, "seed": 1}


def super_resolution(folder, patch):
    program = example("super_resolution", patch, ["av", "torch"])
    program.make_videos(folder, videos=2)
    return program.sequences, {"files": sorted(map(str, folder.iterdir())), "batch_size": 3, "seed": 1}


EXAMPLES = {
    "demo": demo,
    "demo, validation": validation,
    "digits": digits(None),
    "digits with MixUp": digits("mixup"),
    "digits with CutMix": digits("cutmix"),
    "TFRecord": shards("tfrecord"),
    "WebDataset": shards("webdataset"),
    "Parquet": parquet,
    "keywords": keywords,
    "SSD": ssd,
    "SSD on COCO": ssd_coco,
    "action recognition": action_recognition,
    "super-resolution": super_resolution,
}
ON_GPU = ("digits", "digits with MixUp", "digits with CutMix", "TFRecord", "WebDataset", "SSD", "SSD on COCO")


@pytest.mark.parametrize(
    "name, more",
    [
        *(pytest.param(name, {}, id=f"{name}-cpu") for name in EXAMPLES),
        *(pytest.param(name, {"decoder": "mixed", "device_id": 0}, id=f"{name}-gpu") for name in ON_GPU),
    ],
)
def test_same_bytes(name, more, tmp_path, monkeypatch):
    graph, given = EXAMPLES[name](tmp_path, monkeypatch)
    first, *others = (batches(graph(**given, **more, **settings).run) for settings in SETTINGS)
    assert len({str(batch) for batch in first}) > 1 or name == "demo, validation", "batches differ from each other"
    for other in others:
        assert other == first
