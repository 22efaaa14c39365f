# SPDX-License-Identifier: Apache-2.0
"""Batches of samples of different lengths as padded and nested tensors, with their lengths."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock import fn, pipeline_def
from penstock.tensors import TensorListCPU, padded

SAMPLES = [np.arange(6, dtype="f4").reshape(2, 3), np.full((2, 5), 7, "f4"), np.full((2, 1), -1, "f4")]


def reference(samples, value, extents=None):
    """The definition: each sample is at the beginning of all axes."""
    extents = np.max([s.shape for s in samples], axis=0) if extents is None else extents
    out = np.full((len(samples), *extents), value, samples[0].dtype)
    for i, s in enumerate(samples):
        for place in itertools.product(*map(range, s.shape)):
            out[(i, *place)] = s[place]
    return out


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and np.array_equal(a, b)


@given(
    shapes=st.integers(0, 4).flatmap(
        lambda ndim: st.lists(st.tuples(*[st.integers(0, 4)] * ndim), min_size=1, max_size=5)
    ),
    dtype=st.sampled_from(["u1", "i2", "f4", "f8", "?"]),
    more=st.integers(0, 2),
)
@settings(deadline=None, max_examples=150)
def test_padding(shapes, dtype, more):
    rng = np.random.default_rng(0)
    samples = [rng.integers(0, 2, s).astype(dtype) for s in shapes]
    extents = tuple(int(x) + more for x in np.max(shapes, axis=0, initial=0)) if shapes[0] else ()
    got = padded.padded(TensorListCPU([np.array(s) for s in samples]), extents, 1)
    assert same(got, reference(samples, 1, extents))


def pipe(make, layout="ft", samples=SAMPLES, **kwargs):
    return make.source(lambda i: samples, batch_size=len(samples), layout=layout, **kwargs)


@pytest.fixture(params=["pytorch", "jax"])
def ragged(request):
    pytest.importorskip({"pytorch": "torch", "jax": "jax"}[request.param])
    plugin = pytest.importorskip(f"penstock.plugin.{request.param}")

    def batch(*args, **kwargs):
        value = next(plugin.DALIRaggedIterator(*args, **kwargs))
        return value[0] if request.param == "pytorch" else value

    return batch


def test_padded_with_lengths(make, ragged):
    batch = ragged(pipe(make), ["mel"], output_types=["padded"], padding_value=0.1)
    assert list(batch) == ["mel", "mel_lengths"]
    assert same(np.asarray(batch["mel"]), reference(SAMPLES, 0.1)) and batch["mel"].shape == (3, 2, 5)
    assert batch["mel_lengths"].tolist() == [3, 5, 1]


@pytest.mark.parametrize(
    "layout, lengths", [("tf", [2, 2, 2]), ("ft", [3, 5, 1]), ("", [2, 2, 2]), ("FH", [2, 2, 2]), ("HF", [3, 5, 1])]
)
def test_lengths_are_along_time(make, ragged, layout, lengths):
    batch = ragged(pipe(make, layout), ["x"], output_types=["padded"])
    assert batch["x_lengths"].tolist() == lengths


def test_multiples_dense_outputs_and_partial_batches(make, ragged):
    batch = ragged(
        pipe(make), ["x"], output_types=["padded"], pad_to_multiple_of=8, size=2, last_batch_policy="PARTIAL"
    )
    assert same(np.asarray(batch["x"]), reference(SAMPLES[:2], 0, (2, 8))) and batch["x_lengths"].tolist() == [3, 5]
    samples = [np.arange(3, dtype="i4"), np.arange(3, dtype="i4")]
    batch = ragged(pipe(make, "t", samples), ["x"], output_types=["padded"])
    assert np.asarray(batch["x"]).tolist() == [[0, 1, 2]] * 2 and batch["x_lengths"].tolist() == [3, 3]
    batch = ragged(pipe(make, "t", samples), ["x"])
    assert list(batch) == ["x"]


def test_the_user_may_write_to_padded_batches(make):
    torch = pytest.importorskip("torch")
    from penstock.plugin.pytorch import DALIRaggedIterator

    samples = [np.ones(3, "f4"), np.ones(3, "f4")]
    x = next(DALIRaggedIterator(pipe(make, "t", samples), ["x"], output_types=["padded"]))[0]["x"]
    x += 1
    assert samples[0].tolist() == [1, 1, 1] and torch.equal(x, torch.full((2, 3), 2.0))


@pytest.mark.parametrize("layout, axis", [("ft", 1), ("tf", 0)])
def test_nested(make, layout, axis):
    torch = pytest.importorskip("torch")
    from penstock.plugin.pytorch import DALIRaggedIterator

    samples = [s if axis else np.ascontiguousarray(s.T) for s in SAMPLES]
    x = next(DALIRaggedIterator(pipe(make, layout, samples), ["x"], output_types=["nested"]))[0]["x"]
    assert x.is_nested and x.layout is torch.jagged
    assert all(np.array_equal(a.numpy(), b) for a, b in zip(x.unbind(), samples))
    wrong = [np.zeros((2, 3), "f4"), np.zeros((3, 3), "f4")]
    with pytest.raises(ValueError, match=rf"output 'x'.*along axis {axis}.*\(2, 3\), \(3, 3\)" if axis else "axis 0"):
        other = wrong if axis else [w.T for w in wrong]
        DALIRaggedIterator(pipe(make, layout, [np.ascontiguousarray(o) for o in other]), ["x"], output_types=["nested"])


def test_several_pipelines_of_jax(make):
    jax = pytest.importorskip("jax")
    from penstock.plugin.jax import DALIRaggedIterator

    if len(jax.devices()) < 2:
        it = DALIRaggedIterator(
            [pipe(make)], ["x"], output_types=["padded"], pmap_compatible=True, devices=jax.devices()[:1]
        )
        batch = next(it)
        assert batch["x"].shape == (1, 3, 2, 5) and batch["x_lengths"].shape == (1, 3)


def test_batches_of_similar_length_to_padded_tensors(tmp_path):
    """A complete pipeline: a reader that batches by length, and padded tensors of an epoch."""
    pytest.importorskip("torch")
    from penstock.plugin.pytorch import DALIRaggedIterator

    sizes = [9, 2, 7, 1, 8, 3]
    for i, size in enumerate(sizes):
        (tmp_path / f"{i}.bin").write_bytes(bytes([i + 1]) * size)

    @pipeline_def(batch_size=4, num_threads=1)
    def made():
        files = [str(tmp_path / f"{i}.bin") for i in range(6)]
        return fn.readers.file(files=files, batch_by_length=True, name="reader")[0]

    it = DALIRaggedIterator(
        made(), ["x"], reader_name="reader", output_types=["padded"], last_batch_policy="PARTIAL", auto_reset=True
    )
    for _ in range(2):
        assert [b[0]["x_lengths"].tolist() for b in it] == [[1, 2, 3, 7], [8, 9]]


@pytest.mark.parametrize(
    "kwargs, error",
    [
        ({"output_types": ["jagged"]}, "output_types takes 'dense'"),
        ({"output_types": ["padded"], "pad_to_multiple_of": 0}, "pad_to_multiple_of takes an integer of at least 1"),
        ({"output_types": ["padded"], "padding_value": 0.5}, "padding_value=0.5 is not a value of the type int32"),
        ({"output_types": ["padded"], "padding_value": 2**40}, "padding_value"),
        ({"output_types": ["padded"], "padding_value": float("nan")}, "padding_value"),
    ],
    ids=str,
)
def test_mistakes(make, ragged, kwargs, error):
    with pytest.raises(ValueError, match=error):
        ragged(make.ragged(), ["x"], **kwargs)


def test_names_of_lengths(make, ragged):
    with pytest.raises(ValueError, match="its lengths are called 'label_lengths', which is another name"):
        ragged(make.reader(), ["label", "label_lengths"], output_types=["padded", "dense"])
