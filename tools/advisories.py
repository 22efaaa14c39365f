# SPDX-License-Identifier: Apache-2.0
"""Known vulnerabilities of the codecs in the wheel: a list that is checked in, and whether our sources have the fixes.

    python tools/advisories.py             what is open, by tools/wheel_codecs/advisories.txt; fails if anything is
    python tools/advisories.py refresh     writes that list anew from Debian's source packages (needs apt and a network)

Debian's changelogs name the CVE numbers that a version fixes. A fix in an upstream release is ours if we build that
release or a later one; one in a Debian revision if we apply the patches of that revision (sources.txt), or one of ours
(patches/PACKAGE/CVE.patch). Where a mirror lacks the sources of a version but has its packages, the changelog is read
from one of those.
"""

from __future__ import annotations

import datetime
import gzip
import io
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from wheel_codecs import build as codecs  # noqa: E402

LIST = Path(__file__).resolve().parent / "wheel_codecs" / "advisories.txt"
# How old the list may be when a release is made, and when the weekly build says that it is due.
MOST_DAYS = 31
SINCE = 2019  # older CVE numbers are fixed in all that Debian still has
KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"  # Debian's; elsewhere a package of this name brings it
SUITES = (("debian", "trixie"), ("debian", "sid"), ("debian-security", "trixie-security"))


@dataclass
class Advisories:
    checked: datetime.date
    fixed_in: dict[tuple[str, str], str] = field(default_factory=dict)  # (package, CVE) -> Debian's version
    newest: dict[str, str] = field(default_factory=dict)  # package -> Debian's newest version
    accepted: dict[tuple[str, str], str] = field(default_factory=dict)  # (package, CVE) -> why it does not concern us
    awaited: dict[tuple[str, str], str] = field(default_factory=dict)  # (package, CVE) -> why it is still open
    unread: set[tuple[str, str]] = field(default_factory=set)  # (package, Debian's version) that the mirror lacked


def read(text: str) -> Advisories:
    lines = [line.split(None, 3) for line in text.splitlines() if line and not line.startswith("#")]
    found = Advisories(datetime.date.fromisoformat(next(words[1] for words in lines if words[0] == "checked")))
    for kind, package, *rest in lines:
        if kind == "newest":
            found.newest[package] = rest[0]
        elif kind == "fixed":
            found.fixed_in[package, rest[0]] = rest[1]
        elif kind == "accepted":
            found.accepted[package, rest[0]] = rest[1]
        elif kind == "awaited":
            found.awaited[package, rest[0]] = rest[1]
        elif kind == "unread":
            found.unread.add((package, rest[0]))
        elif kind != "checked":
            raise ValueError(
                f"a line begins with {kind!r}, which is none of checked, newest, fixed, accepted, awaited, unread"
            )
    return found


def key(version: str) -> list[tuple[int, object]]:
    """For comparing upstream versions, and revisions, as far as the codecs' need it: numbers count as numbers."""
    return [(1, int(part)) if part.isdigit() else (0, part) for part in re.findall(r"\d+|[a-z]+", version)]


def parts(version: str) -> tuple[str, str]:
    """Of a Debian version the upstream one and the revision: 1:2.1+dfsg-3 has 2.1 and 3."""
    upstream, _, revision = version.partition(":")[2].rpartition("-") if ":" in version else version.rpartition("-")
    upstream = re.sub(r"[+.](dfsg|ds)[\d.]*", "", upstream.rpartition("really")[2] or upstream)
    return upstream, revision


def ours(package: str) -> tuple[str, str]:
    """The upstream version that is built, and the Debian revision whose patches are applied; empty if none are."""
    files = codecs.sources()[package]
    revision = parts(codecs.debian_version(package))[1] if len(files) > 1 else ""
    return codecs.version(package), revision


def is_fixed(package: str, fixed_in: str) -> bool:
    have, revision = ours(package)
    upstream, needed = parts(fixed_in)
    if key(have) != key(upstream):
        # What was added to an older release says nothing of newer ones: CVE-2026-46675 came into 1.6.48-1+deb13u6 of
        # libpng, and 1.6.58 does not have it.
        return key(have) > key(upstream) and not re.search(r"deb\d+u\d+", needed)
    # The first revision has what came with the release.
    return needed in ("0.1", "1") or bool(revision) and key(revision) >= key(needed)


def open_ones(found: Advisories) -> list[str]:
    """What is neither fixed in our sources, nor by a patch of ours, nor accepted."""
    return [
        f"{package} {'-'.join(filter(None, ours(package)))}: {cve} is fixed in Debian's {version}"
        for (package, cve), version in sorted(found.fixed_in.items())
        if not is_fixed(package, version)
        and (package, cve) not in found.accepted
        and cve not in {patch.stem for patch in codecs.patches(package)}
    ]


def newer_ones(found: Advisories) -> list[str]:
    """Codecs of which Debian has a newer release: no reason to refuse, but to look."""
    newer = [(p, v) for p, v in sorted(found.newest.items()) if key(parts(v)[0]) > key(ours(p)[0])]
    return [f"{package}: {ours(package)[0]} is built, Debian has {version}" for package, version in newer]


def unread_ones(found: Advisories) -> list[str]:
    """Newer Debian versions whose changelogs the mirror did not have: somebody has to read them."""
    return [f"{p}: what {v} fixes could not be read" for p, v in sorted(found.unread) if not is_fixed(p, v)]


def age(found: Advisories, today: datetime.date) -> int:
    return (today - found.checked).days


