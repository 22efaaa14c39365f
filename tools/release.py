# SPDX-License-Identifier: Apache-2.0
"""Makes a release: checks that all is ready, builds the wheels and the sdist, checks, signs and uploads them.

    python tools/release.py 0.2.0                 all but the signatures and the upload, which are only shown
    python tools/release.py 0.2.0 --no-build      the same with what lies in dist/
    python tools/release.py 0.2.0 --publish       signs and uploads, too

What is wrong is listed, all of it, and nothing is published then. What each step needs is in docs/releases.md.
"""

from __future__ import annotations

import argparse
import base64
import csv
import datetime
import hashlib
import io
import json
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import advisories  # noqa: E402
from wheel_codecs import build as codecs  # noqa: E402

DIST = ROOT / "dist"
ARCHITECTURES = ("x86_64", "aarch64")
# What a library of the wheel may need: glibc's own, and the unwinder, which is part of every distribution's base.
ALLOWED = re.compile(r"lib(c|m|dl|pthread|rt|gcc_s)\.so\.\d+|ld-linux-[\w-]+\.so\.\d+")
# The newest versions of symbols in RHEL 8 (glibc 2.28, GCC 8); manylinux_2_28 promises them.
NEWEST = {"GLIBC": (2, 28), "GCC": (7, 0, 0), "GLIBCXX": (3, 4, 25), "CXXABI": (1, 3, 11)}


# Before anything is built.


def check_version(version: str, pyproject: str, changelog: str) -> list[str]:
    wrong = []
    if not re.fullmatch(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)", version):
        wrong.append(f"{version!r} is not MAJOR.MINOR.PATCH")
    written = re.search(r'^version = "(.*)"$', pyproject, re.M)
    if not written or written[1] != version:
        wrong.append(f"pyproject.toml has the version {written[1] if written else None}, not {version}")
    sections = re.split(r"^## ", changelog, flags=re.M)[1:]
    titles = [section.splitlines()[0].strip() for section in sections]
    if not any(re.fullmatch(rf"{re.escape(version)} - \d{{4}}-\d\d-\d\d", title) for title in titles):
        wrong.append(f"CHANGELOG.md has no section '## {version} - YYYY-MM-DD'")
    for title, section in zip(titles, sections):
        if title == "Unreleased" and re.search(r"^- ", section, re.M):
            wrong.append(f"CHANGELOG.md still has entries under 'Unreleased': they belong to {version}")
    return wrong


