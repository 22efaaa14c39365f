# SPDX-License-Identifier: Apache-2.0
"""Runs the wheel in dist/ with the C library and the Python of other Debian releases: the same batch comes out of each.

    python tools/wheel_systems.py                       bullseye (Debian 11) to sid
    python tools/wheel_systems.py bookworm --wheel FILE

Packages are unpacked into build/systems and started by their own loader; nothing is installed, and root is not needed.
Where the release's Python is older than penstock needs, its loader loads the libraries with all their symbols bound.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "build" / "systems"
MIRROR = os.environ.get("MIRROR", "http://deb.debian.org")
KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"  # Debian's; elsewhere a package of this name brings it
SUITES = ("bullseye", "bookworm", "trixie", "sid")
NEEDED = ("python3-minimal", "libpython3-stdlib", "libgcc-s1")

DEMO = """
import hashlib, json, os, sys
import numpy as np
import penstock.fn as fn, penstock.types as types
from penstock import pipeline_def

@pipeline_def(batch_size=8, num_threads=2, device_id=None, seed=1)
def pipeline(root):
    jpegs, labels = fn.readers.file(file_root=root, random_shuffle=True)
    images = fn.random_resized_crop(fn.decoders.image(jpegs), size=(64, 48))
    return fn.crop_mirror_normalize(images, dtype=types.FLOAT, mean=[127.0] * 3, std=[64.0] * 3)

(images,) = pipeline(sys.argv[1]).run()
batch = np.asarray(images.as_tensor())
print(json.dumps([os.confstr("CS_GNU_LIBC_VERSION"), sys.version.split()[0], hashlib.sha256(batch).hexdigest()[:16]]))
"""
LOAD = """
import ctypes, glob, json, os, sys
for path in sorted(glob.glob(sys.argv[1] + "/penstock.libs/*.so*")) + [sys.argv[1] + "/penstock/libpenstock.so"]:
    ctypes.CDLL(path, os.RTLD_NOW | os.RTLD_GLOBAL)
print(json.dumps([os.confstr("CS_GNU_LIBC_VERSION"), sys.version.split()[0], "loaded"]))
"""


def unpacked(suite: str) -> Path:
    """A folder with the release's Python and what it needs."""
    root, apt = WORK / suite, WORK / f"{suite}.apt"
    if (root / "usr" / "bin").is_dir():
        return root
    for part in ("lists/partial", "archives/partial"):
        (apt / part).mkdir(parents=True, exist_ok=True)
    (apt / "status").touch()
    signed = f"[signed-by={KEYS}] " if os.path.exists(KEYS) else ""
    (apt / "sources.list").write_text(f"deb {signed}{MIRROR}/debian {suite} main\n")
    options = [
        f"Dir::State={apt}",
        f"Dir::State::status={apt / 'status'}",
        f"Dir::Cache={apt}",
        "Dir::Etc::SourceParts=/",
    ]
    options += [f"Dir::Etc::SourceList={apt / 'sources.list'}", "APT::Sandbox::User=root"]
    get = ["apt-get", "-qq", *(word for option in options for word in ("-o", option))]
    subprocess.run([*get, "update"], check=True)
    plan = [*get, "install", "-s", "--no-install-recommends", *NEEDED]
    lines = subprocess.run(plan, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    packages = [line.split()[1] for line in lines if line.startswith("Inst ")]
    subprocess.run([*get, "download", *packages], cwd=apt / "archives", check=True)
    for package in (apt / "archives").glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", package, root], check=True)
    return root


def numpy_for(version: str) -> Path:
    """A folder with NumPy for a Python such as 3.13."""
    folder = WORK / f"numpy-{version}"
    if not folder.is_dir():
        pip = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "-q",
            "--only-binary=:all:",
            "--no-deps",
            "--python-version",
            version,
        ]
        subprocess.run([*pip, "--target", folder, "numpy"], check=True)
    return folder


def run(suite: str, site: Path) -> list[str]:
    """The C library's version, Python's, and a digest of the batch."""
    root = unpacked(suite)
    triple = f"{platform.machine()}-linux-gnu"
    # Up to glibc 2.33 the file has another name, to which an absolute link leads.
    files = [p for part in ("usr/lib", "lib") for p in (root / part / triple).glob("ld-*.so*") if not p.is_symlink()]
    loader = files[0]
    python = max((root / "usr" / "bin").glob("python3.*[0-9]"))
    minor = int(python.name.split(".")[1])
    libraries = os.pathsep.join(str(root / part / triple) for part in ("usr/lib", "lib"))
    path = [str(site), str(numpy_for(f"3.{minor}"))] if minor >= 10 else []
    env = {"PYTHONHOME": str(root / "usr"), "PYTHONPATH": os.pathsep.join(path), "PATH": os.environ["PATH"]}
    script, argument = (DEMO, ROOT / "examples" / "data") if minor >= 10 else (LOAD, site)
    command = [loader, "--library-path", libraries, python, "-c", script, argument]
    done = subprocess.run([str(c) for c in command], env=env, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{suite}:\n{done.stderr[-3000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("suites", nargs="*", default=SUITES, help="Debian's names of releases")
    parser.add_argument("--wheel", type=Path, help="instead of the one in dist/")
    asked = parser.parse_args()
    wheel = asked.wheel or max((ROOT / "dist").glob(f"penstock-*_{platform.machine()}.whl"))
    site = WORK / wheel.stem
    zipfile.ZipFile(wheel).extractall(site)
    batches = set()
    for suite in asked.suites:
        glibc, python, result = run(suite, site)
        print(f"{suite}: {glibc}, Python {python}: {result}")
        batches |= {result} - {"loaded"}
    if len(batches) > 1:
        sys.exit("the batches differ")


if __name__ == "__main__":
    main()
