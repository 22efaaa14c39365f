# SPDX-License-Identifier: Apache-2.0
"""Builds the wheel that carries its codecs: dist/penstock-*-py3-none-manylinux_2_28_*.whl.

    python tools/build_wheel.py             for this processor
    python tools/build_wheel.py aarch64     for another one, by Debian's cross compiler (g++-aarch64-linux-gnu)

1. The codecs are built from their sources (tools/wheel_codecs).
2. pip builds the wheel with scikit-build-core, for which GCC compiles and zig links for an old glibc.
3. auditwheel checks the symbols' versions and copies libsndfile into it.
4. The licence of each codec and a list of them (SBOM, CycloneDX) go beside penstock's own.
"""

import json
import os
import platform
import shutil
import subprocess
import sys
import uuid
import zipfile
from pathlib import Path

from elftools.elf.elffile import ELFFile

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from wheel_codecs import build as codecs  # noqa: E402

WORK = ROOT / "build" / "wheelhouse"
DIST = ROOT / "dist"
LARGEST = 7_500_000  # bytes of the wheel


def run(*command: object, **variables: str) -> str:
    result = subprocess.run(
        [str(c) for c in command], env={**os.environ, **variables}, stdout=subprocess.PIPE, text=True, check=False
    )
    if result.returncode:
        sys.exit(f"{result.stdout}\n{command[0]} failed")
    return result.stdout


def pedigree(package: str) -> dict:
    """The vulnerabilities that patches of ours fix."""
    fixes = [
        {"type": "backport", "resolves": [{"type": "security", "id": patch.stem}]} for patch in codecs.patches(package)
    ]
    return {"pedigree": {"patches": fixes}} if fixes else {}


def bill_of_materials(name: str) -> dict:
    """What the wheel is made of, in CycloneDX's words, for programs that look for known vulnerabilities."""
    components = [
        {
            "type": "library",
            "name": codec.package,
            "version": codecs.version(codec.package),
            "licenses": [{"expression": codec.licence}],
            "purl": f"pkg:deb/debian/{codec.package}@{codecs.debian_version(codec.package)}?arch=source",
            "hashes": [{"alg": "SHA-256", "content": codecs.sources()[codec.package][0][0]}],
            **pedigree(codec.package),
        }
        for codec in codecs.CODECS
    ]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(components))}",
        "version": 1,
        "metadata": {"component": {"type": "library", "name": "penstock", "version": name.split("-")[1]}},
        "components": components,
    }


def compress(wheel: Path) -> None:
    """Packs its files as small as they get, which `wheel` does not."""
    packed = wheel.with_suffix(".packed")
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as new:
        for entry in old.infolist():
            # An entry keeps its date and permissions, and would keep its level, too.
            new.writestr(entry, old.read(entry), zipfile.ZIP_DEFLATED, 9)
    packed.replace(wheel)


def newest_glibc(library: Path) -> tuple[int, ...]:
    """The newest version of glibc that a library asks for symbols of."""
    with library.open("rb") as file:
        needed = ELFFile(file).get_section_by_name(".gnu.version_r")
        names = [aux.name for _, versions in needed.iter_versions() for aux in versions]
    found = [tuple(map(int, n.removeprefix("GLIBC_").split("."))) for n in names if n.startswith("GLIBC_2")]
    return max(found, default=(0,))


def build_folder(arch: str) -> Path:
    return ROOT / "build" / f"wheel-{arch}"


def main(arch: str = platform.machine()) -> None:
    shutil.rmtree(WORK, ignore_errors=True)
    python = Path(sys.executable)
    tools = str(python.parent) + os.pathsep + os.environ["PATH"]
    os.environ["PATH"] = tools
    prefix = codecs.build_all(arch, ROOT / "build" / "codecs")
    compiler = codecs.Compiler(arch, ROOT / "build" / "codecs")
    defines = {"CODECS": str(prefix), "CMAKE_CXX_CREATE_SHARED_LIBRARY": compiler.shared_library_rule()}
    # The name that `make build` calls it by: ccache tells compilers apart by their names.
    defines["CMAKE_CXX_COMPILER"] = os.environ.get("CXX", "c++")
    if shutil.which("ccache"):
        defines["CMAKE_CXX_COMPILER_LAUNCHER"] = "ccache"
    if arch != platform.machine():
        defines |= {"CMAKE_SYSTEM_NAME": "Linux", "CMAKE_SYSTEM_PROCESSOR": arch, "CMAKE_CXX_COMPILER": compiler.gcc}
        os.environ["_PYTHON_HOST_PLATFORM"] = f"linux-{arch}"  # the wheel's name
    settings = [f"--config-settings=cmake.define.{name}={value}" for name, value in defines.items()]
    # A folder for each: CMake forgets all settings where it finds another compiler than before.
    settings.append(f"--config-settings=build-dir={build_folder(arch)}")
    pip_wheel = (python, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", *settings)
    run(*pip_wheel, "-w", WORK / "plain", ROOT, **compiler.environment)
    (plain,) = (WORK / "plain").glob("*.whl")
    libraries = os.pathsep.join(filter(None, [str(prefix / "lib"), os.environ.get("LD_LIBRARY_PATH")]))
    tag = f"manylinux_{codecs.GLIBC.replace('.', '_')}_{arch}"
    # auditwheel knows a lower bound for some libraries of other processors only: the versions are looked at below.
    repair = ("repair", "--plat", "auto", "-w", WORK / "repaired", plain)
    run(python, "-m", "auditwheel", *repair, LD_LIBRARY_PATH=libraries)
    (repaired,) = (WORK / "repaired").glob("*.whl")
    run(python, "-m", "wheel", "tags", "--remove", "--platform-tag", tag, repaired)
    (repaired,) = (WORK / "repaired").glob("*.whl")

    run(python, "-m", "wheel", "unpack", "-d", WORK / "unpacked", repaired)
    (tree,) = (WORK / "unpacked").iterdir()
    for library in tree.rglob("*.so*"):
        newest = newest_glibc(library)
        if newest > tuple(map(int, codecs.GLIBC.split("."))):
            sys.exit(f"{library.name} needs glibc {'.'.join(map(str, newest))}, newer than {codecs.GLIBC}")
    (licences,) = tree.glob("*.dist-info/licenses")
    shutil.copytree(prefix / "licences", licences, dirs_exist_ok=True)
    sboms = licences.parent / "sboms"
    sboms.mkdir(exist_ok=True)
    (sboms / "codecs.cdx.json").write_text(json.dumps(bill_of_materials(plain.name), indent=1))
    DIST.mkdir(exist_ok=True)
    for old in DIST.glob(f"penstock-*_{arch}.whl"):
        old.unlink()
    run(python, "-m", "wheel", "pack", "-d", DIST, tree)
    (wheel,) = DIST.glob(f"penstock-*_{arch}.whl")
    compress(wheel)
    size = wheel.stat().st_size
    print(f"{wheel.relative_to(ROOT)}: {size / 1e6:.2f} MB")
    if size > LARGEST:
        sys.exit(f"the wheel is larger than {LARGEST / 1e6:.1f} MB")


if __name__ == "__main__":
    main(*sys.argv[1:])
