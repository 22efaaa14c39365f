# SPDX-License-Identifier: Apache-2.0
"""`penstock.as_dali`: programs that import `nvidia.dali` get penstock. Programs run in processes of their own."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(__file__).parent / "programs"
IMAGES = str(ROOT / "examples" / "data")


def python(*args, path=(), cwd=None, code=0, **env):
    """Standard output and error of a Python process with src on its path."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, [*path, ROOT / "src"])), **env}
    done = subprocess.run([sys.executable, *map(str, args)], capture_output=True, text=True, env=environment, cwd=cwd)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout if not code else done.stdout + done.stderr


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text))
    return path


def test_the_very_same_modules():
    """`nvidia.dali` has all modules of penstock, including those created at run time and future ones."""
    python(
        "-c",
        """if True:
        import importlib, pkgutil, sys
        import penstock.as_dali, penstock
        names = ["penstock"]
        for found in pkgutil.walk_packages(penstock.__path__, "penstock."):
            names.append(found.name)
        names += [n for n in sys.modules if n.startswith(("penstock.fn", "penstock.ops"))]
        skipped = []
        for name in names:
            if name.startswith(("penstock.as_dali", "penstock.libpenstock")):
                continue
            try:
                ours = importlib.import_module(name)
            except ImportError:  # a framework that is not installed
                skipped.append(name)
                continue
            spec = ours.__spec__
            found = importlib.import_module(name.replace("penstock", "nvidia.dali", 1))
            # The topmost one tells DALI's version, so it is another object with the same content.
            same = [vars(ours)[n] for n in ours.__all__] if name == "penstock" else ours
            assert ([getattr(found, n) for n in ours.__all__] if name == "penstock" else found) == same, name
            assert ours.__name__ == name and ours.__spec__ is spec
        of_torch = ("experimental.torchvision", "experimental.dynamic.pytorch.", "transforms")
        others = [n for n in skipped if not n.removeprefix("penstock.").startswith(("plugin.", *of_torch))]
        assert len(names) - len(skipped) > 60 and not others, others
        """,
    )


def test_names_that_programs_import():
    python(
        "-c",
        """if True:
        import penstock.as_dali
        import penstock
        import nvidia.dali as dali
        assert dali.Pipeline is penstock.Pipeline and dali.backend.TensorListCPU is penstock.TensorListCPU
        assert dali.__version__.startswith("2.") and penstock.__version__ != dali.__version__
        assert dali.__path__ == penstock.__path__ and "fn" in dir(dali)
        assert dali.tfrecord.FixedLenFeature and dali.sysconfig.get_lib_dir and dali.backend_impl.TensorCPU
        try:
            dali.nonsense
        except AttributeError as e:
            assert "nonsense" in str(e)
        assert dali.plugin_manager.load_library and dali.tensors and dali.data_node and dali.pipeline
        from nvidia.dali import Pipeline, pipeline_def, fn, ops, types, math, StreamPolicy, OperatorConcurrency
        from nvidia.dali.backend import TensorCPU, TensorGPU, TensorListCPU, TensorListGPU
        from nvidia.dali.backend_impl import TensorListCPU as FromImpl
        from nvidia.dali.pipeline import experimental
        from nvidia.dali.pipeline.experimental import pipeline_def as from_experimental
        assert experimental.pipeline_def is from_experimental is pipeline_def
        from nvidia.dali.backend_impl.types import DALIDataType
        from nvidia.dali._backend_enums import DALIInterpType
        from nvidia.dali.types import FLOAT, CUDAStream, ScalarConstant, PipelineAPIType, to_dali_type
        from nvidia.dali.fn import readers, decoders
        from nvidia.dali.external_source import ExternalSource, external_source
        from nvidia.dali.pickling import pickle_by_value
        import nvidia.dali.fn.readers, nvidia.dali.ops.readers
        from nvidia.dali.plugin.base_iterator import LastBatchPolicy, _DaliBaseIterator
        assert FromImpl is TensorListCPU and types.DALIDataType is DALIDataType and readers.file and ops.readers.File
        assert external_source is fn.external_source and ExternalSource is ops.ExternalSource
        try:
            import nvidia.dali.no_such_module
        except ModuleNotFoundError as e:
            assert e.name == "nvidia.dali.no_such_module"
        import importlib.util
        assert importlib.util.find_spec("nvidia.dali.no_such_module") is None
        assert importlib.util.find_spec("nvidia.dali.fn") is not None
        """,
    )


