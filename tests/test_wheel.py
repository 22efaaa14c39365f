# SPDX-License-Identifier: Apache-2.0
"""The wheel in dist/ and the one that pip builds from source, in a clean venv: they decode images. The wheel in dist/
is small and has no other dependencies. The sdist is complete for a build."""

import json
import os
import platform
import re
import struct
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ALL_WHEELS = sorted((ROOT / "dist").glob("penstock-*.whl"))
WHEELS = [w for w in ALL_WHEELS if w.stem.endswith(f"_{platform.machine()}")]  # those that run here
SDISTS = sorted((ROOT / "dist").glob("penstock-*.tar.gz"))
FROM_SOURCE = sorted((ROOT / "build" / "sdist").glob("penstock-*.whl"))
pytestmark = pytest.mark.slow
carries = pytest.mark.skipif(not WHEELS, reason="no wheel in dist/; `make wheel` builds and tests it")
CODECS = (ROOT / "tools" / "wheel_codecs" / "sources.txt").read_text().splitlines()[1:]
PACKAGES = {line.split("/")[-2] for line in CODECS}  # Debian's names of the codecs that are built into it
FOREIGN = {"libjpeg", "libpng16", "libtiff", "libwebp", "libopenjp2", "libsndfile", "libzstd", "libFLAC"}


def clean_environment() -> dict[str, str]:
    """An environment in which nothing of the checkout is found accidentally."""
    return {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV", "LD_LIBRARY_PATH")}


@pytest.fixture(scope="module", params=["wheel", "sdist"])
def python(request, tmp_path_factory) -> Path:
    wheels = WHEELS if request.param == "wheel" else FROM_SOURCE
    if not wheels:
        pytest.skip(f"`make {request.param}` builds and tests it")
    venv = tmp_path_factory.mktemp("wheel") / "venv"
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    python = venv / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", wheels[-1]], check=True, env=clean_environment())
    return python


def run(python: Path, script: str, *arguments: object, cwd: Path) -> str:
    result = subprocess.run(
        [python, "-c", script, *map(str, arguments)], cwd=cwd, env=clean_environment(), capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.skipif(not SDISTS, reason="no sdist in dist/; `make sdist` builds and tests it")
def test_sdist_has_all_sources():
    with tarfile.open(SDISTS[-1]) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    files = [p for e in ("h", "cpp", "cu", "map") for p in (ROOT / "kernels").rglob(f"*.{e}")]
    files += (ROOT / "src").rglob("*.py")
    needed = {"CMakeLists.txt", "pyproject.toml", "README.md", "LICENSE", "tools/stubs.py"}
    needed |= {str(p.relative_to(ROOT)) for p in files}
    assert len(needed) > 500 and needed <= names, needed - names


@pytest.mark.skipif(not ALL_WHEELS, reason="no wheel in dist/; `make wheel` builds and tests it")
@pytest.mark.parametrize("wheel", ALL_WHEELS, ids=lambda w: w.stem.split("-")[-1])
def test_name_size_and_content(wheel):
    assert "-py3-none-manylinux_2_28_" in wheel.name
    assert wheel.stat().st_size < 7_500_000
    names = zipfile.ZipFile(wheel).namelist()
    carried = {Path(n).name.split("-")[0] for n in names if n.startswith("penstock.libs/")}
    assert carried == {"libsndfile"}  # which the LGPL wants to be replaceable; the others are in libpenstock
    licences = {Path(n).name for n in names if ".dist-info/licenses/" in n}
    assert licences == {f"{package}.txt" for package in PACKAGES} | {"LICENSE"}
    for name in ("libpenstock.so", "py.typed", "fn/__init__.pyi", "kernels/core/tensor.h"):
        assert f"penstock/{name}" in names
    sources = {str(p.relative_to(ROOT)) for e in ("h", "cu", "py") for p in (ROOT / "kernels").rglob(f"*.{e}")}
    assert {n.removeprefix("penstock/") for n in names if n.startswith("penstock/kernels/")} == sources


@carries
@pytest.mark.parametrize("python", ["wheel"], indirect=True)
def test_codecs_are_its_own(python, tmp_path):
    """No codec libraries of the system are loaded."""
    script = """if True:
        import penstock.core.kernels
        penstock.core.kernels.library()
        print(*{line.split()[-1] for line in open("/proc/self/maps") if ".so" in line}, sep="\\n")"""
    loaded = [Path(line) for line in run(python, script, cwd=tmp_path).splitlines()]
    assert any(p.name.startswith("libsndfile") and p.parent.name == "penstock.libs" for p in loaded)
    foreign = [p for p in loaded if p.name.split(".so")[0] in FOREIGN and p.parent.name != "penstock.libs"]
    assert not foreign


@carries
def test_symbols(tmp_path):
    """The wheel requires no symbols newer than glibc 2.28, and exports only symbols that the checkout's library
    exports."""
    newest, exported = (0, 0), {}
    with zipfile.ZipFile(WHEELS[-1]) as wheel:
        for name in wheel.namelist():
            if ".so" not in name:
                continue
            file = wheel.extract(name, tmp_path)
            table = subprocess.run(["objdump", "-T", file], capture_output=True, text=True, check=True).stdout
            versions = re.findall(r"GLIBC_(\d+)\.(\d+)", table)
            # Symbols without a version are missing in the linker's glibc, which is allowed for weak ones (w).
            lacking = [line for line in table.splitlines() if re.search(r"^[0-9a-f]+ +D[F ] +\*UND\*[^(]*$", line)]
            assert not lacking
            newest = max([newest, *((int(major), int(minor)) for major, minor in versions)])
            exported[Path(name).name] = {line.split()[-1] for line in table.splitlines() if " g " in line}
    assert (2, 2) < newest <= (2, 28)
    built = ROOT / "src" / "penstock" / "libpenstock.so"
    table = subprocess.run(["objdump", "-T", built], capture_output=True, text=True, check=True).stdout
    ours = {line.split()[-1] for line in table.splitlines() if " g " in line and "UND" not in line}
    assert exported["libpenstock.so"] == ours


@carries
def test_list_of_codecs():
    """The SBOM has every codec, with its version and licence."""
    with zipfile.ZipFile(WHEELS[-1]) as wheel:
        (name,) = (n for n in wheel.namelist() if n.endswith(".dist-info/sboms/codecs.cdx.json"))
        bill = json.loads(wheel.read(name))
        notices = {Path(n).stem: wheel.read(n).decode() for n in wheel.namelist() if "/licenses/" in n}
    assert {c["name"] for c in bill["components"]} == PACKAGES
    for component in bill["components"]:
        licence = component["licenses"][0]["expression"]
        assert notices[component["name"]].startswith(f"{component['name']} {component['version']} ({licence})")


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
    """A TIFF of 8x8 bits with a strip declared as JBIG, without valid data."""
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
