# SPDX-License-Identifier: Apache-2.0
"""The same mistakes in both libraries: what DALI rejects is rejected with an exception of the same type, and not later
(invalid constants raise in their own line, which is earlier)."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from moments import failure

IMAGE = (np.arange(126, dtype="u1").reshape(6, 7, 3), "HWC")
CHW = (IMAGE[0].transpose(2, 0, 1).copy(), "CHW")
ODD = (IMAGE[0], "XYZ")
PLANE = (IMAGE[0][..., 0].copy(), "HW")
LINE = (np.arange(7, dtype="u1"), None)
BOOLS = (IMAGE[0] > 60, "HWC")
VIDEO = (IMAGE[0][None], "FHWC")
NOTHING = (np.float32(1), None)
POINTS = (np.zeros((4, 2), "f4"), None)
TRIPLES = (np.zeros((4, 3), "f4"), None)
BOXES = (np.float32([[0, 0, 0.5, 0.5]]), None)
FAR_BOX = (np.full((1, 4), 3, "f4"), None)
LABELS = (np.zeros(1, "i4"), None)
SIGNAL = (np.zeros(9, "f4"), None)
SPECTRUM = (np.zeros((9, 9), "f4"), "ft")
FLOATS = (IMAGE[0].astype("f4"), "HWC")
SMALL = (np.zeros((2, 2, 3), "u1"), "HWC")
POLYGONS = ((np.int32([9]), None), (np.zeros((1, 3), "i4"), None), (np.zeros((3, 2), "f4"), None))

CROP, WINDOW = {"crop": (3, 3)}, {"start": (1, 1), "shape": (2, 2), "axes": (0, 1)}
PASTED, CANVAS = {"ratio": 2.0, "fill_value": 0}, {"in_ids": [0], "output_size": (5, 5)}
TWO_RANGES = {"crop_shape": (2, 2, 3), "roi_start": (0, 0, 0)}

# operator: (inputs, arguments)
MISTAKES = {
    "gaussian_blur": [
        *((IMAGE, {"window_size": w}) for w in (4, -3, (3, 3, 3), "x", None)),
        (IMAGE, {"sigma": -1.0}),
        (IMAGE, {}),
        (BOOLS, {"window_size": 3}),
    ],
    "laplacian": [
        *((IMAGE, {"window_size": w}) for w in (4, 1, 33, (3, 5, 7))),
        *((IMAGE, {"smoothing_size": s}) for s in (4, 0, 33)),
        (IMAGE, {"scale": [1.0, 2.0, 3.0]}),
        (IMAGE, {"dtype": "INT32"}),
    ],
    "paste": [
        (IMAGE, {**PASTED, "ratio": 0.5}),
        (IMAGE, {**PASTED, "paste_x": 2.0}),
        (IMAGE, {"ratio": 2.0}),
        (IMAGE, {**PASTED, "min_canvas_size": -5.0}),
        (CHW, PASTED),
        (PLANE, PASTED),
    ],
    "multi_paste": [
        *((IMAGE, {**CANVAS, "in_ids": [i]}) for i in (5, -1)),
        *((IMAGE, {**CANVAS, "output_size": s}) for s in ((5, 5, 5), (-5, 5))),
        (IMAGE, {"output_size": (5, 5)}),
        (IMAGE, {**CANVAS, "shapes": [[9, 9]]}),
    ],
    "sequence_rearrange": [
        *((VIDEO, {"new_order": o}) for o in ([1], [-1], [])),
        (IMAGE, {"new_order": [0]}),
        (NOTHING, {"new_order": [0]}),
        (VIDEO, {"new_order": "x"}),
    ],
    "crop": [
        (IMAGE, {"crop": (9, 9)}),
        (IMAGE, {**CROP, "crop_pos_x": 1.5}),
        (IMAGE, {**CROP, "crop_w": 3}),
        (IMAGE, {"crop_w": 3}),
        (ODD, CROP),
        (NOTHING, CROP),
    ],
    "slice": [
        (IMAGE, {**WINDOW, "start": (5, 5), "shape": (5, 5)}),
        *((IMAGE, {**WINDOW, "axes": axes}) for axes in ((0, 7), (0, 0), (-9, 0))),
        (IMAGE, {"start": (1, 1), "shape": (2, 2), "axis_names": "HX"}),
        (IMAGE, {**WINDOW, "end": (3, 3)}),
        (IMAGE, {**WINDOW, "rel_start": (0.1, 0.1)}),
        (IMAGE, {**WINDOW, "shape": (2, 2, 2)}),
        (IMAGE, {**WINDOW, "shape": (-2, 2)}),
        (IMAGE, {"start": (1,) * 4, "shape": (2,) * 4}),
    ],
    "pad": [
        *((IMAGE, {"axes": axes}) for axes in ((7,), (0, 0))),
        (IMAGE, {"axis_names": "X"}),
        (IMAGE, {"axes": (0,), "shape": (3, 3)}),
        *((IMAGE, {"axes": (0,), "align": (n,)}) for n in (0, -2)),
    ],
    "transpose": [(IMAGE, {"perm": p}) for p in ((0, 1), (0, 0, 1), (0, 1, 5), (0, 1, -1))],
    "reductions.sum": [
        *((IMAGE, {"axes": axes}) for axes in ((7,), (-4,), (0, 0), "x")),
        (IMAGE, {"axis_names": "X"}),
        (IMAGE, {"axis_names": "H", "axes": 0}),
    ],
    "normalize": [(IMAGE, {"axes": (7,)}), (IMAGE, {"axis_names": "X"}), (IMAGE, {"dtype": "x"})],
    "stack": [
        ((IMAGE, SMALL), {}),
        *(((IMAGE, IMAGE), {"axis": a}) for a in (7, -7, "x")),
        ((IMAGE, IMAGE), {"axis_name": "XY"}),
    ],
    "cat": [
        ((IMAGE, SMALL), {}),
        ((IMAGE, FLOATS), {}),
        ((IMAGE, PLANE), {}),
        ((IMAGE, IMAGE), {"axis": 7}),
        ((IMAGE, IMAGE), {"axis_name": "X"}),
    ],
    "expand_dims": [(IMAGE, {"axes": a}) for a in ((9,), (0, 0), (-1,))],
    "squeeze": [(IMAGE, {"axes": (0,)}), (IMAGE, {"axis_names": "X"})],
    "element_extract": [*((VIDEO, {"element_map": [i]}) for i in (5, -1)), (IMAGE, {"element_map": [0]})],
    "reshape": [
        *((IMAGE, {"shape": s}) for s in ([5], [-1, -1], [-1, 5])),
        (IMAGE, {"shape": [1], "rel_shape": [1.0]}),
        (IMAGE, {"shape": [2, 63], "layout": "X"}),
        (IMAGE, {"rel_shape": [0.5, 1, 1]}),
    ],
    "permute_batch": [(IMAGE, {"indices": i}) for i in ([5, 1], [-1, 1], [1])],
    "resize": [
        (IMAGE, {}),
        (IMAGE, {"size": (3, 3), "resize_x": 3}),
        (IMAGE, {"size": (3, 3), "mode": "foo"}),
        (IMAGE, {"resize_x": 3, "resize_shorter": 3}),
        (IMAGE, {"size": (3, 3), "roi_start": (0, 0)}),
        (IMAGE, {"size": "x"}),
        (IMAGE, {"size": (3, 3), "foo": 3}),
        (LINE, {"size": (3, 3)}),
        ((IMAGE,) * 5, {"size": (3, 3)}),
    ],
    "rotate": [(IMAGE, {"angle": 3.0, "interp_type": "INTERP_CUBIC"}), (IMAGE, {}), (IMAGE, {"angle": "x"})],
    "warp_affine": [(IMAGE, {}), (IMAGE, {"matrix": (1.0, 2.0)})],
    "lookup_table": [
        (IMAGE, {"keys": [1, 2], "values": [1.0]}),
        (IMAGE, {"keys": [-1], "values": [1.0]}),
        (FLOATS, {"keys": [1], "values": [1.0]}),
    ],
    "one_hot": [(LABELS, {"axis": 7})],
    "erase": [
        (IMAGE, {"anchor": (1, 1), "shape": (2,)}),
        (IMAGE, {"anchor": (1, 1, 1), "shape": (2, 2, 2)}),
        (IMAGE, {"anchor": (1, 1), "shape": (2, 2), "axis_names": "XY"}),
    ],
    "crop_mirror_normalize": [
        (IMAGE, {**CROP, "mean": [1.0, 2.0]}),
        (IMAGE, {**CROP, "dtype": "INT64"}),
        (BOOLS, CROP),
    ],
    "color_twist": [(PLANE, {}), (CHW, {}), (IMAGE, {"brightness": "x"})],
    "brightness": [(ODD, {}), (BOOLS, {}), (NOTHING, {})],
    "hsv": [(PLANE, {})],
    "jpeg_compression_distortion": [(FLOATS, {})],
    "random.uniform": [
        ((), {"range": (3.0, 1.0)}),
        ((), {"range": (1.0,)}),
        ((), {"values": [1.0], "range": (0.0, 1.0)}),
        ((), {"shape": [-1]}),
    ],
    "random.beta": [((), {"alpha": -1.0}), ((), {"beta": 0.0})],
    "constant": [((), {"idata": [1], "fdata": [1.0]}), ((), {}), ((), {"fdata": [1.0, 2.0], "shape": [3]})],
    "coord_transform": [(POINTS, {"M": [1.0, 2.0, 3.0]}), (POINTS, {"MT": [1.0] * 6, "M": [1.0] * 4})],
    "bb_flip": [(TRIPLES, {})],
    "bbox_paste": [(TRIPLES, {"ratio": 2.0})],
    "random_bbox_crop": [
        (TRIPLES, {}),
        (FAR_BOX, {}),
        (BOXES, {"aspect_ratio": [-1.0, 1.0]}),
        (BOXES, {"thresholds": [2.0]}),
        (BOXES, {"threshold_type": "foo"}),
        (BOXES, {"bbox_layout": "xyz"}),
        (BOXES, {"num_attempts": 0}),
        (BOXES, {"crop_shape": (3, 3)}),
    ],
    "box_encoder": [
        ((BOXES, LABELS), {"anchors": [1.0]}),
        ((BOXES, LABELS), {"anchors": [0.0, 0, 1, 1], "criteria": 2.0}),
    ],
    "cast": [(IMAGE, {}), ((), {"dtype": "FLOAT"}), (IMAGE, {"dtype": "x"})],
    "segmentation.random_object_bbox": [(IMAGE, {"format": "foo"})],
    "segmentation.random_mask_pixel": [(IMAGE, {"value": 1, "threshold": 1})],
    "segmentation.select_masks": [(POLYGONS, {})],
    "roi_random_crop": [(IMAGE, {**TWO_RANGES, "roi_shape": (9, 9, 9)})],
    "audio_resample": [(SIGNAL, {}), (SIGNAL, {"scale": 1.0, "quality": 200.0}), (SIGNAL, {"scale": -1.0})],
    "spectrogram": [(SIGNAL, {"nfft": -1}), (SIGNAL, {"window_fn": [1.0] * 3, "window_length": 4})],
    "mel_filter_bank": [(SPECTRUM, {"mel_formula": "foo"})],
    "mfcc": [(SPECTRUM, {"dct_type": 7})],
    "nonsilent_region": [(SIGNAL, {"window_length": 99})],
    "preemphasis_filter": [(SIGNAL, {"border": "foo"})],
}
CASES = [(name, i) for name, mistakes in MISTAKES.items() for i in range(len(mistakes))]
MOMENTS = ("definition", "build", "run", "never")


class Twice:
    def __init__(self, sample):
        self.batch = [sample, sample]

    def __call__(self):
        return self.batch


def mistake(fn, types, make, name, inputs, kwargs):
    """When the error is raised, and its type."""
    inputs = inputs if not inputs or isinstance(inputs[0], tuple) else (inputs,)
    kwargs = {
        k: getattr(types, v) if isinstance(v, str) and v.isupper() and len(v) > 2 else v for k, v in kwargs.items()
    }
    source = fn.external_source
    for part in name.split("."):
        fn = getattr(fn, part)

    def define():
        given = [source(source=Twice(a), layout=layout) for a, layout in inputs]
        return fn(*given, **kwargs)

    return failure(
        lambda: make(batch_size=2, num_threads=1, device_id=None, seed=1, prefetch_queue_depth=1),
        define,
    )


# Parts of DALI's error messages that programs search for.
PHRASES = {
    ("laplacian", 0): "Window size must be an odd integer",
    ("laplacian", 4): "Smoothing window size must be an odd integer",
    ("gaussian_blur", 0): "should have odd length",
    ("gaussian_blur", 1): "must have non-negative values",
    ("paste", 0): "ratio.? of less than 1 is not supported",
    ("paste", 1): "paste_x.? must be in range",
    ("multi_paste", 0): "must be in range",
    ("sequence_rearrange", 0): r"new_order\[0\] must be between 0 and input_sequence_length = 1",
    ("crop", 0): "can't be placed out of bounds",
    ("crop", 4): "does not match any of the allowed layouts",
    ("slice", 0): "can't be placed out of bounds",
    ("slice", 1): "Axis 7 out of range. Expected range is",
    ("slice", 2): "occurs more than once",
    ("pad", 0): "Axis 7 out of range",
    ("pad", 2): "Axis 'X' is not present in the input layout",
    ("reductions.sum", 0): "Axis index out of range: 7",
    ("resize", 2): "nvalid resize mode",
    ("resize", 4): "roi_end.{0,2} must be specified together",
}


def told(fn, types, make, name, i):
    """When it is raised, the exception's built-in base classes, and its text."""
    when, error = mistake(fn, types, make, name, *MISTAKES[name][i])
    return when, [c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins"], str(error)


@pytest.fixture(scope="module")
def dali():
    """DALI's results. Run in another process, with a child process per case, as some mistakes crash DALI afterwards."""
    run = subprocess.run([sys.executable, __file__], capture_output=True, text=True, check=True)
    return {(name, i): case for name, i, *case in map(json.loads, run.stdout.splitlines())}


@pytest.mark.parametrize(("name", "i"), CASES, ids=[f"{name}-{i}" for name, i in CASES])
def test_mistakes(dali, name, i):
    from penstock import Pipeline, fn, types

    when, theirs, text = dali[name, i]
    earlier, ours, other = told(fn, types, Pipeline, name, i)
    assert theirs[0] in ours, (text, ours, other)
    assert earlier <= when, (MOMENTS[when], MOMENTS[earlier])


@pytest.mark.parametrize(("name", "i"), PHRASES)
def test_phrases(dali, name, i):
    from penstock import Pipeline, fn, types

    for text in dali[name, i][2], told(fn, types, Pipeline, name, i)[2]:
        assert re.search(PHRASES[name, i], text)


def main():
    import nvidia.dali as dali
    from nvidia.dali import fn, types

    out = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    for name, i in CASES:
        child = os.fork()
        if not child:
            case = told(fn, types, dali.Pipeline, name, i)
            os.write(out, (json.dumps([name, i, *case]) + "\n").encode())
            os._exit(0)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
