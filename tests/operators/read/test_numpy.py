# SPDX-License-Identifier: Apache-2.0
"""readers.numpy: arrays compared with NumPy, and errors for damaged files. For regions, see test_numpy_regions.py."""

import os

import numpy as np
import pytest
from numpy_arrays import assert_same, build, read

TYPES = ("u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "?")
SHAPES = ((), (7,), (3, 5), (4, 1, 6), (0, 3), (40, 50), (33, 2, 65), (2, 3, 4, 5, 2, 2))


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", TYPES)
def test_arrays(tmp_path, dtype, shape, order):
    x = np.random.default_rng(0).integers(0, 200, shape).astype(dtype)
    np.save(tmp_path / "x.npy", np.asarray(x, order=order))
    assert_same(read(tmp_path / "x.npy"), x)


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_versions(tmp_path, version):
    x = np.arange(12, dtype="f4").reshape(3, 4)
    with open(tmp_path / "x.npy", "wb") as f:
        np.lib.format.write_array(f, x, version)
    assert_same(read(tmp_path / "x.npy"), x)
    assert_same(read(tmp_path / "x.npy", roi_start=[1], roi_axes=[0]), x[1:])


def test_finding_files(tmp_path):
    for name in ("b/2.npy", "a/1.npy", "a/deeper/no.npy", "0.npy", "a/x.txt", "a/Y.NPY"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        with open(tmp_path / name, "wb") as f:
            np.save(f, np.frombuffer(name.encode().ljust(16), "u1"))
    (tmp_path / "list.txt").write_text("b/2.npy\n\na/x.txt\r\n")
    os.mkdir(tmp_path / "folder.npy")

    def names(**kwargs):
        pipe = build(**kwargs)
        return [bytes(np.array(pipe.run()[0].at(0))).decode().strip() for _ in range(pipe.epoch_size("r"))]

    assert names(file_root=str(tmp_path)) == ["0.npy", "a/1.npy", "b/2.npy"]
    assert names(file_root=str(tmp_path), file_filter="x*") == ["a/x.txt"]
    assert names(file_list=str(tmp_path / "list.txt")) == ["b/2.npy", "a/x.txt"]
    assert names(files=["a/1.npy", "0.npy"], file_root=str(tmp_path)) == ["a/1.npy", "0.npy"]
    assert build(files=["a/1.npy"], file_root=str(tmp_path)).run()[0][0].source_info() == "a/1.npy"


def test_batches_need_one_type_and_dimensions(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((2, 3), "f4"))
    np.save(tmp_path / "b.npy", np.zeros((2, 3), "f8"))
    np.save(tmp_path / "c.npy", np.zeros((2, 3, 1), "f4"))
    for other in "bc":
        with pytest.raises(RuntimeError, match=f"{other}.npy"):
            build(files=[str(tmp_path / f"{x}.npy") for x in ("a", other)], batch_size=2).run()


# Damage -----------------------------------------------------------------------------------------------------------


def npy(header, data=b"", version=1):
    header = header if isinstance(header, bytes) else header.encode()
    return b"\x93NUMPY" + bytes([version, 0]) + len(header).to_bytes(2 if version == 1 else 4, "little") + header + data


GOOD = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }                          \n"


@pytest.mark.parametrize(
    "content, error",
    [
        (b"x" * 200, "no .npy file"),
        (npy(GOOD, bytes(24)).replace(b"NUMPY\1", b"NUMPY\7"), "version 7.0"),
        (npy(GOOD, bytes(24))[:60], "header|ends|has 60"),
        (npy(GOOD, bytes(23)), "promises an array of 24 bytes, behind it the file has 23"),
        (npy(GOOD.replace("(2, 3)", f"({2**60}, 2)"), bytes(24)), "promises an array|more than 2.63"),
        (npy(GOOD.replace("(2, 3)", "(99999999999999999999,)"), bytes(24)), "can't be read"),
        (npy(GOOD.replace("(2, 3)", f"({2**40}, {2**40})"), bytes(24)), "more than 2.63"),
        (npy(GOOD.replace("(2, 3)", "(1,1,1,1,1,1,1,1,1)"), bytes(24)), "more than 8 dimensions"),
        (npy(GOOD.replace("<f4", ">f4"), bytes(24)), "other byte order"),
        (npy(GOOD.replace("<f4", "<c8"), bytes(48)), "type '<c8' are not supported"),
        (npy(GOOD.replace("<f4", "|O"), bytes(48)), "type '|O' are not supported"),
        (npy(GOOD.replace("False", "Maybe"), bytes(24)), "can't be read"),
        (npy(GOOD.replace("'shape'", "'scape'"), bytes(24)), "can't be read"),
        (npy(GOOD.replace(", }", ", 'shape': (6,)}"), bytes(24)), "can't be read"),
        (npy(GOOD.replace("(2, 3)", "(-2, 3)"), bytes(24)), "can't be read"),
        (npy(GOOD.replace("(2, 3)", "(6)"), bytes(24)), "can't be read"),
        (npy(GOOD.replace("}", ""), bytes(24)), "can't be read"),
        (npy(b"(" * 60000, bytes(24)), "can't be read"),
        (b"\x93NUMPY\2\0\xff\xff\xff\xff" + bytes(200), "header of a .npy file has 4294967295 bytes"),
    ],
    ids=range(19),
)
@pytest.mark.parametrize("kwargs", [{}, {"roi_start": [0], "roi_axes": [0]}], ids=str)
def test_damaged_files(tmp_path, content, error, kwargs):
    (tmp_path / "x.npy").write_bytes(content)
    np.save(tmp_path / "y.npy", np.ones((2, 3), "f4"))
    files = [str(tmp_path / "x.npy"), str(tmp_path / "y.npy")]
    with pytest.raises(RuntimeError, match=error) as e:
        build(files=files, batch_size=2, **kwargs).run()
    assert "x.npy" in str(e.value)
    (out,) = build(files=files, batch_size=2, on_error="skip", **kwargs).run()
    assert len(out) == 1 and np.array(out.at(0)).tolist() == [[1] * 3] * 2


@pytest.mark.parametrize(
    "kwargs, error",
    [
        ({"files": None}, "'file_root', 'files' or 'file_list' is needed"),
        ({"files": []}, "'files' is an empty list"),
        ({"file_list": "x"}, "can't be used together"),
        ({"files": None, "file_root": "/no/such"}, "/no/such"),
        ({"files": None, "file_list": "/no/such"}, "/no/such"),
        ({"roi_start": [1], "rel_roi_start": [0.1]}, "give one of roi_start, rel_roi_start"),
        ({"roi_end": [1], "roi_shape": [1]}, "give one of roi_end"),
        ({"roi_start": [1, 2], "roi_end": [1, 2, 3]}, "need one value for each axis"),
        ({"roi_start": [1, 2], "roi_axes": [0]}, "need one value for each axis"),
        ({"out_of_bounds_policy": "cut"}, "takes 'error', 'pad' or 'trim_to_shape'"),
        ({"roi_start": [2], "roi_end": [1]}, "ends before it begins"),
        ({"roi_start": [0], "roi_axes": [2]}, "roi_axes has axis 2, the array has 2"),
        ({"roi_start": [0, 0], "roi_axes": [1, -1]}, "roi_axes has axis 1 twice"),
        ({"roi_start": [0, 0, 0]}, "has values for 3 axes, the array has 2"),
        ({"roi_shape": [2**31 - 1], "out_of_bounds_policy": "pad"}, "out of memory|too large"),
    ],
    ids=str,
)
def test_errors(tmp_path, kwargs, error):
    np.save(tmp_path / "x.npy", np.zeros((3, 4)))
    with pytest.raises((ValueError, RuntimeError), match=error):
        build(**({"files": [str(tmp_path / "x.npy")]} | kwargs)).run()
