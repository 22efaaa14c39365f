# SPDX-License-Identifier: Apache-2.0
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from harness import Case, op_test, per_sample, saturate
from penstock import types
from penstock.core.batch import Spec
from penstock.core.op import REGISTRY, Arguments


def window(x, layout, crop=None, crop_pos_x=0.5, crop_pos_y=0.5, crop_pos_z=0.5, rounding="round", **sizes):
    """Start and extent of the crop window along each axis."""
    wanted = (
        dict(zip("WHD", reversed(list(crop)))) if crop is not None else {k[-1].upper(): v for k, v in sizes.items()}
    )
    start, extent = [0] * x.ndim, list(x.shape)
    for name, position in (("W", crop_pos_x), ("H", crop_pos_y), ("D", crop_pos_z)):
        if name not in layout and not (name == "D" and "F" in layout):
            continue
        d = layout.index(name if name in layout else "F")
        if int(wanted.get(name, 0)) > 0:
            extent[d] = int(wanted[name])
        place = float(np.float32(position)) * (x.shape[d] - extent[d])
        start[d] = int(place) if rounding == "truncate" else int(np.sign(place) * np.floor(abs(place) + 0.5))
    return start, extent


def cropped(x, start, extent, policy, fill):
    """The window, filled or trimmed outside x; `fill` is broadcast against x."""
    spans = [range(s, s + e) for s, e in zip(start, extent)]
    if policy == "trim_to_shape":
        spans = [[i for i in span if 0 <= i < n] for span, n in zip(spans, x.shape)]
    out = np.empty([len(s) for s in spans])
    out[...] = fill
    ok = np.ones(out.shape, bool)
    for d, (span, n) in enumerate(zip(spans, x.shape)):
        ok &= np.array([0 <= i < n for i in span], bool).reshape([-1 if k == d else 1 for k in range(x.ndim)])
    source = (
        x[np.ix_(*[[min(max(i, 0), n - 1) for i in span] for span, n in zip(spans, x.shape)])]
        if x.size
        else np.zeros(out.shape)
    )
    return np.where(ok, source, out), ok


def reference_for(layout):
    def reference(
        x,
        mean=(0,),
        std=(1,),
        scale=1.0,
        shift=0.0,
        mirror=0,
        output_layout="CHW",
        pad_output=False,
        dtype=types.FLOAT,
        **kw,
    ):
        policy, fill_values = kw.pop("out_of_bounds_policy", "error"), kw.pop("fill_values", [0])
        out_type, axis = types.to_numpy_type(dtype), layout.index("C")
        channels = [1] * x.ndim
        channels[axis] = -1
        fill = np.reshape(np.asarray(fill_values, "f8"), channels)
        fill = np.trunc(fill) if np.dtype(out_type).kind in "iu" else fill
        start, extent = window(x, layout, **kw)
        values, inside = cropped(x.astype("f8"), start, extent, policy, fill)
        mean, std = np.reshape(np.asarray(mean, "f4"), channels), np.reshape(np.asarray(std, "f4"), channels)
        values = np.where(inside, (values - mean) / std.astype("f8") * scale + shift, values)
        if mirror:
            values = np.flip(values, layout.index("W"))
        if pad_output:
            count = x.shape[axis]
            more = [(0, 0)] * x.ndim
            more[axis] = (0, 2 ** int(np.ceil(np.log2(count))) - count)
            values = np.pad(values, more, constant_values=fill_values[0] if len(fill_values) == 1 else 0)
        order = output_layout or layout
        return saturate(values.transpose([layout.index(c) for c in order]), out_type)

    return reference


def reference(x, **kwargs):
    return reference_for("HWC")(x, **kwargs)


IMAGENET = {"mean": [123.675, 116.28, 103.53], "std": [58.395, 57.12, 57.375]}
PADDED = {"out_of_bounds_policy": "pad", "crop": (9, 20)}

