# SPDX-License-Identifier: Apache-2.0
"""Compiled kernels are cached on disk: kernels run regardless of the folder's content and of other writers. On the
emulated device, whose compiler has its own cache."""

import os
import subprocess
import sys

import pytest

if os.environ.get("PENSTOCK_TEST_GPU") == "1":
    pytest.skip("one emulated compiler is enough", allow_module_level=True)

_SCRIPT = """
import numpy as np
from penstock import fn, pipeline_def
from penstock.gpu import compile

made, compiled = [], compile._compile
compile._compile = lambda *a: made.append(a[1]) or compiled(*a)

@pipeline_def(batch_size=2, num_threads=1, device_id=0)
def pipe():
    images = fn.external_source(lambda: [np.full((4, 5, 3), 9, "u1")] * 2, layout="HWC")
    return fn.brightness(images.gpu(), brightness=2)

out, = pipe().run()
print(int(out.as_cpu().as_array().min()), len(made))
"""


def start(cache, **environment):
    environment = os.environ | {"XDG_CACHE_HOME": str(cache)} | environment
    return subprocess.Popen(
        [sys.executable, "-c", _SCRIPT], env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def said(process):
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return out.strip()


@pytest.fixture
def cache(tmp_path):
    """The cache folder."""
    assert said(start(tmp_path)) == "18 1"
    return tmp_path


def kept(cache):
    (file,) = (cache / "penstock").iterdir()
    return file


def test_what_was_compiled_is_found_again(cache):
    assert said(start(cache)) == "18 0"


@pytest.mark.parametrize("damage", ["empty", "cut", "a bit", "something else"])
def test_a_damaged_file_is_made_anew(cache, damage):
    data = kept(cache).read_bytes()
    broken = {"empty": b"", "cut": data[: len(data) // 2], "something else": b"x" * len(data)}
    broken["a bit"] = data[:-100] + bytes([data[-100] ^ 1]) + data[-99:]
    kept(cache).write_bytes(broken[damage])
    assert said(start(cache)) == "18 1"
    assert kept(cache).read_bytes() == data
    assert said(start(cache)) == "18 0"


def test_a_folder_that_can_not_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    assert said(start(tmp_path / "file")) == "18 1"


def test_a_full_disk_leaves_nothing_behind(tmp_path, monkeypatch):
    from penstock.gpu import compile

    monkeypatch.setattr(compile.os, "replace", lambda *a: (_ for _ in ()).throw(OSError(28, "no space left")))
    with pytest.raises(OSError, match="no space"):
        compile._keep(str(tmp_path / "penstock" / "k"), b"image")
    assert not list((tmp_path / "penstock").iterdir())


def test_several_processes_at_once(tmp_path):
    assert {said(p) for p in [start(tmp_path) for _ in range(4)]} <= {"18 0", "18 1"}
    assert kept(tmp_path)  # one file, no temporary files
    assert said(start(tmp_path)) == "18 0"


def test_another_version_of_the_sources_or_of_the_compiler_is_another_kernel(cache, tmp_path):
    other = tmp_path / "libnvrtc.so"
    other.symlink_to(os.environ["PENSTOCK_NVRTC"])
    assert said(start(cache, PENSTOCK_NVRTC=str(other))) == "18 1"
    assert len(list((cache / "penstock").iterdir())) == 2


def test_a_compiler_that_is_newer_than_the_driver(tmp_path):
    """Its code could not be loaded: reported when the pipeline is built, with what to install."""
    process = start(tmp_path, PENSTOCK_EMULATED_CUDA="12080")
    _, err = process.communicate(timeout=120)
    last = err.strip().splitlines()[-1]
    assert process.returncode == 1 and not list(tmp_path.iterdir())
    assert "NVRTC that was found is of CUDA 13" in last and "`pip install penstock[cuda12]`" in last
