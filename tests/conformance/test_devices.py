# SPDX-License-Identifier: Apache-2.0
"""CPU inputs of GPU operators: exactly those that DALI rejects are rejected, when the call is defined. DALI reports
this without a GPU."""

import pytest

import penstock
from harness import class_path
from penstock.core.op import REGISTRY

# Functions need CuPy in DALI.
FUNCTIONS = ("python_function", "dl_tensor_python_function")
# Inputs that we also accept on the CPU, as only the planning reads them; and a former input of both libraries.
WIDER = {("experimental.warp_perspective", 1), ("experimental.full_like", 1)}


def _operators():
    for name, cls in REGISTRY.items():
        if cls.inputs[1] and "gpu" in cls.devices and not name.startswith("_") and name not in FUNCTIONS:
            yield name


def _outcome(lib, name, n, i):
    """Whether input `i` of `n` may be on the CPU; None for other errors."""
    function = lib.fn
    for part in name.split("."):
        function = getattr(function, part)
    with lib.Pipeline(batch_size=1, num_threads=1, device_id=0):
        given = [lib.fn.external_source(name=f"x{j}", device="cpu" if j == i else "gpu") for j in range(n)]
        try:
            function(*given, device="gpu")
        except Exception as e:
            told = "incompatible device" in str(e)
            assert not told or isinstance(e, RuntimeError)
            return False if told else None
    return True


@pytest.mark.filterwarnings("ignore")
def test_inputs_on_the_cpu():
    import nvidia.dali as dali

    gpu_operators = {n.lower() for n in dali.ops.gpu_ops()}
    compared, wrong = 0, []
    for name in _operators():
        schema = class_path(name).replace(".", "__")
        if schema.lower() not in gpu_operators:
            continue
        lowest, highest = REGISTRY[name].inputs
        for n in range(max(lowest, 1), min(highest, 3) + 1):
            for i in range(n):
                theirs, ours = _outcome(dali, name, n, i), _outcome(penstock, name, n, i)
                if None not in (theirs, ours) and (name, i) not in WIDER:
                    compared += 1
                    if theirs != ours:
                        wrong.append((name, n, i, theirs))
    assert not wrong, f"DALI accepts (True) or refuses (False) them: {wrong}"
    assert compared > 60