def test_instances_and_pickles():
    python(
        "-c",
        """if True:
        import penstock.as_dali
        import pickle, numpy as np, penstock
        from nvidia.dali import pipeline_def, Pipeline, fn, types, tensors
        @pipeline_def(batch_size=2, num_threads=1, device_id=0)
        def pipe():
            return fn.constant(idata=[1, 2])
        p = pipe()
        assert isinstance(p, Pipeline) and isinstance(p, penstock.Pipeline)
        (out,) = p.run()
        assert isinstance(out, tensors.TensorListCPU)
        assert pickle.loads(pickle.dumps(types.FLOAT)) is penstock.types.FLOAT
        assert (pickle.loads(pickle.dumps(out)).as_array() == [[1, 2]] * 2).all()
        # Written by a program that ran with the real DALI.
        assert pickle.loads(b"cnvidia.dali.pipeline\\nPipeline\\n.") is Pipeline
        """,
    )


SPAWNED = """
    import sys
    import nvidia.dali.fn as fn
    import nvidia.dali.types as types
    from nvidia.dali import pipeline_def
    import multiprocessing

    def work(i):
        @pipeline_def(batch_size=1, num_threads=1, device_id=0)
        def pipe():
            return fn.constant(idata=[i], dtype=types.INT32)
        import nvidia.dali
        return nvidia.dali.__name__, int(pipe().run()[0].as_array()[0, 0])

    if __name__ == "__main__":
        with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
            print(pool.map(work, [3, 4]))
"""


@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork"])
def test_worker_processes(tmp_path, method):
    script = write(tmp_path / "spawned.py", SPAWNED)
    out = python("-m", "penstock.as_dali", script, method)
    assert out.strip() == "[('penstock', 3), ('penstock', 4)]"


def test_worker_processes_without_the_runner(tmp_path):
    """Workers do not execute the import, and penstock is only on the program's path."""
    text = SPAWNED.replace("import sys", f"import sys; sys.path.append({str(ROOT / 'src')!r})")
    text = text.replace(
        "    import nvidia.dali.fn",
        "    if __name__ == '__main__': import penstock.as_dali\n    import nvidia.dali.fn",
        1,
    )
    script = write(tmp_path / "spawned.py", text)
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run([sys.executable, script, "spawn"], capture_output=True, text=True, env=env)
    assert done.stdout.strip() == "[('penstock', 3), ('penstock', 4)]", done.stderr


def test_other_processes_of_the_program(tmp_path):
    """Launchers start `python script.py` for each rank. Their child processes are covered at any depth. The user's own
    sitecustomize still runs."""
    write(tmp_path / "sitecustomize.py", "import os\nos.environ['THEIRS'] = os.environ.get('THEIRS', '') + 'x'\n")
    child = write(tmp_path / "child.py", "import nvidia.dali, os; print(nvidia.dali.__name__, os.environ['THEIRS'])")
    launcher = write(tmp_path / "a.py", "import subprocess, sys\nsubprocess.run([sys.executable, *sys.argv[1:]])\n")
    out = python("-m", "penstock.as_dali", launcher, launcher, child, path=[tmp_path])
    assert out.split() == ["penstock", "xxx"]


def _site(folder, nvidia_is_regular):
    """A folder for imports with NumPy and an NVIDIA package other than DALI."""
    import numpy

    site = folder / "site"
    (site / "nvidia" / "cuda_nvrtc").mkdir(parents=True)
    (site / "nvidia" / "cuda_nvrtc" / "__init__.py").write_text("here = 1\n")
    if nvidia_is_regular:
        (site / "nvidia" / "__init__.py").write_text("")
    for source in Path(numpy.__file__).parents[1].glob("numpy*"):
        (site / source.name).symlink_to(source)
    return site


BEFORE_AND_AFTER = """
import sys
import nvidia.cuda_nvrtc
import penstock.as_dali
import nvidia.dali
import penstock
assert nvidia.dali.fn is penstock.fn and nvidia.cuda_nvrtc.here
import nvidia.late
assert nvidia.late.here == 2
"""
AFTER = """
import penstock.as_dali
import nvidia.dali.fn
import nvidia.cuda_nvrtc
from nvidia import late
assert late.here == 2 and nvidia.cuda_nvrtc.here
try:
    import nvidia.nothing
except ModuleNotFoundError as e:
    assert e.name == "nvidia.nothing"
"""
NOBODY_ELSE = """
import sys
import penstock.as_dali
from nvidia.dali import fn
import nvidia
sys.path.append(sys.argv[1])
import nvidia.cuda_nvrtc
assert nvidia.cuda_nvrtc.here and nvidia.dali.fn is fn
"""