def changelog(archive: bytes, name: str = "debian/changelog") -> str:
    """The changelog in an archive, whose name ends so; gzip's if the file is; empty if there is none."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        found = [m for m in tar.getmembers() if m.isfile() and m.name.removesuffix(".gz").endswith(name)]
        if not found:
            return ""
        data = tar.extractfile(found[0]).read()  # type: ignore[union-attr]
    return (gzip.decompress(data) if found[0].name.endswith(".gz") else data).decode(errors="replace")


def changelog_of_package(names: list[str], version: str, options: list[str]) -> str:
    """The changelog in one of the binary packages of a version; empty if the mirror has none."""
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            get = ["apt-get", *options, "-qq", "download", f"{name}={version}"]
            if subprocess.run(get, cwd=folder, stderr=subprocess.DEVNULL, check=False).returncode:
                continue
            (package,) = Path(folder).iterdir()
            files = subprocess.run(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE, check=True).stdout
        text = changelog(files, "/changelog.Debian")
        if f"({version})" in text.partition("\n")[0]:
            return text
    return ""


def fixes_in(text: str) -> dict[str, str]:
    """CVE numbers in a Debian changelog, and the oldest version whose entry names them."""
    found = {}
    for entry in re.split(r"^(?=\S+ \([^)]+\) )", text, flags=re.M):  # the newest first
        head = re.match(r"\S+ \(([^)]+)\)", entry)
        for cve in re.findall(r"CVE-\d{4}-\d{4,}|GHSA(?:-\w{4}){3}", entry):
            if head and (cve.startswith("GHSA") or int(cve.split("-")[1]) >= SINCE):
                found[cve] = head[1]
    return found


def from_debian() -> Advisories:
    """Asks a Debian mirror, by apt-get with lists of its own."""
    found = Advisories(datetime.datetime.now(datetime.timezone.utc).date())
    with tempfile.TemporaryDirectory() as folder:
        sources, lists = Path(folder, "sources.list"), Path(folder, "lists")
        (lists / "partial").mkdir(parents=True)
        signed = f"[signed-by={KEYS}] " if os.path.exists(KEYS) else ""
        lines = [f"{signed}{codecs.MIRROR}/{part} {suite} main\n" for part, suite in SUITES]
        sources.write_text("".join(f"{kind} {line}" for kind in ("deb-src", "deb") for line in lines))
        options = [f"Dir::Etc::SourceList={sources}", "Dir::Etc::SourceParts=/dev/null", f"Dir::State::Lists={lists}"]
        options = [word for o in (*options, f"Dir::Cache={folder}") for word in ("-o", o)]
        subprocess.run(["apt-get", *options, "update", "-qq"], check=True)
        for codec in codecs.CODECS:
            package = codec.package
            show = ["apt-cache", *options, "showsrc", "--only-source", package]
            records = subprocess.run(show, check=True, stdout=subprocess.PIPE, text=True).stdout.split("\n\n")
            for record in filter(None, map(str.strip, records)):
                fields = dict(re.findall(r"^(\w+): (.+)$", record, re.M))
                version, folder_there = fields["Version"], fields["Directory"]
                archive = re.search(r"\S+\.debian\.tar\.\w+", record)
                assert archive is not None, record
                part = "debian-security" if "/updates/" in folder_there else "debian"
                address = f"{codecs.MIRROR}/{part}/{folder_there}/{archive[0]}"
                if package not in found.newest or key(version) > key(found.newest[package]):
                    found.newest[package] = version
                try:
                    with urllib.request.urlopen(address, timeout=120) as answer:
                        fixes = fixes_in(changelog(answer.read()))
                except urllib.error.HTTPError as e:  # the index names it, the mirror has taken it away
                    text = changelog_of_package(fields["Binary"].split(", "), version, options)
                    fixes = fixes_in(text)
                    if not text:
                        print(f"{address}: {e}", file=sys.stderr)
                        found.unread.add((package, version))
                for cve, fixed_in in fixes.items():
                    before = found.fixed_in.setdefault((package, cve), fixed_in)
                    # The same fix in several suites: the one of the oldest release, unless only a later one has it.
                    if is_fixed(package, fixed_in) and not is_fixed(package, before):
                        found.fixed_in[package, cve] = fixed_in
    return found


def write(found: Advisories) -> str:
    return "\n".join(
        [
            "# Known vulnerabilities of the codecs in the wheel, from the changelogs of Debian's packages, written by",
            "# `python tools/advisories.py refresh`. Lines `accepted PACKAGE CVE reason` (it does not concern us) and",
            "# `awaited PACKAGE CVE reason` (no source has the fix, so no release is made) are written by hand.",
            f"checked {found.checked}",
            *(f"newest {p} {v}" for p, v in sorted(found.newest.items())),
            *(f"unread {p} {v}" for p, v in sorted(found.unread)),
            *(f"fixed {p} {cve} {v}" for (p, cve), v in sorted(found.fixed_in.items())),
            *(f"accepted {p} {cve} {why}" for (p, cve), why in sorted(found.accepted.items())),
            *(f"awaited {p} {cve} {why}" for (p, cve), why in sorted(found.awaited.items())),
            "",
        ]
    )


def main(arguments: list[str]) -> int:
    if arguments == ["refresh"]:
        found = from_debian()
        if LIST.exists():
            before = read(LIST.read_text())
            found.accepted, found.awaited = before.accepted, before.awaited
        LIST.write_text(write(found))
    found = read(LIST.read_text())
    print(f"{len(found.fixed_in)} vulnerabilities known on {found.checked}, of {len(found.newest)} codecs")
    print("\n".join([*newer_ones(found), *unread_ones(found)]))
    problems = open_ones(found)
    print("\n".join(problems) or "all are fixed in what the wheel is built from, or accepted")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
