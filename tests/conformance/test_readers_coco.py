# SPDX-License-Identifier: Apache-2.0
"""readers.coco compared with the real DALI: outputs, order and metadata for its arguments.

Deliberate differences: with `ratio`, pixelwise masks are drawn from the polygons in pixels (DALI draws the relative
ones); pixels of overlapping objects have the largest label (DALI: except in the last run of the smaller label), and all
run-length encoded masks of a label are drawn (DALI: the last one). Pixelwise masks are therefore compared with
pycocotools in tests/operators/read/test_coco.py, and here where objects do not overlap.
"""

import json

import pytest

from conformance.reader_runs import ORDERS, compare, refuses
from operators.read import coco_files

NAME = "readers.coco"


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("coco")
    coco_files.write(root)
    return root


@pytest.mark.parametrize(
    "kwargs",
    [
        {},
        {"ltrb": True},
        {"ratio": True},
        {"ltrb": True, "ratio": True},
        {"size_threshold": 15.0},
        {"size_threshold": 0.0, "include_iscrowd": False},
        {"skip_empty": True, "image_ids": True},
        {"skip_empty": True, "size_threshold": 30.0, "avoid_class_remapping": True},
        {"avoid_class_remapping": True, "image_ids": True},
        {"save_img_ids": True},
        {"polygon_masks": True, "include_iscrowd": False},
        {"polygon_masks": True, "include_iscrowd": False, "ratio": True, "ltrb": True, "image_ids": True},
        {"masks": True, "include_iscrowd": False},
        {"images": ["3.jpg", "1.jpg", "none.jpg", "3.jpg", "20.jpg"]},
        {"images": ["3.jpg", "20.jpg"], "skip_empty": True, "image_ids": True},
        {"shuffle_after_epoch": False, "random_shuffle": False},
    ],
    ids=str,
)
def test_outputs(root, kwargs):
    compare(
        NAME,
        {"file_root": str(root), "annotations_file": str(root / "a.json"), **kwargs},
        iterations=7,
        sources="first",
    )


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_order(root, order):
    kwargs = {"file_root": str(root), "annotations_file": str(root / "a.json"), "image_ids": True}
    compare(NAME, kwargs | order, iterations=12, sources="first")


def test_pixelwise_masks(tmp_path):
    """Polygons next to a mask."""
    image = {"id": 1, "file_name": "1.jpg", "width": 64, "height": 40}
    shapes = [[1.5, 2, 20.2, 3, 15, 35.5, 3, 30]], [[25, 1, 40, 1, 40, 39, 25, 39], [42, 2, 44, 2, 44, 30]]
    runs = {"size": [40, 64], "counts": [50 * 40 + 5, 30, 10, 30, 10, 30, 64 * 40 - 50 * 40 - 115]}
    objects = [
        {"image_id": 1, "category_id": c, "bbox": [0, 0, 9, 9], "segmentation": s}
        for c, s in zip((5, 7, 2), (*shapes, runs))
    ]
    categories = [{"id": i} for i in (2, 5, 7)]
    (tmp_path / "1.jpg").write_bytes(b"x")
    (tmp_path / "a.json").write_text(json.dumps({"images": [image], "annotations": objects, "categories": categories}))
    kwargs = {"file_root": str(tmp_path), "annotations_file": str(tmp_path / "a.json"), "pixelwise_masks": True}
    compare(NAME, kwargs, batch_size=1, sources="first")


@pytest.mark.parametrize(
    "kwargs", [{"polygon_masks": True}, {"ratio": True, "image_ids": True}, {"pixelwise_masks": True}]
)
def test_saved_annotations_of_dali(tmp_path, kwargs):
    """We read what DALI has saved, and vice versa."""
    from conformance.reader_runs import run

    coco_files.write(tmp_path, crowds=False)
    json_file = {"file_root": str(tmp_path), "annotations_file": str(tmp_path / "a.json")}
    for dali in (False, True):
        where = tmp_path / f"saved by {dali}"
        where.mkdir()
        save = {"save_preprocessed_annotations": True, "save_preprocessed_annotations_dir": str(where)}
        run(dali, NAME, json_file | kwargs | save, iterations=1)
    ours, dalis = (
        {p.name: p.read_bytes() for p in (tmp_path / f"saved by {dali}").iterdir()} for dali in (False, True)
    )
    assert ours == dalis


@pytest.mark.parametrize(
    "kwargs",
    [
        {"annotations_file": None},
        {"annotations_file": "/no/such.json"},
        {"file_root": None},
        {"polygon_masks": True, "pixelwise_masks": True},
        {"images": ["none.jpg"]},
        {"skip_cached_images": True},
        {"shuffle_after_epoch": True, "random_shuffle": True},
        {"shuffle_after_epoch": True, "stick_to_shard": True},
        {"size_threshold": 1000.0, "skip_empty": True},
    ],
    ids=str,
)
def test_errors(root, kwargs):
    kwargs = {"file_root": str(root), "annotations_file": str(root / "a.json")} | kwargs
    ours, dalis = refuses(NAME, {k: v for k, v in kwargs.items() if v is not None})
    assert ours == dalis
