# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

from harness import saturate
from penstock import fn, ops, pipeline_def, types

SIZES = ((9, 12), (5, 7), (16, 6), (10, 10), (1, 1))


def define(face, define_pipeline, options, inputs, columns, constants, layout="HWC", device="cpu"):
    def feed(values, layout=None):
        return face.external_source(source=lambda i: values, layout=layout)

    @define_pipeline(batch_size=len(inputs[0]), num_threads=2, **options)
    def pipe():
        images = [feed(x, layout) for x in inputs]
        if device == "gpu":
            images = [x.gpu() for x in images]
        return face.multi_paste(*images, **{k: feed(v) for k, v in columns.items()}, **constants)

    (out,) = pipe().run()
    out = out.as_cpu() if device == "gpu" else out
    return [np.array(out.at(i)) for i in range(len(inputs[0]))]


def paste(inputs, columns=None, layout="HWC", device="cpu", **constants):
    options = {"device_id": 0} if device == "gpu" else {}
    return define(fn, pipeline_def, options, inputs, columns or {}, constants, layout, device)


def reference(inputs, dtype=None, output_size=None, **columns):
    """Region by region, in plain Python."""
    out = []
    for i in range(len(inputs[0])):
        images = [x[i] for x in inputs]
        if "in_ids" in columns:
            images = [inputs[0][k] for k in columns["in_ids"][i]]
        size = images[0].shape[:2] if output_size is None else output_size[i]
        t = images[0].dtype if dtype is None else np.dtype(types.to_numpy_type(dtype))
        canvas = np.zeros((*size, images[0].shape[2]), t)

        def at(name, k, whole, default, rounded=np.floor, i=i):
            if name in columns:
                return columns[name][i][k].tolist()
            if f"{name}_rel" in columns:
                return rounded(columns[f"{name}_rel"][i][k] * np.float32(whole)).astype(int).tolist()
            return default

        for k, x in enumerate(images):
            y0, x0 = at("in_anchors", k, x.shape[:2], (0, 0))
            h, w = at("shapes", k, x.shape[:2], (x.shape[0] - y0, x.shape[1] - x0), np.ceil)
            y1, x1 = at("out_anchors", k, size, (0, 0))
            canvas[y1 : y1 + h, x1 : x1 + w] = saturate(x[y0 : y0 + h, x0 : x0 + w], t)
        out.append(canvas)
    return out


def images(rng, dtype="u1", channels=3):
    if np.dtype(dtype).kind == "f":
        return [(rng.random((*s, channels)) * 400 - 50).astype(dtype) for s in SIZES]
    info = np.iinfo(dtype)
    return [rng.integers(info.min, info.max, (*s, channels)).astype(dtype) for s in SIZES]


def regions(rng, sources, canvas, relative):
    """Random regions that fit. `relative`: names of arguments given as shares."""
    columns = {name: [] for name in ("in_anchors", "shapes", "out_anchors")}
    for chosen, size in zip(sources, canvas):
        rows = []
        for shape in chosen:
            h, w = (int(rng.integers(0, min(a, b) + 1)) for a, b in zip(shape, size))
            rows.append(
                [[rng.integers(0, a - n + 1) for a, n in zip(shape, (h, w))], [h, w],
                 [rng.integers(0, b - n + 1) for b, n in zip(size, (h, w))]]
            )  # fmt: skip
        rows = np.array(rows, "i4").reshape(-1, 3, 2)
        for j, name in enumerate(columns):
            columns[name].append(rows[:, j].copy())
    for name in relative:
        absolute = columns.pop(name)
        # Shares that give the same number of pixels with any rounding.
        away = -0.25 if name == "shapes" else 0.25
        columns[f"{name}_rel"] = []
        for v, chosen, size in zip(absolute, sources, canvas):
            whole = np.float32(size) if name == "out_anchors" else np.array(chosen, "f4").reshape(-1, 2)
            moved = v + away * (v > 0 if name == "shapes" else 1)
            columns[f"{name}_rel"].append(np.minimum(moved / whole, 1).astype("f4"))
    return columns