@pytest.mark.parametrize("is_regular", [False, True])
@pytest.mark.parametrize("code", [BEFORE_AND_AFTER, AFTER])
def test_other_packages_of_nvidia(tmp_path, code, is_regular):
    site = _site(tmp_path, is_regular)
    more = site if is_regular else tmp_path / "more"  # a namespace package may have parts in several folders
    write(more / "nvidia" / "late" / "__init__.py", "here = 2\n")
    env = {"PYTHONPATH": os.pathsep.join(map(str, [site, more, ROOT / "src"]))}
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr


def test_no_other_package_of_nvidia(tmp_path):
    site = _site(tmp_path, False)
    (site / "nvidia").rename(tmp_path / "nvidia")
    env = {"PYTHONPATH": os.pathsep.join(map(str, [site, ROOT / "src"]))}
    command = [sys.executable, "-S", "-c", NOBODY_ELSE, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=site)
    assert done.returncode == 0, done.stderr


def test_the_real_dali_that_is_installed_is_passed_over(tmp_path):
    write(tmp_path / "nvidia" / "dali" / "__init__.py", "raise Exception('the real one')")
    write(tmp_path / "nvidia" / "__init__.py", "")
    code = "import penstock.as_dali, nvidia.dali, nvidia.dali.plugin; print(nvidia.dali.__name__)"
    assert python("-c", code, path=[tmp_path]).strip() == "penstock"


def test_the_real_dali_that_was_imported_is_an_error(tmp_path):
    write(tmp_path / "nvidia" / "dali" / "__init__.py", "")
    write(tmp_path / "nvidia" / "__init__.py", "")
    out = python("-c", "import nvidia.dali, penstock.as_dali", path=[tmp_path], code=1)
    assert "ImportError: nvidia.dali was imported already, from" in out and str(tmp_path) in out
    assert "python -m penstock.as_dali" in out


def test_runner(tmp_path):
    script = write(
        tmp_path / "script.py",
        """
        import sys, neighbour
        from nvidia import dali
        print(dali.__name__, __name__, sys.argv[1:], sys.modules["__main__"].__file__ == sys.argv[0])
        sys.exit(neighbour.status)
        """,
    )
    write(tmp_path / "neighbour.py", "status = 3")
    out = python("-m", "penstock.as_dali", script, "--flag", "a b", code=3)
    assert out.strip() == "penstock __main__ ['--flag', 'a b'] True"
    out = python("-m", "penstock.as_dali", "-m", "script", "x", cwd=tmp_path, code=3)
    assert out.strip() == "penstock __main__ ['x'] True"
    out = python("-m", "penstock.as_dali", "-c", "import nvidia.dali, sys; print(nvidia.dali.__name__, sys.argv)", "y")
    assert out.strip() == "penstock ['-c', 'y']"
    assert "usage" in python("-m", "penstock.as_dali", "--help")
    assert "usage" in python("-m", "penstock.as_dali", code=2)
    assert "no file missing.py" in python("-m", "penstock.as_dali", "missing.py", code=1)
    assert "unknown option -x" in python("-m", "penstock.as_dali", "-x", code=1)
    assert "needs a value" in python("-m", "penstock.as_dali", "-m", code=1)


def test_runner_with_pytest(tmp_path):
    write(tmp_path / "test_it.py", "import nvidia.dali, penstock\ndef test(): assert nvidia.dali.fn is penstock.fn\n")
    out = python("-m", "penstock.as_dali", "-m", "pytest", "-q", "-p", "no:cacheprovider", tmp_path, cwd=tmp_path)
    assert "1 passed" in out


def test_examples_in_docstrings():
    python(
        "-c",
        "import doctest, penstock.as_dali as m; assert doctest.testmod(m).attempted == 4 - doctest.testmod(m).failed",
    )


def test_front_page():
    pytest.importorskip("torch")
    lines = python("-m", "penstock.as_dali", PROGRAMS / "front_page.py", IMAGES).splitlines()
    assert lines == [f"{i} (16, 3, 224, 224) torch.float32 (16, 1) torch.int32" for i in range(2)] + ["2"]


@pytest.mark.parametrize("n_shards", [0, 2])
def test_class_style(n_shards):
    pytest.importorskip("torch")
    out = python("-W", "always", "-m", "penstock.as_dali", PROGRAMS / "class_style.py", IMAGES, n_shards)
    size = 20 * (n_shards or 1)
    assert out.splitlines() == [f"{size} {size} (4, 3, 224, 224) torch.float32 (4,) torch.int64"] * 2


def test_automatic_augmentation():
    lines = python("-W", "ignore", "-m", "penstock.as_dali", PROGRAMS / "augmented.py", IMAGES).splitlines()
    ways = ["auto", "auto_image_net", "rand", "trivial", "own policy", "own suite", "select"]
    assert lines == [f"{way} done" for way in ways]
