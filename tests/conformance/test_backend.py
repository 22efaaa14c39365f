# SPDX-License-Identifier: Apache-2.0
"""DALI's native module, as used by programs: the results are the same."""

import ast
import subprocess
import sys

import numpy as np
import pytest

import penstock
from penstock import backend
from penstock.core.op import REGISTRY


@pytest.fixture(scope="module")
def theirs():
    import nvidia.dali.backend as dali

    return dali


OPERATORS = [c for c in REGISTRY.values() if c.module != "_conditional"]  # conditionals are called only by the graph
NAMES = sorted("__".join([*filter(None, c.module.split(".")), c.__name__]) for c in OPERATORS)
# Former names of arguments, and arguments without effect, whose types and defaults are irrelevant.
OWN = {"output_dtype", "type", "hybrid_huffman_threshold", "batch_processing", "output_format", "stride"}
OWN |= {"meta_files_path", "dump_meta_files_path", "dump_meta_files"}
SAME = ("Name", "OperatorName", "ModulePath", "MinNumInput")


@pytest.mark.parametrize("name", NAMES)
def test_schemas(theirs, name):
    dali, ours = theirs.TryGetSchema(name), backend.GetSchema(name)
    if dali is None:
        pytest.skip("not an operator of DALI's")
    for method in SAME:
        assert getattr(ours, method)() == getattr(dali, method)(), method
    assert ours.Dox() and set(ours.GetSupportedBackends()) >= set(dali.GetSupportedBackends()) - {"mixed", "gpu"}
    for argument in set(dali.GetArgumentNames()) & set(ours.GetArgumentNames()) - OWN:
        kind = dali.GetArgumentType(argument)
        if "VEC" not in kind.name and kind.name != "UINT8" and ours.GetArgumentType(argument).name != "PYTHON_OBJECT":
            assert ours.GetArgumentType(argument).name == kind.name.replace("INT64", "INT32"), argument
        if dali.HasArgumentDefaultValue(argument) and ours.HasArgumentDefaultValue(argument):
            assert value(ours, argument) == value(dali, argument), argument


def value(schema, argument):
    """A default as a Python value, as the two libraries write floats with different digits."""
    return ast.literal_eval(schema.GetArgumentDefaultValueString(argument))


def test_schemas_that_are_not_there(theirs):
    for lib in (theirs, backend):
        assert lib.TryGetSchema("Resise") is None
        with pytest.raises(KeyError, match="Resise"):
            lib.GetSchema("Resise")
        with pytest.raises(ValueError, match=r'"dtype".* has no default value'):
            lib.GetSchema("Resize").GetArgumentDefaultValueString("dtype")


def test_capsules(theirs):
    for lib in (theirs, backend):
        capsule = np.zeros(3).__dlpack__()
        assert lib.CheckDLPackCapsule(capsule) == (True, False)
        assert lib.CheckDLPackCapsule(np.zeros(3)) == lib.CheckDLPackCapsule(None) == (False, False)
        lib.TensorCPU(capsule)
        with pytest.raises(RuntimeError, match="nvalid DLPack tensor capsule"):
            lib.CheckDLPackCapsule(capsule)


def test_versions(theirs):
    for name in ("GetNvjpegVersion", "GetNppVersion", "GetCufftVersion"):
        assert getattr(backend, name)() == getattr(theirs, name)() == -1
    assert backend.__cuda_version__ == penstock.__cuda_version__ == theirs.__cuda_version__


def test_without_a_driver():
    """In another process, as this one may have an emulated device."""
    told = "import {0}.backend as b; print(b.GetCUDADeviceCount() == 0, b.GetCudaVersion() == 0)"
    for package in ("nvidia.dali", "penstock"):
        run = subprocess.run([sys.executable, "-c", told.format(package)], capture_output=True, text=True, check=True)
        assert run.stdout.split() in (["True", "True"], ["False", "False"]), package