CASES = [
    (dtype, by_ids, relative, out)
    for dtype, out in (
        ("u1", None),
        ("i2", None),
        ("i4", None),
        ("f4", None),
        ("u1", "FLOAT"),
        ("f4", "UINT8"),
        ("i4", "INT16"),
    )
    for by_ids in (True, False)
    for relative in ((), ("in_anchors",), ("shapes", "out_anchors"), ("in_anchors", "shapes", "out_anchors"))
]


def arguments(dtype, by_ids, relative, out):
    """Images, arguments per sample and constant ones. Numbers of regions differ between samples."""
    rng = np.random.default_rng(len(relative) + by_ids)
    inputs = [images(rng, dtype) for _ in range(1 if by_ids else 3)]
    n = len(SIZES)
    columns = {"output_size": [np.int32([20, 17])] * n}
    if by_ids:
        columns["in_ids"] = [rng.integers(0, n, c).astype("i4") for c in (3, 1, 5, 2, 4)]
        sources = [[SIZES[k] for k in ids] for ids in columns["in_ids"]]
    else:
        sources = [[s] * 3 for s in SIZES]
    columns.update(regions(rng, sources, columns["output_size"], relative))
    return inputs, columns, {} if out is None else {"dtype": getattr(types, out)}


@pytest.mark.parametrize("dtype, by_ids, relative, out", CASES)
def test_random_regions(dtype, by_ids, relative, out):
    inputs, columns, constants = arguments(dtype, by_ids, relative, out)
    got = paste(inputs, columns, **constants)
    for a, b, c in zip(
        got, reference(inputs, **constants, **columns), paste(inputs, columns, device="gpu", **constants)
    ):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(c, b, err_msg="GPU")


def test_defaults():
    rng = np.random.default_rng(0)
    x, y = ([rng.integers(0, 255, (4, 5, 3)).astype("u1") for _ in range(2)] for _ in range(2))
    for a, b in zip(paste([x, y]), y):  # the last covers all
        np.testing.assert_array_equal(a, b)
    for a, b in zip(paste([x], output_size=[6, 6]), x):
        np.testing.assert_array_equal(a, np.pad(b, [(0, 2), (0, 1), (0, 0)]))
    for a in paste([x], in_ids=[1, 0]):
        np.testing.assert_array_equal(a, x[0])


@pytest.mark.parametrize("device", ("cpu", "gpu"))
def test_no_regions_and_full_cover(device):
    x = [np.full((2, 2, 1), 7, "u1")] * 2
    got = paste(
        [x],
        {
            "in_ids": [np.int32([]), np.int32([0, 0])],
            "out_anchors": [np.zeros((0, 2), "i4"), np.int32([[0, 0], [0, 2]])],
        },
        output_size=[2, 4],
        device=device,
    )
    assert not got[0].any() and (got[1] == 7).all()


def test_sequences():
    """Arguments may differ from frame to frame."""
    rng = np.random.default_rng(0)
    x, y = ([rng.integers(0, 255, (f, 4, 5, 3)).astype("u1") for f in (2, 3)] for _ in range(2))
    at = [rng.integers(0, 3, (len(v), 2, 2)).astype("i4") for v in x]

    @pipeline_def(batch_size=2, num_threads=1)
    def pipe():
        images = [fn.external_source(source=lambda i, v=v: v, layout="FHWC") for v in (x, y)]
        moved = fn.external_source(source=lambda: at, layout="FNX")
        return fn.multi_paste(images[0], output_size=[6, 7]), fn.multi_paste(
            *images, output_size=[6, 7], out_anchors=moved
        )

    alone, both = pipe().run()
    for i in range(2):
        np.testing.assert_array_equal(alone.at(i), np.pad(x[i], [(0, 0), (0, 2), (0, 2), (0, 0)]))
        for f in range(len(x[i])):
            want = reference([[x[i][f]], [y[i][f]]], output_size=[[6, 7]], out_anchors=[at[i][f]])[0]
            np.testing.assert_array_equal(both.at(i)[f], want)


