# SPDX-License-Identifier: Apache-2.0
"""Pictures of the catalogue for operators on boxes, points, masks and windows: photographs with what they do drawn
in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from penstock import fn, types

DATA = Path(__file__).resolve().parents[1] / "examples" / "data"
COLOURS = np.uint8([[255, 205, 40], [60, 220, 255], [255, 90, 160], [150, 255, 90]])
ASTRONAUT, FLOWER, PALACE = "people/astronaut.jpg", "things/flower.jpg", "places/palace.jpg"
# Face, helmet and rocket: left, top, right, bottom as shares of the image.
BOXES = np.float32([[0.33, 0.04, 0.58, 0.38], [0.54, 0.67, 1.0, 1.0], [0.69, 0.0, 0.9, 0.57]])
POINTS = np.float32([[0.40, 0.19], [0.50, 0.19], [0.46, 0.30], [0.79, 0.03]])  # eyes, mouth, the rocket's tip
POLYGONS = np.int32([[0, 0, 4], [1, 4, 8], [2, 8, 11]])  # number of the mask, first vertex, end
VERTICES = np.float32(
    [*[[0.33, 0.2], [0.45, 0.03], [0.58, 0.2], [0.46, 0.39]], *[[0.56, 0.7], [0.8, 0.66], [1, 0.98], [0.6, 0.98]],
     *[[0.69, 0.55], [0.79, 0.0], [0.9, 0.55]]]
)  # fmt: skip
ROI = (0.3, 0.3, 0.5, 0.6)  # top, left, bottom, right


# Drawing -------------------------------------------------------------------------------------------------------------


def line(image: np.ndarray, a: Any, b: Any, colour: np.ndarray) -> None:
    """From (x, y) to (x, y), in pixels, three wide."""
    n = int(max(abs(np.subtract(b, a)).max(), 1)) + 1
    x, y = (np.rint(np.linspace(p, q, n)).astype(int) for p, q in zip(a, b))
    for dx in (-1, 0, 1):
        for dy in (-1, 0, 1):
            inside = (x + dx >= 0) & (x + dx < image.shape[1]) & (y + dy >= 0) & (y + dy < image.shape[0])
            image[(y + dy)[inside], (x + dx)[inside]] = colour


def polygon(image: np.ndarray, corners: np.ndarray, colour: np.ndarray) -> None:
    for a, b in zip(corners, np.roll(corners, -1, axis=0)):
        line(image, a, b, colour)


def with_boxes(image: np.ndarray, boxes: np.ndarray = BOXES) -> np.ndarray:
    """Boxes (n, 4) as left, top, right, bottom in [0, 1]."""
    image, (h, w) = image.copy(), image.shape[:2]
    for i, (left, top, right, bottom) in enumerate(boxes * np.float32([w - 1, h - 1, w - 1, h - 1])):
        corners = np.float32([[left, top], [right, top], [right, bottom], [left, bottom]])
        polygon(image, corners, COLOURS[i % len(COLOURS)])
    return image


def with_points(image: np.ndarray, points: np.ndarray = POINTS) -> np.ndarray:
    """Points (n, 2) as (x, y), in [0, 1]."""
    image, (h, w) = image.copy(), image.shape[:2]
    for i, (x, y) in enumerate(points.reshape(-1, 2) * np.float32([w - 1, h - 1])):
        for dx, dy in ((6, 0), (0, 6)):
            line(image, (x - dx, y - dy), (x + dx, y + dy), COLOURS[i % len(COLOURS)])
    return image


def with_pixels(image: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Points (n, 2) as (x, y), in pixels."""
    return with_points(image, points / np.float32([image.shape[1] - 1, image.shape[0] - 1]))


def with_polygons(image: np.ndarray, polygons: np.ndarray = POLYGONS, vertices: np.ndarray = VERTICES) -> np.ndarray:
    image, (h, w) = image.copy(), image.shape[:2]
    for number, first, end in polygons:
        polygon(image, vertices[first:end] * np.float32([w - 1, h - 1]), COLOURS[number % len(COLOURS)])
    return image


def with_roi(image: np.ndarray) -> np.ndarray:
    top, left, bottom, right = ROI
    return with_boxes(image, np.float32([[left, top, right, bottom]]))


def mask_of(image: np.ndarray) -> np.ndarray:
    """Where the flower is: much redder than green."""
    return (image[..., 0].astype(int) - image[..., 1] > 60).astype("i4")


