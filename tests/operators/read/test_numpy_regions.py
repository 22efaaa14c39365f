# SPDX-License-Identifier: Apache-2.0
"""readers.numpy: regions given as constants and as data, compared with NumPy; how much is read; copies to the GPU."""

import itertools
import os

import numpy as np
import pytest
from numpy_arrays import ENDS, STARTS, assert_same, build, read, region

from penstock import fn, pipeline_def, types
from penstock.tensors import TensorListGPU


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("axes", [None, [0], [2, 0], [-1, 1]], ids=str)
@pytest.mark.parametrize("start, end", list(itertools.product(STARTS, ENDS))[1:], ids=str)
def test_regions(tmp_path, start, end, axes, order):
    x = np.random.default_rng(0).integers(0, 30000, (7, 9, 11)).astype("i2")
    np.save(tmp_path / "x.npy", np.asarray(x, order=order))
    n = 3 if axes is None else len(axes)
    values = {k: v[:n] for k, v in (start | end).items()}
    first, last = region(x, [0, 1, 2] if axes is None else axes, **values)
    wanted = x[tuple(slice(a, b) for a, b in zip(first, last))]
    names = {k.replace("rel_", "rel_roi_") if k.startswith("rel_") else f"roi_{k}": v for k, v in values.items()}
    assert_same(read(tmp_path / "x.npy", **names, **({} if axes is None else {"roi_axes": axes})), wanted)


def test_one_value_is_for_all_axes(tmp_path):
    x = np.arange(120).reshape(4, 5, 6)
    np.save(tmp_path / "x.npy", x)
    assert_same(read(tmp_path / "x.npy", roi_start=[1], roi_shape=[2]), x[1:3, 1:3, 1:3])
    assert_same(read(tmp_path / "x.npy", roi_start=[1], roi_end=[3, 4], roi_axes=[1, 2]), x[:, 1:3, 1:4])


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("dtype, fill", [("u1", 300.0), ("i4", -2.5), ("f4", 0.25), ("?", 1.0), ("f2", 7.0)])
@pytest.mark.parametrize(
    "start, end",
    [((-2, 1), (3, 9)), ((1, -1), (3, 2)), ((-3, -3), (-1, -1)), ((9, 0), (12, 2)), ((-1, -1), (6, 7))],
    ids=str,
)
def test_padding_and_trimming(tmp_path, order, dtype, fill, start, end):
    x = np.random.default_rng(0).integers(0, 2, (5, 6)).astype(dtype)
    np.save(tmp_path / "x.npy", np.asarray(x, order=order))
    kwargs = {"roi_start": list(start), "roi_end": list(end)}
    # Integers are rounded (ties away from zero) and clamped.
    value = {"u1": 255, "i4": -3}.get(dtype, fill)
    padded = np.full((30, 30), value, x.dtype)
    padded[10:15, 10:16] = x
    wanted = padded[10 + start[0] : 10 + end[0], 10 + start[1] : 10 + end[1]]
    assert_same(read(tmp_path / "x.npy", out_of_bounds_policy="pad", fill_value=fill, **kwargs), wanted)
    clipped = tuple(slice(*np.clip([a, b], 0, n)) for a, b, n in zip(start, end, x.shape))
    assert_same(read(tmp_path / "x.npy", out_of_bounds_policy="trim_to_shape", **kwargs), x[clipped])
    with pytest.raises(RuntimeError, match="reaches from .* along axis"):
        read(tmp_path / "x.npy", **kwargs)


@pytest.mark.parametrize("order", "CF")
def test_only_the_rows_of_the_region_are_read(tmp_path, order):
    """At most a tenth more than the rows (in Fortran order, columns) of the region."""
    x = np.random.default_rng(0).random((1000, 500))
    np.save(tmp_path / "x.npy", np.asarray(x, order=order))
    axis = 0 if order == "C" else 1
    rows = x.shape[axis] // 10
    pipe = build(files=[str(tmp_path / "x.npy")] * 4, batch_size=2, roi_start=[37], roi_shape=[rows], roi_axes=[axis])
    pipe.build()
    before = bytes_read()
    (out,) = pipe.run()
    wanted = x[37 : 37 + rows] if order == "C" else x[:, 37 : 37 + rows]
    assert_same(np.array(out.at(1)), wanted)
    del pipe
    # All prefetched batches have the same two samples.
    read_bytes = bytes_read() - before
    per_sample = wanted.nbytes
    assert (
        read_bytes % per_sample < 0.1 * read_bytes and read_bytes / round(read_bytes / per_sample) <= 1.1 * per_sample
    )


