# SPDX-License-Identifier: Apache-2.0
"""Bad input gives a result or a clear error with every operator, never a crash, a hang or an internal exception.
`PENSTOCK_SEED=3 PENSTOCK_MIXED=1000 PENSTOCK_SHARE=1` tests more cases."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import bad_input_cases
import pytest

ROOT = Path(__file__).parents[2]
SHARE = int(os.environ.get("PENSTOCK_SHARE", "3"))  # one in SHARE cases is tested
GPU_SHARE = int(os.environ.get("PENSTOCK_GPU_SHARE", "400"))  # on the GPU, where kernels have to be compiled


def endings(share, device="cpu"):
    """The result of each case, by its number. After a crash or a hang, a new process is started."""
    paths = [*(str(ROOT / p) for p in ("src", "tests")), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    found, begin = {}, 0
    while begin is not None:
        command = [sys.executable, bad_input_cases.__file__, str(share), str(begin), device]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, errors="replace", timeout=280)
        begin, last = None, None
        for number, text in (line.split(" ", 1) for line in done.stdout.splitlines()):
            last = int(number)
            found[last] = text
        if last is not None and found[last] == "begin":
            code = done.returncode
            how = f"no end after {bad_input_cases.SECONDS[device]} s" if code == 99 else signal.strsignal(-code) or code
            found[last] = f"WRONG: {how}: {done.stderr[-600:]}"
            begin = last + 1
        elif done.returncode == bad_input_cases.DEVICE_FAILED and last is not None:
            begin = last + 1
        else:
            assert done.returncode == 0, done.stderr
    return found


@pytest.mark.parametrize(
    "device, share, at_least", [("cpu", SHARE, 5000 // SHARE), ("gpu", GPU_SHARE, 15000 // GPU_SHARE)]
)
def test_bad_input(device, share, at_least):
    cases, found = bad_input_cases.chosen(share, device), endings(share, device)
    assert sorted(found) == list(range(len(cases)))
    wrong = [f"{cases[i]}\n    {text}" for i, text in sorted(found.items()) if text.startswith("WRONG")]
    assert not wrong, f"{len(wrong)} of {len(cases)} cases:\n" + "\n".join(wrong[:25])
    outcomes = {text.split(":")[0] for text in found.values()}
    assert outcomes == {"ok", "raised"} and len(cases) > at_least


def test_the_same_cases_every_time():
    texts = list(map(str, bad_input_cases.chosen(1)))
    assert texts == list(map(str, bad_input_cases.chosen(1)))
    assert len({t.partition("(")[0] for t in texts}) > 60


def raise_(error):
    raise error


def test_what_is_wrong_is_seen(monkeypatch):
    """Operators with internal exceptions or without an error message are detected."""
    run = bad_input_cases.attempt
    case = bad_input_cases.Case("copy", (("image", "HWC"),), {}, {})
    assert run(case) == "ok"
    from penstock.operators.generic.copy import Copy

    for error, text in (
        (IndexError("x"), "WRONG: PipelineError: [internal error] IndexError: x"),
        (ValueError(""), "WRONG: PipelineValueError: "),
        (ValueError("sizes must be positive"), "raised: PipelineValueError: sizes must be positive"),
    ):
        monkeypatch.setattr(Copy, "outputs", lambda self, a, x, error=error: raise_(error))
        assert run(case) == text


def test_a_case_that_ends_the_process_is_seen(monkeypatch, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import os, sys, time\n"
        "begin = int(sys.argv[2])\n"
        "for i in range(begin, 4):\n"
        "    print(i, 'begin', flush=True)\n"
        "    if i == 1: os.abort()\n"
        "    if i == 2: os._exit(99)\n"
        "    print(i, 'ok', flush=True)\n"
    )
    monkeypatch.setattr(bad_input_cases, "__file__", str(program))
    found = endings(1)
    assert found[0] == found[3] == "ok"
    assert found[1].startswith("WRONG: Aborted") and found[2].startswith("WRONG: no end after 4 s")
