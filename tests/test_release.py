# SPDX-License-Identifier: Apache-2.0
"""tools/release.py finds errors in a release, and publishes nothing unless requested."""

import base64
import datetime
import gzip
import hashlib
import io
import json
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("elftools", reason="`make wheel` installs pyelftools")
ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))

import advisories  # noqa: E402
import build_wheel  # noqa: E402
import release  # noqa: E402
from wheel_codecs import build as codecs  # noqa: E402

ARCH = platform.machine()
NAME = f"penstock-1.2.3-py3-none-manylinux_2_28_{ARCH}.whl"
INFO = "penstock-1.2.3.dist-info"
METADATA = (
    "Metadata-Version: 2.4\nName: penstock\nVersion: 1.2.3\nRequires-Python: >=3.10\nLicense-Expression: Apache-2.0\n"
)


def test_the_version_is_everywhere():
    pyproject, changelog = 'version = "1.2.3"\n', "# Changelog\n\n## Unreleased\n\n## 1.2.3 - 2026-12-01\n\n- New.\n"
    assert release.check_version("1.2.3", pyproject, changelog) == []
    (wrong,) = release.check_version("1.2.3", 'version = "1.2.2"\n', changelog)
    assert "has the version 1.2.2, not 1.2.3" in wrong
    (wrong,) = release.check_version("1.2.3", pyproject, changelog.replace(" - 2026-12-01", ""))
    assert "no section '## 1.2.3 - YYYY-MM-DD'" in wrong
    (wrong,) = release.check_version("1.2.3", pyproject, changelog.replace("Unreleased\n", "Unreleased\n\n- Newer.\n"))
    assert "entries under 'Unreleased'" in wrong
    assert "not MAJOR.MINOR.PATCH" in release.check_version("1.2", pyproject, changelog)[0]


def library(folder: Path, source: str, *options: str) -> bytes:
    out = folder / "lib.so"
    (folder / "lib.c").write_text(source)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", out, folder / "lib.c", *options], check=True)
    return out.read_bytes()


@pytest.mark.skipif(not shutil.which("cc"), reason="needs a compiler")
def test_libraries(tmp_path):
    good = library(tmp_path, '#include <stdlib.h>\nint f(void) { return abs(-1) + (getenv("A") != 0); }')
    assert release.check_library("good", good, set()) == []
    # A function that is new in glibc 2.34, or has a new version there.
    newer = library(
        tmp_path,
        'int __libc_start_main(void);\n__asm__(".symver __libc_start_main,__libc_start_main@GLIBC_2.34");\n'
        "int f(void) { return __libc_start_main(); }",
    )
    assert any("GLIBC_2.34, which RHEL 8 does not have" in w for w in release.check_library("newer", newer, set()))
    other = library(
        tmp_path, "int inflateEnd(void *);\nint f(void) { return inflateEnd(0); }", "-Wl,--no-as-needed", "-lstdc++"
    )
    assert any("needs libstdc++.so.6, which not every" in w for w in release.check_library("other", other, set()))
    assert not any("libstdc++" in w for w in release.check_library("other", other, {"libstdc++.so.6"}))
    python = library(tmp_path, "int PyList_New(int);\nint f(void) { return PyList_New(0); }")
    assert release.check_library("python", python, set()) == [
        "python needs PyList_New of one Python, and the wheel is for all"
    ]
    stack = library(tmp_path, "int f(void) { return 0; }", "-Wl,-z,execstack")
    assert release.check_library("stack", stack, set()) == ["stack asks for a stack that can be executed"]


def bill_of_materials() -> dict:
    built = [{"name": c.package, "version": codecs.version(c.package)} for c in codecs.CODECS]
    return {"components": built}


def wheel(
    folder: Path, data: bytes, bill: dict, metadata: str = METADATA, without: str = "", changed: str = ""
) -> Path:
    files = {"penstock/libpenstock.so": data, f"{INFO}/METADATA": metadata.encode()}
    files[f"{INFO}/sboms/codecs.cdx.json"] = json.dumps(bill).encode()
    for codec in codecs.CODECS:
        files[f"{INFO}/licenses/{codec.package}.txt"] = b"a\nlong\nlicence\ntext\n"
    rows = []
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        rows.append(f"{name},sha256={digest},{len(content)}\n")
    files[f"{INFO}/RECORD"] = "".join([*rows, f"{INFO}/RECORD,,\n"]).encode()
    with zipfile.ZipFile(folder / NAME, "w") as packed:
        for name, content in files.items():
            if not without or without not in name:
                packed.writestr(name, content + b"!" * (name == changed))
    return folder / NAME


