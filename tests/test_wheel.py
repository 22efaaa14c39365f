# SPDX-License-Identifier: Apache-2.0
"""The wheel in dist/, installed into a clean venv: self-contained, small, and it decodes pictures."""

import os
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
WHEELS = sorted((ROOT / "dist").glob("penstock-*.whl"))
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not WHEELS, reason="no wheel in dist/; `make wheel` builds and tests it"),
]

CARRIED = {"libjpeg", "libpng16", "libtiff", "libwebp", "libopenjp2", "libsndfile"}


def clean_environment() -> dict[str, str]:
    """Nothing of the checkout may be found by accident."""
    return {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV", "LD_LIBRARY_PATH")}


@pytest.fixture(scope="module")
def python(tmp_path_factory) -> Path:
    venv = tmp_path_factory.mktemp("wheel") / "venv"
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    python = venv / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", WHEELS[-1]], check=True, env=clean_environment())
    return python


def run(python: Path, script: str, *arguments: object, cwd: Path) -> str:
    result = subprocess.run(
        [python, "-c", script, *map(str, arguments)], cwd=cwd, env=clean_environment(), capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_name_size_and_content():
    wheel = WHEELS[-1]
    assert "-py3-none-manylinux_" in wheel.name
    assert wheel.stat().st_size < 7_500_000
    names = zipfile.ZipFile(wheel).namelist()
    carried = {Path(n).name.split("-")[0] for n in names if n.startswith("penstock.libs/")}
    assert carried >= CARRIED
    licences = [n for n in names if ".dist-info/licenses/" in n]
    # Encoders and JBIG are stand-ins of our own (docs/decisions/0002).
    foreign = carried - {"libjbig", "libmp3lame", "libvorbisenc"}
    assert len(licences) == len(foreign) + 1, f"a licence per carried library and our own, got {licences}"
    for name in ("libpenstock.so", "py.typed", "fn/__init__.pyi", "kernels/core/tensor.h"):
        assert f"penstock/{name}" in names
    sources = {str(p.relative_to(ROOT)) for e in ("h", "cu", "py") for p in (ROOT / "kernels").rglob(f"*.{e}")}
    assert {n.removeprefix("penstock/") for n in names if n.startswith("penstock/kernels/")} == sources


def test_codecs_are_its_own(python, tmp_path):
    """No codec of the system is loaded."""
    script = """if True:
        import penstock.core.kernels
        penstock.core.kernels.library()
        print(*{line.split()[-1] for line in open("/proc/self/maps") if ".so" in line}, sep="\\n")"""
    loaded = [Path(line) for line in run(python, script, cwd=tmp_path).splitlines()]
    ours = {p.name.split("-")[0] for p in loaded if "penstock.libs" in p.parts}
    assert "libjpeg" in ours
    foreign = [p for p in loaded if p.name.split(".so")[0] in CARRIED and p.parent.name != "penstock.libs"]
    assert not foreign


def test_decodes_and_augments(python, tmp_path):
    script = """if True:
        import sys
        import penstock.fn as fn, penstock.types as types
        from penstock import pipeline_def
        @pipeline_def(batch_size=4, num_threads=2, device_id=None, seed=1)
        def pipeline(root):
            jpegs, labels = fn.readers.file(file_root=root, random_shuffle=True)
            images = fn.random_resized_crop(fn.decoders.image(jpegs), size=(64, 48))
            return fn.crop_mirror_normalize(images, dtype=types.FLOAT, mean=[127.0] * 3, std=[64.0] * 3), labels
        images, labels = pipeline(sys.argv[1]).run()
        a = images.as_tensor().__array__()
        assert a.shape == (4, 3, 64, 48) and a.std() > 0.1, (a.shape, a.std())
        assert "site-packages" in types.__file__
        print("ok")"""
    assert run(python, script, ROOT / "examples" / "data", cwd=tmp_path) == "ok\n"


def jbig_tiff() -> bytes:
    """A TIFF of 8x8 bits whose strip claims to be JBIG; its data is nothing."""
    data = b"\0" * 32
    tags = [(256, 8), (257, 8), (258, 1), (259, 34661), (262, 0), (273, 8), (277, 1), (278, 8), (279, len(data))]
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags)
    return struct.pack("<2sHI", b"II", 42, 8 + len(data)) + data + struct.pack("<H", len(tags)) + entries + b"\0" * 4


def test_jbig_is_an_error_of_the_sample(python, tmp_path):
    (tmp_path / "page.tiff").write_bytes(jbig_tiff())
    script = """if True:
        import penstock.fn as fn
        from penstock import pipeline_def
        @pipeline_def(batch_size=1, num_threads=1, device_id=None)
        def pipeline():
            return fn.decoders.image(fn.readers.file(files=["page.tiff"])[0])
        try:
            pipeline().run()
        except RuntimeError as e:
            assert "page.tiff" in str(e), e
            print("ok")"""
    assert run(python, script, cwd=tmp_path) == "ok\n"
