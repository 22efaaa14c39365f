# SPDX-License-Identifier: Apache-2.0
"""Pixels at any position of an image, by the definition of each filter."""

import numpy as np

from harness import saturate

MODES = {"replicate": "edge", "reflect": "symmetric", "reflect_101": "reflect", "wrap": "wrap"}


def _weights(interp, at):
    """Integer positions (..., k) of neighbours along an axis, and their weights. Pixel centres are integers."""
    if interp == 0:
        return np.floor(at + 0.5)[..., None], np.ones((*at.shape, 1))
    low = np.floor(at)
    q = at - low
    if interp == 1:
        return low[..., None] + [0, 1], np.stack([1 - q, q], -1)
    if interp == 3:  # Lanczos
        index = low[..., None] + [-2, -1, 0, 1, 2, 3]
        d = at[..., None] - index
        weights = np.sinc(d) * np.sinc(d / 3)
        return index, weights / weights.sum(-1, keepdims=True)
    index = low[..., None] + [-1, 0, 1, 2]
    if interp == "lagrange":  # of each neighbour: 1 there, 0 at the other three
        others = [(k, [j for j in (-1, 0, 1, 2) if j != k]) for k in (-1, 0, 1, 2)]
        return index, np.stack([np.prod([(q - j) / (k - j) for j in js], axis=0) for k, js in others], -1)
    d, a = np.abs(at[..., None] - index), -0.75
    near = (a + 2) * d**3 - (a + 3) * d**2 + 1
    far = a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a
    return index, np.where(d <= 1, near, far)


def sampled(x, u, v, interp=1, border="constant", fill=0.0, pad=64):
    """Samples x (H, W, C) at columns u and rows v, where (0, 0) is the corner of a pixel. Returns (*u.shape, C) of x's
    type."""
    h, w, channels = x.shape
    fill = saturate(np.broadcast_to(np.asarray(fill, "f8"), channels), x.dtype).astype("f8")
    u, v = (np.clip(np.nan_to_num(c, nan=-1e6, posinf=1e6, neginf=-1e6), -1e6, 1e6) for c in (u, v))
    if border == "constant" or not x.size:
        far = 6  # beyond that, all is fill
        wide = np.broadcast_to(fill, (h + 2 * far, w + 2 * far, channels)).copy()
        wide[far : far + h, far : far + w] = x
        u, v = np.clip(u, -3, w + 3), np.clip(v, -3, h + 3)
    else:
        far = pad
        wide = np.pad(x.astype("f8"), ((far, far), (far, far), (0, 0)), mode=MODES[border])
    iu, wu = _weights(interp, u - 0.5)
    iv, wv = _weights(interp, v - 0.5)
    iu, iv = (iu + far).astype(int), (iv + far).astype(int)
    out = np.zeros((*u.shape, channels))
    for i in range(iu.shape[-1]):
        for j in range(iv.shape[-1]):
            out += (wu[..., i] * wv[..., j])[..., None] * wide[iv[..., j], iu[..., i]]
    return saturate(out, x.dtype)


def places(h, w):
    """Columns and rows of the pixels of an image."""
    y, x = np.mgrid[:h, :w].astype("f8")
    return x, y
