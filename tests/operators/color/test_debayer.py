# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

from harness import Case, op_test, per_sample, random_array, run
from penstock import types


def shifted(x, dy, dx):
    """x at (row + dy, column + dx), mirrored at the border, as large as x."""
    padded = np.pad(x.astype("i8"), 2, mode="reflect")
    return padded[2 + dy : 2 + dy + x.shape[0], 2 + dx : 2 + dx + x.shape[1]]


def by_gradients(x, row, column):
    """From Chang, Cheung and Pang, "Color filter array recovery using a threshold-based variable number of gradients".

    All numbers are twice as large. In OpenCV, means of four are cut off, and the colour beside a green element's
    direction is that of the two elements two steps away.
    """
    y, z = np.mgrid[: x.shape[0], : x.shape[1]]
    green = (y % 2 == row) != (z % 2 == column)
    v = x.astype("i8")
    steps, kinds = [], []  # per direction: the gradient; own, green or row's, opposite or column's

    def at(dy, dx):
        return shifted(x, dy, dx)

    def change(a, b):
        return abs(at(*a) - at(*b))

    for dy in (-1, 0, 1):
        for dx in (-1, 0, 1):
            if not (dy or dx):
                continue
            step = 2 * change((dy, dx), (-dy, -dx)) + 2 * change((2 * dy, 2 * dx), (0, 0))
            own = at(2 * dy, 2 * dx) + v
            if dy and dx:
                at_colour = change((dy, 0), (0, -dx)) + change((0, dx), (-dy, 0))
                at_colour += change((2 * dy, dx), (dy, 0)) + change((dy, 2 * dx), (0, dx))
                at_green = 2 * change((2 * dy, dx), (0, -dx)) + 2 * change((dy, 2 * dx), (-dy, 0))
                steps.append(step + np.where(green, at_green, at_colour))
                four = (at(2 * dy, dx) + at(dy, 0) + at(dy, 2 * dx) + at(0, dx)) // 2
                in_row, in_column = at(2 * dy, dx) + at(0, dx), at(dy, 0) + at(dy, 2 * dx)
                colours = (own, four, 2 * at(dy, dx)), (2 * at(dy, dx), in_row, in_column)
            else:
                for side in (-1, 1):
                    sy, sx = side * abs(dx), side * abs(dy)
                    step += change((dy + sy, dx + sx), (sy - dy, sx - dx)) + change(
                        (2 * dy + sy, 2 * dx + sx), (sy, sx)
                    )
                steps.append(step)
                near = at(dy + abs(dx), dx + abs(dy)) + at(dy - abs(dx), dx - abs(dy))
                far = at(2 * dy + abs(dx), 2 * dx + abs(dy)) + at(2 * dy - abs(dx), 2 * dx - abs(dy))
                nearest = 2 * at(dy, dx)
                colours = (own, nearest, near), (own, *((nearest, far) if dx else (far, nearest)))
            kinds.append(np.where(green, colours[1], colours[0]))
    least, most = np.min(steps, axis=0), np.max(steps, axis=0)
    few = steps < least + np.maximum(most // 2, 1)
    own, first, second = (few[:, None] * kinds).sum(axis=0)
    # OpenCV's vectors of eight elements divide by 14; its loop for the rest has seven digits of that.
    start = green[:, :1].astype(int)
    vectors = (z >= start) & (z < start + (x.shape[1] - start) // 8 * 8)
    count = few.sum(axis=0)
    factor = np.where((count == 7) & ~vectors, np.float32(0.0714286), 1 / np.float32(2 * count))
    first, second = (
        np.clip(v + np.rint((s - own).astype("f4") * factor.astype("f4")), 0, 255).astype("u1") for s in (first, second)
    )
    mine, other = np.where(green, first, v), second
    in_red_row = y % 2 == row
    return np.stack(
        [np.where(in_red_row, mine, other), np.where(green, v, first), np.where(in_red_row, other, mine)], -1
    ).astype("u1")


def reference(x, blue_position, algorithm):
    """From the descriptions of OpenCV's demosaicing and NPP's CFAToRGB."""
    x = x.reshape(x.shape[:2])
    inner = algorithm != "default_npp"
    if x.size == 0 or (inner and min(x.shape) < 3):
        return np.zeros((*x.shape, 1 if algorithm == "gray_ocv" else 3), x.dtype)
    row, column = np.broadcast_to(blue_position, 2)
    if algorithm == "vng_ocv":
        if min(x.shape) >= 8:
            return by_gradients(x, row, column)
        algorithm = "bilinear_ocv"
    y, z = np.mgrid[: x.shape[0], : x.shape[1]]
    red, blue = (y % 2 == row) & (z % 2 == column), (y % 2 != row) & (z % 2 != column)
    v, up, down, left, right = (shifted(x, *d) for d in ((0, 0), (-1, 0), (1, 0), (0, -1), (0, 1)))
    cross = up + down + left + right
    nw, ne, sw, se = (shifted(x, dy, dx) for dy in (-1, 1) for dx in (-1, 1))
    corners = nw + ne + sw + se
    in_red_row = y % 2 == row
    if algorithm == "gray_ocv":
        reds = np.select([red, blue, in_red_row], [4 * v, corners, 2 * (left + right)], 2 * (up + down))
        blues = np.select([blue, red, in_red_row], [4 * v, corners, 2 * (up + down)], 2 * (left + right))
        luma = 4899 * reds + 9617 * np.where(red | blue, cross, 4 * v) + 1868 * blues
        out = ((luma + 2**15) // 2**16)[..., None]
    else:
        beside, above = (left + right + 1) // 2, (up + down + 1) // 2
        if algorithm == "bilinear_ocv":
            green = (cross + 2) // 4
        elif algorithm == "edgeaware_ocv":
            green = np.where(abs(up - down) < abs(left - right), above, beside)
        else:
            across = abs(2 * v - shifted(x, 0, -2) - shifted(x, 0, 2))
            along = abs(2 * v - shifted(x, -2, 0) - shifted(x, 2, 0))
            # NPP rounds down, twice; what it gives on a GPU was compared.
            beside, above = (left + right) // 2, (up + down) // 2
            green = np.select([across < along, along < across], [beside, above], (beside + above) // 2)
        corners = (corners + 2) // 4
        if algorithm == "default_npp":
            by_columns, by_rows = (nw + sw) // 2 + (ne + se) // 2, (nw + ne) // 2 + (sw + se) // 2
            corners = np.where(y % 2, by_rows, by_columns) // 2
        reds = np.select([red, blue, in_red_row], [v, corners, beside], above)
        blues = np.select([blue, red, in_red_row], [v, corners, above], beside)
        out = np.stack([reds, np.where(red | blue, green, v), blues], axis=-1)
    if inner:
        out = np.pad(out[1:-1, 1:-1], ((1, 1), (1, 1), (0, 0)), mode="edge")
    return out.astype(x.dtype)


ALGORITHMS = ("bilinear_ocv", "edgeaware_ocv", "gray_ocv")
SIZES = ((6, 4), (2, 4), (0, 4), (34, 18), (8, 68))
OPTIONS = dict(channels=1, sizes=SIZES, dali_differs={"default_npp": "DALI has it on the GPU only"})
TestDebayer = op_test(
    "debayer",
    reference,
    dtypes=("u1", "u2"),
    layouts=("HW", "HWC"),
    args=[
        *({"blue_position": [y, x], "algorithm": a} for y in (0, 1) for x in (0, 1) for a in ALGORITHMS),
        {"blue_position": [0, 1], "algorithm": "default_npp"},
        {"blue_position": [1, 0], "algorithm": "default_npp"},
        {"blue_position": per_sample(0, 2, (2,), "i4"), "algorithm": "edgeaware_ocv"},
        {"blue_position": 1, "algorithm": "bilinear_ocv"},
    ],
    errors=[
        ({"algorithm": "best"}, ValueError, "algorithm='best' is not known; known are bilinear_ocv"),
        ({"blue_position": [0, 2]}, RuntimeError, r"must lie in a tile of 2 x 2, got \[0, 2\]"),
        ({"blue_position": []}, RuntimeError, "takes row and column, got 0 values"),
        ({"blue_position": [0, 1, 1]}, RuntimeError, "takes row and column, got 3 values"),
    ],
    **OPTIONS,
)
TestByGradients = op_test(
    "debayer",
    reference,
    layouts=("HW", "HWC"),
    args=[{"blue_position": [y, x], "algorithm": "vng_ocv"} for y in (0, 1) for x in (0, 1)],
    channels=1,
    sizes=((6, 12), (12, 6), (8, 8), (34, 18), (30, 68), (2, 2), (0, 4)),
)
TestFrames = op_test(
    "debayer",
    reference,
    layouts=("FHW", "FHWC"),
    args=[
        {"blue_position": per_sample(0, 2, (2,), "i4", frames=True), "algorithm": "gray_ocv"},
        {"blue_position": [1, 1], "algorithm": "bilinear_ocv"},
        {"blue_position": [0, 1], "algorithm": "vng_ocv"},
    ],
    **OPTIONS,
)


@pytest.mark.parametrize("device, algorithm", [("cpu", "bilinear_ocv"), ("gpu", "default_npp")])
def test_default(device, algorithm):
    x = random_array(np.random.default_rng(1), (8, 12), "u1")
    from penstock import fn, pipeline_def

    @pipeline_def(batch_size=1, device_id=0 if device == "gpu" else None)
    def pipe():
        return fn.debayer(types.Constant(x, layout="HW", device=device), blue_position=[0, 1])

    (out,) = pipe().run()
    out = out.as_cpu() if device == "gpu" else out
    assert out.layout() == "HWC"
    np.testing.assert_array_equal(out.at(0), reference(x, [0, 1], algorithm))


@pytest.mark.parametrize("algorithm", (*ALGORITHMS, "default_npp", "vng_ocv"))
def test_one_colour_stays(algorithm):
    """A picture of one colour comes out as it was."""
    mosaic = np.tile(np.uint8([[30, 90], [90, 240]]), (4, 5))  # red, green; green, blue
    ((y,),) = run("debayer", [mosaic], Case("u1", "HW", {"blue_position": [0, 0], "algorithm": algorithm}), {})
    assert (y == ([30, 90, 240] if y.shape[2] == 3 else round(0.299 * 30 + 0.587 * 90 + 0.114 * 240))).all()


@pytest.mark.parametrize(
    "shape, layout, text",
    [((5, 4), "HW", r"shape \[5, 4\] must have an even height and width"), ((4, 4, 3), "HWC", "has 3 channels")],
)
def test_images_that_are_no_mosaic(shape, layout, text):
    with pytest.raises(RuntimeError, match=text):
        run("debayer", [np.zeros(shape, "u1")], Case("u1", layout, {"blue_position": [0, 0]}), {})


def test_types():
    with pytest.raises(RuntimeError, match="input type float32 is not supported"):
        run("debayer", [np.zeros((4, 4), "f4")], Case("f4", "HW", {"blue_position": [0, 0]}), {})
    case = Case("u2", "HW", {"blue_position": [0, 0], "algorithm": "vng_ocv"})
    with pytest.raises(RuntimeError, match="VNG debayering only supported with UINT8"):
        run("debayer", [np.zeros((4, 4), "u2")], case, {})
