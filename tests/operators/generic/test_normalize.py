# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

from harness import Case, op_test, per_sample, run, saturate
from penstock import Pipeline, fn, pipeline_def, types


def reference(
    x,
    axes=None,
    axis_names=None,
    mean=None,
    stddev=None,
    shift=0.0,
    scale=1.0,
    ddof=0,
    epsilon=0.0,
    dtype=types.FLOAT,
    layout="HWC",
    data=None,
):
    """In float64. Mean and stddev are computed from `data`, by default x."""
    wide = x.astype("f8")
    data = wide if data is None else data.astype("f8")
    if axis_names is not None:
        axes = [layout.index(c) for c in axis_names]
    axes = tuple(range(x.ndim) if axes is None else axes)
    if x.size == 0:
        return x.astype(types.to_numpy_type(dtype))
    mean = data.mean(axes, keepdims=True) if mean is None else np.float64(mean)
    if stddev is None:
        degrees = np.prod([data.shape[a] for a in axes]) - ddof
        squares = ((data - mean) ** 2).sum(axes, keepdims=True)
        variance = (squares / degrees if degrees > 0 else 0 * squares) + epsilon
        factor = np.divide(1, np.sqrt(variance), out=np.zeros_like(variance), where=variance > 0)
    else:
        factor = 1 / np.sqrt(np.float64(stddev) ** 2 + epsilon)
    return saturate((wide - mean) * factor * scale + shift, np.dtype(types.to_numpy_type(dtype)))


FLOAT32_MEANS = "DALI's means and deviations are of float32: up to 2e-5 off"

TestNormalize = op_test(
    "normalize",
    reference,
    dtypes=("u1", "i1", "u2", "i2", "u4", "i4", "f4"),
    layouts=("HWC",),
    args=[
        {},
        {"axes": [0, 1]},
        {"axes": [2]},
        {"axes": [1]},
        {"axes": [0, 2], "ddof": 1},
        {"axis_names": "HW", "epsilon": 0.25},
        {"mean": 10.0},
        {"mean": 3.0, "axes": [0]},
        {"stddev": 20.0, "axis_names": "C"},
        {"mean": 100.0, "stddev": 50.0, "epsilon": 7.0},
        {"shift": 3.0, "scale": 5.0},
        {"dtype": types.UINT8, "scale": 64.0, "shift": 128.0, "axes": [0, 1]},
        {"dtype": types.INT16, "scale": 6400.0},
        {"ddof": 1000000},
    ],
    steps=1,  # quotients near a half round by the precision of float32
    ulps=32,
    dali_differs={"axes=[2]": FLOAT32_MEANS},
    errors=[
        ({"axes": [0], "axis_names": "H"}, ValueError, "'axes' and 'axis_names' exclude each other"),
        ({"axes": []}, ValueError, "needs at least one axis"),
        ({"axes": [1, 1]}, ValueError, "has an axis twice"),
        ({"axes": [3]}, RuntimeError, "axis 3 of 'axes' is not in 0 .. 2"),
        ({"axes": [-1]}, RuntimeError, "axis -1 of 'axes' is not in 0 .. 2"),
        ({"axis_names": "HX"}, RuntimeError, "Axis 'X' is not present in the input layout 'HWC'"),
        ({"axes": [0], "mean": 1.0, "stddev": 1.0}, ValueError, "'axes' have no meaning"),
        ({"dtype": types.FLOAT16}, ValueError, "output type float16 is not supported"),
        ({"mean": np.zeros((1, 1, 3), "f4"), "batch": True}, ValueError, "batch=True computes one mean"),
        ({"mean": np.zeros((1, 3), "f4")}, RuntimeError, "'mean' has 2 dimensions, the input 3"),
        ({"mean": np.zeros((1, 1, 4), "f4")}, RuntimeError, r"'mean' of shape \[1, 1, 4\] does not fit the input"),
        ({"mean": np.zeros((1, 1, 3), "f4"), "axes": [0]}, RuntimeError, "does not fit the input"),
        ({"mean": np.zeros((1, 1, 3), "i4")}, RuntimeError, "'mean' takes float32, got int32"),
        (
            {"mean": np.zeros((1, 1, 3), "f4"), "stddev": np.zeros((1, 1, 1), "f4")},
            RuntimeError,
            "shapes of mean and stddev differ",
        ),
    ],
)
# A sequence is one tensor.
TestSequence = op_test(
    "normalize",
    lambda x, **kwargs: reference(x, layout="FHWC", **kwargs),
    layouts=("FHWC",),
    dtypes=("u1", "f4"),
    args=[{}, {"axis_names": "HW"}, {"axis_names": "F"}, {"axes": [0, 3]}, {"axes": [0, 1, 2]}],
    ulps=32,
    dali_differs={"axes=[0,3]": FLOAT32_MEANS, "axis_names=F": FLOAT32_MEANS},
)
TestPerSample = op_test(
    "normalize",
    reference,
    dtypes=("u1", "f4"),
    args=[
        {"mean": per_sample(0, 100), "stddev": per_sample(1, 50)},
        {"mean": per_sample(0, 100, (1, 1, 3)), "axes": [0, 1]},
        {"stddev": per_sample(1, 50, (1, 1, 3)), "axes": [0, 1]},
        {"mean": per_sample(0, 100, (1, 1, 3)), "stddev": per_sample(1, 50, (1, 1, 3)), "dtype": types.INT16},
    ],
    steps=1,
    ulps=32,
    dali_differs={"mean=per_sample(0,100),stddev": "DALI refuses tensors without dimensions"},
)