def with_mask(image: np.ndarray) -> np.ndarray:
    """What is not in the mask, in dark."""
    return np.where(mask_of(image)[..., None] > 0, image, image // 3)


# Calls: (the photograph in the graph, its pixels) -> a picture, and what is drawn into it ---------------------------


def flipped(x: Any, image: np.ndarray) -> Any:
    return fn.flip(x), fn.bb_flip(BOXES, ltrb=True)


def rotated(x: Any, image: np.ndarray) -> Any:
    size = list(map(int, image.shape[:2]))
    boxes = fn.bbox_rotate(BOXES, angle=15, input_shape=size, bbox_layout="xyXY", keep_size=True)
    return fn.rotate(x, angle=15, keep_size=True, fill_value=0), boxes


def pasted(x: Any, image: np.ndarray) -> Any:
    place = {"ratio": 1.5, "paste_x": 0.8, "paste_y": 0.2}
    return fn.paste(x, fill_value=(70, 110, 160), **place), fn.bbox_paste(BOXES, ltrb=True, **place)


def cropped(x: Any, image: np.ndarray) -> Any:
    begin, size, boxes = fn.random_bbox_crop(
        BOXES, bbox_layout="xyXY", scaling=[0.4, 0.8], thresholds=[0.3], allow_no_crop=False
    )
    return fn.slice(x, begin, size), boxes


def ssd_cropped(x: Any, image: np.ndarray) -> Any:
    x, boxes, _ = fn.ssd_random_crop(x, BOXES, np.int32([1, 2, 3]), num_attempts=10)
    return x, boxes


def points_flipped(x: Any, image: np.ndarray) -> Any:
    return fn.flip(x), fn.coord_flip(POINTS)


def points_moved(x: Any, image: np.ndarray) -> Any:
    h, w = image.shape[:2]
    matrix = fn.transforms.rotation(angle=15.0, center=[w / 2, h / 2])
    moved = fn.coord_transform(POINTS * np.float32([w - 1, h - 1]), MT=matrix)
    return fn.warp_affine(x, matrix, inverse_map=False, fill_value=0), moved


def transformed(name: str, **args: Any) -> Any:
    def call(x: Any, image: np.ndarray) -> Any:
        matrix = getattr(fn.transforms, name)(**args)
        return fn.warp_affine(x, matrix, inverse_map=False, fill_value=0)

    return call


def combined(x: Any, image: np.ndarray) -> Any:
    center = [image.shape[1] / 2, image.shape[0] / 2]
    matrix = fn.transforms.combine(
        fn.transforms.rotation(angle=20.0, center=center), fn.transforms.scale(scale=[0.6, 0.9], center=center)
    )
    return fn.warp_affine(x, matrix, inverse_map=False, fill_value=0)


def mask_pixel(x: Any, image: np.ndarray) -> Any:
    pixel = fn.segmentation.random_mask_pixel(mask_of(image), foreground=1)
    return x, fn.stack(pixel[1], pixel[0])


def object_box(x: Any, image: np.ndarray) -> Any:
    begin, end = fn.segmentation.random_object_bbox(
        mask_of(image), format="start_end", foreground_prob=1.0, k_largest=3
    )
    size = np.float32(image.shape[:2][::-1])
    corners = fn.stack(begin[1], begin[0], end[1], end[0])
    return x, fn.cast(corners, dtype=types.FLOAT) / np.float32([*size, *size])


def masks_selected(x: Any, image: np.ndarray) -> Any:
    polygons, vertices = fn.segmentation.select_masks(np.int32([0, 2]), POLYGONS, VERTICES)
    return x, polygons, vertices


def around_roi(x: Any, image: np.ndarray) -> Any:
    h, w = map(int, image.shape[:2])
    begin, end = ([int(s * n) for s, n in zip(part, (h, w))] for part in (ROI[:2], ROI[2:]))
    size = [h // 2, w // 2]
    start = fn.roi_random_crop(crop_shape=size, roi_start=begin, roi_end=end, in_shape=[h, w])
    return fn.slice(x, fn.cast(start, dtype=types.FLOAT), np.float32(size), normalized_anchor=False,
                    normalized_shape=False, axes=[0, 1])  # fmt: skip


def window(x: Any, image: np.ndarray) -> Any:
    begin, size = fn.random_crop_generator(np.int64(image.shape), random_area=[0.2, 0.6])
    return fn.slice(x, begin, size, normalized_anchor=False, normalized_shape=False, axes=[0, 1])


def decoded(name: str, **args: Any) -> Any:
    def call(x: Any, image: np.ndarray) -> Any:
        encoded = types.Constant(np.fromfile(DATA / PALACE, "u1"))
        return fn.resize(getattr(fn.decoders, name)(encoded, **args), resize_longer=320)

    return call
