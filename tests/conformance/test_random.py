# SPDX-License-Identifier: Apache-2.0
"""Random operators against the real DALI: the same types, shapes and distributions, by tests of fixed seeds."""

import io

import numpy as np
import pytest

import penstock
from conformance import oracle, report
from harness import _face
from penstock import types

BATCH = 32
DIFFERS = {
    "values:noise.shot(factor=0.0)": "a factor of 0 changes nothing, as DALI's documentation says; it gives zeros",
    "refuses:random.coin_flip(probability=1.5)": "a probability above 1 is a mistake; DALI takes it",
}
P_VALUE = 1e-4  # the seeds are fixed, so a test passes always or never


class Cycle(list):
    """Values of an argument, used cyclically by the samples."""


EVERY = [types.DALIDataType[s + str(8 * n)] for s in ("INT", "UINT") for n in (1, 2, 4, 8)]
EVERY += [types.FLOAT, types.FLOAT64, types.FLOAT16, types.BOOL]
_P = np.float32([0.1, 0.2, 0.7])
CASES = [
    ("random.uniform", {"shape": [2000]}),
    ("random.uniform", {"shape": [50, 20], "range": [2.0, 5.0]}),
    ("random.uniform", {"shape": [2000], "range": [0.0, 10.0], "dtype": types.INT32}),
    ("random.uniform", {"shape": [2000], "range": [-3.0, 3.0], "dtype": types.INT16}),
    ("random.uniform", {"shape": [2000], "range": [0.0, 255.0], "dtype": types.UINT8}),
    ("random.uniform", {"shape": [2000], "dtype": types.FLOAT64}),
    ("random.uniform", {"shape": [2000], "dtype": types.FLOAT16}),
    ("random.uniform", {"shape": [2000], "values": [1.0, 2.0, 7.0]}),
    ("random.uniform", {"shape": [2000], "values": [1.0, 2.0, 7.0], "dtype": types.INT32}),
    ("random.uniform", {}),
    ("random.uniform", {"range": [0.0, 100.0]}),
    ("random.uniform", {"shape": []}),
    ("random.uniform", {"range": [1.0, 0.0]}),
    ("random.uniform", {"range": [0.0, 1.0], "values": [1.0]}),
    ("random.normal", {"shape": [2000]}),
    ("random.normal", {"shape": [2000], "mean": 3.0, "stddev": 0.5}),
    ("random.normal", {"shape": [2000], "mean": 100.0, "stddev": 40.0, "dtype": types.UINT8}),
    ("random.normal", {"shape": [2000], "stddev": 20.0, "dtype": types.INT32}),
    ("random.normal", {"shape": [2000], "dtype": types.FLOAT64}),
    ("random.normal", {}),
    ("random.coin_flip", {"shape": [2000]}),
    ("random.coin_flip", {"shape": [2000], "probability": 0.1}),
    ("random.coin_flip", {"shape": [2000], "probability": 0.9, "dtype": types.UINT8}),
    ("random.coin_flip", {"shape": [2000], "dtype": types.BOOL}),
    ("random.coin_flip", {"shape": [2000], "dtype": types.FLOAT}),
    ("random.coin_flip", {}),
    ("random.coin_flip", {"probability": 1.5}),
    ("random.beta", {"shape": [2000]}),
    ("random.beta", {"shape": [2000], "alpha": 2.0, "beta": 5.0}),
    ("random.beta", {"shape": [2000], "alpha": 0.5, "beta": 0.5}),
    ("random.beta", {"shape": [2000], "alpha": 0.2, "beta": 3.0, "dtype": types.FLOAT64}),
    ("random.beta", {"alpha": 3.0}),
    ("random.beta", {"alpha": -1.0}),
    *(("random.uniform", {"shape": [2000], "range": [0.0, 100.0], "dtype": t}) for t in EVERY),
    *(("random.normal", {"shape": [2000], "mean": 100.0, "stddev": 90.0, "dtype": t}) for t in EVERY),
    *(("random.uniform", {"shape": [2000], "values": [-3.0, 1.5, 300.0], "dtype": t}) for t in EVERY),
    ("random.normal", {"mean": float("nan"), "shape": [9]}),
    ("random.uniform", {"range": Cycle(np.float32([[0, 1], [5, 9]])), "shape": [2000]}),
    ("random.uniform", {"values": Cycle([np.float32([1, 2]), np.float32([5, 6, 7])]), "shape": [2000]}),
    ("random.normal", {"mean": Cycle(np.float32([0, 9])), "stddev": Cycle(np.float32([1, 2, 3])), "shape": [2000]}),
    ("random.coin_flip", {"probability": Cycle(np.float32([0, 0.25, 1])), "shape": [2000]}),
    ("random.beta", {"alpha": Cycle(np.float32([1, 3])), "beta": Cycle(np.float32([0.5, 2])), "shape": [2000]}),
    ("random.uniform", {"shape": Cycle(np.int32([[3, 40], [60, 5], [1, 1], [0, 7]]))}),
    ("random.normal", {"shape": Cycle(np.int32([3, 40, 1, 0]))}),
    ("random.uniform", {"range": [float("nan"), 1.0]}),
    ("random.uniform", {"range": Cycle(np.float32([[0, 1], [1, 0]]))}),
    ("random.beta", {"alpha": Cycle(np.float32([1, 0]))}),
]
CHOICES = [
    (np.int32(5), {"shape": [2000]}),
    (np.int64(5), {"shape": [2000]}),
    (np.float32([0.5, 1.5, 7]), {"shape": [2000]}),
    (np.uint8([3, 4, 9]), {"shape": [2000], "p": _P.tolist()}),
    (np.int32([3, 4, 9]), {}),
    (np.int32([[1, 2], [3, 4], [5, 6]]), {"shape": [1000]}),
    (np.int32([3, 4, 9]), {"p": [0.5, 0.5]}),
    (np.int32(-1), {}),
    (np.int32([3, 4, 9]), {"p": Cycle(np.float32([[1, 0, 0], [0.2, 0.3, 0.5]])), "shape": [2000]}),
    (np.int32([3, 4, 9]), {"p": Cycle([np.float32([1, 0, 0]), np.float32([0.5, 0.5])])}),
    (np.int32([3, 4, 9]), {"shape": Cycle(np.int32([[3, 40], [60, 5], [1, 1], [0, 7]]))}),
    (np.uint64(2**40), {"shape": [2000]}),
    (np.bool_([True, False, False]), {"shape": [2000]}),
    (np.float32(3), {}),
    (np.zeros((0, 3), "u1"), {}),
]


