# SPDX-License-Identifier: Apache-2.0
"""Regions of several images on one canvas, against the real DALI."""

import numpy as np
import pytest

from conformance import oracle, report
from operators.geometry import test_multi_paste as cases
from penstock import types


@pytest.mark.parametrize("dtype, by_ids, relative, out", cases.CASES)
def test_multi_paste(dtype, by_ids, relative, out):
    inputs, columns, constants = cases.arguments(dtype, by_ids, relative, out)
    ours = cases.paste(inputs, columns, **constants)
    theirs = cases.define(
        *(oracle.dali_fn, oracle.pipeline_def, {"device_id": None}, inputs, columns),
        {k: oracle.dali_value(v) for k, v in constants.items()},
    )
    tally = report.tally("multi_paste")
    tally.cases += 1
    wrong = oracle.compare(oracle.Result([theirs], ["HWC"]), oracle.Result([ours], ["HWC"]), oracle.Bound(), tally)
    assert not wrong, wrong


def test_sequences():
    """Of one frame; DALI fails for more."""
    rng = np.random.default_rng(0)
    x = [[rng.integers(0, 255, (1, 4, 5, 3)).astype("u1")]]
    columns = {"in_ids": [np.int32([0, 0])], "out_anchors": [np.int32([[0, 0], [2, 1]])]}
    ours = cases.paste(x, columns, "FHWC", output_size=[6, 7])
    theirs = cases.define(
        oracle.dali_fn, oracle.pipeline_def, {"device_id": None}, x, columns, {"output_size": [6, 7]}, "FHWC"
    )
    np.testing.assert_array_equal(ours[0], theirs[0])


@pytest.mark.parametrize(
    "kwargs",
    [
        {"in_ids": [0, 0], "out_anchors": [0, 0, 3, 9]},  # exceeds the canvas
        {"in_ids": [0], "shapes": [40, 4]},  # more than there is
        {"in_ids": [0], "in_anchors": [-1, 0]},
        {"in_ids": [7]},
        {"in_ids": [-1]},
        {"in_ids": [0, 1], "shapes": [1, 1]},
        {"in_ids": [0], "shapes": [1, 1], "shapes_rel": [0.5, 0.5]},
        {"output_size": [-1, 4], "in_ids": [0]},
        {"in_ids": [0], "dtype": types.UINT16},
    ],
    ids=str,
)
def test_mistakes(kwargs):
    images = [[np.full((4, 5, 3), 7, "u1")] * 2]
    results = []
    for face, define, options in (
        (oracle.dali_fn, oracle.pipeline_def, {"device_id": None}),
        (cases.fn, cases.pipeline_def, {}),
    ):
        given = {"output_size": [6, 8], **kwargs}
        given = {k: oracle.dali_value(v) for k, v in given.items()} if "device_id" in options else given
        try:
            results.append(cases.define(face, define, options, images, {}, given))
        except Exception as e:
            results.append(e)
    assert isinstance(results[0], Exception) == isinstance(results[1], Exception), results
    report.tally("multi_paste").cases += 1
    report.tally("multi_paste").both_raise += isinstance(results[1], Exception)