@pytest.mark.skipif(not shutil.which("cc") or ARCH not in release.ARCHITECTURES, reason="needs a compiler")
def test_wheels(tmp_path):
    data = library(tmp_path, "int f(void) { return 0; }")
    assert release.check_wheel(wheel(tmp_path, data, bill_of_materials()), "1.2.3") == []
    assert "no name of a wheel of 1.2.4" in release.check_wheel(tmp_path / NAME, "1.2.4")[0]
    (wrong,) = release.check_wheel(
        wheel(tmp_path, data, bill_of_materials(), METADATA.replace("3\nReq", "2\nReq")), "1.2.3"
    )
    assert wrong.endswith("METADATA says Version: 1.2.2, not 1.2.3")
    file = f"{INFO}/licenses/tiff.txt"
    (wrong,) = release.check_wheel(wheel(tmp_path, data, bill_of_materials(), changed=file), "1.2.3")
    assert wrong.endswith("licenses/tiff.txt is not the file of RECORD")
    older = bill_of_materials()
    older["components"][0]["version"] = "0.1"
    assert any("the SBOM has zlib 0.1" in w for w in release.check_wheel(wheel(tmp_path, data, older), "1.2.3"))
    older["components"].pop(1)
    assert any("the SBOM lacks libjpeg-turbo" in w for w in release.check_wheel(wheel(tmp_path, data, older), "1.2.3"))


WHEELS = sorted((ROOT / "dist").glob("penstock-*.whl"))


@pytest.mark.skipif(not WHEELS, reason="no wheel in dist/; `make wheel` builds it")
@pytest.mark.parametrize("path", WHEELS, ids=lambda p: p.stem.split("-")[-1])
def test_the_wheel_in_dist(path):
    """Among other things, it runs on RHEL 8, Debian 11 and Ubuntu 20.04."""
    assert release.check_wheel(path, path.name.split("-")[1]) == []


def test_a_dry_run_publishes_nothing(tmp_path, monkeypatch, capsys):
    ran = []
    monkeypatch.setattr(release, "DIST", tmp_path)
    monkeypatch.setattr(release.subprocess, "run", lambda command, **_: ran.append(command))
    monkeypatch.setattr(release, "check_repository", lambda version: [])
    monkeypatch.setattr(release, "check_version", lambda *texts: [])
    monkeypatch.setattr(release, "check_advisories", lambda *found: [])
    assert release.main(["1.2.3", "--no-build", "--publish"]) == 1  # as nothing is built
    assert "3 things are wrong; nothing is published" in capsys.readouterr().out and not ran
    monkeypatch.setattr(release, "check_artefacts", lambda version: [])
    monkeypatch.setattr(release, "ROOT", tmp_path.parent)
    for name in ("pyproject.toml", "CHANGELOG.md"):
        shutil.copy(ROOT / name, tmp_path.parent)
    assert release.main(["1.2.3", "--no-build"]) == 0
    assert (
        re.search(r"^    python -m twine upload .*aarch64\.whl .*\.tar\.gz$", capsys.readouterr().out, re.M) and not ran
    )


TEXT = """# a remark
checked 2026-11-01
newest tiff 99.0-1
fixed tiff CVE-2030-0001 99.0-1
fixed tiff CVE-2030-0002 4.0.0-2
fixed libsndfile CVE-2030-0003 1.2.2-3
fixed zlib CVE-2030-0004 1:1.3.dfsg+really1.3.2-9
fixed zlib CVE-2030-0005 1:1.2.dfsg-1+deb13u2
accepted zlib CVE-2030-0004 not compiled
awaited zlib CVE-2030-0005 no sources
unread opus 99.1-1
"""