TestCropMirrorNormalize = op_test(
    "crop_mirror_normalize",
    reference,
    dtypes=("u1",),
    args=[
        {},
        {**IMAGENET, "mirror": per_sample(0, 2, dtype="i4")},
        {**IMAGENET, "output_layout": "HWC", "mirror": per_sample(0, 2, dtype="i4")},
        {**IMAGENET, "output_layout": "WCH", "mirror": 1},
        {**PADDED, "crop_pos_x": per_sample(0, 1), "crop_pos_y": per_sample(0, 1), "mirror": 1},
        {
            **PADDED,
            **IMAGENET,
            "fill_values": [7, 8, 9],
            "output_layout": "HWC",
            "mirror": per_sample(0, 2, dtype="i4"),
        },
        {
            **PADDED,
            **IMAGENET,
            "fill_values": [7.0],
            "pad_output": True,
            "output_layout": "HWC",
            "dtype": types.FLOAT16,
        },
        {**PADDED, **IMAGENET, "fill_values": [7.0], "pad_output": True, "mirror": 1},
        {"crop": per_sample(1, 40, (2,)), "out_of_bounds_policy": "trim_to_shape", "mirror": 1},
        {"crop_h": per_sample(0, 40), "crop_w": 3.9, "out_of_bounds_policy": "pad", "rounding": "truncate"},
        {
            "mean": per_sample(0, 255, (3,)),
            "std": per_sample(1, 99, (1,)),
            "scale": 64.0,
            "shift": 128.0,
            "dtype": types.UINT8,
        },
        {**PADDED, "mean": 128, "dtype": types.INT8, "output_layout": "", "fill_values": [-2.6, 3.5, 90]},
        {"mean": 0.5, "std": [3, 5, 7], "dtype": types.FLOAT16, "mirror": 1},
    ],
    errors=[
        ({"crop": (4, 4)}, RuntimeError, "can't be placed out of bounds"),
        ({"crop": (4, 4), "crop_h": 4, "crop_w": 4}, ValueError, "not both"),
        ({"crop_h": 4}, ValueError, "together"),
        ({"crop": (4,)}, ValueError, r"\(height, width\)"),
        ({"crop_h": 2, "crop_w": 2, "crop_pos_x": 1.5}, RuntimeError, r"outside of \[0, 1\]"),
        ({"out_of_bounds_policy": "edge"}, ValueError, "supported: error, constant"),
        ({"rounding": "floor"}, ValueError, "round, truncate"),
        ({"output_layout": "FCHW"}, RuntimeError, "not made of the axes"),
        ({"dtype": types.INT32}, ValueError, "FLOAT16"),
        ({"mean": [1, 2]}, RuntimeError, "2 values for 3 channels"),
        ({"mean": [1, 2], "std": [1, 2, 3]}, ValueError, "one per channel"),
        ({"fill_values": [1, 2], "out_of_bounds_policy": "pad"}, RuntimeError, "2 fill_values for 3 channels"),
    ],
    steps=1,  # products near a half round by the precision of float32
    share=0.01,
    dali_differs={
        "mean=128,dtype=INT8": "beside several fill values DALI applies a single mean and std to the first channel only"
    },
)


TestTypes = op_test(
    "crop_mirror_normalize",
    reference,
    cases=[
        Case(i, "HWC", {"mean": [1, 2, 3], "std": 3.0, "mirror": 1, "dtype": o, "output_layout": lay})
        for i in ("u1", "u2", "i2", "i4", "f2", "f4")
        for o in (types.FLOAT, types.FLOAT16, types.UINT8, types.INT8)
        for lay in ("CHW", "HWC")
    ],
    steps=1,
    share=0.01,
)


def _layout_test(layout, orders, channels=3):
    crop = {
        "crop": (2, 7, 3),
        "crop_pos_z": per_sample(0, 1),
        "out_of_bounds_policy": "pad",
        "fill_values": [1, 2, 3][:channels],
    }
    return op_test(
        "crop_mirror_normalize",
        reference_for(layout),
        layouts=(layout,),
        args=[
            {**crop, "output_layout": o, "mirror": per_sample(0, 2, dtype="i4"), "mean": [3, 2, 1][:channels]}
            for o in orders
        ],
        channels=channels,
    )


TestPlanes = _layout_test("CHW", ("CHW", "HWC", "WHC"))
TestGray = _layout_test("HWC", ("CHW", "HWC"), channels=1)
TestVolumes = _layout_test("DHWC", ("DHWC", "CDHW", "DCHW"))
TestPlanarVolumes = _layout_test("CDHW", ("DHWC", "CDHW"))
TestSequences = _layout_test("FHWC", ("FHWC", "FCHW", "CFHW"))
TestPlanarSequences = _layout_test("FCHW", ("FHWC", "FCHW", "CFHW"))
TestSequencesInside = _layout_test("CFHW", ("FHWC", "CFHW"))
TestVolumeSequences = _layout_test("FDHWC", ("FDHWC", "FCDHW"))


@settings(max_examples=200, deadline=None)
@given(
    st.integers(0, 9), st.integers(0, 9), st.floats(0, 12), st.floats(0, 12), st.floats(0, 1, width=32), st.booleans()
)
def test_window_and_region(height, width, crop_h, crop_w, position, trim):
    """The window has the size asked for, and the region is the part of it that is inside of the input."""
    cls = REGISTRY["crop_mirror_normalize"]
    policy = "trim_to_shape" if trim else "pad"
    op = cls({n: arg.default for n, arg in cls.schema.items()} | {"out_of_bounds_policy": policy}, {"crop"})
    one = lambda v: np.array([v], "f4")
    a = Arguments(1, None, dict(op.values))
    a.__dict__.update(crop=np.array([[crop_h, crop_w]], "f4"), mean=one([0]), std=one([1]), mirror=one(0))
    a.__dict__.update(crop_d=one(0), crop_pos_x=one(position), crop_pos_y=one(position), crop_pos_z=one(0))
    x = Spec([[height, width, 3]], "u1", "HWC")
    op.plan(a, x)
    out = op.outputs(a, x)
    origin, size = op.region(a, x, out)
    assert (origin >= 0).all() and (size >= 0).all() and (origin + size <= x.shape).all()
    for d, (n, crop) in enumerate(((height, crop_h), (width, crop_w))):
        wanted = int(np.float32(crop)) or n
        if trim:
            assert out.shape[0, d + 1] == size[0, d] == min(n, wanted)
        else:
            assert out.shape[0, d + 1] == wanted
            assert size[0, d] == min(n, wanted) and (origin[0, d] == 0 or wanted < n)
