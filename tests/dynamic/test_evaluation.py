# SPDX-License-Identifier: Apache-2.0
"""When calls are computed, which are computed together, and where errors are raised."""

import time

import numpy as np
import pytest

from penstock.core.errors import PipelineError
from penstock.experimental import dynamic as ndd
from penstock.experimental.dynamic import _calls

pytest.importorskip("torch")

MODES = list(ndd.EvalMode)
X = np.arange(2 * 6 * 5 * 3, dtype=np.uint8).reshape(2, 6, 5, 3)


@pytest.fixture(autouse=True)
def idle():
    ndd.EvalContext.current().evaluate_all()
    yield
    ndd.EvalContext.current().evaluate_all()


def images():
    """Read-only data."""
    return ndd.as_batch(X, layout="HWC") + np.uint8(0)


@pytest.mark.parametrize("mode", MODES, ids=lambda m: m.name)
def test_all_modes_give_the_same(mode):
    def program():
        ndd.random.set_seed(5)
        x = images()
        y = ndd.resize(x, size=(4, 4))
        z = ndd.crop_mirror_normalize(y, mirror=ndd.random.coin_flip(batch_size=2), mean=[1.0, 2, 3])
        return z, ndd.noise.gaussian(y, stddev=9.0), ndd.reductions.mean(y)

    want = [v.torch() for v in program()]
    with mode:
        assert ndd.EvalMode.current() is mode
        got = program()
    assert ndd.EvalMode.current() is ndd.EvalMode.eager
    assert all(g.torch().equal(w) for g, w in zip(got, want))


def test_deferred_calls_run_together_when_looked_at(runs):
    x = images().evaluate()
    del runs[:]
    with ndd.EvalMode.deferred:
        z = ndd.flip(ndd.crop(x, crop=(3, 3)))
        apart = ndd.copy(x)
    time.sleep(0.05)
    assert runs == []
    z.evaluate()
    assert runs == [["crop", "flip"]]
    ndd.EvalContext.current().evaluate_all()
    assert runs[1:] == [["copy"]]
    del apart


def test_what_is_held_is_kept_once_somebody_looks_at_it(runs):
    x = images().evaluate()

    def program():
        del runs[:]
        with ndd.EvalMode.deferred:
            y = ndd.crop(x, crop=(3, 3))
            return y, ndd.noise.gaussian(ndd.flip(y), rng=ndd.random.RNG(1))

    y, z = program()
    z.evaluate()
    assert len(runs) == 1
    for expected in (2, 1):  # computed again; then kept
        assert y.shape == [(3, 3, 3)] * 2 and y.evaluate() is y
        assert len(runs) == expected, runs
        np.testing.assert_array_equal(np.asarray(ndd.as_tensor(y)), X[:, 2:5, 1:4])
        y, z = program()
        z.evaluate()


def test_several_steps_are_computed_again(runs):
    x = images().evaluate()
    with ndd.EvalMode.deferred:
        a = ndd.crop(x, crop=(4, 4))
        b = ndd.noise.gaussian(ndd.flip(a), stddev=5.0, rng=ndd.random.RNG(1))
        c = ndd.flip(b)
        d = ndd.crop(c, crop=(2, 2))
    d.evaluate()
    del runs[:], x
    whole = np.asarray(ndd.as_tensor(c))
    assert runs[0][-1] == "flip" and "crop" in runs[0]
    np.testing.assert_array_equal(np.asarray(ndd.as_tensor(d)), whole[:, 1:3, 1:3])
    np.testing.assert_array_equal(np.asarray(ndd.as_tensor(b)), whole[:, :, ::-1])
    np.testing.assert_array_equal(np.asarray(ndd.as_tensor(a)), X[:, 1:5, 1:5])


def test_what_nobody_holds_is_not_kept(runs, monkeypatch):
    x = images().evaluate()
    kept = []
    run = _calls.Together.run
    monkeypatch.setattr(_calls.Together, "run", lambda *a: kept.append(run(*a)) or kept[-1])
    with ndd.EvalMode.deferred:
        y = ndd.flip(ndd.crop(x, crop=(3, 3)))
        lost = ndd.copy(x)
        del lost
    ndd.EvalContext.current().evaluate_all()
    y.evaluate()
    assert runs[-1] == ["crop", "flip"] and len(kept[-1]) == 1


def test_eager_calls_run_in_the_background(runs):
    x = images().evaluate()
    del runs[:]
    y = ndd.flip(ndd.crop(x, crop=(3, 3)))
    deadline = time.monotonic() + 5
    while not runs and time.monotonic() < deadline:
        time.sleep(0.005)
    assert runs == [["crop", "flip"]]
    y.evaluate()
    assert len(runs) == 1


def test_sync_modes_run_at_once(runs):
    x = images().evaluate()
    for mode in (ndd.EvalMode.sync_cpu, ndd.EvalMode.sync_full):
        del runs[:]
        with mode:
            y = ndd.crop(x, crop=(3, 3))
            assert runs == [["crop"]]
            ndd.flip(y)
            assert runs == [["crop"], ["flip"]]


def test_plans_are_kept(monkeypatch):
    made = []
    init = _calls.Together.__init__
    monkeypatch.setattr(_calls.Together, "__init__", lambda *a: made.append(1) or init(*a))
    for _ in range(5):
        ndd.crop(X[0], crop=(2, 5)).evaluate()
    assert len(made) <= 1