def normalized(samples, layout="HWC", device="cpu", **kwargs):
    @pipeline_def(batch_size=len(samples), num_threads=2, device_id=None if device == "cpu" else 0)
    def pipe():
        return fn.normalize(fn.external_source(source=lambda i: samples, layout=layout, device=device), **kwargs)

    out = pipe().run()[0].as_cpu()
    return [np.array(out.at(i)) for i in range(len(samples))]


@pytest.mark.parametrize("shape", [(1, 1, 3), (1, 1, 1), (5, 1, 1), (5, 7, 1), (1, 7, 3), (5, 7, 3)])
def test_tensors_say_which_axes_are_reduced(shape):
    rng = np.random.default_rng(0)
    x, mean = rng.integers(0, 256, (5, 7, 3)).astype("u1"), rng.uniform(0, 200, shape).astype("f4")
    axes = [i for i in range(3) if shape[i] == 1]
    if axes:
        (y,) = normalized([x], mean=mean)
        np.testing.assert_allclose(y, reference(x, mean=mean, axes=axes), rtol=0, atol=1e-5)
    (y,) = normalized([x], mean=mean, stddev=2.0)
    np.testing.assert_allclose(y, (x - mean.astype("f8")) / 2, rtol=0, atol=1e-4)
    (y,) = normalized([x], mean=mean, stddev=np.abs(mean) + 1, scale=3.0)
    np.testing.assert_allclose(y, (x - mean.astype("f8")) / (np.abs(mean) + 1) * 3, rtol=1e-5, atol=1e-4)


def random_batch(dtype):
    rng = np.random.default_rng(3)
    shapes = [(5, 4, 3), (1, 1, 3), (0, 4, 3), (33, 17, 3), (8, 67, 3)]
    return [(rng.normal(90, 30, s).clip(0, 255) + i).clip(0, 255).astype(dtype) for i, s in enumerate(shapes)]


@pytest.mark.parametrize("dtype", ["u1", "f4"])
@pytest.mark.parametrize(
    "kwargs",
    [
        {},
        {"axes": [0, 1]},
        {"axis_names": "HWC", "ddof": 1},
        {"mean": 80.0, "epsilon": 2.0},
        {"stddev": 20.0, "axis_names": "HW"},
        {"mean": 80.0, "stddev": 20.0},
        {"axes": [0, 1], "ddof": 1, "scale": 64.0, "shift": 128.0, "dtype": types.UINT8},
    ],
)
@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_batch(dtype, kwargs, device):
    samples = random_batch(dtype)
    together = np.concatenate([s.reshape(-1, 1, 3) for s in samples])
    for x, y in zip(samples, normalized(samples, device=device, batch=True, **kwargs)):
        want = reference(x, data=together, **kwargs)
        np.testing.assert_allclose(y, want, rtol=0, atol=1 if want.dtype == "u1" else 1e-5)


