# SPDX-License-Identifier: Apache-2.0
"""Builds the wheel that carries its codecs: dist/penstock-*-py3-none-manylinux_*.whl (Debian and Ubuntu).

1. pip builds it with scikit-build-core; 2. auditwheel copies the codec libraries into it, with stand-ins for the GPL's
libjbig and for encoders of sound (docs/decisions/0002); 3. the licence of each carried library goes beside penstock's
own.
"""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "build" / "wheelhouse"
DIST = ROOT / "dist"
LARGEST = 7_500_000  # bytes of the wheel
FORBIDDEN = re.compile(r"JBIG-KIT|jbg_dec_maxsize")  # text that only the real libjbig has


def run(*command: object, **variables: str) -> str:
    result = subprocess.run(
        [str(c) for c in command], env={**os.environ, **variables}, stdout=subprocess.PIPE, text=True, check=False
    )
    if result.returncode:
        sys.exit(f"{result.stdout}\n{command[0]} failed")
    return result.stdout


STAND_INS = {  # for libraries that are not carried: soname -> source
    "libjbig.so.0": "jbig_absent.c",
    "libmp3lame.so.0": "lame_absent.c",
    "libvorbisenc.so.2": "vorbisenc_absent.c",
}


def stand_ins(folder: Path) -> Path:
    folder.mkdir(parents=True)
    for name, source in STAND_INS.items():
        run("cc", "-shared", "-fPIC", "-Os", f"-Wl,-soname,{name}", ROOT / "tools" / source, "-o", folder / name)
    return folder


def licence_of(library: str, needed: dict[str, str]) -> tuple[str, Path]:
    """The Debian package that owns a library and its copyright file; `library` as auditwheel renamed it."""
    name, digest, versions = re.fullmatch(r"(.+?)(-[0-9a-f]{8})?(\.so.*)", library).groups()
    path = needed.get(name + versions) or next((p for n, p in needed.items() if n.startswith(name + ".so")), None)
    if path is None:
        sys.exit(f"no idea where the carried {library} is from")
    # Debian merged /lib into /usr/lib, while its database may know the file under either.
    found = run("dpkg-query", "-S", f"*/{os.path.basename(os.path.realpath(path))}")
    package = found.splitlines()[0].partition(":")[0]
    return package, Path("/usr/share/doc", package, "copyright")


def compress(wheel: Path) -> None:
    """Packs its files as small as they get, which `wheel` does not."""
    packed = wheel.with_suffix(".packed")
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as new:
        for entry in old.infolist():
            # An entry keeps its date and permissions, and would keep its level, too.
            new.writestr(entry, old.read(entry), zipfile.ZIP_DEFLATED, 9)
    packed.replace(wheel)


def main() -> None:
    shutil.rmtree(WORK, ignore_errors=True)
    python = Path(sys.executable)
    tools = str(python.parent) + os.pathsep + os.environ["PATH"]
    launcher = {"CMAKE_CXX_COMPILER_LAUNCHER": "ccache"} if shutil.which("ccache") else {}
    pip_wheel = (python, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation")
    run(*pip_wheel, "-w", WORK / "plain", ROOT, PATH=tools, **launcher)
    (plain,) = (WORK / "plain").glob("*.whl")
    folder = stand_ins(WORK / "stand_ins")
    paths = os.pathsep.join(filter(None, [str(folder), os.environ.get("LD_LIBRARY_PATH")]))
    run(
        python,
        "-m",
        "auditwheel",
        "repair",
        "--strip",
        "-w",
        WORK / "repaired",
        plain,
        PATH=tools,
        LD_LIBRARY_PATH=paths,
    )
    (repaired,) = (WORK / "repaired").glob("*.whl")

    run(python, "-m", "wheel", "unpack", "-d", WORK / "unpacked", repaired)
    (tree,) = (WORK / "unpacked").iterdir()
    (licences,) = tree.glob("*.dist-info/licenses")
    library = next((ROOT / "build").glob("wheel/**/libpenstock.so"), None) or next(tree.rglob("libpenstock.so"))
    needed = dict(re.findall(r"^\s*(\S+) => (\S+)", run("ldd", library), re.MULTILINE))
    for carried in sorted((tree / "penstock.libs").glob("*.so*")):
        if carried.name.startswith(tuple(name.partition(".")[0] for name in STAND_INS)):
            if FORBIDDEN.search(carried.read_bytes().decode("latin1")):
                sys.exit("the wheel would carry the real libjbig, which is under the GPL")
            if carried.stat().st_size > 50_000:
                sys.exit(f"the wheel would carry the real {carried.name}")
            continue
        package, text = licence_of(carried.name, needed)
        shutil.copyfile(text, licences / f"{package}.txt")
        print(f"  carries {carried.name} ({carried.stat().st_size >> 10} KB), licence of {package}")
    DIST.mkdir(exist_ok=True)
    for old in DIST.glob("penstock-*.whl"):
        old.unlink()
    run(python, "-m", "wheel", "pack", "-d", DIST, tree)
    (wheel,) = DIST.glob("penstock-*.whl")
    compress(wheel)
    size = wheel.stat().st_size
    print(f"{wheel.relative_to(ROOT)}: {size / 1e6:.2f} MB")
    if size > LARGEST:
        sys.exit(f"the wheel is larger than {LARGEST / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
