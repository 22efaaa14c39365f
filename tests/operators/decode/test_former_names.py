# SPDX-License-Identifier: Apache-2.0
"""Names of decoders in DALI's first versions, which programs still use although DALI has removed them."""

from pathlib import Path

import numpy as np
import pytest

from penstock import Pipeline, fn, ops

FILE = np.fromfile(Path(__file__).parents[3] / "examples" / "data" / "places" / "launch_pad.jpg", np.uint8)
NAMES = {"": "Image", "Crop": "ImageCrop", "RandomCrop": "ImageRandomCrop", "Slice": "ImageSlice"}
ARGUMENTS = {"Crop": {"crop": (40, 50)}, "RandomCrop": {"seed": 7}, "Slice": {"start": [10, 5], "shape": [30, 20]}}


def run(decoder, device_id=None):
    pipe = Pipeline(2, 1, device_id, seed=1)
    with pipe:
        pipe.set_outputs(decoder(fn.external_source(source=lambda: [FILE, FILE])))
    out = pipe.run()[0]
    return [np.array(x) for x in (out.as_cpu() if device_id == 0 else out)]


@pytest.mark.parametrize("kind", NAMES)
def test_host_decoder(kind):
    with pytest.deprecated_call(match=f"it is now ops.decoders.{NAMES[kind]}"):
        former = getattr(ops, f"HostDecoder{kind}")(device="cpu", **ARGUMENTS.get(kind, {}))
    current = getattr(ops.decoders, NAMES[kind])(**ARGUMENTS.get(kind, {}))
    for a, b in zip(run(former), run(current)):
        assert (a == b).all()


@pytest.mark.parametrize("kind", NAMES)
def test_nvjpeg_decoder(kind):
    """It needed no device."""
    with pytest.deprecated_call():
        former = getattr(ops, f"nvJPEGDecoder{kind}")(**ARGUMENTS.get(kind, {}))
    current = getattr(ops.decoders, NAMES[kind])(device="mixed", **ARGUMENTS.get(kind, {}))
    for a, b in zip(run(former, 0), run(current, 0)):
        assert (a == b).all()
