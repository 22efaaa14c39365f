# SPDX-License-Identifier: Apache-2.0
"""readers.coco: boxes, labels and masks compared with the definition and pycocotools, and errors for damaged files."""

import json
import random

import coco_files
import numpy as np
import pytest

from penstock import fn, pipeline_def


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    root = tmp_path_factory.mktemp("coco")
    return root, coco_files.write(root)


def build(root, batch_size=1, on_error="raise", **kwargs):
    if "preprocessed_annotations" not in kwargs:
        kwargs = {"annotations_file": str(root / "a.json")} | kwargs

    @pipeline_def(batch_size=batch_size, num_threads=2, on_error=on_error)
    def pipe():
        return tuple(fn.readers.coco(name="r", file_root=str(root), **kwargs))

    return pipe()


def read(root, **kwargs):
    pipe = build(root, **kwargs)
    return [[np.array(x.at(0)) for x in pipe.run()] for _ in range(pipe.epoch_size("r"))]


def objects_of(data, image, threshold=0.1, crowds=True):
    return [
        a
        for a in data["annotations"]
        if a["image_id"] == image["id"]
        and min(np.float32(a["bbox"][2:])) >= np.float32(threshold)
        and (crowds or not a["iscrowd"])
    ]


def images_of(data):
    return sorted(data["images"], key=lambda i: i["id"])


