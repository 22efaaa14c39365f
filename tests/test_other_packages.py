# SPDX-License-Identifier: Apache-2.0
"""Operators of another package, with their own kernels for the CPU and the GPU, behave like those of penstock: they are
chained with others, their plans are cached, their launches are fused."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "CONTRIBUTING.md").read_text()
SOLARIZE = dict(re.findall(r"^`[\w/]+/(solarize\.\w+)`:\n\n```\w+\n(.*?)```$", TEXT, re.M | re.S))

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (ROOT / "kernels").is_dir() or not shutil.which("c++"), reason="needs a compiler"),
]

# A kernel of the form `own` with a `launch` line, an address as argument, and a function for the rules.
SHIFT = {
    "shift.h": """
#pragma once
#include "core/tensor.h"
struct ShiftArgs {
  const float *by;  // per row of a sample
  int64_t rows;
};
""",
    "shift.cpp": """
#include "mine/shift.h"
#include "core/kernel.h"
static void run(const Tensor *out, const Tensor *in, const ShiftArgs &a, Scratch &) {
  const int64_t n = in->volume(), each = a.rows ? n / a.rows : 1;
  if (a.by[0] > 1e6f) fail("shifted by %g", a.by[0]);
  for (int64_t i = 0; i < n; i++) out->as<float>()[i] = in->as<float>()[i] + a.by[i / each];
}
EXPORT_KERNEL(shift, ShiftArgs, run)

// by (n, 2) float32 of numbers (n,): the number and twice the number. Gives how many they are.
EXPORT int64_t shift_amounts(const float *numbers, int64_t n, float *by) {
  for (int64_t i = 0; i < n; i++) by[2 * i] = numbers[i], by[2 * i + 1] = 2 * numbers[i];
  return n;
}
EXPORT_SHORT(shift_amounts)
EXPORT_INSTRUCTION(shift_amounts)
""",
    "shift.cu": """
// form: own
// launch: shift_all<To0::T>(l); 512 elements of out[0] per block of 128 threads
#include "core/gpu.h"
#include "mine/shift.h"
template <class T>
DEVICE void shift_all(const Launch &l) {
  FOR_SAMPLES(sample, l) {
    const ShiftArgs a = ((const ShiftArgs *)l.args[0])[sample];
    const Tensor in = l.tensors[1][sample];
    T *out = l.tensors[0][sample].as<T>();
    const int64_t n = volume_of(in), each = a.rows ? n / a.rows : 1;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x)
      out[i] = in.as<T>()[i] + a.by[i / each];
  }
}
""",
}
SHIFT["shift.cpp"] = SHIFT["shift.cpp"].replace(
    '#include "core/kernel.h"', '#include "core/kernel.h"\n#include "core/program.h"'
)

PACKAGE = """
import os
import numpy as np
from penstock import plugin_manager
from penstock.core.op import Operator, PerSample

plugin_manager.load_library(os.path.join(os.path.dirname(__file__), "libmine.so"))
from .solarize import Solarize


calls = 0

class ShiftRows(Operator):
    \"\"\"Adds to the two rows of a sample.\"\"\"
    kernel = "mine/shift"
    by = PerSample(float, 1.0, "What is added to the first row; twice as much to the second.")

    def outputs(self, a, x):
        return x.like()

    def params(self, a, x, out):
        global calls
        calls += 1
        by, at = a.native.allocate((a.n, 2), np.dtype("f4"))
        a.native.call("shift_amounts", a.by, a.n, at)
        return {"by": by, "rows": 2}
"""

PROGRAM = """
import os, sys
import numpy as np
from penstock import fn, pipeline_def, types
import mine

samples = [np.arange(2 * w * 3, dtype="u1").reshape(2, w, 3) * 7 for w in (1, 3, 2, 5)]

def reference(x, by):
    solarized = np.where(x < 0.25 * 255, x, 255 - x).astype("f4")
    return (solarized + np.float32([by, 2 * by]).reshape(2, 1, 1)) * 2 + 1

@pipeline_def(batch_size=4, num_threads=2, device_id=0 if sys.argv[1] == "gpu" else None, seed=3)
def pipe(device):
    x = fn.external_source(source=lambda info: samples[info.idx_in_epoch % 4], batch=False, layout="HWC")
    by = fn.random.uniform(range=(-5.0, 5.0))
    x = x.gpu() if device == "gpu" else x
    y = fn.cast(fn.solarize(x, threshold=0.25), dtype=types.FLOAT)
    return fn.shift_rows(y, by=by) * 2 + 1, by