@pytest.mark.parametrize("device", ["cpu", "gpu"])
@pytest.mark.parametrize(
    "axes, shapes",
    [
        ([0], ((0, 3, 40), (5, 3, 40), (2, 3, 40))),  # neighbours
        ([1, 2], ((7, 0, 5), (7, 30, 5), (7, 2, 9))),  # planes
        ([0, 2], ((3, 2500, 2), (1, 2500, 1))),  # more than are combined from parts
        ([0, 1], ((30, 20, 100), (1, 7, 100))),
        ([0], ((4, 1, 1), (0, 1, 1))),
    ],
)
def test_batch_of_other_shapes(axes, shapes, device):
    rng = np.random.default_rng(2)
    samples = [rng.normal(5, 2, s).astype("f4") for s in shapes]
    kept = [i for i in range(3) if i not in axes]
    # The reduced axes of all samples, concatenated to one.
    flat = [np.moveaxis(s, kept, range(len(kept))).reshape([s.shape[k] for k in kept] + [-1]) for s in samples]
    together = np.concatenate(flat, -1).astype("f8")
    for given in ({}, {"mean": 4.0}, {"stddev": 3.0, "epsilon": 0.25}):
        mean = np.full(together.shape[:-1], given["mean"]) if "mean" in given else together.mean(-1)
        deviation = np.sqrt(((together - mean[..., None]) ** 2).mean(-1))
        deviation = np.full_like(mean, np.sqrt(9.25)) if "stddev" in given else deviation
        mean, deviation = (np.expand_dims(v, axes) for v in (mean, deviation))
        for x, y in zip(samples, normalized(samples, device=device, batch=True, axes=axes, **given)):
            np.testing.assert_allclose(y, (x - mean) / deviation, rtol=0, atol=1e-5)


@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_batch_needs_equal_kept_extents(device):
    with pytest.raises(RuntimeError, match=r"sample 0 has the shape \[5, 4, 3\], sample 1 \[1, 1, 3\]"):
        normalized(random_batch("u1"), device=device, batch=True, axes=[1])


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_what_does_not_vary_becomes_the_shift(batch, device):
    x = np.full((4, 5, 3), 7, "u1")
    (y,) = normalized([x], device=device, shift=2.0, batch=batch)
    assert (y == 2).all()


def test_a_given_deviation_of_zero_divides():
    ((y,),) = run("normalize", [np.full((1, 1, 3), 7, "u1")], Case("u1", "HWC", {"mean": 1.0, "stddev": 0.0}), {})
    assert np.isposinf(y).all()


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_deviations_that_are_small_against_the_mean(batch, device):
    x = np.random.default_rng(1).normal(1e6, 1, (100, 100, 1)).astype("f4")
    (y,) = normalized([x], device=device, batch=batch)
    np.testing.assert_allclose(y, reference(x), rtol=0, atol=1e-5)
    i = np.random.default_rng(1).integers(10**9, 10**9 + 99, (100, 100, 1)).astype("i4")
    (y,) = normalized([i], device=device, batch=batch)
    np.testing.assert_allclose(y, reference(i), rtol=0, atol=1e-5)


@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_batch_is_part_of_a_graph(device):
    samples = random_batch("u1")

    @pipeline_def(batch_size=len(samples), num_threads=2, device_id=None if device == "cpu" else 0)
    def pipe():
        x = fn.external_source(name="x", layout="HWC", device=device)
        x = fn.brightness(x, brightness=0.5)
        return fn.normalize(x, batch=True, name="normalized"), x

    p = Pipeline.deserialize(pipe().serialize())
    for _ in range(2):
        p.feed_input("x", samples)
        out, x = (o.as_cpu() for o in p.run())
        together = np.concatenate([np.array(x.at(i)).ravel() for i in range(len(x))]).astype("f8")
        for i in range(len(x)):
            want = (np.array(x.at(i), "f8") - together.mean()) / together.std()
            np.testing.assert_allclose(out.at(i), want, rtol=0, atol=1e-5)


@pytest.mark.parametrize("axes", [[0, 1], [0, 1, 2]])
def test_batch_of_which_all_samples_failed(axes):
    windows = iter([[1, 1, 1], [3, 3, 3], [1, 1, 1]])  # the second are beyond the end

    @pipeline_def(batch_size=2, num_threads=1, on_error="skip")
    def pipe():
        start = fn.external_source(source=lambda: [np.array(next(windows)[:2], "i4")] * 2)
        x = fn.external_source(source=lambda: [np.arange(12, dtype="u1").reshape(2, 2, 3)] * 2, layout="HWC")
        return fn.normalize(fn.slice(x, start=start, shape=[1, 1]), batch=True, axes=axes)

    p = pipe()
    assert [len(p.run()[0]) for _ in range(3)] == [2, 0, 2]