@pytest.mark.parametrize("ltrb", [False, True])
@pytest.mark.parametrize("ratio", [False, True])
@pytest.mark.parametrize(
    "rest", [{}, {"size_threshold": 15.0}, {"include_iscrowd": False}, {"skip_empty": True}], ids=str
)
def test_boxes_and_labels(data, ltrb, ratio, rest):
    root, everything = data
    number = {c["id"]: i for i, c in enumerate(everything["categories"], 1)}
    wanted = []
    for image in images_of(everything):
        objects = objects_of(
            everything, image, np.float32(rest.get("size_threshold", 0.1)), rest.get("include_iscrowd", True)
        )
        if rest.get("skip_empty") and not objects:
            continue
        boxes = np.array([a["bbox"] for a in objects], "f4").reshape(-1, 4)
        if ltrb:
            boxes[:, 2:] += boxes[:, :2]
        if ratio:
            boxes /= np.float32([image["width"], image["height"]] * 2)
        wanted.append((image["id"], boxes, [number[a["category_id"]] for a in objects]))
    got = read(root, ltrb=ltrb, ratio=ratio, image_ids=True, **rest)
    assert len(got) == len(wanted)
    for (content, boxes, labels, ids), (id, wanted_boxes, wanted_labels) in zip(got, wanted):
        assert bytes(content) == b"picture %d" % (id // 10) and ids.tolist() == [id] and ids.dtype == "i4"
        assert boxes.dtype == "f4" and labels.dtype == "i4"
        np.testing.assert_array_equal(boxes, wanted_boxes)
        assert labels.tolist() == wanted_labels


def test_class_ids(data):
    root, everything = data
    for (_, _, labels), image in zip(read(root, avoid_class_remapping=True), images_of(everything)):
        assert labels.tolist() == [a["category_id"] for a in objects_of(everything, image)]


@pytest.mark.parametrize("ratio", [False, True])
@pytest.mark.parametrize("name, each", [("polygon_masks", 1), ("masks", 2)])
def test_polygons(data, ratio, name, each):
    root, everything = data
    for (_, _, _, polygons, vertices), image in zip(read(root, ratio=ratio, **{name: True}), images_of(everything)):
        size = np.float32([image["width"], image["height"]] if ratio else [1, 1])
        rows, at, points = [], 0, []
        for k, a in enumerate(objects_of(everything, image)):
            for polygon in a["segmentation"] if isinstance(a["segmentation"], list) else ():
                rows.append([k, at * each, (at + len(polygon) // 2) * each])
                at += len(polygon) // 2
                points += polygon
        assert polygons.tolist() == rows and polygons.shape == (len(rows), 3)
        np.testing.assert_array_equal(vertices, np.float32(points).reshape(-1, 2) / size)


def pixels(mask, everything, image, label_of):
    """The masks of pycocotools, larger labels on top."""
    height, width = image["height"], image["width"]
    out = np.zeros((height, width, 1), "i4")
    for a in sorted(objects_of(everything, image), key=label_of):
        s = a["segmentation"]
        if isinstance(s, list):
            # The reader keeps float32, as DALI does.
            s = [np.float32(p).astype("f8").tolist() for p in s]
            encoded = mask.merge(mask.frPyObjects(s, height, width))
        else:
            encoded = mask.frPyObjects(s, height, width) if isinstance(s["counts"], list) else s
        out[mask.decode(encoded) > 0] = label_of(a)
    return out


@pytest.mark.parametrize("seed", range(6))
def test_pixelwise_masks(tmp_path, seed):
    mask = pytest.importorskip("pycocotools.mask")
    everything = coco_files.write(tmp_path, 12, 80, seed=seed)
    label_of = {90: 1, 3: 2, 7: 3}
    for ratio in (False, True):
        for outputs, image in zip(read(tmp_path, pixelwise_masks=True, ratio=ratio), images_of(everything)):
            wanted = pixels(mask, everything, image, lambda a: label_of[a["category_id"]])
            np.testing.assert_array_equal(outputs[3], wanted, err_msg=str(image))
    assert build(tmp_path, pixelwise_masks=True).run()[3].layout() == "HWC"


def one_object(root, segmentation, size=(30, 40), **more):
    image = {"id": 1, "file_name": "1.jpg", "height": size[0], "width": size[1]}
    a = {"image_id": 1, "category_id": 5, "bbox": [0, 0, 9, 9], "segmentation": segmentation} | more
    (root / "1.jpg").write_bytes(b"x")
    (root / "a.json").write_text(json.dumps({"images": [image], "annotations": [a], "categories": [{"id": 5}]}))


@pytest.mark.parametrize("seed", range(4))
def test_polygons_of_all_kinds(tmp_path, seed):
    """Steep and flat polygons, on and off the grid, with repeated, outside and far away vertices."""
    mask = pytest.importorskip("pycocotools.mask")
    rng = np.random.default_rng(seed)
    for k in range(60):
        n, kind = int(rng.integers(3, 8)), k % 6
        scale = (10, 45, 45, 200, 3000, 45)[kind]
        points = rng.uniform(-scale / 4, scale, (n, 2))
        if kind == 2:
            points = points.round()
        if kind == 5:
            points[:, rng.integers(0, 2)] = (points[:, 0] * 5).round() / 5
        points = np.float32(points[[0, 0, *range(1, n)]] if k % 4 == 0 else points)
        one_object(tmp_path, [points.ravel().tolist()])
        got = read(tmp_path, pixelwise_masks=True)[0][3][..., 0]
        wanted = mask.decode(mask.frPyObjects([points.astype("f8").ravel().tolist()], 30, 40))[..., 0]
        np.testing.assert_array_equal(got, wanted, err_msg=str(points.tolist()))


def test_chosen_images(data):
    root, _ = data
    got = read(root, images=["3.jpg", "1.jpg", "none.jpg", "3.jpg"])
    assert [bytes(x[0]) for x in got] == [b"picture 3", b"picture 1", b"picture 3"]


def test_keys_in_any_order_and_text_of_all_kinds(tmp_path):
    name = 'ü "1"\\ 😀.jpg'
    (tmp_path / name).write_bytes(b"x")
    images = [{"file_name": name, "extra": {"id": [1, {"a": ']}\\"'}]}, "id": 4, "width": 10, "height": 10}, 7, "x"]
    objects = [{"bbox": [1e0, 2.5e1, 3, 4.0], "category_id": 2, "image_id": 4}, None]
    for ascii in (False, True):
        for indent in (None, 2):
            text = {"annotations": objects, "x": {}, "categories": [{"name": "a", "id": 2}], "images": images, "y": []}
            (tmp_path / "a.json").write_text(json.dumps(text, ensure_ascii=ascii, indent=indent), "utf-8")
            ((content, boxes, labels),) = read(tmp_path)
            assert bytes(content) == b"x" and boxes.tolist() == [[1, 25, 3, 4]] and labels.tolist() == [1]


def test_long_file_is_read_in_pieces(tmp_path):
    """Every token crosses the end of a piece once."""
    everything = coco_files.write(tmp_path, 20, 4000)
    short = [[x.tolist() for x in outputs] for outputs in read(tmp_path, polygon_masks=True)]
    for shift in (1, 7, 100):
        text = (tmp_path / "a.json").read_text()
        (tmp_path / "b.json").write_text('{"pad": "' + "x" * shift + '", ' + text[1:])
        again = read(tmp_path, polygon_masks=True, annotations_file=str(tmp_path / "b.json"))
        assert [[x.tolist() for x in outputs] for outputs in again] == short
    assert len(everything["annotations"]) == 4000


@pytest.mark.parametrize(
    "kwargs",
    [
        {"polygon_masks": True},
        {"pixelwise_masks": True, "image_ids": True},
        {"ratio": True, "polygon_masks": True, "ltrb": True},
        {},
    ],
    ids=str,
)
def test_saved_annotations(data, tmp_path, kwargs):
    root, _ = data
    where = {"save_preprocessed_annotations": True, "save_preprocessed_annotations_dir": str(tmp_path)}
    first = read(root, **kwargs, **where)
    kept = {k: v for k, v in kwargs.items() if k not in ("ratio", "ltrb")}
    again = read(root, preprocessed_annotations=str(tmp_path), **kept)
    assert len(first) == len(again)
    for a, b in zip(first, again):
        for x, y in zip(a, b):
            assert x.dtype == y.dtype
            np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize(
    "name",
    [
        "offsets",
        "counts",
        "boxes",
        "labels",
        "polygon_data",
        "vertices",
        "masks_rles",
        "mask_count",
        "heights",
        "masks_rles_idx",
        "polygons_count",
    ],
)
def test_damaged_saved_annotations(data, tmp_path, name):
    root, _ = data
    where = {"save_preprocessed_annotations": True, "save_preprocessed_annotations_dir": str(tmp_path)}
    build(root, pixelwise_masks=True, **where).build()
    path = tmp_path / f"{name}.dat"
    content = path.read_bytes()
    for damaged in (content[:-3], content[:2], b"\xff" * 4 + content[4:], content[:4] + b"\xff" * (len(content) - 4)):
        path.write_bytes(damaged)
        if damaged[4:8] == b"\xff" * 4 and name in ("boxes", "labels", "vertices", "heights"):
            continue  # other values, which fit
        with pytest.raises(ValueError, match=f"{name}.dat|saved annotations are damaged"):
            build(root, pixelwise_masks=True, preprocessed_annotations=str(tmp_path)).build()


# Damage -----------------------------------------------------------------------------------------------------------

IMAGE = '{"id": 1, "width": 9, "height": 9, "file_name": "1.jpg"}'


def text(objects="", images=IMAGE, categories='{"id": 1}'):
    return f'{{"images": [{images}], "annotations": [{objects}], "categories": [{categories}]}}'


@pytest.mark.parametrize(
    "content, error",
    [
        ("", "byte 0: annotations of COCO are an object"),
        ("[]", "byte 0: annotations of COCO are an object"),
        ("{}", "have no 'images'"),
        ('{"images": []}', "have no 'annotations'"),
        (text()[:-1], "a key in quotation marks|',' or '}' is expected"),
        (text()[:30], r"byte 30, in images\[0\]"),
        ("{" + '"a":' + "[" * 10000 + "]" * 10000 + "}", "nested more than 500 deep"),
        ('{"a":' + '{"b":' * 10000, "nested more than 500 deep"),
        ('{"a": [1}', "a bracket closes what was not opened"),
        ('{"a": "x', "ends within a text"),
        ('{"a": "x\\', "ends within a text"),
        ('{"images": 5}', "an array is expected"),
        (text(images='{"width": 3, "file_name": "a"}'), r"in images\[0\]: the image has no 'id'"),
        (text(images='{"id": 3}'), "the image has no 'file_name'"),
        (text(images='{"id": 3.5}'), "'id' must be an integer"),
        (text(images='{"id": 3000000000}'), "'id' must be an integer from -2147483648 to 2147483647"),
        (text(images='{"id": 99999999999999999999999}'), "'id' must be an integer"),
        (text(categories='{"name": "x"}'), r"in categories\[0\]: the category has no 'id'"),
        (text('{"category_id": 1, "bbox": [1,2,3,4]}'), r"in annotations\[0\]: the annotation has no 'image_id'"),
        (text('{"image_id": 1, "bbox": [1,2,3,4]}'), "has no 'category_id'"),
        (text('{"image_id": 1, "category_id": 1}'), "has no 'bbox'"),
        (text('{"image_id": 1, "category_id": 1, "bbox": [1,2,3]}'), "exactly 4 numbers, and has less"),
        (text('{"image_id": 1, "category_id": 1, "bbox": [1,2,3,4,5]}'), "exactly 4 numbers, and has more"),
        (text('{"image_id": 1, "category_id": 1, "bbox": [1,2,3,"4"]}'), "a number is expected"),
        (text('{"image_id": 1, "category_id": 1, "bbox": [1,2,3,1e999]}'), "out of range"),
        (text('{"bbox": [1,2,3,' + "1" * 600 + "]}"), "a number is expected|out of range"),
        (text('{"segmentation": [[1,2,3]]}'), "even number of coordinates"),
        (text('{"segmentation": [1,2]}'), "array of polygons"),
        (text('{"segmentation": {"counts": [1]}}'), "a mask has no 'size'"),
        (text('{"segmentation": {"size": [1, 2]}}'), "a mask has no 'counts'"),
        (text('{"segmentation": {"size": [1, 2], "counts": [5]}}'), "more pixels than its 'size'"),
        (text('{"segmentation": {"size": [1], "counts": [5]}}'), "array of height and width"),
        (text('{"segmentation": {"size": [1, 2], "counts": "~~~"}}'), "no run-length encoding"),
        (text('{"segmentation": {"size": [1, 2], "counts": "ooooooooooooooooo"}}'), "no run-length encoding"),
    ],
    ids=range(34),
)
def test_damaged_annotations(tmp_path, content, error):
    (tmp_path / "a.json").write_text(content)
    with pytest.raises(ValueError, match=error) as e:
        build(tmp_path, pixelwise_masks=True).build()
    assert str(tmp_path / "a.json") in str(e.value)


@pytest.mark.parametrize(
    "segmentation, size, error",
    [
        ({"size": [3, 4], "counts": [2, 3]}, (30, 40), "has 3 x 4 pixels, the image 30 x 40"),
        ([[1, 2, 3, 4, 1e12, 7]], (30, 40), "a polygon has the coordinate"),
        ([[1, 2, 3, 4, 5, 7]], (2**31 - 1, 2**31 - 1), "the image has 2147483647 x 2147483647 pixels"),
    ],
    ids=str,
)
def test_bad_masks_are_bad_samples(tmp_path, segmentation, size, error):
    one_object(tmp_path, segmentation, size)
    with pytest.raises(RuntimeError, match=error) as e:
        build(tmp_path, pixelwise_masks=True).run()
    assert "1.jpg" in str(e.value)


@pytest.mark.parametrize(
    "kwargs, error",
    [
        ({"annotations_file": ""}, "'annotations_file' or 'preprocessed_annotations' is needed"),
        ({"annotations_file": "/no/such.json"}, "/no/such.json"),
        ({"polygon_masks": True, "pixelwise_masks": True}, "can't be used together"),
        ({"save_preprocessed_annotations": True}, "needs 'save_preprocessed_annotations_dir'"),
        ({"images": []}, "'images' is an empty list"),
        ({"images": ["none.jpg"]}, "no pictures"),
        ({"preprocessed_annotations": "/no/such", "ltrb": True}, "ltrb can't be used with"),
        ({"preprocessed_annotations": "/no/such"}, "/no/such: there are no saved annotations"),
    ],
    ids=str,
)
def test_errors(data, kwargs, error):
    with pytest.raises((ValueError, RuntimeError), match=error):
        build(data[0], **kwargs).build()


def test_numbers_are_rounded_as_python_does(tmp_path):
    """Short numbers, which are read 8 digits at a time, long ones, and numbers with exponents."""
    r = random.Random(0)
    texts = [str(r.randrange(10 ** r.randrange(1, 22))) for _ in range(3000)]
    texts += [f"{r.uniform(-1000, 1000):.{r.randrange(1, 20)}f}" for _ in range(6000)]
    texts += [repr(r.uniform(-1, 1) * 10.0 ** r.randrange(-30, 30)) for _ in range(3000)]
    texts += [f"{r.randrange(10**k)}.{r.randrange(10**n):0{n}d}" for k in range(1, 12) for n in range(1, 12)]
    texts += ["0", "-0", "0.0", "1e5", "1E-3", "12345678", "1234567.1234567", "12345678.12345678"]
    texts += texts[:1] * (len(texts) % 2)
    annotation = {"image_id": 1, "category_id": 1, "bbox": [1, 1, 9, 9], "segmentation": [["numbers"]]}
    image = {"id": 1, "file_name": "1.jpg", "width": 10, "height": 10}
    text = json.dumps({"images": [image], "annotations": [annotation], "categories": [{"id": 1}]})
    (tmp_path / "a.json").write_text(text.replace('"numbers"', ", ".join(texts)))
    (tmp_path / "1.jpg").write_bytes(b"x")
    vertices = read(tmp_path, polygon_masks=True)[0][4]
    np.testing.assert_array_equal(vertices.ravel(), np.array([np.float32(float(t)) for t in texts]))