@pytest.mark.parametrize("device", ("cpu", "gpu"))
def test_sequences_by_numbers(device):
    """Frame by frame from the selected sequences; with one frame, as in DALI."""
    rng = np.random.default_rng(0)
    x = [rng.integers(0, 255, (f, 4, 5, 3)).astype("u1") for f in (2, 3, 2, 3)]
    ids = [np.int32([2, 0]), np.int32([3]), np.int32([]), np.int32([1, 3, 1])]
    at = [rng.integers(0, 3, (len(i), 2)).astype("i4") for i in ids]
    got = paste([x], {"in_ids": ids, "out_anchors": at}, "FHWC", device, output_size=[6, 7])
    for i, sequence in enumerate(got):
        assert len(sequence) == len(x[i])
        for f in range(len(sequence)):
            want = np.zeros((6, 7, 3), "u1")
            for k, (v, u) in zip(ids[i], at[i]):
                want[v : v + 4, u : u + 5] = x[k][f]
            np.testing.assert_array_equal(sequence[f], want)
    single = [s[:1] for s in x]
    got = paste([single], {"in_ids": ids, "out_anchors": at}, "FHWC", device, output_size=[6, 7])


def test_sequences_by_numbers_need_as_many_frames():
    x = [np.zeros((f, 4, 5, 3), "u1") for f in (2, 3)]
    with pytest.raises(
        RuntimeError, match=r"sequences of 2 frames, as the sample itself has; those of \[1\] have \[3\]"
    ):
        paste([x], {"in_ids": [np.int32([1]), np.int32([1])]}, "FHWC", output_size=[6, 7])
    with pytest.raises(RuntimeError, match=r"`in_ids` must be in range \[0, 1\]"):
        paste([x], {"in_ids": [np.int32([2]), np.int32([1])]}, "FHWC", output_size=[6, 7])


