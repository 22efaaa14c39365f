# SPDX-License-Identifier: Apache-2.0
"""Images in all accepted forms."""

import numpy as np
import torch
from PIL import Image


def forms(x: np.ndarray) -> dict:
    """An HWC array in every form."""
    planes = torch.from_numpy(np.ascontiguousarray(x.transpose(2, 0, 1)))
    found = {"chw": planes, "nchw": torch.stack([planes, planes.flip(0)]), "last": torch.from_numpy(x).permute(2, 0, 1)}
    found["strided"] = torch.from_numpy(np.repeat(x.transpose(2, 0, 1), 2, axis=2))[:, :, ::2]
    found["deep"] = torch.stack([planes] * 6).reshape(2, 3, *planes.shape)
    if x.dtype == np.uint8 and x.shape[2] in (1, 3, 4):
        found["image"] = Image.fromarray(x[..., 0] if x.shape[2] == 1 else x)
    return found


def picture_of(x, i=0) -> np.ndarray:
    """The first image of any form as an HWC array."""
    if isinstance(x, Image.Image):
        array = np.asarray(x)
        return array.reshape(*array.shape[:2], -1)
    if isinstance(x, list):
        return picture_of(x[i])
    return x.reshape(-1, *x.shape[-3:])[i].movedim(0, -1).numpy()


def close(found: np.ndarray, expected: np.ndarray, steps: float = 0) -> None:
    """Integers within 0.5 and so many steps of what is computed exactly; floats within some of 1e-6 of the range."""
    assert found.shape == expected.shape
    if found.dtype.kind == "f":
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=3e-5 * max(np.abs(expected).max(initial=0), 1))
        return
    info = np.iinfo(found.dtype)
    assert np.abs(found - np.clip(expected, info.min, info.max)).max(initial=0) <= 0.5001 + steps
