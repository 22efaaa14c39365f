# SPDX-License-Identifier: Apache-2.0
"""The operator in CONTRIBUTING.md, unchanged, builds in a copy of the tree and passes its test."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.core.op import Operator

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "CONTRIBUTING.md").read_text()
FILES = dict(re.findall(r"^`([\w/.]+)`:\n\n```\w+\n(.*?)```$", TEXT, re.M | re.S))
KERNEL = next(path for path in FILES if path.endswith(".cpp"))
OPERATOR = next(path for path in FILES if path.startswith("src/"))
TEST = next(path for path in FILES if path.startswith("tests/"))

pytestmark = pytest.mark.skipif(not (ROOT / "kernels").is_dir() or not shutil.which("c++"), reason="needs a compiler")


@pytest.fixture(scope="module")
def tree(tmp_path_factory) -> Path:
    """A built copy of the tree with the operator."""
    root = tmp_path_factory.mktemp("tree")
    for part in ("src", "kernels", "tools", "tests/emulator"):
        shutil.copytree(ROOT / part, root / part, ignore=shutil.ignore_patterns("__pycache__"))
    names = ("conftest.py", "deviations.py", "emulated_work.py", "harness.py", "probes.py")
    for name in (*names, "test_coverage.py", "test_docstrings.py"):
        shutil.copy(ROOT / "tests" / name, root / "tests")
    for path, content in FILES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(content)
    build(root)
    return root


def build(root: Path) -> None:
    """Compiles only new files, with the flags of CMakeLists.txt, into a library that takes precedence over the existing
    one."""
    options = r"target_compile_options\(kernel_options INTERFACE (-ffp[^)]*)\)"
    flags = re.search(options, (ROOT / "CMakeLists.txt").read_text())[1]
    package = root / "src" / "penstock"
    if not (package / "others").exists():
        (package / "others").mkdir()
        (package / "libpenstock.so").rename(package / "others" / "libpenstock.so")
    digest = root / "digest.h"
    python(root, "src/penstock/core/digest.py", "kernels", str(digest))
    sources = [str(root / KERNEL), "-include", str(digest), str(root / "kernels/core/version.cpp")]
    link = [f"-L{package / 'others'}", "-lpenstock", "-Wl,-rpath,$ORIGIN/others", "-Wl,-soname,with-the-operator"]
    command = ["c++", "-std=c++17", "-shared", "-fPIC", "-fvisibility=hidden", "-O3", *flags.split(), "-Werror"]
    command += [f"-I{root / 'kernels'}", *sources, "-Wl,--no-as-needed", *link, "-o", str(package / "libpenstock.so")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert not done.returncode, done.stderr


def python(root: Path, *arguments: str) -> subprocess.CompletedProcess:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (root / "src", root / "tests")))}
    return subprocess.run([sys.executable, *arguments], cwd=root, env=env, capture_output=True, text=True)


def run_tests(root: Path, *arguments: str) -> subprocess.CompletedProcess:
    plugins = ("-p", "no:cacheprovider", "-p", "no:xdist")
    return python(root, "-m", "pytest", "-q", "-c", os.devnull, f"--rootdir={root}", *plugins, *arguments)


@pytest.mark.slow
def test_its_test_passes(tree):
    done = run_tests(tree, TEST)
    assert not done.returncode and " passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.slow
def test_its_test_sees_a_broken_kernel(tree, tmp_path):
    """The mistake that the text suggests making."""
    broken = shutil.copytree(tree, tmp_path / "broken")
    header = broken / KERNEL.replace(".cpp", ".h")
    content = header.read_text()
    assert "(float)x < threshold" in content
    header.write_text(content.replace("(float)x < threshold", "(float)x <= threshold"))
    build(broken)
    done = run_tests(broken, TEST)
    assert done.returncode == 1 and "Not equal to tolerance" in done.stdout, done.stdout + done.stderr
    assert re.search(r"\d+ failed, \d+ passed", done.stdout), done.stdout


@pytest.mark.slow
def test_it_runs_on_the_gpu(tree):
    """On the emulated device, if there is no real one."""
    done = run_tests(tree, TEST, "-k", "gpu")
    found = re.search(r"(\d+) passed", done.stdout)
    assert not done.returncode and found and int(found[1]) > 2, done.stdout + done.stderr
    program = """if True:
        import numpy as np
        from penstock import fn, pipeline_def, types
        @pipeline_def(batch_size=1, device_id=0)
        def pipe():
            image = fn.solarize(types.Constant(np.arange(48, dtype="u1").reshape(4, 4, 3) * 4, layout="HWC").gpu())
            return fn.flip(fn.brightness(image, brightness=2))
        print(pipe().run()[0].as_cpu().at(0)[[0, 3], 0].tolist(), pipe().explain())
    """
    shown = python(tree, "-c", program)
    below, above = [2 * x for x in (36, 40, 44)], [2 * (255 - x) for x in (180, 184, 188)]
    assert shown.stdout.startswith(str([below, above])), shown.stdout + shown.stderr
    assert re.search(r"solarize.*brightness.*flip", shown.stdout.replace("\n", " ")), shown.stdout


@pytest.mark.slow
def test_its_test_sees_a_broken_gpu_kernel(tree, tmp_path):
    broken = shutil.copytree(tree, tmp_path / "broken")
    source = broken / KERNEL.replace(".cpp", ".cu")
    content = source.read_text()
    assert "solarize(in[c]," in content
    source.write_text(content.replace("solarize(in[c],", "solarize(in[0],"))
    build(broken)
    done = run_tests(broken, TEST)
    failed = re.findall(r"^FAILED .*?::(\w+)[\[ ]", done.stdout, re.M)
    assert failed and set(failed) == {"test_gpu"}, done.stdout + done.stderr


@pytest.mark.slow
def test_its_docstring_stub_and_plan(tree):
    name = Path(OPERATOR).stem
    module = OPERATOR.removeprefix("src/").removesuffix(".py").replace("/", ".")
    done = run_tests(tree, "tests/test_docstrings.py", "-k", f"{module} or test_operator_has_an_example[{name}]")
    assert not done.returncode and " passed" in done.stdout, done.stdout + done.stderr
    assert python(tree, "tools/stubs.py", "stubs").returncode == 0
    assert f"def {name}(" in (tree / "stubs" / "fn" / "__init__.pyi").read_text()
    program = f"""if True:
        import numpy as np
        from penstock import fn, pipeline_def, types
        @pipeline_def(batch_size=1)
        def pipe():
            image = fn.decoders.image(types.Constant(np.frombuffer(b"P5 4 4 255 " + bytes(16), np.uint8)))
            return fn.crop(fn.{name}(image), crop=(2, 2))
        print(fn.{name}.__doc__, pipe().explain())
    """
    shown = python(tree, "-c", program)
    assert "threshold : float | DataNode, default 0.5" in shown.stdout, shown.stderr
    assert f"computes only the window that fn.{name} reads" in shown.stdout
    assert "computes only the window that fn.crop reads" in shown.stdout


def test_the_code_is_in_the_house_style(tmp_path):
    tools = [(("ruff", "check"), (".py",)), (("ruff", "format", "--check"), (".py",))]
    tools += [(("clang-format", "--dry-run", "-Werror"), (".h", ".cpp", ".cu"))]
    for name in ("pyproject.toml", ".clang-format"):
        shutil.copy(ROOT / name, tmp_path)
    for path, content in FILES.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(content)
    shutil.copy(ROOT / "tests" / "harness.py", tmp_path / "tests")  # a module of our own, for the order of imports
    ran = 0
    for (tool, *options), endings in tools:
        beside = Path(sys.executable).parent / tool
        program = str(beside) if beside.exists() else shutil.which(tool)
        if program:
            paths = [path for path in FILES if path.endswith(endings)]
            done = subprocess.run([program, *options, *paths], cwd=tmp_path, capture_output=True, text=True)
            assert not done.returncode, done.stdout + done.stderr
            ran += 1
    if not ran:
        pytest.skip("no linter is installed")


# Attributes of `Operator` that a new operator does not need at first.
RARE = {
    "by_name",
    *("deprecated", "former_defaults", "experimental", "hidden", "tensors", "expand", "returns_list", "is_native"),
    "ahead",
    *("n_inputs", "in_chain", "display_name", "find_arg", "schema", "fn_name", "preserve", "bytes_per_sample_hint"),
}


def test_the_table_has_every_rule():
    """The table has exactly the attributes of `Operator` that a subclass may define."""
    table = TEXT.partition("### All rules")[2].partition("\n## ")[0]
    rules = {name for name in vars(Operator) if not name.startswith("_")}
    assert rules - RARE <= set(re.findall(r"\w+", table))
    defined = re.findall(r"^\| `(\w+)(?: = |\(self)", table, re.M)
    assert len(defined) > 8 and set(defined) <= rules
