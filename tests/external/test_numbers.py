# SPDX-License-Identifier: Apache-2.0
"""Python numbers in sources: 32-bit types by default, or the requested type; the value never changes."""

import array
import io

import numpy as np
import pytest
from sources import build

from penstock import PipelineError, fn, pipeline_def, types

WAYS = {
    "sample": dict(batch=False, parallel=False),
    "batch": dict(batch=True, parallel=False),
    "worker": dict(workers=1),
    "worker, batch": dict(workers=1, batch=True),
    "thread": dict(workers=1, method="thread"),
}


def of(way, number, **kwargs):
    """The batch of a source that returns a number for each of two samples."""
    made = {**WAYS[way], **kwargs}
    value = [number, number] if made.get("batch") else number
    (out,) = build(lambda i: value, batch_size=2, **made).run()
    return out.as_array()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("number", [2**31, -(2**31) - 1, 2**40, 2**63, [1, 2**31]])
def test_integers_that_do_not_fit_are_errors(way, number):
    with pytest.raises(PipelineError, match=r"integer -?\d{10,}, which int32 can't hold; say dtype=types.INT64"):
        of(way, number)


@pytest.mark.parametrize("way", WAYS)
def test_the_type_asked_for_decides(way):
    for number, dtype, want in (
        (2**40, types.INT64, np.int64),
        (2**63, types.UINT64, np.uint64),
        (-7, types.INT64, np.int64),
        (200, types.UINT8, np.uint8),
        (3, types.FLOAT, np.float32),
        (0.1, types.FLOAT64, np.float64),
        ([2**40, 1], types.INT64, np.int64),
        (True, types.INT32, np.int32),
    ):
        got = of(way, number, dtype=dtype)
        assert got.dtype == want and got.tolist() == [number, number]
    with pytest.raises(PipelineError, match="integer 300, which uint8 can't hold"):
        of(way, 300, dtype=types.UINT8)
    with pytest.raises(PipelineError, match="has type float32, but dtype asks for int32"):
        of(way, 1.5, dtype=types.INT32)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "buffer, dtype",
    [
        (memoryview(b"abc"), "uint8"),
        (io.BytesIO(b"abc").getbuffer(), "uint8"),
        (bytearray(b"abc"), "uint8"),
        (array.array("d", [1, 2.5]), "float64"),
        (array.array("q", [2**40]), "int64"),
    ],
    ids=["memoryview", "BytesIO", "bytearray", "doubles", "long integers"],
)
def test_buffers_keep_their_type(way, buffer, dtype):
    if "worker" in way and isinstance(buffer, memoryview):
        pytest.skip("a memoryview can't be pickled")
    got = of(way, buffer)
    assert got.dtype == dtype and got.tolist() == [list(buffer)] * 2


def test_defaults():
    for number, want in ((5, "int32"), (2**31 - 1, "int32"), (-(2**31), "int32"), (1.5, "float32"), (True, "bool")):
        got = of("sample", number)
        assert got.dtype == want and got.tolist() == [number, number]


def test_no_type_is_large_enough():
    with pytest.raises(PipelineError, match="the integer 1180591620717411303424, which no type of numbers can hold"):
        of("sample", 2**70)


def test_fed_numbers():
    def pipe(**kwargs):
        return pipeline_def(lambda: fn.external_source(name="x", **kwargs), batch_size=2, num_threads=1)()

    with pytest.raises(ValueError, match="sample 1: the source gave the integer 1099511627776"):
        pipe().feed_input("x", [1, 2**40])
    wide = pipe(dtype=types.INT64)
    wide.feed_input("x", [1, 2**40])
    assert wide.run()[0].as_array().tolist() == [1, 2**40]
    several = pipeline_def(
        lambda: tuple(fn.external_source(lambda: ([2**40] * 2, [7, 8]), num_outputs=2, dtype=[types.INT64, None])),
        batch_size=2,
    )()
    assert [o.as_array().dtype.name for o in several.run()] == ["int64", "int32"]