def check_repository(version: str) -> list[str]:
    def git(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout

    wrong = []
    if git("status", "--porcelain", "--untracked-files=no"):
        wrong.append("there are changes that are not committed")
    if git("tag", "--list", f"v{version}"):
        wrong.append(f"the tag v{version} exists")
    return wrong


def check_advisories(found: advisories.Advisories, today: datetime.date) -> list[str]:
    wrong = advisories.open_ones(found)
    if advisories.age(found, today) > advisories.MOST_DAYS:
        wrong.append(
            f"the list of vulnerabilities was checked on {found.checked}, more than {advisories.MOST_DAYS} days ago: "
            "python tools/advisories.py refresh"
        )
    return wrong


# What was built.


def versions_needed(elf: ELFFile) -> list[tuple[str, str]]:
    """Versions of symbols, each with the library that has them."""
    section = elf.get_section_by_name(".gnu.version_r")
    return (
        [(file.name, one.name) for file, all_of_it in section.iter_versions() for one in all_of_it] if section else []
    )


def check_library(name: str, data: bytes, carried: set[str]) -> list[str]:
    """Of an ELF file in a wheel; `carried` has the names of the libraries beside it."""
    elf = ELFFile(io.BytesIO(data))
    wrong = []
    for library, needed in versions_needed(elf):
        if library in carried:
            continue
        family, _, number = needed.partition("_")
        if not re.fullmatch(r"[\d.]+", number) or tuple(map(int, number.split("."))) > NEWEST.get(family, ()):
            wrong.append(f"{name} needs {needed}, which RHEL 8 does not have")
    for segment in elf.iter_segments():
        if segment["p_type"] == "PT_GNU_STACK" and segment["p_flags"] & 1:
            wrong.append(f"{name} asks for a stack that can be executed")
    dynamic = elf.get_section_by_name(".dynamic")
    assert isinstance(dynamic, DynamicSection)
    for tag in dynamic.iter_tags():
        if tag.entry.d_tag == "DT_NEEDED" and tag.needed not in carried and not ALLOWED.fullmatch(tag.needed):
            wrong.append(f"{name} needs {tag.needed}, which not every system has")
        if tag.entry.d_tag == "DT_TEXTREL":
            wrong.append(f"{name} changes its code while it is loaded (DT_TEXTREL)")
    symbols = elf.get_section_by_name(".dynsym")
    for symbol in symbols.iter_symbols():
        if symbol["st_shndx"] == "SHN_UNDEF" and re.match(r"_?Py[A-Z_]", symbol.name):
            wrong.append(f"{name} needs {symbol.name} of one Python, and the wheel is for all")
    return wrong


def check_record(wheel: zipfile.ZipFile) -> list[str]:
    """Each file is listed with its digest, as pip checks."""
    (record,) = (n for n in wheel.namelist() if n.endswith(".dist-info/RECORD"))
    listed = {row[0]: row[1] for row in csv.reader(io.StringIO(wheel.read(record).decode())) if row}
    wrong = [f"{name} is not in RECORD" for name in wheel.namelist() if name not in listed and name[-1] != "/"]
    for name, digest in listed.items():
        if name != record:
            got = base64.urlsafe_b64encode(hashlib.sha256(wheel.read(name)).digest()).rstrip(b"=").decode()
            wrong += [f"{name} is not the file of RECORD"] * (digest != f"sha256={got}")
    return wrong


def check_metadata(text: str, version: str) -> list[str]:
    head = Parser().parsestr(text, headersonly=True)
    wanted = {"Name": "penstock", "Version": version, "License-Expression": "Apache-2.0"}
    wrong = [f"METADATA says {k}: {head[k]}, not {v}" for k, v in wanted.items() if head[k] != v]
    return wrong + ["METADATA has no Requires-Python"] * (head["Requires-Python"] is None)


def check_materials(bill: dict, licences: dict[str, str]) -> list[str]:
    """The SBOM names what is built, each with a licence whose text is there."""
    listed = {component["name"]: component for component in bill["components"]}
    built = {codec.package: codecs.version(codec.package) for codec in codecs.CODECS}
    wrong = [f"the SBOM lacks {package}" for package in built.keys() - listed.keys()]
    for package in built.keys() & listed.keys():
        if listed[package]["version"] != built[package]:
            wrong.append(f"the SBOM has {package} {listed[package]['version']}, {built[package]} is built")
        if len(licences.get(f"{package}.txt", "").splitlines()) < 4:
            wrong.append(f"the licence of {package} is not in the wheel")
    return wrong


def check_wheel(path: Path, version: str) -> list[str]:
    arch = path.stem.rpartition("manylinux_2_28_")[2]
    if path.name != f"penstock-{version}-py3-none-manylinux_2_28_{arch}.whl" or arch not in ARCHITECTURES:
        return [f"{path.name} is no name of a wheel of {version}"]
    with zipfile.ZipFile(path) as wheel:
        names = wheel.namelist()
        info = f"penstock-{version}.dist-info"
        libraries = [n for n in names if re.search(r"\.so(\.[\d.]+)?$", n)]
        carried = {Path(n).name for n in libraries}
        wrong = check_record(wheel) + check_metadata(wheel.read(f"{info}/METADATA").decode(), version)
        if not any(Path(n).name == "libpenstock.so" for n in libraries):
            wrong.append("libpenstock.so is not in it")
        for name in libraries:
            wrong += check_library(name, wheel.read(name), carried)
        licences = {Path(n).name: wheel.read(n).decode() for n in names if n.startswith(f"{info}/licenses/")}
        bill = f"{info}/sboms/codecs.cdx.json"
        wrong += check_materials(json.loads(wheel.read(bill)), licences) if bill in names else ["it has no SBOM"]
    return [f"{path.name}: {what}" for what in wrong]


def check_sdist(path: Path, version: str) -> list[str]:
    with tarfile.open(path) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
        head = sdist.extractfile(f"penstock-{version}/PKG-INFO")
        wrong = check_metadata(head.read().decode(), version) if head else ["it has no PKG-INFO"]
    needed = ("pyproject.toml", "CMakeLists.txt", "LICENSE", "README.md", "kernels/core/kernel.h", "tools/stubs.py")
    return [f"{path.name}: {what}" for what in wrong + [f"it lacks {n}" for n in needed if n not in names]]


def artefacts(version: str) -> list[Path]:
    wheels = [DIST / f"penstock-{version}-py3-none-manylinux_2_28_{arch}.whl" for arch in ARCHITECTURES]
    return [*wheels, DIST / f"penstock-{version}.tar.gz"]


def check_artefacts(version: str) -> list[str]:
    wrong = []
    for path in artefacts(version):
        if not path.exists():
            wrong.append(f"dist/{path.name} is missing")
        else:
            wrong += check_wheel(path, version) if path.suffix == ".whl" else check_sdist(path, version)
    return wrong


# What is done.


def build(version: str) -> None:
    for arch in ARCHITECTURES:
        subprocess.run([sys.executable, "tools/build_wheel.py", arch], cwd=ROOT, check=True)
    script = "from scikit_build_core.build import build_sdist; build_sdist('dist')"
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True)