def _column(fn, values):
    samples = [np.asarray(values[i % len(values)]) for i in range(BATCH)]
    return fn.external_source(source=lambda i: samples)


def _repeated(fn, value, layout=None):
    return fn.external_source(source=lambda i: [value] * BATCH, layout=layout)


def draw(side, name, inputs, kwargs, seed=3, layout=None):
    """One batch of a pipeline on either side."""
    if side == "dali":
        fn, define, options = oracle.dali_fn, oracle.pipeline_def, {"device_id": None}
        kwargs = {k: oracle.dali_value(v) for k, v in kwargs.items()}
    else:
        fn, define, options = penstock.fn, penstock.pipeline_def, {}

    @define(batch_size=BATCH, num_threads=2, seed=seed, **options)
    def pipe():
        fed = [_repeated(fn, v, layout) for v in inputs]
        data = {k: _column(fn, v) if isinstance(v, Cycle) else v for k, v in kwargs.items()}
        out = _face(fn, name)(*fed, **data)
        return tuple(out) if isinstance(out, (tuple, list)) else (out,)

    try:
        return oracle._collect(pipe().run())
    except Exception as e:
        return oracle.Result(error=oracle._cause(e))


def compare(name, inputs, kwargs, layout=None, part=np.ravel):
    """Compares both sides' distributions of `part(sample)`."""
    from scipy import stats

    tally = report.tally(name)
    tally.cases += 1
    theirs, ours = (draw(side, name, inputs, kwargs, layout=layout) for side in ("dali", "penstock"))
    given = ", ".join(f"{k}={v}" for k, v in kwargs.items())
    text = f"{name}({given}) of {[np.asarray(v).ravel()[:9].tolist() for v in inputs]}"
    if theirs.error or ours.error:
        tally.both_raise += bool(theirs.error and ours.error)
        if bool(theirs.error) != bool(ours.error) and not tally.excuse(
            oracle.Problem("", "accepts" if theirs.error else "refuses"), DIFFERS, text
        ):
            fail_if(True, tally, f"{text}: DALI {theirs.error!r}, penstock {ours.error!r}")
        return
    for want, got in zip(theirs.outputs, ours.outputs):
        seen = [(a[0].dtype.name, [s.shape for s in a]) for a in (want, got)]
        fail_if(
            seen[0] != seen[1], tally, f"{text}: {seen[1][0]} {seen[1][1][:2]}, DALI has {seen[0][0]} {seen[0][1][:2]}"
        )
        a, b = (np.concatenate([part(s) for s in x]) for x in (want, got))
        p = same_distribution(stats, a, b)
        if p < P_VALUE and tally.excuse(oracle.Problem("", "values", 0.0), DIFFERS, f"values:{text}"):
            return
        fail_if(
            p < P_VALUE, tally, f"{text}: another distribution (p = {p:.2g}); mean {b.mean():.4g}, DALI {a.mean():.4g}"
        )
    if len(np.unique(np.concatenate([s.ravel() for s in ours.outputs[0]]))) == 1:
        return
    again, other = (draw("penstock", name, inputs, kwargs, seed, layout) for seed in (3, 4))
    assert all((x == y).all() for x, y in zip(ours.outputs[0], again.outputs[0])), "the same seed gives other numbers"
    assert any((x != y).any() for x, y in zip(ours.outputs[0], other.outputs[0])), "another seed gives the same numbers"


