# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest
from scipy import ndimage

from harness import FRAMES, SIZES, Case, full_shape, op_test, random_array, run, saturate
from penstock import fn, pipeline_def, types
from sampling_reference import places, sampled

NAME = "experimental.remap"
NN, LINEAR, CUBIC, LANCZOS = types.INTERP_NN, types.INTERP_LINEAR, types.INTERP_CUBIC, types.INTERP_LANCZOS3
WEIRD = np.float32([np.nan, np.inf, -np.inf, 1e30, -1e30, -1, 0, 1e9])


def reference(x, across, down, interp=LINEAR, pixel_origin="corner"):
    """An image extends from half a pixel before the first centre to a pixel after the last. The border is repeated;
    after the last centre, cubics repeat pixels, others clamp coordinates."""
    shift = np.float32(0.5 if pixel_origin == "corner" else 0)
    at = [m.reshape(m.shape[:2]) - shift for m in (across, down)]
    if not x.size:
        return np.zeros((*at[0].shape, x.shape[2]), x.dtype)
    sizes = (x.shape[1], x.shape[0])
    belongs = np.logical_and(*((p >= -0.5) & (p < n) for p, n in zip(at, sizes)))
    beyond = 1 if interp == CUBIC else 0
    u, v = (np.clip(np.where(belongs, p, 0).astype("f8"), 0, n - 1 + beyond) + 0.5 for p, n in zip(at, sizes))
    way = "lagrange" if interp == CUBIC else int(interp)
    return np.where(belongs[..., None], sampled(x, u, v, way, "replicate"), 0).astype(x.dtype)


def maps(move, size=lambda hw: hw, channel=False):
    """Two maps per sample: pixel positions plus `move(rng, shape)`."""

    def make(rng, case):
        made = []
        for h, w in (size(s) for s in SIZES):
            x, y = places(h, w)
            made.append([(c + 0.5 + move(rng, c.shape)).astype("f4") for c in (x, y)])
        return [[m[d][..., None] if channel else m[d] for m in made] for d in range(2)]

    return make


def jumps(rng, shape):
    return rng.uniform(-40, 40, shape)


def shakes(rng, shape):
    return rng.normal(0, 1, shape)


OPTIONS = [{"interp": i, "pixel_origin": o} for i in (NN, LINEAR, CUBIC, LANCZOS) for o in ("corner", "center")]
GPU_ONLY = {"dali_differs": {"-": "DALI has it on the GPU only"}}
CLOSE = {"steps": 1, "share": 0.01, "atol": 1e-3}
TestImages = op_test(
    NAME,
    reference,
    ("u1", "f4"),
    args=OPTIONS,
    extra_inputs=maps(shakes),
    errors=[
        ({"interp": types.INTERP_GAUSSIAN}, ValueError, "supported: INTERP_NN, INTERP_LINEAR, INTERP_CUBIC"),
        ({"pixel_origin": "middle"}, ValueError, "accepted: corner, center"),
        ({"pixel_orign": "center"}, TypeError, "Did you mean 'pixel_origin'"),
    ],
    **CLOSE,
    **GPU_ONLY,
)
TestTypes = op_test(
    NAME, reference, ("u2", "i2"), args=[{}, {"interp": NN}, {"interp": CUBIC}], extra_inputs=maps(shakes), steps=30,
    share=1, **GPU_ONLY,
)  # fmt: skip
TestFarPlaces = op_test(
    NAME, reference, ("u1", "f4"), args=[{}, {"interp": CUBIC}], extra_inputs=maps(jumps), **CLOSE, **GPU_ONLY
)
TestOtherSizes = op_test(
    NAME,
    reference,
    args=[{}, {"interp": NN}],
    extra_inputs=maps(shakes, lambda hw: (hw[1], hw[0] + 3)),
    **CLOSE,
    **GPU_ONLY,
)
TestMapsWithChannel = op_test(NAME, reference, args=[{}], extra_inputs=maps(shakes, channel=True), **CLOSE, **GPU_ONLY)
TestGray = op_test(NAME, reference, ("u1", "f4"), args=[{}, {"interp": CUBIC}], channels=1, extra_inputs=maps(shakes),
                   **CLOSE, **GPU_ONLY)  # fmt: skip
TestMany = op_test(
    NAME, reference, args=[{}, {"interp": NN}], channels=6, extra_inputs=maps(shakes), **CLOSE, **GPU_ONLY
)