def test_random_regions_read_their_rows_only(tmp_path):
    x = np.random.default_rng(0).random((1000, 500))
    np.save(tmp_path / "x.npy", x)

    @pipeline_def(batch_size=8, num_threads=2, prefetch_queue_depth=1, seed=3)
    def pipe():
        start = fn.random.uniform(range=[0, 900], shape=[1], dtype=types.INT32)
        files = [str(tmp_path / "x.npy")]
        return fn.readers.numpy(files=files, roi_start=start, roi_shape=[100], roi_axes=[0]), start

    p = pipe()
    p.build()
    before, n = bytes_read(), 4
    for _ in range(n):
        arrays, starts = p.run()
        for array, start in zip(arrays.as_array(), starts.as_array()[:, 0]):
            np.testing.assert_array_equal(array, x[start : start + 100])
    del p
    # A batch that was not requested may have been started.
    assert bytes_read() - before <= 1.1 * (n + 1) * 8 * 100 * 500 * 8


def bytes_read():
    with open(f"/proc/{os.getpid()}/io") as f:
        return int(f.readline().split()[1])


def by_data(path, values, names, batch_size=3, debug=False, **kwargs):
    """The arrays if the arguments `names` are data: `values[name][i]` for sample i."""

    @pipeline_def(batch_size=batch_size, num_threads=2, debug=debug)
    def pipe():
        given = {}
        for name in names:
            arrays = [np.array(v, "f4" if name.startswith("rel_") else "i4") for v in values[name]]
            given[name] = fn.external_source([arrays] * 9)
        return fn.readers.numpy(files=[str(path)], **given, **kwargs)

    (out,) = pipe().run()
    return [np.array(out.at(i)) for i in range(batch_size)]


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("start, end", list(itertools.product(STARTS, ENDS))[1:], ids=str)
def test_regions_that_are_data(tmp_path, start, end, order, debug):
    """Each sample has its own region. One of the two arguments may be a constant."""
    x = np.random.default_rng(0).integers(0, 30000, (7, 9, 11)).astype("i2")
    np.save(tmp_path / "x.npy", np.asarray(x, order=order))
    several = [
        {k: [u * f for u in v] if "rel" in k else [max(u - d, 0) for u in v] for k, v in (start | end).items()}
        for f, d in ((1, 0), (0.5, 1), (0.75, 2))
    ]
    wanted = []
    for one in several:
        first, last = region(x, [0, 1, 2], **one)
        wanted.append((tuple(slice(a, b) for a, b in zip(first, last)), all(b >= a for a, b in zip(first, last))))
    if not all(good for _, good in wanted):
        return
    names = {k: k.replace("rel_", "rel_roi_") if k.startswith("rel_") else f"roi_{k}" for k in start | end}
    values = {names[k]: [one[k] for one in several] for k in names}
    for got, (window, _) in zip(by_data(tmp_path / "x.npy", values, values, debug=debug), wanted):
        assert_same(got, x[window])
    if len(names) == 2:  # the start is data, the end is not
        ((data, name), (fixed, of_all)) = names.items()
        for got, one in zip(by_data(tmp_path / "x.npy", values, [name], **{of_all: several[0][fixed]}), several):
            first, last = region(x, [0, 1, 2], **{data: one[data], fixed: several[0][fixed]})
            assert_same(got, x[tuple(slice(a, b) for a, b in zip(first, last))])


def test_vectors_of_other_lengths(tmp_path):
    x = np.arange(120).reshape(4, 5, 6)
    np.save(tmp_path / "x.npy", x)
    starts = [[1], [], [1, 0, 2]]
    for got, wanted in zip(
        by_data(tmp_path / "x.npy", {"roi_start": starts}, ["roi_start"]), (x[1:, 1:, 1:], x, x[1:, :, 2:])
    ):
        assert_same(got, wanted)
    ends = {"roi_end": [2, 2, 3]}
    for got, wanted in zip(by_data(tmp_path / "x.npy", ends, ["roi_end"], roi_axes=[-1]), (2, 2, 3)):
        assert_same(got, x[..., :wanted])