def test_many_inputs():
    """More than the kernel's named inputs."""
    x = [[np.full((1, 1, 1), k + 1, "u1")] for k in range(64)]
    at = {"out_anchors": [np.int32([[k // 8, k % 8] for k in range(64)])]}
    for device in ("cpu", "gpu"):
        (got,) = paste(x, at, device=device, output_size=[8, 8])
        np.testing.assert_array_equal(got.ravel(), np.arange(1, 65))


NINE = {"output_size": [9, 9]}
X = [np.zeros((4, 5, 3), "u1"), np.zeros((4, 6, 3), "u1")]


@pytest.mark.parametrize(
    "inputs, columns, constants, text",
    [
        ([X], {"in_ids": [np.int32([0, 2])] * 2}, NINE, r"`in_ids` must be in range \[0, 1\].* got \[0, 2\]"),
        ([X], {"in_ids": [np.int32([0, 1])] * 2}, {}, "without `output_size` images must have one size"),
        ([X, X], {"in_ids": [np.int32([0, 1])] * 2}, {}, "`in_ids` needs a single input; got 2"),
        ([X], {}, {"output_size": [3, 9]}, r"region 0 must be within bounds of the canvas: .* has the size \[4, 5\]"),
        ([X], {"in_anchors": [np.int32([[-1, 0]])] * 2}, NINE, "within bounds of its image"),
        ([X], {"shapes": [np.int32([[4, 7]])] * 2}, NINE, "within bounds of its image"),
        ([X], {"out_anchors": [np.int32([[0, 0], [0, 0]])] * 2}, NINE, "each of 1 regions; got 4 numbers"),
        ([X], {}, {"output_size": [-3, 9]}, "`output_size` must be non-negative"),
        ([X], {}, {"output_size": [3]}, "needs two numbers"),
        ([X, [x[..., :1] for x in X]], {}, NINE, "different numbers of channels"),
        ([X, [x.astype("f4") for x in X]], {}, NINE, "input 1 has the type float32"),
        ([X], {"shapes_rel": [np.float32([[0.5, 1.5]])] * 2}, NINE, r"`shapes_rel` must be in \[0, 1\]"),
        ([[x.astype("u2") for x in X]], {}, NINE, "input 0 has the type uint16"),
    ],
)  # fmt: skip
def test_errors(inputs, columns, constants, text):
    with pytest.raises(RuntimeError, match=text):
        paste(inputs, columns, **constants)


def test_wrong_when_defined():
    at = [np.int32([[0, 0]])] * 2
    with pytest.raises(ValueError, match="either `out_anchors` or `out_anchors_rel`"):
        paste([X], {"out_anchors": at, "out_anchors_rel": [a.astype("f4") for a in at]})
    with pytest.raises(ValueError, match="output type uint16 is not supported"):
        paste([X], dtype=types.UINT16)
    with pytest.raises(TypeError, match="Did you mean 'in_ids'"):
        paste([X], in_id=[0])


def test_places_that_are_the_same_for_all_samples_as_arrays():
    """An array with more axes than the argument is a tensor, for functions and for classes."""
    images = [np.arange(75, dtype=np.uint8).reshape(5, 5, 3) + i for i in range(2)]
    places = {
        "in_anchors": np.int32([[0, 0], [1, 2]]),
        "shapes": np.int32([[2, 2], [3, 2]]),
        "out_anchors": np.int32([[0, 0], [4, 5]]),
    }

    @pipeline_def(batch_size=2, num_threads=1)
    def pipe():
        x = fn.external_source(source=lambda: images, layout="HWC")
        ids = np.int32([0, 1])
        given = {"in_ids": ids, "output_size": (8, 9)}
        return fn.multi_paste(x, **given, **places), ops.MultiPaste(**places)(x, **given)

    want = np.zeros((8, 9, 3), np.uint8)
    want[0:2, 0:2] = images[0][0:2, 0:2]
    want[4:7, 5:7] = images[1][1:4, 2:4]
    for out in pipe().run():
        assert (out.at(0) == want).all() and (out.at(1) == want).all()


@pytest.mark.parametrize("picked", ([[0, 2], [1], []], [[0, 2], [1, 1], [2, 1]]))
@pytest.mark.parametrize("device", ("cpu", "gpu"))
def test_where_samples_come_from(tmp_path, device, picked):
    """The pasted samples, in order; of both inputs, and after further operators."""
    for name in "abc":
        (tmp_path / name).write_bytes(bytes(12))
    files = [str(tmp_path / name) for name in "abc"]

    @pipeline_def(batch_size=3, device_id=0 if device == "gpu" else None)
    def pipe():
        x = fn.reshape(fn.readers.file(files=files)[0], shape=[2, 2, 3], layout="HWC")
        x = x.gpu() if device == "gpu" else x
        ids = fn.external_source(source=lambda: [np.int32(x) for x in picked])
        one = fn.multi_paste(x, in_ids=ids, output_size=[2, 2])
        two = fn.flip(fn.multi_paste(x, fn.permute_batch(x, indices=[1, 1, 0]), output_size=[2, 2]))
        return one, two, fn.cat(x, two)

    running, (a, b, c) = pipe(), files
    for _ in range(8):  # later ones are planned by programs
        one, two, mixed = (tuple(batch[i].source_info() for i in range(3)) for batch in running.run())
        assert one == tuple(";".join(files[i] for i in x) for x in picked)
        assert two == (f"{a};{b}", f"{b};{b}", f"{c};{a}")
        assert mixed == ("", "", "")
    plans = [
        c.plans.counts for (c,) in running._plan.chains.values() if any(n.op.fn_name == "multi_paste" for n in c.nodes)
    ]
    if len(picked[1]) == 2:  # vectors of different lengths are planned by rules
        assert plans and all(p["by program"] for p in plans)