def test_it_is_what_scipy_computes():
    """The border is repeated: scipy calls it "nearest"."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (20, 30, 3)).astype("u1")
    u, v = (rng.uniform(-3, n + 3, (25, 40)).astype("f4") for n in (30, 20))
    (got,) = run(NAME, [x], Case("u1", "HWC", {"pixel_origin": "center"}), {}, extra=[[u], [v]])
    belongs = (u >= -0.5) & (u < 30) & (v >= -0.5) & (v < 20)
    for c in range(3):
        want = ndimage.map_coordinates(x[..., c].astype("f8"), [v, u], order=1, mode="nearest")
        assert np.abs(got[0][..., c] - want * belongs).max() < 0.5001
    (exact,) = run(NAME, [x], Case("u1", "HWC", {"pixel_origin": "center"}), {}, extra=[[u.round()], [v.round()]])
    inside = ndimage.map_coordinates(np.ones((20, 30)), [v.round(), u.round()], order=0, mode="grid-constant")
    want = ndimage.map_coordinates(x[..., 1], [v.round(), u.round()], order=0, mode="nearest") * inside
    np.testing.assert_array_equal(exact[0][..., 1], want)


def nearby(value):
    return [np.nextafter(np.float32(value), np.float32(d)) for d in (-np.inf, np.inf)]


@pytest.mark.parametrize("device", ("cpu", "gpu"))
@pytest.mark.parametrize("interp", (NN, LINEAR, CUBIC, LANCZOS))
@pytest.mark.parametrize("origin", ("center", "corner"))
def test_beside_the_border(origin, interp, device):
    """Outer pixels up to half a pixel before the first centre and a pixel after the last, and zeros beyond."""
    x = np.float32([[[10], [20], [40]]])
    low, high = (-0.5, 3) if origin == "center" else (0, 3.5)
    columns = [low - 1, nearby(low)[0], low, low + 0.25, high - 0.25, nearby(high)[0], high, high + 1]
    # A quarter of a pixel before the end the cubic through 20, 40, 40 and 40 is at -1/6 * 3/4 * -1/4 * -5/4 of 20.
    want = [0, 0, 10, 10, 40 + 20 * 5 / 128 if interp == CUBIC else 40, 40, 0, 0]
    across = np.float32([columns])
    for down, found in ((nearby(low)[0], 0), (low, 1), (nearby(high - 2)[0], 1), (high - 2, 0)):
        rows = np.full_like(across, down)
        kwargs = {"interp": interp, "pixel_origin": origin}
        if device == "cpu":
            (got,) = run(NAME, [x], Case("f4", "HWC", kwargs), {}, extra=[[across], [rows]])
        else:
            got = on_gpu(x, across, rows, kwargs)
        np.testing.assert_allclose(got[0][0, :, 0], np.float32(want) * found, rtol=1e-5)


# Results of DALI 2.4 on an H200 for an image that is 1 at (32, 32) and 0 elsewhere, at these columns of row 32.
OF_DALI = [
    (30.259765625, -0.040372852), (30.611328125, -0.063810214), (31.021484375, 0.0217102052), (31.34375, 0.382522583),
    (31.783203125, 0.849695504), (32.22265625, 0.844615221), (32.662109375, 0.375687152),
    (33.00048828125, -0.000162641227), (33.248046875, -0.0544622727), (33.6875, -0.0469970703),
]  # fmt: skip


@pytest.mark.parametrize("device", ("cpu", "gpu"))
def test_cubic_weights_are_those_of_dali(device):
    x = np.zeros((64, 64, 1), "f4")
    x[32, 32] = 1
    across = np.float32([[place for place, _ in OF_DALI]])
    rows, kwargs = np.full_like(across, 32), {"interp": CUBIC, "pixel_origin": "center"}
    for maps in ((across, rows), (rows, across)):
        if device == "cpu":
            (got,) = run(NAME, [x], Case("f4", "HWC", kwargs), {}, extra=[[m] for m in maps])
        else:
            got = on_gpu(x, *maps, kwargs)
        np.testing.assert_allclose(got[0][0, :, 0], [weight for _, weight in OF_DALI], atol=1e-7)


@pytest.mark.parametrize("device", ("cpu", "gpu"))
@pytest.mark.parametrize("dtype", ("u1", "f4"))
@pytest.mark.parametrize("interp", (NN, LINEAR, CUBIC, LANCZOS))
def test_what_is_no_place_is_outside(interp, dtype, device):
    x = random_array(np.random.default_rng(1), (4, 5, 3), dtype)
    across = np.resize(WEIRD, (8, 8))
    down = np.resize(WEIRD, (8, 8)).T.copy()
    case = Case(dtype, "HWC", {"interp": interp, "pixel_origin": "center"})
    (got,) = run(NAME, [x], case, {}, extra=[[across], [down]], device=device) if device == "cpu" else (
        on_gpu(x, across, down, case.kwargs),
    )  # fmt: skip
    far = ~(np.abs(across) < 100) | ~(np.abs(down) < 100)
    assert far.sum() == 64 - 4 and not got[0][far].any()
    np.testing.assert_allclose(got[0][6, 6], x[0, 0], atol=1e-6)


def on_gpu(x, across, down, kwargs):
    @pipeline_def(batch_size=1, num_threads=1, device_id=0)
    def pipe():
        y, u, v = (fn.external_source(source=lambda i, s=s: [s], device="gpu") for s in (x, across, down))
        return fn.experimental.remap(fn.reshape(y, layout="HWC"), u, v, **kwargs)

    return [np.array(pipe().run()[0].as_cpu().at(0))]


@pytest.mark.parametrize("each", (True, False))
def test_sequences(each):
    """Each frame has a map, or all have one."""
    rng = np.random.default_rng(0)
    samples = [rng.integers(0, 256, full_shape("FHWC", s, 3, i)).astype("u1") for i, s in enumerate(SIZES)]
    shapes = [(f, *s) if each else s for s, f in zip(SIZES, FRAMES)]
    two = [[(rng.random(s) * s[-1 - d]).astype("f4") if min(s) else np.zeros(s, "f4") for s in shapes]
           for d in (0, 1)]  # fmt: skip

    @pipeline_def(batch_size=len(SIZES), num_threads=2)
    def pipe():
        x = fn.external_source(source=lambda i: samples, layout="FHWC")
        u, v = (fn.external_source(source=lambda i, m=m: m, layout="FHW" if each else "HW") for m in two)
        return fn.experimental.remap(x, u, v)

    (out,) = pipe().run()
    assert out.layout() == "FHWC"
    for i, x in enumerate(samples):
        for f in range(len(x)):
            u, v = (m[i][f] if each else m[i] for m in two)
            want = reference(x[f], u, v)
            assert np.abs(out.at(i)[f].astype(int) - want).max(initial=0) <= 1


def test_as_many_maps_as_frames():
    @pipeline_def(batch_size=2, num_threads=1)
    def pipe():
        x = fn.external_source(source=lambda i: [np.zeros((f, 4, 5, 3), "u1") for f in (3, 2)], layout="FHWC")
        u = fn.external_source(source=lambda i: [np.zeros((f, 4, 5), "f4") for f in (3, 1)], layout="FHW")
        return fn.experimental.remap(x, u, u)

    with pytest.raises(RuntimeError, match="1 and 2 frames in sample 1; they need equally many"):
        pipe().run()


@pytest.mark.parametrize(
    "across, down, text",
    [
        (np.zeros((4, 5), "f8"), np.zeros((4, 5), "f4"), "input 1 needs maps of float32; got float64"),
        (np.zeros((4, 5), "f4"), np.zeros((4, 5), "i4"), "input 2 needs maps of float32; got int32"),
        (np.zeros((4, 5), "f4"), np.zeros((4, 6), "f4"), r"the same size; got \[4, 5\] and \[4, 6\]"),
        (np.zeros((4, 5, 2), "f4"), np.zeros((4, 5, 2), "f4"), "maps have one channel"),
        (np.zeros(4, "f4"), np.zeros(4, "f4"), "got 1 dimensions"),
    ],
)
def test_wrong_maps(across, down, text):
    with pytest.raises(RuntimeError, match=text):
        run(NAME, [np.zeros((4, 5, 3), "u1")], Case("u1", "HWC", {}), {}, extra=[[across], [down]])


def test_wrong_images():
    flat = [np.zeros((4, 5), "f4")]
    with pytest.raises(RuntimeError, match="float64 is not supported"):
        run(NAME, [np.zeros((4, 5, 3), "f8")], Case("f8", "HWC", {}), {}, extra=[flat, flat])
    with pytest.raises(RuntimeError, match="CHW"):
        run(NAME, [np.zeros((3, 4, 5), "u1")], Case("u1", "CHW", {}), {}, extra=[flat, flat])


def test_an_empty_image_gives_zeros():
    flat = [np.zeros((2, 3), "f4")]
    (out,) = run(NAME, [np.zeros((0, 5, 3), "f4")], Case("f4", "HWC", {}), {}, extra=[flat, flat])
    assert out[0].shape == (2, 3, 3) and not out[0].any()


def test_halves_are_rounded_away_from_zero():
    x = np.array([[[-3], [-2], [4], [5]]], "i2")
    across = np.float32([[0.5, 2.5]])
    case = Case("i2", "HWC", {"pixel_origin": "center"})
    (out,) = run(NAME, [x], case, {}, extra=[[across], [np.zeros_like(across)]])
    np.testing.assert_array_equal(out[0][0, :, 0], saturate(np.array([-2.5, 4.5]), "i2"))