def test_advisories():
    found = advisories.read(TEXT)
    tiff, zlib = advisories.open_ones(found)
    assert re.fullmatch(r"tiff [\d.]+: CVE-2030-0001 is fixed in Debian's 99.0-1", tiff)
    # A release is newer than one that was mended later; and what is awaited keeps a release back.
    assert re.fullmatch(r"zlib [\d.]+: CVE-2030-0005 is fixed in Debian's 1:1.2.dfsg-1\+deb13u2", zlib)
    assert advisories.newer_ones(found)[0].endswith("is built, Debian has 99.0-1")
    assert advisories.unread_ones(found) == ["opus: what 99.1-1 fixes could not be read"]
    assert advisories.read(advisories.write(found)) == found
    today = datetime.date(2026, 11, 1)
    assert len(release.check_advisories(found, today)) == 2
    assert "more than 31 days ago" in release.check_advisories(found, today + datetime.timedelta(days=32))[2]


def test_a_fix_in_a_debian_revision_counts_if_its_patches_are_applied(monkeypatch):
    monkeypatch.setattr(advisories, "ours", lambda package: ("1.2.2", ""))
    assert (
        advisories.is_fixed("x", "1.2.1-9")
        and advisories.is_fixed("x", "1.2.2-1")
        and advisories.is_fixed("x", "1:1.2.0-1")
    )
    assert not advisories.is_fixed("x", "1.2.2-2") and not advisories.is_fixed("x", "1.2.10-1")
    monkeypatch.setattr(advisories, "ours", lambda package: ("1.2.2", "4"))
    assert (
        advisories.is_fixed("x", "1.2.2-3")
        and advisories.is_fixed("x", "1.2.2-4")
        and not advisories.is_fixed("x", "1.2.2-5")
    )


def test_a_patch_of_ours_fixes_what_it_is_named_after(monkeypatch, tmp_path):
    found = advisories.read("checked 2026-11-01\nfixed libzstd CVE-2030-0001 99.0-1\n")
    assert len(advisories.open_ones(found)) == 1
    monkeypatch.setattr(codecs, "patches", lambda package: [tmp_path / "CVE-2030-0001.patch"] * (package == "libzstd"))
    assert advisories.open_ones(found) == []
    component = next(c for c in build_wheel.bill_of_materials("x-1-y")["components"] if c["name"] == "libzstd")
    assert component["pedigree"]["patches"][0]["resolves"] == [{"type": "security", "id": "CVE-2030-0001"}]


def test_changelogs():
    text = "x (2-1) sid; urgency=low\n\n  * CVE-2030-1111, CVE-2001-1111\n\n -- A\n\n"
    text += "x (1-2) sid; urgency=low\n\n  * CVE-2030-1111, GHSA-5qpq-xqfv-j9pg\n"
    assert advisories.fixes_in(text) == {"CVE-2030-1111": "1-2", "GHSA-5qpq-xqfv-j9pg": "1-2"}


def archive(name: str, data: bytes) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        entry = tarfile.TarInfo(name)
        entry.size = len(data)
        tar.addfile(entry, io.BytesIO(data))
    return packed.getvalue()


def test_changelogs_of_sources_and_of_packages():
    """Those of packages are compressed; some have none, as they share one with another package."""
    assert advisories.changelog(archive("debian/changelog", b"x (1-2) sid")) == "x (1-2) sid"
    packed = archive("./usr/share/doc/x/changelog.Debian.gz", gzip.compress(b"x (1-2) sid"))
    assert advisories.changelog(packed, "/changelog.Debian") == "x (1-2) sid"
    assert advisories.changelog(archive("./usr/share/doc/x/copyright", b"c"), "/changelog.Debian") == ""


def test_what_the_wheel_carries_has_all_known_fixes():
    """The checked-in list has to say for every known fix that it is included, or why not."""
    found = advisories.read(advisories.LIST.read_text())
    assert set(found.newest) == {codec.package for codec in codecs.CODECS} and len(found.fixed_in) > 50
    open_ones = {tuple(line.split(": ")[i].split()[0] for i in (0, 1)) for line in advisories.open_ones(found)}
    assert open_ones == found.awaited.keys(), "fixed by a newer version of the sources, or `awaited` with a reason"
