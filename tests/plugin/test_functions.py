# SPDX-License-Identifier: Apache-2.0
"""Functions on PyTorch tensors and functions compiled by Numba, in the graph."""

import numpy as np
import pytest

from penstock import PipelineError, fn, pipeline_def, types

X = [np.full((k + 1, 2), k, np.float32) for k in range(3)]


def run(define):
    out = pipeline_def(define, batch_size=3, num_threads=1)().run()
    return [[o.at(i) for i in range(3)] for o in out]


def x():
    return fn.external_source(source=lambda i: X)


@pytest.mark.parametrize("batch", [False, True])
def test_torch(batch):
    torch = pytest.importorskip("torch")
    from penstock.plugin.pytorch import TorchPythonFunction
    from penstock.plugin.pytorch import fn as torch_fn

    def double(t):
        return ([a * 2 for a in t], [a.sum() for a in t]) if batch else (t * 2, t.sum())

    got = run(lambda: torch_fn.torch_python_function(x(), function=double, num_outputs=2, batch_processing=batch))
    for i in range(3):
        np.testing.assert_array_equal(got[0][i], X[i] * 2)
        np.testing.assert_array_equal(got[1][i], X[i].sum())
    assert run(lambda: TorchPythonFunction(function=lambda t: t.short())(x()))[0][2].dtype == np.int16
    of_lists = TorchPythonFunction(lambda ts: [t * 3 for t in ts], 1, "cpu", True)  # in order, as DALI's takes them
    np.testing.assert_array_equal(run(lambda: of_lists(x()))[0][1], X[1] * 3)
    with pytest.raises(PipelineError, match="has to return tensors of PyTorch; got ndarray"):
        run(lambda: torch_fn.torch_python_function(x(), function=lambda t: t.numpy()))
    assert torch.is_tensor(torch.zeros(1))


def add(out, a):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            out[i, j] = a[i, j] + 3


def transpose(out, a):
    out[:] = a.T


def turned(outs, ins):
    for k in range(len(ins[0])):
        outs[0][k][0], outs[0][k][1] = ins[0][k][1], ins[0][k][0]


def add_all(outs, ins):
    for out, a in zip(outs, ins):
        out[:] = a + 3


def numba(run_fn, **kwargs):
    from penstock.plugin.numba.fn.experimental import numba_function

    defaults = {"out_types": types.FLOAT, "in_types": types.FLOAT, "outs_ndim": 2, "ins_ndim": 2}
    return numba_function(x(), run_fn=run_fn, **{**defaults, **kwargs})


def test_numba():
    pytest.importorskip("numba")
    for function, kwargs, want in (
        (add, {}, lambda a: a + 3),
        (transpose, {"setup_fn": turned}, lambda a: a.T),
        (add_all, {"batch_processing": True}, lambda a: a + 3),
    ):
        for g, a in zip(run(lambda f=function, k=kwargs: numba(f, **k))[0], X):
            np.testing.assert_array_equal(g, want(a))


def test_addresses_in_functions_of_numba():
    compiler = pytest.importorskip("numba")
    from penstock.plugin.numba import address_as_void_pointer

    @compiler.njit
    def total(address, n):
        return compiler.carray(address_as_void_pointer(address), n, np.float32).sum()

    array = np.float32([1, 2, 4])
    assert total(array.ctypes.data, 3) == 7


def test_numba_errors():
    pytest.importorskip("numba")
    with pytest.raises(PipelineError, match="input 0 is float32 of 2 dimensions; in_types and ins_ndim say int32 of 2"):
        run(lambda: numba(add, in_types=types.INT32))
    with pytest.raises(ValueError, match="in_types has 2 entries, the numbers of dimensions 1"):
        run(lambda: numba(add, in_types=[types.INT32] * 2))


def test_numba_is_where_dali_has_it():
    from penstock.plugin import numba
    from penstock.plugin.numba.experimental import NumbaFunction

    assert NumbaFunction is numba.NumbaFunction is numba.ops.experimental.NumbaFunction