def test_mistakes_in_data(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((4, 5)))
    for values, error in (
        ([[1, 2, 3], [1, 2], [0, 0]], "has values for 3 axes, the array has 2"),
        ([[0, 0], [9, 0], [0, 0]], "reaches from 9 to 4|ends before it begins"),
        ([[1] * 9] * 3, "roi_start has 9 values"),
    ):
        with pytest.raises(RuntimeError, match=error):
            by_data(tmp_path / "x.npy", {"roi_start": values}, ["roi_start"])
    with pytest.raises(RuntimeError, match="2 values for its start, 3 for its end"):
        by_data(tmp_path / "x.npy", {"roi_start": [[1, 1]] * 3}, ["roi_start"], roi_shape=[1, 1, 1])


def test_bad_regions_are_bad_samples(tmp_path):
    """They are skipped or replaced by the next file with its own region."""
    for i in range(4):
        np.save(tmp_path / f"{i}.npy", np.full((4 if i != 1 else 1, 2), i))

    def arrays(on_error):
        @pipeline_def(batch_size=3, num_threads=2, on_error=on_error)
        def pipe():
            start = fn.external_source(lambda: np.full((3, 1), 2, "i4"))
            return fn.readers.numpy(file_root=str(tmp_path), roi_start=start, roi_axes=[0]), start

        p = pipe()
        if on_error == "replace":
            p = pipe_of_random()
        out = p.run()[0]
        return [np.array(out.at(i)).tolist() for i in range(len(out))], p.errors()

    def pipe_of_random():
        @pipeline_def(batch_size=3, num_threads=2, on_error="replace", seed=1)
        def pipe():
            start = fn.random.uniform(range=[2, 2.5], shape=[1])
            return fn.readers.numpy(file_root=str(tmp_path), roi_start=fn.cast(start, dtype=types.INT32), roi_axes=[0])

        return pipe()

    got, errors = arrays("skip")
    assert got == [[[0, 0]] * 2, [[2, 2]] * 2] and "1.npy" in errors[0].source
    got, errors = arrays("replace")
    assert got == [[[0, 0]] * 2, [[2, 2]] * 2, [[2, 2]] * 2] and "1.npy" in errors[0].source


def test_regions_of_another_reader(tmp_path):
    x = np.random.default_rng(0).integers(0, 9, (6, 8))
    np.save(tmp_path / "x.npy", x)

    @pipeline_def(batch_size=2, num_threads=2)
    def pipe():
        whole = fn.readers.numpy(files=[str(tmp_path / "x.npy")])
        return fn.readers.numpy(files=[str(tmp_path / "x.npy")], roi_start=whole.shape(dtype=types.INT32) // 2)

    p = pipe()
    for _ in range(3):
        assert_same(np.array(p.run()[0].at(1)), x[3:, 4:])


@pytest.mark.parametrize("kwargs", [{}, {"roi_start": [1], "roi_axes": [0]}], ids=str)
def test_into_memory_of_the_gpu(tmp_path, kwargs):
    x = [np.random.default_rng(i).integers(0, 9, (6 + i, 8)).astype("f4") for i in range(3)]
    for i, array in enumerate(x):
        np.save(tmp_path / f"{i}.npy", array)

    @pipeline_def(batch_size=3, num_threads=2, device_id=0)
    def pipe():
        start = fn.random.uniform(range=[0, 4], shape=[1], dtype=types.INT32)
        arrays = fn.readers.numpy(device="gpu", file_root=str(tmp_path), **kwargs)
        regions = fn.readers.numpy(device="gpu", file_root=str(tmp_path), roi_start=start, roi_axes=[1])
        return arrays, arrays + 1, regions, start

    p = pipe()
    for _ in range(3):
        arrays, added, regions, start = p.run()
        assert all(isinstance(o, TensorListGPU) for o in (arrays, added, regions))
        for i, array in enumerate(x):
            wanted = array[1:] if kwargs else array
            assert_same(np.array(arrays.as_cpu().at(i)), wanted)
            assert_same(np.array(added.as_cpu().at(i)), wanted + 1)
            assert_same(np.array(regions.as_cpu().at(i)), array[:, start.at(i)[0] :])


def test_not_in_a_branch(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((4, 5)))

    @pipeline_def(batch_size=2, num_threads=2, enable_conditionals=True)
    def pipe():
        if fn.random.coin_flip(dtype=types.BOOL):
            out = fn.readers.numpy(files=[str(tmp_path / "x.npy")], roi_start=fn.random.uniform(shape=[2]))
        else:
            out = types.Constant(np.zeros((4, 5)))
        return out

    with pytest.raises(ValueError, match="roi_start.*branch of a conditional"):
        pipe()
