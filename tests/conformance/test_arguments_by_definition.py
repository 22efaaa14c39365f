# SPDX-License-Identifier: Apache-2.0
"""Arguments of DALI's GPU-only operators: both libraries accept a definition with each argument, and reject wrong
types. The operators' own tests check the results, on a real or emulated GPU."""

import warnings

import numpy as np
import pytest

import penstock
from conformance import oracle, report
from conformance.test_every_argument import EVERY, NEEDS_A_DRIVER, ON_CPU, value_of

pytest.importorskip("nvidia.dali")
import nvidia.dali.backend as theirs  # noqa: E402

GPU_ONLY = [n for n in EVERY if n not in ON_CPU and not n.startswith("_")]
# Required arguments of operators.
NEEDED = {
    "experimental__readers__Fits": {"file_root": "no"},
    "VideoReader": {"filenames": ["no.mp4"], "sequence_length": 2},
    "VideoReaderResize": {"filenames": ["no.mp4"], "sequence_length": 2, "size": [4, 4]},
    "readers__Video": {"filenames": ["no.mp4"], "sequence_length": 2},
    "readers__VideoResize": {"filenames": ["no.mp4"], "sequence_length": 2, "size": [4, 4]},
    "experimental__Resize": {"size": [4, 4]},
    "decoders__Inflate": {"shape": [2]},
    "experimental__Inflate": {"shape": [2]},
}
N_INPUTS = {
    "experimental__Remap": 3,
    "VideoReader": 0,
    "VideoReaderResize": 0,
    "readers__Video": 0,
    "readers__VideoResize": 0,
    "experimental__readers__Fits": 0,
}
VALUES = {
    "algorithm": "LZ4",
    "axes": [0, 1],
    "axis_names": "HW",
    "chunk_offsets": [0],
    "chunk_sizes": [4],
    "output_format": 4,
    "sequence_length": 2,
    "crop": [2.0, 2.0],
    "hdu_indices": [1],
    "files": ["no.fits"],
    "file_filter": "*",
    "file_list": "no.txt",
    "file_root": "no",
    "filenames": ["no.mp4"],
    "labels": [1],
    "layout": "H",
    "mode": "stretch",
    "max_size": [6.0, 6.0],
    "window_size": [3, 3],
    "anchor": [1, 1],
    "iterations": 2,
    "border_mode": "reflect_101",
    "pixel_origin": "center",
    "pad_mode": "edge",
    "roi_start": [0.0, 0.0],
    "roi_end": [1.0, 1.0],
    "size": [4.0, 4.0],
    "shape": [2],
}
# Arguments that must be added or omitted.
_SIZES = ("resize_x", "resize_y", "resize_z", "resize_longer", "resize_shorter")
WITH = {
    "enable_frame_num": {"labels": [1]},
    "enable_timestamps": {"labels": [1]},
    "roi_start": {"roi_end": [1.0, 1.0]},
    "roi_end": {"roi_start": [0.0, 0.0]},
    **dict.fromkeys(_SIZES, {"size": None}),
}
MORE_INPUTS = {"enable_external_hints": 1}
_ENUMERATIONS = {
    "image_type": "RGB",
    "interp_type": "INTERP_CUBIC",
    "interp": "INTERP_CUBIC",
    "min_filter": "INTERP_LINEAR",
    "mag_filter": "INTERP_LINEAR",
    "dtype": "FLOAT",
    "dtypes": "FLOAT",
}


def defined(library, name, n_inputs, arguments):
    """The error of the definition, or "" if there is none."""
    module = library.ops
    *path, cls = name.split("__")
    for part in path:
        module = getattr(module, part)
    given = {
        k: getattr(library.types, v) if k in _ENUMERATIONS and isinstance(v, str) and v.isupper() else v
        for k, v in arguments.items()
        if v is not None
    }
    device = "cpu" if name in NEEDS_A_DRIVER else "gpu"

    @library.pipeline_def(batch_size=2, num_threads=1, device_id=0)
    def pipe():
        inputs = [
            library.fn.external_source(source=lambda: [np.zeros((4, 4, 3), "u1")] * 2, layout="HWC").gpu()
            for _ in range(n_inputs)
        ]
        out = getattr(module, cls)(device=device, **given)(*inputs)
        return tuple(out) if isinstance(out, (tuple, list)) else out

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            pipe()
        except Exception as e:
            return oracle._cause(e) or type(e).__name__
    return ""


@pytest.mark.parametrize("name", [*GPU_ONLY, *NEEDS_A_DRIVER])
def test_arguments_of_operators_on_the_gpu(name):
    import nvidia.dali as dali

    wrong, count = [], report.arguments(name)
    for argument in theirs.GetSchema(name).GetArgumentNames():
        value = VALUES.get(argument, _ENUMERATIONS.get(argument))
        if value is None:
            value = value_of(name, argument)
        if name == "Jitter" and argument == "interp_type":
            value = "INTERP_LINEAR"
        if value is None:
            wrong.append(f"no value for {argument}")
            continue
        count.programs += 1
        given = {**NEEDED.get(name, {}), argument: value, **WITH.get(argument, {})}
        n_inputs = N_INPUTS.get(name, 1) + MORE_INPUTS.get(argument, 0)
        told = [defined(library, name, n_inputs, given) for library in (dali, penstock)]
        if any(told):
            wrong.append(f"{argument}={value!r}: DALI: {told[0]!r}, penstock: {told[1]!r}")
    assert not wrong, "\n".join(wrong)
