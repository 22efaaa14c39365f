# SPDX-License-Identifier: Apache-2.0
"""The definitions of transforms in NumPy. Images are HWC arrays of float64."""

import numpy as np

MODES = {"constant": "constant", "edge": "edge", "reflect": "reflect", "symmetric": "symmetric"}
YIQ = np.array([[0.299, 0.587, 0.114], [0.596, -0.274, -0.321], [0.211, -0.523, 0.311]])


def edge_size(height, width, edge, limit):
    """torchvision's rule: the shorter edge becomes `edge`, the longer one at most `limit`. Fractions are truncated."""
    short, long = sorted((height, width))
    if edge is None:
        new = int(limit * short / long), limit
    else:
        new = edge, int(edge * long / short)
        if limit is not None and new[1] > limit:
            new = int(limit * new[0] / new[1]), limit
    return new if height <= width else new[::-1]


def triangular(x, height, width, antialias=True):
    """Resampling with a triangle filter as wide as a pixel of the smaller image. Border pixels are repeated outside."""
    for axis, size in ((0, height), (1, width)):
        n = x.shape[axis]
        scale = n / size
        support = max(scale, 1.0) if antialias else 1.0
        center = (np.arange(size) + 0.5) * scale - 0.5
        at = np.arange(np.floor(-support), n + np.ceil(support))
        weight = np.maximum(0, 1 - np.abs(at[None] - center[:, None]) / support)
        inside = np.clip(at, 0, n - 1).astype(int)
        matrix = np.zeros((size, n))
        np.add.at(matrix, (slice(None), inside), weight)
        matrix /= matrix.sum(axis=1, keepdims=True)
        x = np.moveaxis(np.tensordot(matrix, x, axes=(1, axis)), 0, axis)
    return x


def window(x, top, left, height, width, mode="constant", fill=0.0):
    """A window, which may extend beyond the image."""
    padded = padded_by(x, max(-left, 0), max(-top, 0), max(left + width - x.shape[1], 0),
                       max(top + height - x.shape[0], 0), mode, fill)  # fmt: skip
    top, left = max(top, 0), max(left, 0)
    return padded[top : top + height, left : left + width]


def padded_by(x, left, top, right, bottom, mode="constant", fill=0.0):
    around = ((top, bottom), (left, right), (0, 0))
    if mode != "constant":
        return np.pad(x, around, mode=mode)
    inside = np.pad(np.ones(x.shape), around)
    return np.where(inside > 0, np.pad(x, around), np.broadcast_to(fill, x.shape[2:]))


def center(x, height, width):
    def start(room):
        return round(room / 2) if room >= 0 else -((1 - room) // 2)  # Python rounds halves to even numbers

    return window(x, start(x.shape[0] - height), start(x.shape[1] - width), height, width)


def blurred(x, height, width, sigma):
    for axis, size in ((0, height), (1, width)):
        r = size // 2
        weight = np.exp(-(np.arange(-r, r + 1.0) ** 2) / (2 * sigma**2))
        weight /= weight.sum()
        around = [(0, 0)] * x.ndim
        around[axis] = (r, r)
        wide = np.pad(x, around, mode="reflect")
        x = sum(w * np.take(wide, range(i, i + x.shape[axis]), axis=axis) for i, w in enumerate(weight))
    return x


def jittered(x, brightness=1.0, contrast=1.0, saturation=1.0, hue=0.0, center=128.0):
    angle = 2 * np.pi * hue
    turn = saturation * np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    chroma = np.eye(3)
    chroma[1:, 1:] = turn
    x = x @ (np.linalg.inv(YIQ) @ chroma @ YIQ).T
    return brightness * (center + contrast * (x - center))


def luma(x):
    return x @ [0.299, 0.587, 0.114]
