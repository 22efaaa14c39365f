# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

from harness import op_test
from penstock import fn, pipeline_def

COUNTS = ((4, 2), (7, 7), (3, 0), (0, 0), (60, 31))  # numbers of all masks and of selected ones


def reference(ids, polygons, vertices, reindex_masks=False):
    chosen, kept, n = [], [np.empty((0, vertices.shape[1]), vertices.dtype)], 0
    for k, mask in enumerate(ids):
        for _, begin, end in polygons[polygons[:, 0] == mask]:
            kept.append(vertices[begin:end])
            chosen.append([k if reindex_masks else mask, n, n + end - begin])
            n += end - begin
    return np.array(chosen, "i4").reshape(-1, 3), np.concatenate(kept)


def masks(rng):
    """For each sample, the ids of masks, their polygons of 0 to 8 vertices, and the numbers of vertices."""
    for there, selected in COUNTS:
        ids = rng.permutation(500)[:there].astype("i4") - 100
        ends = np.cumsum(rng.integers(0, 9, there))
        polygons = np.stack([ids, np.concatenate([[0], ends[:-1]])[:there], ends], axis=1).astype("i4")
        yield rng.permutation(ids)[:selected], rng.permutation(polygons), int(ends[-1]) if there else 0


def chosen_ids(rng, case):
    return [m[0] for m in masks(np.random.default_rng(4))]


def polygons_and_vertices(dtype, coordinates):
    def make(rng, case):
        samples = list(masks(np.random.default_rng(4)))
        vertices = [(rng.random((m[2], coordinates)) * 200).astype(dtype) for m in samples]
        return [[m[1] for m in samples], vertices]

    return make


ARGS = [{}, {"reindex_masks": True}]
TYPES = ("f4", "i4", "u1", "f8", "i2", "f2", "i8", "b1", "u4", "u2", "i1", "u8")
# One test for each type and number of coordinates.
for _dtype, _coordinates in [*((t, 2) for t in TYPES), ("f4", 1), ("f4", 3), ("u1", 5)]:
    vars()[f"Test_{_dtype}_{_coordinates}"] = op_test(
        "segmentation.select_masks",
        reference,
        ("i4",),
        ("",),
        ARGS,
        make_input=chosen_ids,
        extra_inputs=polygons_and_vertices(_dtype, _coordinates),
    )
POLYGONS = np.int32([[2, 0, 3], [5, 3, 6], [7, 6, 9], [5, 9, 12]])
VERTICES = np.arange(24, dtype="f4").reshape(12, 2)


def run(ids, polygons=POLYGONS, vertices=VERTICES, **kwargs):
    @pipeline_def(batch_size=1, num_threads=1)
    def pipe():
        fed = [fn.external_source(source=[[x]], cycle=True) for x in (ids, polygons, vertices)]
        return tuple(fn.segmentation.select_masks(*fed, **kwargs))

    return [x.at(0) for x in pipe().run()]


def test_a_mask_of_several_polygons():
    """All polygons are selected. (DALI selects the last one, contrary to its documentation.)"""
    for kwargs in ARGS:
        for ids in ([5], [5, 2], [7, 5]):
            for got, want in zip(run(np.int32(ids), **kwargs), reference(np.int32(ids), POLYGONS, VERTICES, **kwargs)):
                np.testing.assert_array_equal(got, want)
    assert run(np.int32([5]))[0].tolist() == [[5, 0, 3], [5, 3, 6]]


def test_polygons_that_share_vertices():
    """The output has more vertices than the input."""
    polygons = np.int32([[1, 0, 12], [2, 0, 12], [3, 5, 12]])
    chosen, kept = run(np.int32([3, 1, 2]), polygons)
    assert chosen.tolist() == [[3, 0, 7], [1, 7, 19], [2, 19, 31]] and kept.shape == (31, 2)


@pytest.mark.parametrize(
    "inputs, text",
    [
        ((np.int32([2, 9]),), "no polygon belongs to the selected mask 9"),
        ((np.int32([2, 5, 2]),), "the mask 2 is selected twice"),
        (
            (np.int32([2]), np.int32([[2, 0, 30]])),
            r"polygon 0, of mask 2, has the vertices \[0, 30\); there are \[0, 12\)",
        ),
        ((np.int32([2]), np.int32([[2, -3, 3]])), r"has the vertices \[-3, 3\)"),
        ((np.int32([2]), np.int32([[2, 5, 3]])), r"has the vertices \[5, 3\)"),
        ((np.int64([2]),), r"mask ids \(input 0\) must be int32, got int64"),
        ((np.int32([2]), POLYGONS.astype("i8")), r"polygons \(input 1\) must be int32, got int64"),
        ((np.int32([[2]]),), r"mask ids \(input 0\) must have 1 dimension, got 2"),
        ((np.int32([2]), POLYGONS[0]), r"polygons \(input 1\) must have 2 dimensions, got 1"),
        ((np.int32([2]), POLYGONS, VERTICES[0]), r"vertices \(input 2\) must have 2 dimensions, got 1"),
        ((np.int32([2]), np.hstack([POLYGONS, POLYGONS])), r"three columns: id, begin, end; got the shape \[4, 6\]"),
    ],
)
def test_inputs_that_do_not_fit(inputs, text):
    with pytest.raises(RuntimeError, match=text):
        run(*inputs)
