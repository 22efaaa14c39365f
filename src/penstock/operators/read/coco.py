# SPDX-License-Identifier: Apache-2.0
"""Reads pictures and the annotations of objects in them, in COCO's format."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ...core.op import Arg
from ._coco_annotations import Annotations, load, save, scan_json
from ._file_names import FileNames
from ._records import Parsed, RecordReader, Records

_INT32, _FLOAT = np.dtype("i4"), np.dtype("f4")


class COCO(RecordReader):
    """Reads the images of a COCO data set with the boxes, labels and masks of their objects.

    Outputs, for an image with M objects:

    * the encoded image, uint8 of shape (size,);
    * boxes, float32 (M, 4): x, y, width, height, or left, top, right, bottom with `ltrb`; in pixels, or with `ratio` as
      shares of the image's width and height;
    * labels, int32 (M,): categories numbered from 1 in the file's order, or their ids with `avoid_class_remapping`;
    * with `polygon_masks`, polygons, int32 (P, 3): the index of the object, of the first vertex and after the last
      vertex; and vertices, float32 (V, 2): x, y;
    * with `pixelwise_masks`, int32 (height, width, 1), layout HWC: for each pixel the label of the object there, 0 for
      none, the largest label if there are several;
    * with `image_ids`, int32 (1,).

    Images are read in the order of their ids, or in that of `images`. The annotations are read once, when the pipeline
    is built; a file that can't be parsed raises an error that gives the position.

    >>> import json, os, tempfile
    >>> from penstock import fn, pipeline_def
    >>> root = tempfile.mkdtemp()
    >>> _ = open(f"{root}/cat.jpg", "w").write("a picture")
    >>> objects = [{"image_id": 5, "category_id": 17, "bbox": [1, 2, 30, 40], "iscrowd": 0}]
    >>> images = [{"id": 5, "file_name": "cat.jpg", "width": 640, "height": 480}]
    >>> with open(f"{root}/a.json", "w") as f:
    ...     json.dump({"images": images, "annotations": objects, "categories": [{"id": 17, "name": "cat"}]}, f)
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return tuple(fn.readers.coco(file_root=root, annotations_file=f"{root}/a.json", ltrb=True))
    >>> _, boxes, labels = pipe().run()
    >>> boxes.at(0).tolist(), labels.at(0).tolist()
    ([[1.0, 2.0, 31.0, 42.0]], [1])
    """

    module = "readers"
    deprecated = ("COCOReader",)
    parser = "read/coco"

    file_root = Arg(str, None, "Folder of the images.")
    annotations_file = Arg(str, "", "Path of the JSON file with the annotations.")
    images = Arg(
        [str],
        None,
        "Names of the images to read, as in the annotations, in this order; a repeated name gives several samples. "
        "Names that are not in the annotations are ignored.",
    )
    ltrb = Arg(bool, False, "Whether boxes are (left, top, right, bottom) instead of (x, y, width, height).")
    ratio = Arg(bool, False, "Whether coordinates of boxes and polygons are relative to the image's size.")
    size_threshold = Arg(float, 0.1, "Minimum width and height of a box, in pixels; objects with less are omitted.")
    skip_empty = Arg(bool, False, "Whether to omit images without objects.")
    include_iscrowd = Arg(bool, True, "Whether to include objects marked iscrowd=1, which are groups.")
    avoid_class_remapping = Arg(bool, False, "Whether labels are the ids of categories in the file.")
    polygon_masks = Arg(bool, False, "Whether to return the polygons of masks; run-length encoded masks have none.")
    pixelwise_masks = Arg(bool, False, "Whether to return pixelwise masks, from polygons and run-length encodings.")
    masks = Arg(
        bool,
        False,
        "Former name of `polygon_masks`, whose polygons count coordinates, two for each vertex.",
        deprecated="polygon_masks",
    )
    image_ids = Arg(bool, False, "Whether to return the ids of the images.")
    save_img_ids = Arg(bool, None, "Former name of `image_ids`.", deprecated="image_ids")
    preprocessed_annotations = Arg(str, "", "Folder of saved annotations, to read instead of the JSON file.")
    meta_files_path = Arg(
        str, None, "Former name of `preprocessed_annotations`.", deprecated="preprocessed_annotations"
    )
    save_preprocessed_annotations = Arg(bool, False, "Whether to save the annotations in a form that is fast to read.")
    dump_meta_files = Arg(
        bool, None, "Former name of `save_preprocessed_annotations`.", deprecated="save_preprocessed_annotations"
    )
    save_preprocessed_annotations_dir = Arg(str, "", "Folder for the saved annotations. It must exist.")
    dump_meta_files_path = Arg(
        str,
        None,
        "Former name of `save_preprocessed_annotations_dir`.",
        deprecated="save_preprocessed_annotations_dir",
    )

    def setup(self) -> None:
        super().setup()
        v, name = self.values, "fn.readers.coco"
        self.folder = v["meta_files_path"] or v["preprocessed_annotations"]
        self.save_to = v["dump_meta_files_path"] or v["save_preprocessed_annotations_dir"]
        self.saves = bool(v["dump_meta_files"] or v["save_preprocessed_annotations"])
        if v["file_root"] is None:
            raise ValueError(f"{name}: 'file_root' is needed, the folder of the pictures")
        if not v["annotations_file"] and not self.folder:
            raise ValueError(f"{name}: 'annotations_file' or 'preprocessed_annotations' is needed")
        if self.polygons and v["pixelwise_masks"]:
            raise ValueError(f"{name}: 'polygon_masks' and 'pixelwise_masks' can't be used together")
        if self.saves and not self.save_to:
            raise ValueError(f"{name}: 'save_preprocessed_annotations' needs 'save_preprocessed_annotations_dir'")
        if v["images"] is not None and not v["images"]:
            raise ValueError(f"{name}: 'images' is an empty list; leave it out to read all")
        if v["skip_cached_images"]:
            raise ValueError(f"{name}: 'skip_cached_images' can't be used, as every image comes with its objects")
        if self.folder:
            baked = ("images", "ltrb", "ratio", "size_threshold", "skip_empty", "avoid_class_remapping", "masks")
            given = sorted({*baked, "annotations_file", "include_iscrowd"} & self.given - {"masks"})
            if given:
                raise ValueError(
                    f"{name}: {', '.join(given)} can't be used with 'preprocessed_annotations', which were saved with "
                    "the arguments of that time"
                )

    @property
    def ids(self) -> bool:
        return bool(self.values["save_img_ids"] or self.values["image_ids"])

    @property
    def polygons(self) -> bool:
        return bool(self.values["polygon_masks"] or self.values["masks"])

    def n_outputs(self) -> int:
        return 3 + 2 * self.polygons + bool(self.values["pixelwise_masks"]) + self.ids

    def parsed(self) -> tuple[Parsed, ...]:
        outputs = [Parsed(), Parsed(_FLOAT, (None, 4)), Parsed(_INT32, (None,))]
        if self.polygons:
            outputs += [Parsed(_INT32, (None, 3)), Parsed(_FLOAT, (None, 2))]
        if self.values["pixelwise_masks"]:
            outputs.append(Parsed(_INT32, (None, None, 1), "HWC"))
        if self.ids:
            outputs.append(Parsed(_INT32, (1,)))
        return tuple(outputs)

    def find(self) -> Records:
        v = self.values
        masks = bool(v["pixelwise_masks"])
        if self.folder:
            found = load(os.path.expanduser(self.folder), self.polygons or masks, masks, self.ids)
        else:
            found = scan_json(
                os.path.expanduser(v["annotations_file"]),
                v["images"],
                polygons=self.polygons or masks,
                runs=masks,
                needs_size=bool(v["ratio"] or masks),
                **{k: v[k] for k in ("size_threshold", "include_iscrowd", "skip_empty", "ltrb", "ratio")},
                remap=not v["avoid_class_remapping"],
            )
        self.annotations = found
        if self.saves:
            save(os.path.expanduser(self.save_to), found, self.polygons or masks, masks, self.ids)
        if not found.names:
            raise ValueError(f"there are no pictures in {v['annotations_file'] or self.folder} that were asked for")
        return Records(FileNames(os.path.expanduser(v["file_root"]), [found.names]))

    def parser_arguments(self) -> dict[str, Any]:
        a: Annotations = self.annotations
        numbers = {
            "has_polygons": (2 if self.values["masks"] else 1) if self.polygons else 0,
            "has_masks": int(self.values["pixelwise_masks"]),
            "has_ids": int(self.ids),
            "ratio": int(a.ratio),
        }
        return {**{k: x[None] for k, x in a.columns().items()}, **numbers}