def test_constants_that_differ_from_call_to_call_become_data(monkeypatch):
    made = []
    init = _calls.Together.__init__
    monkeypatch.setattr(_calls.Together, "__init__", lambda *a: made.append(1) or init(*a))
    x = images().evaluate()
    few, many = [], []
    for i in range(60):
        (few if i < 10 else many).append(ndd.saturation(x, saturation=1 + i / 60).torch())
    assert len(made) < 25
    for i, got in enumerate([*few, *many]):
        each = ndd.saturation(x, saturation=ndd.as_batch([1 + i / 60] * 2))
        assert got.equal(each.torch())
    for _ in range(20):  # other kinds of values, and invalid ones, behave as before
        assert ndd.crop(x, crop=(2.0, 3.0), rounding="truncate").shape == [(2, 3, 3)] * 2
        ndd.crop(x, crop=(1 + _ % 5, 2), crop_pos_x=_ / 20).evaluate()
    with pytest.raises(TypeError, match="crop.*takes a number"):
        ndd.crop(x, crop="a")
    with pytest.raises(ValueError, match="crop"):
        ndd.crop(x, crop=(1, 2), crop_w=3)


def too_large():
    return ndd.crop(images(), crop=(9, 9))  # the line that errors tell


@pytest.mark.parametrize("mode", [ndd.EvalMode.sync_cpu, ndd.EvalMode.sync_full], ids=lambda m: m.name)
def test_sync_modes_raise_in_the_call(mode):
    with mode, pytest.raises(PipelineError, match="called here"):
        too_large()


@pytest.mark.parametrize("mode", [ndd.EvalMode.deferred, ndd.EvalMode.eager], ids=lambda m: m.name)
def test_errors_come_out_of_the_results_and_tell_the_line(mode):
    with mode:
        bad = too_large()
        behind = ndd.flip(bad)
        good = ndd.flip(images())
    time.sleep(0.02)
    for value in (behind, bad, behind):
        for look in (lambda v: v.shape, lambda v: v.torch(), lambda v: v.evaluate(), repr):
            with pytest.raises(PipelineError) as caught:
                look(value)
            text = str(caught.value)
            assert "operator `penstock.experimental.dynamic.crop`" in text
            assert "in too_large" in text and "# the line that errors tell" in text
            assert "[9, 9, 3] reaches out" in text and "Sample 0 of the batch" in text and "1 more bad sample" in text
    assert good.shape == [(6, 5, 3)] * 2  # the others have results


def test_errors_of_constants_are_raised_by_the_call():
    with ndd.EvalMode.deferred:
        with pytest.raises(TypeError, match=r"resize\(\) got an unexpected argument 'siz'. Did you mean 'size'"):
            ndd.resize(X[0], siz=3)
        with pytest.raises(TypeError, match="takes 1 input, 0 given"):
            ndd.resize()
        with pytest.raises(TypeError, match="required argument not given: dtype"):
            ndd.cast(X[0])
        with pytest.raises(ValueError, match="batches of 2 and of 3 samples"):
            ndd.resize(images(), resize_x=ndd.as_batch([1, 2, 3]))
        with pytest.raises(ValueError, match="batches of 3 and of 2"):
            ndd.resize(images(), size=3, batch_size=3)
        with pytest.raises(ValueError, match="can't be negative"):
            ndd.zeros(shape=[2], batch_size=-1)
        with pytest.raises(TypeError, match="batch_size is an integer"):
            ndd.zeros(shape=[2], batch_size="2")
        with pytest.raises(ValueError, match="device='gpu' can't be used"):
            ndd.io.file.read(X[0, 0, 0], device="gpu") if ndd.EvalContext.current().device_id is not None else _no_gpu()
        with pytest.raises(AttributeError, match="Did you mean 'resize'"):
            ndd.resise  # noqa: B018


def _no_gpu():
    raise ValueError("device='gpu' can't be used")


def test_tensors_and_batches_go_together():
    image, batch = ndd.as_tensor(X[0], layout="HWC"), images()
    assert ndd.resize(image, size=(2, 2)).shape == (2, 2, 3)
    assert ndd.resize(image, size=(2, 2), batch_size=3).shape == [(2, 2, 3)] * 3
    assert ndd.resize(image, resize_x=ndd.as_batch([2, 5])).batch_size == 2
    assert ndd.resize(batch, size=ndd.as_tensor([3.0, 2.0])).shape == [(3, 2, 3)] * 2
    assert ndd.resize(batch, size=[ndd.as_batch([1.0, 2.0]), 2]).shape == [(1, 2, 3), (2, 2, 3)]
    assert ndd.cat(image, batch).shape == [(12, 5, 3)] * 2
    with ndd.EvalMode.deferred:  # the tensor is computed before the batch that uses it
        half = ndd.reductions.mean(image + np.uint8(0)) * 0 + 2
        out = ndd.resize(batch, resize_x=half)
    assert out.shape == [(2, 2, 3)] * 2


def test_arguments_of_other_kinds():
    matrix = np.float32([[1, 0, 1], [0, 1, 0]])
    x = ndd.as_tensor(X[0], layout="HWC")
    want = np.asarray(ndd.warp_affine(x, matrix=matrix.ravel().tolist()))
    for given in (matrix, matrix.tolist(), ndd.as_tensor(matrix)):
        np.testing.assert_array_equal(np.asarray(ndd.warp_affine(x, matrix=given)), want)
    for given in (ndd.float32, "f32", "float32", np.float32, np.dtype("f4"), ndd.float32.type_id):
        assert ndd.cast(x, dtype=given).dtype is ndd.float32
    assert ndd.crop(x, crop=np.float32([2, 2])).shape == (2, 2, 3)
    assert ndd.crop(x, crop_w=np.float32(2), crop_h=np.array(3)).shape == (3, 2, 3)


def test_a_constant_of_another_type_is_another_call():
    x = ndd.as_tensor(X[0])
    assert [(x + c).dtype.name for c in (1, 1.0, np.uint8(1), np.float64(1))] == ["i32", "f32", "u8", "f64"]
