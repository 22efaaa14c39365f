# SPDX-License-Identifier: Apache-2.0
"""Annotations of a COCO data set as columns, loaded from its JSON file or from saved annotations."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...core import storage
from ._table import scan

_SCANNED = {
    **{
        "image_id": "i4",
        "image_width": "i4",
        "image_height": "i4",
        "name_end": "i8",
        "names": "u1",
        "category_id": "i4",
    },
    **{"image": "i4", "category": "i4", "box": "f4", "polygon_end": "i8", "vertex_end": "i8", "vertex": "f4"},
    **{"rle_end": "i8", "rle_size": "i4", "run_end": "i8", "run": "u4"},
}


def _none(dtype: str) -> Any:
    return field(default_factory=lambda: np.zeros(0, dtype))


@dataclass
class Annotations:
    """Annotations of n samples as columns; see kernels/read/coco.h. Some annotations may not belong to any sample."""

    names: list[bytes]
    first: np.ndarray  # (n,) start of the sample's range in `order`
    count: np.ndarray  # (n,) length of this range
    order: np.ndarray  # indices of annotations
    box: np.ndarray  # (annotations, 4)
    label: np.ndarray  # (annotations,)
    width: np.ndarray = _none("i4")  # (n,)
    height: np.ndarray = _none("i4")  # (n,)
    id: np.ndarray = _none("i4")  # (n,)
    polygon_end: np.ndarray = _none("i8")  # (annotations,)
    vertex_end: np.ndarray = _none("i8")  # (polygons,)
    vertex: np.ndarray = _none("f4")  # (vertices, 2)
    rle_end: np.ndarray = _none("i8")  # (annotations,)
    rle_size: np.ndarray = _none("i4")  # (masks, 2): height, width
    run_end: np.ndarray = _none("i8")  # (masks,)
    run: np.ndarray = _none("u4")  # (runs,)
    ratio: bool = False  # whether to divide the vertices, in pixels, by the image size

    def columns(self) -> dict[str, np.ndarray]:
        given = {k: getattr(self, k) for k in self.__dataclass_fields__ if k not in ("names", "ratio")}
        # Missing columns are filled, so that the parser does not read out of bounds.
        for name in ("polygon_end", "rle_end"):
            if not len(given[name]):
                given[name] = np.zeros(len(self.label), "i8")
        for name in ("width", "height", "id"):
            if not len(given[name]):
                given[name] = np.zeros(len(self.names), "i4")
        return given


def scan_json(
    path: str,
    images: list[str] | None,
    *,
    polygons: bool,
    runs: bool,
    needs_size: bool,
    size_threshold: float,
    include_iscrowd: bool,
    skip_empty: bool,
    ltrb: bool,
    ratio: bool,
    remap: bool,
) -> Annotations:
    """Parses a JSON file. Raises ValueError with the position of an invalid byte."""
    arguments = (size_threshold, int(include_iscrowd), int(polygons), int(runs))
    try:
        t = scan("coco_annotations", os.fsencode(path), *arguments, **_SCANNED)
    except ValueError as e:
        raise ValueError(f"{storage.without_secrets(path)}: {e}") from None
    begins = np.concatenate([[0], t["name_end"][:-1]]) if len(t["name_end"]) else t["name_end"]
    text = t.pop("names").tobytes()
    names = [text[b : e - 1] for b, e in zip(begins.tolist(), t["name_end"].tolist())]
    if images is None:
        chosen = np.argsort(t["image_id"], kind="stable")
    else:
        number = {name: i for i, name in enumerate(names)}
        wanted = (number.get(os.fsencode(name), -1) for name in images)
        chosen = np.array([i for i in wanted if i >= 0], "i8")
    # Annotations in the order of their images' ids, without those of unknown images.
    known = np.sort(t["image_id"])
    known = known[np.append(True, known[1:] != known[:-1])] if len(known) else known
    rank = _places(known, t["image"])
    there = rank < len(known)
    order = np.argsort(np.where(there, rank, len(known)), kind="stable")[: int(there.sum())]
    begin = np.concatenate([[0], np.cumsum(np.bincount(rank[there], minlength=len(known)))])
    of_sample = np.searchsorted(known, t["image_id"][chosen])
    first, count = begin[of_sample], begin[of_sample + 1] - begin[of_sample]
    if skip_empty:
        chosen, first, count = chosen[count > 0], first[count > 0], count[count > 0]
    width, height = t["image_width"][chosen], t["image_height"][chosen]
    if needs_size and ((width <= 0) | (height <= 0)).any():
        i = int(((width <= 0) | (height <= 0)).argmax())
        raise ValueError(f"{path}: the image {os.fsdecode(names[chosen[i]])} has no width or height")
    box = t["box"].reshape(-1, 4).copy()
    if ltrb:
        box[:, 2:] += box[:, :2]
    if ratio:
        row = np.zeros(len(known), "i8")
        row[of_sample if not skip_empty else np.searchsorted(known, t["image_id"][chosen])] = np.arange(len(chosen))
        sample = row[np.where(there, rank, 0)]
        size = np.stack([width, height, width, height], 1).astype("f4")
        box[there] /= size[sample[there]]
    return Annotations(
        [names[i] for i in chosen.tolist()],
        *(first, count, order.astype("i8"), box),
        _remapped(t["category"], t["category_id"]) if remap else t["category"],
        *(width, height, t["image_id"][chosen]),
        *(t["polygon_end"], t["vertex_end"], t["vertex"].reshape(-1, 2)),
        *(t["rle_end"], t["rle_size"].reshape(-1, 2), t["run_end"], t["run"]),
        ratio=ratio,
    )


def _places(known: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Indices of values in a sorted array without duplicates; its length for missing values."""
    n = len(known)
    low, room = (int(known[0]), int(known[-1]) - int(known[0]) + 1) if n else (0, 0)
    if n and room <= 16 * n + len(values):  # for dense ids, a table is faster than a search
        table = np.full(room + 1, n, "i4")
        table[known.astype("i8") - low] = np.arange(n)
        place = values.astype("i8") - low
        return table[np.where((place >= 0) & (place < room), place, room)]
    place = np.searchsorted(known, values)
    place[place < n] = np.where(known[place[place < n]] == values[place < n], place[place < n], n)
    return place