def write_sums(version: str) -> Path:
    """SHA256SUMS, which `sha256sum --check` reads."""
    sums = DIST / "SHA256SUMS"
    found = [path for path in artefacts(version) if path.exists()]
    sums.write_text("".join(f"{hashlib.sha256(p.read_bytes()).hexdigest()}  {p.name}\n" for p in found))
    return sums


def publishing(version: str) -> list[list[str]]:
    """The commands that sign, upload and tag, in their order."""
    files = [str(path.relative_to(ROOT)) for path in artefacts(version)]
    return [
        ["python", "-m", "sigstore", "sign", *files],  # opens a browser, or takes the identity of a workflow
        ["gpg", "--armor", "--detach-sign", "dist/SHA256SUMS"],
        ["python", "-m", "twine", "check", "--strict", *files],
        ["python", "-m", "twine", "upload", *files],
        ["git", "tag", "--sign", f"v{version}", "--message", f"penstock {version}"],
        ["git", "push", "origin", f"v{version}"],
    ]


def publish(version: str) -> None:
    for program in ("gpg", "git"):
        if not shutil.which(program):
            sys.exit(f"{program} is not installed")
    for command in publishing(version):
        subprocess.run([sys.executable if c == "python" else c for c in command], cwd=ROOT, check=True)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("version", help="MAJOR.MINOR.PATCH, as pyproject.toml has it")
    parser.add_argument("--no-build", action="store_true", help="take what lies in dist/")
    parser.add_argument("--publish", action="store_true", help="sign, upload and tag; otherwise this is only shown")
    asked = parser.parse_args(arguments)
    today = datetime.datetime.now(datetime.timezone.utc).date()
    known = advisories.read(advisories.LIST.read_text())
    texts = [(ROOT / name).read_text() for name in ("pyproject.toml", "CHANGELOG.md")]
    wrong = check_version(asked.version, *texts) + check_repository(asked.version) + check_advisories(known, today)
    if not asked.no_build and not (wrong and asked.publish):
        build(asked.version)
    wrong += check_artefacts(asked.version)
    print(write_sums(asked.version).read_text(), end="")
    for note in (*advisories.newer_ones(known), *advisories.unread_ones(known)):
        print(f"to look at: {note}")
    for what in wrong:
        print(f"wrong: {what}")
    if wrong:
        print(f"{len(wrong)} things are wrong; nothing is published")
        return 1
    if asked.publish:
        publish(asked.version)
        return 0
    print("Everything is ready. With --publish these are run:")
    for command in publishing(asked.version):
        print("    " + " ".join(command))
    return 0


if __name__ == "__main__":
    sys.exit(main())
