# SPDX-License-Identifier: Apache-2.0
"""readers.numpy against the real DALI: arrays, regions, files found, order.

Deliberate differences: arrays of 7 and 8 dimensions and of booleans are read, which DALI rejects; trailing blanks of a
line of `file_list` are not part of the path; `use_o_direct` does not require `dont_use_mmap`.
"""

import importlib
import itertools

import numpy as np
import pytest

from conformance.reader_runs import ORDERS, compare, refuses

NAME = "readers.numpy"
TYPES = ("u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8")


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("numpy")
    rng = np.random.default_rng(0)
    for k, folder in enumerate(("", "b", "a", ".h", "a/deeper")):
        (root / folder).mkdir(exist_ok=True)
        for i in range(4):
            np.save(root / folder / f"{i}.npy", rng.integers(0, 99, (3 + i, 4 + k)))
    (root / "a" / "x.NPY").write_bytes((root / "a" / "1.npy").read_bytes())
    (root / "list.txt").write_text("a/1.npy\nb/2.npy\n0.npy\n")
    return root


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("shape", [(7,), (3, 5), (4, 1, 6), (2, 3, 4, 5, 2, 2)], ids=str)
@pytest.mark.parametrize("dtype", TYPES)
def test_arrays(tmp_path, dtype, shape, order):
    x = np.random.default_rng(0).integers(0, 100, shape).astype(dtype)
    np.save(tmp_path / "x.npy", np.asarray(x, order=order))
    compare(NAME, {"files": [str(tmp_path / "x.npy")]}, batch_size=2, iterations=1)


STARTS = ({}, {"roi_start": [1, 2]}, {"rel_roi_start": [0.31, 0.17]}, {"roi_start": [1]})
ENDS = ({}, {"roi_end": [5, 7]}, {"rel_roi_end": [0.93, 0.75]}, {"roi_shape": [3, 4]}, {"rel_roi_shape": [0.41, 0.66]})


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("axes", [None, [0, 1], [1, 0], [-1, -2]], ids=str)
@pytest.mark.parametrize("start, end", list(itertools.product(STARTS, ENDS))[1:], ids=str)
def test_regions(tmp_path, start, end, axes, order):
    x = np.arange(7 * 9, dtype="i4").reshape(7, 9)
    np.save(tmp_path / "x.npy", np.asarray(x, order=order))
    kwargs = {"files": [str(tmp_path / "x.npy")], **start, **end} | ({} if axes is None else {"roi_axes": axes})
    for policy in ("error", "pad", "trim_to_shape"):
        both = [refuses(NAME, kwargs | {"out_of_bounds_policy": policy}, batch_size=1, iterations=1)]
        assert both[0][0] == both[0][1]
        if not both[0][0]:
            compare(NAME, kwargs | {"out_of_bounds_policy": policy}, batch_size=1, iterations=1)


@pytest.mark.parametrize("policy", ["error", "pad", "trim_to_shape"])
@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("axes", [None, [1, 0], [0]], ids=str)
@pytest.mark.parametrize("start, end", list(itertools.product(STARTS, ENDS))[1:], ids=str)
def test_regions_that_are_data(tmp_path, start, end, axes, order, policy):
    """Random regions per sample, passed as tensors: the same arrays of an external source in both libraries."""
    x = np.arange(7 * 9, dtype="i4").reshape(7, 9)
    np.save(tmp_path / "x.npy", np.asarray(x, order=order))
    kwargs = {"files": [str(tmp_path / "x.npy")], "out_of_bounds_policy": policy, "fill_value": 7}
    n, random = 2 if axes is None else len(axes), np.random.default_rng(5)
    data = {}
    for name, usual in (start | end).items():
        noise = random.uniform(0, 0.15, (4, n)) if name.startswith("rel_") else random.integers(0, 2, (4, n))
        data[name] = (np.array(usual[: 1 if len(usual) == 1 else n]) + noise[:, : len(usual)]).astype(
            "f4" if name.startswith("rel_") else "i4"
        )
    if axes is not None:
        kwargs["roi_axes"] = axes
    both = [outcome(_with_data(dali, kwargs, data)) for dali in (False, True)]
    assert both[0] == both[1]


def _with_data(dali, kwargs, data):
    module = importlib.import_module("nvidia.dali" if dali else "penstock")

    @module.pipeline_def(batch_size=4, num_threads=2, **({"device_id": None} if dali else {}))
    def pipe():
        nodes = {k: module.fn.external_source(lambda v=v: v) for k, v in data.items()}
        return module.fn.readers.numpy(**kwargs, **nodes)

    return pipe


def outcome(pipe):
    try:
        (out,) = pipe().run()
    except RuntimeError:
        return "an error"
    arrays = [np.array(out.at(i)) for i in range(4)]
    return [(a.dtype.name, a.shape, a.tobytes()) for a in arrays]


@pytest.mark.parametrize(
    "dtype, fill", [("u1", 300.0), ("u1", -1.0), ("i2", 2.5), ("i4", -2.5), ("f4", 0.3), ("f2", 7.1)]
)
@pytest.mark.parametrize("begin, size", [((-2, -3), (20, 20)), ((-3, -3), (2, 2)), ((8, 9), (2, 3)), ((2, -1), (3, 2))])
@pytest.mark.parametrize("policy", ["pad", "trim_to_shape"])
def test_outside(tmp_path, dtype, fill, begin, size, policy):
    for order in "CF":
        x = np.random.default_rng(0).integers(0, 99, (7, 9)).astype(dtype)
        np.save(tmp_path / "x.npy", np.asarray(x, order=order))
        kwargs = {"files": [str(tmp_path / "x.npy")], "roi_start": list(begin), "roi_shape": list(size)}
        kwargs |= {"out_of_bounds_policy": policy, "fill_value": fill}
        compare(NAME, kwargs, batch_size=1, iterations=1)


@pytest.mark.parametrize(
    "kwargs",
    [{}, {"file_filter": "1*"}, {"file_filter": "*.NPY"}, {"file_list": "list.txt"}, {"files": ["a/1.npy", "0.npy"]}],
    ids=str,
)
def test_files(root, kwargs):
    kwargs = {k: str(root / v) if k == "file_list" else v for k, v in kwargs.items()} | {"file_root": str(root)}
    compare(NAME, kwargs, iterations=6)


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_order(root, order):
    compare(NAME, {"file_root": str(root), **order}, iterations=12)


@pytest.mark.parametrize(
    "kwargs",
    [
        {"files": []},
        {"files": None, "file_root": "/no/such"},
        {"file_list": "x"},
        {"roi_start": [1], "rel_roi_start": [0.1]},
        {"roi_end": [1], "roi_shape": [1]},
        {"roi_start": [1, 2, 3]},
        {"roi_start": [1, 2], "roi_axes": [0]},
        {"roi_start": [1], "roi_axes": [0, 1]},
        {"roi_start": [2], "roi_end": [1]},
        {"roi_start": [0, 0], "roi_axes": [1, -1]},
        {"roi_start": [0], "roi_axes": [2]},
        {"roi_start": []},
        {"roi_axes": [0]},
        {"out_of_bounds_policy": "cut"},
        {"roi_shape": [-1]},
        {"rel_roi_shape": [-0.5]},
    ],
    ids=str,
)
def test_errors(root, kwargs):
    kwargs = {"files": [str(root / "0.npy")]} | kwargs
    ours, dalis = refuses(NAME, {k: v for k, v in kwargs.items() if v is not None}, iterations=1)
    assert ours == dalis