def _remapped(category: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """Numbers of categories, from 1, in the order of the file; 0 for unknown categories."""
    unique, first = np.unique(ids, return_index=True)
    if not len(unique):
        return np.zeros_like(category)
    place = np.minimum(np.searchsorted(unique, category), len(unique) - 1)
    return np.where(unique[place] == category, first[place] + 1, 0).astype("i4")


# Saved annotations, in DALI's file format: a count as uint32, then the numbers. -----------------------------


def _write(folder: str, name: str, values: np.ndarray, count: int | None = None) -> None:
    if len(values):
        with open(os.path.join(folder, name + ".dat"), "wb") as f:
            f.write(np.uint32(len(values) if count is None else count).tobytes())
            f.write(np.ascontiguousarray(values).tobytes())


def save(folder: str, a: Annotations, polygons: bool, runs: bool, ids: bool) -> None:
    """Writes annotations for `load`. Raises OSError if the folder is not writable."""
    columns = a.columns()
    mine = _ranges(a.first, a.count)
    number = a.order[mine]
    offsets = np.cumsum(a.count) - a.count
    _write(folder, "offsets", offsets.astype("i4"))
    _write(folder, "boxes", a.box[number].ravel())
    _write(folder, "labels", a.label[number])
    _write(folder, "counts", a.count.astype("i4"))
    with open(os.path.join(folder, "filenames.dat"), "wb") as f:
        f.writelines(name + b"\n" for name in a.names)
    if polygons:
        begin, per = _begins(columns["polygon_end"])[number], _lengths(columns["polygon_end"])[number]
        polygon = _ranges(begin, per)
        n_vertices = _lengths(a.vertex_end)[polygon]
        vertex = a.vertex[_ranges(_begins(a.vertex_end)[polygon], n_vertices)]
        object_of_polygon = np.repeat(np.arange(len(number)), per)
        sample = np.repeat(np.arange(len(a.names)), a.count)[object_of_polygon]
        polygons_of = np.bincount(sample, minlength=len(a.names))
        vertices_of = np.bincount(sample, n_vertices, len(a.names)).astype("i8")
        vertices_before = np.cumsum(vertices_of) - vertices_of
        last = np.cumsum(n_vertices) - vertices_before[sample]
        rows = np.stack([object_of_polygon - offsets[sample], last - n_vertices, last], 1).astype("i4")
        if a.ratio:
            vertex /= np.stack([a.width, a.height], 1).astype("f4")[np.repeat(sample, n_vertices)]
        _write(folder, "polygon_data", rows)
        _write(folder, "polygon_offset", np.cumsum(polygons_of) - polygons_of)
        _write(folder, "polygons_count", polygons_of)
        _write(folder, "vertices", vertex)
        _write(folder, "vertices_offset", vertices_before)
        _write(folder, "vertices_count", vertices_of)
    if runs:
        per = _lengths(columns["rle_end"])[number]
        mask = _ranges(_begins(columns["rle_end"])[number], per)
        object_of_mask = np.repeat(np.arange(len(number)), per)
        sample = np.repeat(np.arange(len(a.names)), a.count)[object_of_mask]
        n_runs, begin = _lengths(a.run_end), _begins(a.run_end)
        if len(mask):
            with open(os.path.join(folder, "masks_rles.dat"), "wb") as f:
                f.write(np.uint32(len(mask)).tobytes())
                for i in mask.tolist():
                    f.write(np.array([*a.rle_size[i], n_runs[i]], "u8").tobytes())
                    f.write(a.run[begin[i] : begin[i] + n_runs[i]].tobytes())
        masks_of = np.bincount(sample, minlength=len(a.names))
        _write(folder, "masks_rles_idx", (object_of_mask - offsets[sample]).astype("i4"))
        _write(folder, "masks_offset", np.cumsum(masks_of) - masks_of)
        _write(folder, "mask_count", masks_of)
        _write(folder, "heights", a.height)
        _write(folder, "widths", a.width)
    if ids:
        _write(folder, "original_ids", a.id)


def _begins(end: np.ndarray) -> np.ndarray:
    return np.concatenate([np.zeros(1, "i8"), end[:-1]]) if len(end) else end


def _lengths(end: np.ndarray) -> np.ndarray:
    return end - _begins(end)


def _ranges(begin: np.ndarray, count: np.ndarray) -> np.ndarray:
    """The numbers begin[0], begin[0] + 1, ... (count[0] of them), begin[1], ..."""
    before = np.cumsum(count) - count
    return np.arange(int(count.sum())) + np.repeat(begin - before, count)


def _read(folder: str, name: str, dtype: str, width: int = 1) -> np.ndarray:
    """Reads a column. Empty if there is no file, as empty columns are not written."""
    path = os.path.join(folder, name + ".dat")
    try:
        data = storage.read(path)
    except FileNotFoundError:
        return np.zeros((0, width) if width > 1 else 0, dtype)
    count = int.from_bytes(data[:4], "little")
    if name == "boxes":
        count //= width
    if len(data) != 4 + count * width * np.dtype(dtype).itemsize:
        raise ValueError(f"{path}: the file has {len(data)} bytes, which do not fit the {count} elements it promises")
    values = np.frombuffer(data, dtype, offset=4)
    return values.reshape(-1, width) if width > 1 else values


def _check(fits: object, folder: str, what: str) -> None:
    if not fits:
        raise ValueError(f"{folder}: the saved annotations are damaged, or of different data sets: {what}")


def load(folder: str, polygons: bool, runs: bool, ids: bool) -> Annotations:
    """Loads what `save` or DALI has written. Raises ValueError for inconsistent files."""
    try:
        names = storage.read(os.path.join(folder, "filenames.dat")).split()
    except OSError as e:
        raise ValueError(f"{folder}: there are no saved annotations: {e.strerror}") from None
    n = len(names)
    first, count = _read(folder, "offsets", "i4").astype("i8"), _read(folder, "counts", "i4").astype("i8")
    box, label = _read(folder, "boxes", "f4", 4), _read(folder, "labels", "i4")
    _check(len(first) == len(count) == n, folder, f"{n} names, {len(first)} offsets, {len(count)} counts")
    _check(len(box) == len(label) == count.sum() and (count >= 0).all(), folder, "boxes, labels or counts")
    _check((first == np.cumsum(count) - count).all(), folder, "offsets")
    a = Annotations(names, first, count, np.arange(len(label)), box, label)
    if polygons:
        rows, vertex = _read(folder, "polygon_data", "i4", 3), _read(folder, "vertices", "f4", 2)
        n_rows, n_vertices = _read(folder, "polygons_count", "i8"), _read(folder, "vertices_count", "i8")
        _check(len(n_rows) in (0, n) and len(n_rows) == len(n_vertices), folder, "counts of polygons")
        _check(n_rows.sum() == len(rows) and n_vertices.sum() == len(vertex), folder, "polygons or vertices")
        _check((n_rows >= 0).all() and (n_vertices >= 0).all(), folder, "negative counts of polygons")
        sample = np.repeat(np.arange(len(n_rows)), n_rows)
        end = rows[:, 2] + (np.cumsum(n_vertices) - n_vertices)[sample] if len(rows) else np.zeros(0, "i8")
        size = rows[:, 2].astype("i8") - rows[:, 1]
        _check((size >= 0).all() and (np.cumsum(size) == end).all(), folder, "vertices of polygons")
        a.vertex_end, a.vertex = end.astype("i8"), vertex
        a.polygon_end = _ends_of_objects(folder, rows[:, 0], sample, first, count)
    if runs:
        a.rle_size, a.run_end, a.run = _load_runs(folder)
        which, n_masks = _read(folder, "masks_rles_idx", "i4"), _read(folder, "mask_count", "i8")
        a.height, a.width = _read(folder, "heights", "i4"), _read(folder, "widths", "i4")
        _check(len(a.height) == len(a.width) == n, folder, "heights and widths; were they saved with pixelwise_masks?")
        _check(len(which) == len(a.run_end) == n_masks.sum() and len(n_masks) in (0, n), folder, "masks")
        _check((n_masks >= 0).all(), folder, "negative counts of masks")
        a.rle_end = _ends_of_objects(folder, which, np.repeat(np.arange(len(n_masks)), n_masks), first, count)
    if ids:
        a.id = _read(folder, "original_ids", "i4")
        _check(len(a.id) == n, folder, "ids; were they saved with image_ids?")
    return a


def _ends_of_objects(
    folder: str, which: np.ndarray, sample: np.ndarray, first: np.ndarray, count: np.ndarray
) -> np.ndarray:
    """End (annotations,) of each annotation's range in a list of items, such as polygons; each item belongs to the
    object `which` of a sample."""
    _check(((which >= 0) & (which < count[sample])).all(), folder, "numbers of objects")
    number = first[sample] + which
    _check((np.diff(number) >= 0).all(), folder, "the order of objects")
    return np.cumsum(np.bincount(number, minlength=int(count.sum()))).astype("i8")


def _load_runs(folder: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    try:
        data = storage.read(os.path.join(folder, "masks_rles.dat"))
    except FileNotFoundError:
        return np.zeros((0, 2), "i4"), np.zeros(0, "i8"), np.zeros(0, "u4")
    sizes, parts, at = [], [], 4
    for _ in range(int.from_bytes(data[:4], "little")):
        _check(len(data) - at >= 24, folder, "masks_rles.dat ends too early")
        height, width, n = np.frombuffer(data, "u8", 3, at).tolist()
        _check(height * width < 1 << 31 and n * 4 <= len(data) - at - 24, folder, "masks_rles.dat")
        sizes.append((height, width))
        parts.append(np.frombuffer(data, "u4", n, at + 24))
        at += 24 + 4 * n
    return (
        np.array(sizes, "i4").reshape(-1, 2),
        np.cumsum([len(p) for p in parts]),
        np.concatenate([*parts, np.zeros(0, "u4")]),
    )
