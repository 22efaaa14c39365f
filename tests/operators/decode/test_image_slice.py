# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

from encoded_images import decoded, jpegs, mixed
from harness import op_test, per_sample
from penstock import fn, pipeline_def, types


def files(rng, case):
    return [f for f in jpegs() + mixed() if f.size != jpegs()[1].size]


def rounded(v):
    return int(np.trunc(v + np.copysign(0.5, v)))


def reference(
    x, anchor=None, extent=None, axes=(1, 0), axis_names=None, normalized_anchor=True, normalized_shape=True,
    output_type=0, dtype=0, **kwargs,
):  # fmt: skip
    image = decoded(x, output_type, dtype, kwargs.get("adjust_orientation", True))
    axes = ["HW".index(c) for c in axis_names] if axis_names else list(axes)
    window = [slice(None), slice(None)]
    for i, axis in enumerate(axes):
        n = image.shape[axis]
        begin, end = 0.0, float(n)
        if anchor is not None:
            begin = float(anchor[i]) * (n if normalized_anchor else 1)
            end = begin + float(extent[i]) * (n if normalized_shape else 1)
        for name in ("start", "rel_start", "end", "rel_end", "shape", "rel_shape"):
            if name in kwargs:
                v = float(kwargs[name][i]) * (n if name.startswith("rel_") else 1)
                if name.endswith("start"):
                    begin = v
                else:
                    end = begin + v if name.endswith("shape") else v
        window[axis] = slice(rounded(begin), rounded(end))
    return np.ascontiguousarray(image[tuple(window)])


TestNamed = op_test(
    "decoders.image_slice",
    reference,
    layouts=("",),
    args=[
        {"start": [3, 5], "end": [20, 19]},
        {"start": [3, 5], "shape": [17, 12]},
        {"rel_start": [0.1, 0.2], "rel_shape": [0.5, 0.5]},
        {"rel_start": [0.13, 0.27], "rel_end": [0.55, 0.77]},
        {"start": [2, 1], "rel_end": [0.5, 0.5]},
        {"rel_shape": [0.511, 0.333]},
        {"start": [4]} | {"axis_names": "H"},
        {"start": [2, 3], "shape": [7, 8], "axis_names": "HW"},
        {"start": [2, 3], "shape": [7, 8], "axes": [0, 1]},
        {"rel_start": per_sample(0, 0.4, (2,)), "rel_shape": per_sample(0.1, 0.5, (2,)), "output_type": types.GRAY},
        {"start": per_sample(0, 9, (2,), "i4"), "end": per_sample(9, 20, (2,), "i4"), "dtype": types.FLOAT},
    ],
    make_input=files,
    steps=1,
    dali_steps=1,
    share=0.02,
    errors=[
        ({"end": [20, 300]}, RuntimeError, r"is not inside the image of 67 x 45 pixels"),
        ({"rel_start": [0.1, 0.1]}, ValueError, "give one of start, rel_start; got start, rel_start"),
        ({"shape": [3, 3]}, ValueError, "give one of end, rel_end, shape, rel_shape; got end, shape"),
        ({"end": [2, 2]}, RuntimeError, r"the window ends before it begins: start \[3, 5\], end \[2, 2\]"),
        ({"axis_names": "WC"}, ValueError, "axis_names takes some of 'W' and 'H', got 'WC'"),
        ({"axes": [0, 2]}, RuntimeError, r"Axis 2 out of range. Expected range is \[-2, 1\] .*; got axes \[0, 2\]"),
    ],
)


def shares(rng, case):
    n = len(files(rng, case))
    return [
        [rng.uniform(0, 0.5, 2).astype("f4") for _ in range(n)],
        [rng.uniform(0.1, 0.5, 2).astype("f4") for _ in range(n)],
    ]


def pixels(rng, case):
    n = len(files(rng, case))
    return [
        [rng.integers(0, 9, 2).astype("i4") for _ in range(n)],
        [rng.integers(1, 9, 2).astype("i4") for _ in range(n)],
    ]


TestShares = op_test(
    "decoders.image_slice", reference, layouts=("",), args=[{}, {"axis_names": "HW"}], make_input=files,
    extra_inputs=shares, steps=1, dali_steps=1, share=0.02,
)  # fmt: skip
TestPixels = op_test(
    "decoders.image_slice", reference, layouts=("",), args=[{"normalized_anchor": False, "normalized_shape": False}],
    make_input=files, extra_inputs=pixels, steps=1, dali_steps=1, share=0.02,
)  # fmt: skip


def test_no_window_is_an_error():
    @pipeline_def(batch_size=1)
    def pipe():
        return fn.decoders.image_slice(fn.external_source(source=lambda i: [jpegs()[0]]))

    with pytest.raises(RuntimeError, match="give the window by start, end, shape, ... or by two more inputs"):
        pipe().run()