p = pipe(sys.argv[1])
for _ in range(int(sys.argv[2])):
    out, by = p.run()
    out = out.as_cpu() if sys.argv[1] == "gpu" else out
    for i in range(4):
        np.testing.assert_array_equal(out.at(i), reference(samples[i], by.at(i).item()))
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory) -> Path:
    """A folder with the package, built by the command of CONTRIBUTING.md."""
    folder = tmp_path_factory.mktemp("packages") / "mine"
    kernels = folder / "kernels" / "mine"
    kernels.mkdir(parents=True)
    for name, text in {**SOLARIZE, **SHIFT}.items():
        if not name.endswith(".py"):
            (kernels / name).write_text("// SPDX\n" + text.lstrip().replace("color/solarize", "mine/solarize"))
    for path in kernels.glob("solarize.*"):
        path.write_text(path.read_text().removeprefix("// SPDX\n"))
    text = SOLARIZE["solarize.py"].replace("...core", "penstock.core").replace("color/solarize", "mine/solarize")
    (folder / "solarize.py").write_text(text)
    (folder / "__init__.py").write_text(PACKAGE)
    compile_kernels(folder)
    return folder.parent


def compile_kernels(folder: Path) -> None:
    command = re.search(r"^    (c\+\+ -O3 .*?mine\.so)$", TEXT, re.M | re.S)[1]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    env = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(command, shell=True, cwd=folder.parent, env=env, capture_output=True, text=True)
    assert not done.returncode, done.stderr


def run(package: Path, program: str, *arguments: str) -> str:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(package), str(ROOT / "src")])}
    done = subprocess.run([sys.executable, "-c", program, *arguments], env=env, capture_output=True, text=True)
    assert not done.returncode, done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_values(package, device):
    run(package, PROGRAM, device, "9")


@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_it_gets_the_fast_paths(package, device):
    """It is in one chain or launch with operators of penstock, and its rules do not run for each batch."""
    shown = run(package, PROGRAM + "print(p.explain(), mine.calls, 'calls')", device, "40")
    chain = shown[shown.index("chain") :]
    assert re.search(r"fn.solarize(.*\n).*fn.cast(.*\n).*fn.shift_rows(.*\n).*fn.arithmetic", chain), shown
    assert int(re.search(r"(\d+) calls", shown)[1]) < 20, shown


def test_its_errors_are_those_of_samples(package):
    program = """if True:
        import numpy as np, mine
        from penstock import fn, pipeline_def, types
        @pipeline_def(batch_size=2, num_threads=1, device_id=None)
        def pipe():
            return fn.shift_rows(types.Constant(np.zeros((2, 2), "f4")), by=2e6)
        try:
            pipe().run()
        except RuntimeError as e:
            print(e)
    """
    assert "shifted by 2e+06" in run(package, program)


def test_a_library_of_other_headers_is_refused(package, tmp_path):
    shutil.copytree(package / "mine", tmp_path / "mine")
    header = tmp_path / "mine" / "kernels" / "mine" / "solarize.h"
    header.write_text(header.read_text().replace("float threshold, full;", "float threshold, full, more;"))
    program = """if True:
        import numpy as np, mine
        from penstock import fn, pipeline_def, types
        @pipeline_def(batch_size=2, num_threads=1, device_id=None)
        def pipe():
            return fn.solarize(types.Constant(np.zeros((2, 2, 1), "u1"), layout="HWC"))
        try:
            pipe().run()
        except Exception as e:
            print(type(e).__name__, e)
    """
    assert "libmine.so was built from another" in run(tmp_path, program)


def test_kernels_of_the_package_are_not_hidden(package, tmp_path):
    shutil.copytree(package / "mine", tmp_path / "mine")
    folder = tmp_path / "mine" / "kernels" / "color"
    folder.mkdir()
    shutil.copy(ROOT / "kernels" / "color" / "linear.h", folder)
    program = """if True:
        try:
            import mine
        except RuntimeError as e:
            print(e)
    """
    assert re.search(r"libmine.so can't be loaded: .*color/linear.h would be taken for", run(tmp_path, program))


def test_what_is_no_library_of_kernels(tmp_path):
    program = f"""if True:
        from penstock import plugin_manager
        try:
            plugin_manager.load_library({str(tmp_path / "libother.so")!r})
        except RuntimeError as e:
            print(e)
    """
    assert "compiled for DALI can't be loaded by penstock" in run(tmp_path, program)
    (tmp_path / "kernels").mkdir()
    assert "libother.so can't be loaded: " in run(tmp_path, program)