def same_distribution(stats, a, b) -> float:
    """The p-value of equal distributions: chi-square of counts for few values, otherwise Kolmogorov-Smirnov."""
    values = np.union1d(a, b)
    if len(values) > 50:
        return stats.ks_2samp(a.astype("f8"), b.astype("f8")).pvalue
    counts = np.array([[np.count_nonzero(x == v) for v in values] for x in (a, b)])
    return 1.0 if len(values) == 1 else stats.chi2_contingency(counts).pvalue


def fail_if(condition, tally, text):
    if condition:
        tally.failures.append(text)
        pytest.fail(text, pytrace=False)


@pytest.mark.parametrize("name, kwargs", CASES, ids=lambda v: v if isinstance(v, str) else ",".join(map(str, v)))
def test_numbers(name, kwargs):
    compare(name, [], kwargs)


@pytest.mark.parametrize("i", range(len(CHOICES)))
def test_choice(i):
    values, kwargs = CHOICES[i]
    compare("random.choice", [values], kwargs)


@pytest.mark.parametrize("name", ["random.uniform", "random.normal", "random.coin_flip", "random.beta"])
def test_shape_of_an_input(name):
    compare(name, [np.zeros((20, 30), "f4")], {})


def ramp() -> np.ndarray:
    """An image whose pixel values are their coordinates."""
    return np.stack(np.meshgrid(np.arange(100), np.arange(160), indexing="ij"), axis=-1).astype("f4")


@pytest.mark.parametrize(
    "kwargs",
    [
        {},
        {"random_area": [0.3, 0.4]},
        {"random_aspect_ratio": [2.0, 3.0]},
        {"random_area": [1.5, 2.0], "num_attempts": 3},
        {"random_area": [0.0, 0.05]},
    ],
    ids=str,
)
def test_random_resized_crop(kwargs):
    from scipy import stats

    tally = report.tally("random_resized_crop")
    tally.cases += 1
    windows = []
    for side in ("dali", "penstock"):
        found = []
        for seed in range(20):
            result = draw(side, "random_resized_crop", [ramp()], {"size": [4, 4], **kwargs}, seed)
            assert not result.error, result.error
            for out in result.outputs[0]:
                step = out[2, 2] - out[1, 1]  # (height, width) of the window over 4
                found.append([*(4 * step), *(out[1, 1] - step * 1.5 + 0.5)])
        windows.append(np.array(found))
    for what, a, b in zip(("height", "width", "top", "left"), windows[0].T, windows[1].T):
        p = stats.ks_2samp(np.round(a, 2), np.round(b, 2)).pvalue
        fail_if(p < P_VALUE, tally, f"{kwargs}: {what} is distributed otherwise (p = {p:.2g}): {b[:5]}, DALI {a[:5]}")


def test_decoder_random_crop():
    from scipy import stats

    image = pytest.importorskip("PIL.Image")
    tally = report.tally("decoders.image_random_crop")
    pixels = np.dstack([ramp().astype("u1"), np.zeros((100, 160), "u1")])
    file = io.BytesIO()
    image.fromarray(pixels).save(file, "png")
    data = np.frombuffer(file.getvalue(), "u1")
    areas = ([0.1, 0.2], [0.0, 0.1], [0.5, 1.5], [2.0, 3.0])
    for kwargs in ({}, *({"random_area": a} for a in areas), {"random_aspect_ratio": [1.0, 1.0]}):
        tally.cases += 1
        windows = []
        for side in ("dali", "penstock"):
            results = [draw(side, "decoders.image_random_crop", [data], kwargs, seed) for seed in range(20)]
            assert not results[0].error, results[0].error
            crops = [s for r in results for s in r.outputs[0]]
            windows.append(np.array([[*c.shape[:2], *c[0, 0, :2]] for c in crops], "f8"))
        for what, a, b in zip(("height", "width", "top", "left"), windows[0].T, windows[1].T):
            p = stats.ks_2samp(a, b).pvalue
            fail_if(p < P_VALUE, tally, f"{kwargs}: {what} is distributed otherwise (p = {p:.2g})")
