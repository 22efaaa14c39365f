# SPDX-License-Identifier: Apache-2.0
"""Builds the codecs that the wheel carries from their sources (sources.txt): for an old glibc, with hidden symbols,
static but for libsndfile. Called by tools/build_wheel.py.

They come from a Debian mirror (MIRROR), are checked by their SHA-256 and compiled by zig's C compiler, which brings the
headers and symbols of any glibc.

    python tools/wheel_codecs/build.py --arch x86_64 build/codecs     # into build/codecs/x86_64/{include,lib,licences}
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import tarfile
import urllib.error
import urllib.parse
import urllib.request
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
MIRROR = os.environ.get("MIRROR", "http://deb.debian.org")
GLIBC = "2.28"
FLAGS = "-O2 -fPIC -fvisibility=hidden -ffunction-sections -fdata-sections -ffp-contract=off -fno-sanitize=all -g0 -w"


@dataclass(frozen=True)
class Codec:
    """How a package is built, and what it says of its licence."""

    package: str  # Debian's name of the source
    licence: str  # SPDX
    texts: tuple[str, ...]  # files with the licence
    options: tuple[str, ...] = ()
    after: tuple[str, ...] = ()  # codecs that it needs
    folder: str = "."  # where its CMakeLists.txt is


CODECS = (
    Codec("zlib", "Zlib", ("LICENSE",), ("ZLIB_BUILD_SHARED=OFF", "ZLIB_BUILD_TESTING=OFF")),
    Codec(
        "libjpeg-turbo",
        "IJG AND BSD-3-Clause AND Zlib",
        ("LICENSE.md", "README.ijg"),
        ("ENABLE_SHARED=OFF", "WITH_TURBOJPEG=OFF", "WITH_TOOLS=OFF", "WITH_TESTS=OFF", "REQUIRE_SIMD=ON"),
    ),
    Codec(
        "libpng1.6",
        "libpng-2.0",
        ("LICENSE",),
        ("PNG_SHARED=OFF", "PNG_TESTS=OFF", "PNG_TOOLS=OFF", "PNG_HARDWARE_OPTIMIZATIONS=ON"),
        ("zlib",),
    ),
    Codec(
        "libwebp",
        "BSD-3-Clause",
        ("COPYING", "PATENTS"),
        tuple(
            f"WEBP_BUILD_{tool}=OFF"
            for tool in "ANIM_UTILS CWEBP DWEBP GIF2WEBP IMG2WEBP VWEBP WEBPINFO WEBPMUX EXTRAS LIBWEBPMUX".split()
        ),
    ),
    Codec("openjpeg2", "BSD-2-Clause", ("LICENSE",), ("BUILD_CODEC=OFF", "BUILD_PKGCONFIG_FILES=OFF")),
    Codec(
        "libzstd",
        "BSD-3-Clause",
        ("LICENSE",),
        tuple(
            f"ZSTD_{o}=OFF" for o in "BUILD_PROGRAMS BUILD_SHARED BUILD_TESTS BUILD_DICTBUILDER LEGACY_SUPPORT".split()
        )
        + ("ZSTD_MULTITHREAD_SUPPORT=OFF",),
        folder="build/cmake",
    ),
    Codec(
        "xz-utils",
        "0BSD",
        ("COPYING.0BSD",),
        tuple(f"XZ_{o}=OFF" for o in "TOOL_XZ TOOL_XZDEC TOOL_LZMADEC TOOL_LZMAINFO TOOL_SCRIPTS DOC NLS".split()),
    ),
    Codec(
        "libdeflate",
        "MIT",
        ("COPYING",),
        (
            "LIBDEFLATE_BUILD_SHARED_LIB=OFF",
            "LIBDEFLATE_BUILD_GZIP=OFF",
            # Clang 22 has no "evex512", which its AVX-512 functions ask for.
            "CMAKE_C_FLAGS={flags} -DLIBDEFLATE_ASSEMBLER_DOES_NOT_SUPPORT_AVX512VNNI"
            " -DLIBDEFLATE_ASSEMBLER_DOES_NOT_SUPPORT_VPCLMULQDQ",
        ),
    ),
    Codec("lerc", "Apache-2.0", ("LICENSE", "NOTICE")),
    Codec(
        "tiff",
        "libtiff",
        ("LICENSE.md",),
        # Not JBIG, whose library is under the GPL.
        tuple(f"{o}=OFF" for o in "tiff-tools tiff-tests tiff-contrib tiff-docs tiff-cxx jbig tiff-opengl".split()),
        ("zlib", "libjpeg-turbo", "libwebp", "libzstd", "xz-utils", "libdeflate", "lerc"),
    ),
    Codec("libogg", "BSD-3-Clause", ("COPYING",), ("INSTALL_DOCS=OFF",)),
    Codec("libvorbis", "BSD-3-Clause", ("COPYING",), after=("libogg",)),
    Codec(
        "flac",
        "BSD-3-Clause",
        ("COPYING.Xiph",),
        tuple(f"{o}=OFF" for o in "BUILD_CXXLIBS BUILD_PROGRAMS BUILD_EXAMPLES BUILD_DOCS INSTALL_MANPAGES".split()),
        ("libogg",),
    ),
    Codec("opus", "BSD-3-Clause", ("COPYING",), ("OPUS_BUILD_PROGRAMS=OFF",)),
    Codec(
        "mpg123",
        "LGPL-2.1-only",
        ("COPYING",),
        ("BUILD_PROGRAMS=OFF", "BUILD_LIBOUT123=OFF", "BUILD_LIBSYN123=OFF"),
        folder="ports/cmake",
    ),
    Codec(
        "libsndfile",
        "LGPL-2.1-or-later",
        ("COPYING",),
        (
            # The LGPL wants that a user can replace it.
            "BUILD_SHARED_LIBS=ON",
            "BUILD_PROGRAMS=OFF",
            "BUILD_EXAMPLES=OFF",
            "ENABLE_CPACK=OFF",
            "ENABLE_PACKAGE_CONFIG=OFF",
            # Of LAME only names are asked for: its part of libsndfile is replaced by mp3_encoder_absent.c.
            "MP3LAME_INCLUDE_DIR={prefix}/include",
            "MP3LAME_LIBRARY={prefix}/lib/libmp3lame.a",
            # It hides its own, by a list.
            "CMAKE_C_FLAGS={flags} -fvisibility=default",
            "CMAKE_SHARED_LINKER_FLAGS=-Wl,--gc-sections -Wl,-s",
        ),
        ("libogg", "libvorbis", "flac", "opus", "mpg123"),
    ),
)


def run(*command: object, cwd: Path | None = None, **variables: str) -> None:
    result = subprocess.run(
        [str(c) for c in command],
        cwd=cwd,
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    if result.returncode:
        raise SystemExit(f"{result.stdout[-6000:]}\n{command[0]} failed")


def sources() -> dict[str, list[tuple[str, str]]]:
    """Per package its files as (SHA-256, path below the mirror): the original first."""
    found: dict[str, list[tuple[str, str]]] = {}
    for line in (HERE / "sources.txt").read_text().splitlines():
        if not line.startswith("#"):
            digest, path = line.split()
            found.setdefault(path.split("/")[-2], []).append((digest, path))
    return found


def version(package: str) -> str:
    """The version that is built, as its authors call it."""
    name = os.path.basename(sources()[package][0][1])
    return name.split("_")[1].partition(".orig")[0].partition("+ds")[0].partition("+dfsg")[0].rpartition("really")[2]


def debian_version(package: str) -> str:
    """The version of Debian's source package that was taken, as far as its files tell it."""
    return os.path.basename(sources()[package][-1][1]).split("_")[1].partition(".orig")[0].partition(".debian")[0]


def fetch(digest: str, path: str, folder: Path) -> Path:
    """A source file, from the folder or the mirror."""
    kept = folder / os.path.basename(path)
    if not kept.exists():
        address = f"{MIRROR}/{urllib.parse.quote(path)}"
        try:
            with urllib.request.urlopen(address, timeout=120) as answer:
                data = answer.read()
        except (urllib.error.URLError, OSError) as e:
            raise SystemExit(
                f"{address}: {e}\nDebian removes files that a newer version replaces. Take that version (its path and "
                f"SHA-256, in {HERE / 'sources.txt'}), or put the file from snapshot.debian.org into {folder}"
            ) from None
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = kept.with_suffix(f".{os.getpid()}")
        unfinished.write_bytes(data)
        unfinished.replace(kept)
    got = hashlib.sha256(kept.read_bytes()).hexdigest()
    if got != digest:
        raise SystemExit(f"{kept}: its SHA-256 is {got}, not {digest}")
    return kept


def patches(package: str) -> list[Path]:
    """Fixes of ours, each named after a vulnerability: for those whose sources no mirror has."""
    return sorted((HERE / "patches" / package).glob("*.patch"))


def unpack(package: str, kept: Path, into: Path) -> Path:
    """The package's sources with Debian's fixes, and ours."""
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir(parents=True)
    original, *fixes = [fetch(digest, path, kept) for digest, path in sources()[package]]
    run("tar", "xf", original, "-C", into, "--strip-components=1")
    for archive in fixes:
        with tarfile.open(archive) as tar:
            tar.extractall(into, [m for m in tar.getmembers() if m.name.startswith("debian/patches")])
        theirs = into / "debian" / "patches"
        for line in (theirs / "series").read_text().splitlines():
            if line.strip() and not line.startswith("#"):
                run("patch", "-p1", "-s", "-i", theirs / line.split()[0], cwd=into)
    for patch in patches(package):
        run("patch", "-p1", "-s", "-F0", "-i", patch, cwd=into)
    return into


class Compiler:
    """zig's compiler for an architecture, as programs that CMake can call."""

    def __init__(self, arch: str, folder: Path):
        import ziglang

        self.arch = arch
        self.folder = folder
        self.zig = Path(ziglang.__file__).parent / "zig"
        self.environment = {"ZIG_GLOBAL_CACHE_DIR": str(folder / "zig"), "ZIG_LOCAL_CACHE_DIR": str(folder / "zig")}
        programs = folder / f"zig-{arch}"
        programs.mkdir(parents=True, exist_ok=True)
        target = f"-target {arch}-linux-gnu.{GLIBC}"
        for name, arguments in {"cc": target, "ar": "", "ranlib": ""}.items():
            program = programs / name
            program.write_text(f'#!/bin/sh\nexec "{self.zig}" {name} {arguments} "$@"\n')
            program.chmod(0o755)
        self.programs = programs
        self.gcc = "g++" if arch == os.uname().machine else f"{arch}-linux-gnu-g++"

    def options(self) -> list[str]:
        """CMake's, for it and nothing of this machine."""
        found = [
            f"-DCMAKE_C_COMPILER={self.programs / 'cc'}",
            # As penstock's own C++, for one standard library.
            f"-DCMAKE_CXX_COMPILER={self.gcc}",
            f"-DCMAKE_ASM_COMPILER={self.programs / 'cc'}",
            f"-DCMAKE_AR={self.programs / 'ar'}",
            f"-DCMAKE_RANLIB={self.programs / 'ranlib'}",
            f"-DCMAKE_C_FLAGS={FLAGS}",
            f"-DCMAKE_CXX_FLAGS={FLAGS}",
            "-DCMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF",
            "-DCMAKE_POLICY_VERSION_MINIMUM=3.5",
        ]
        if self.arch != os.uname().machine:
            found += ["-DCMAKE_SYSTEM_NAME=Linux", f"-DCMAKE_SYSTEM_PROCESSOR={self.arch}"]
        return found

    def shared_library_rule(self) -> str:
        """CMake's rule to link objects of GCC, with its standard library in it, for the old glibc.

        Exceptions are unwound by the system's libgcc_s: GCC's static one asks for functions of the building glibc."""
        found = [
            subprocess.run([self.gcc, f"-print-file-name={name}"], stdout=subprocess.PIPE, text=True, check=True)
            for name in ("libstdc++.a", "libgcc_s.so.1", "libgcc.a")
        ]
        runtime = " ".join(f.stdout.strip() for f in found)
        link = "-shared -fPIC -Wl,-s -Wl,--gc-sections <LINK_FLAGS> -Wl,-soname,<TARGET_SONAME> -o <TARGET>"
        newer = self.folder / self.arch / "lib" / "newer_glibc.o"
        source = HERE / "newer_glibc.c"
        run(self.programs / "cc", *FLAGS.split(), "-c", source, "-o", newer, **self.environment)
        return f"{self.programs / 'cc'} {link} <OBJECTS> {newer} <LINK_LIBRARIES> {runtime} -lm -lpthread -ldl"


def stand_in(compiler: Compiler, prefix: Path, name: str, source: str) -> None:
    """A static library of one file of ours."""
    archive, compiled = prefix / "lib" / f"lib{name}.a", prefix / "work" / f"{name}.o"
    archive.unlink(missing_ok=True)
    run(compiler.programs / "cc", *FLAGS.split(), "-c", HERE / source, "-o", compiled, **compiler.environment)
    run(compiler.programs / "ar", "rcs", archive, compiled, **compiler.environment)


def build(codec: Codec, compiler: Compiler, kept: Path, prefix: Path) -> None:
    done = prefix / "done" / codec.package
    mark = "".join(digest for digest, _ in sources()[codec.package]) + repr(codec) + FLAGS
    mark += "".join(patch.read_text() for patch in patches(codec.package))
    if done.exists() and done.read_text() == mark:
        return
    tree = unpack(codec.package, kept, prefix / "work" / codec.package)
    if codec.package == "zlib":  # its CMakeLists.txt asks for what Debian leaves out
        (tree / "contrib").mkdir(exist_ok=True)
        for absent in ("contrib/CMakeLists.txt", "doc/rfc1950.txt", "doc/rfc1951.txt", "doc/rfc1952.txt"):
            (tree / absent).touch()
    if codec.package == "libsndfile":
        shutil.copyfile(HERE / "mp3_encoder_absent.c", tree / "src" / "mpeg_l3_encode.c")
        stand_in(compiler, prefix, "mp3lame", "lame_absent.c")
        (prefix / "include" / "lame").mkdir(exist_ok=True)
        shutil.copyfile(HERE / "lame_absent.h", prefix / "include" / "lame" / "lame.h")
    run(
        "cmake",
        "-G",
        "Ninja",
        "-S",
        tree / codec.folder,
        "-B",
        tree / "built",
        *compiler.options(),
        "-DCMAKE_BUILD_TYPE=None",
        "-DBUILD_SHARED_LIBS=OFF",
        "-DBUILD_TESTING=OFF",
        "-DCMAKE_INSTALL_LIBDIR=lib",
        f"-DCMAKE_INSTALL_PREFIX={prefix}",
        f"-DCMAKE_PREFIX_PATH={prefix}",
        *(f"-D{option.format(prefix=prefix, flags=FLAGS)}" for option in codec.options),
        PKG_CONFIG_LIBDIR=str(prefix / "lib" / "pkgconfig"),
        **compiler.environment,
    )
    run("ninja", "-C", tree / "built", "-j1", "install", **compiler.environment)
    if codec.package == "libvorbis":
        stand_in(compiler, prefix, "vorbisenc", "vorbisenc_absent.c")
    texts = [f"{codec.package} {version(codec.package)} ({codec.licence})\n"]
    texts += [(tree / name).read_text(errors="replace") for name in codec.texts]
    (prefix / "licences" / f"{codec.package}.txt").write_text("\n".join(texts))
    shutil.rmtree(tree)
    done.write_text(mark)


def build_all(arch: str, folder: Path, at_once: int = 2) -> Path:
    """Builds what is missing; returns the folder with include, lib and licences."""
    compiler, prefix = Compiler(arch, folder), folder / arch
    for part in ("lib", "include", "licences", "done"):
        (prefix / part).mkdir(parents=True, exist_ok=True)
    # As none waits for one that comes later, threads that wait never stop each other.
    with ThreadPoolExecutor(at_once) as pool:
        built: dict[str, Future[None]] = {}

        def one(codec: Codec) -> None:
            for needed in codec.after:
                built[needed].result()
            build(codec, compiler, folder / "sources", prefix)

        for codec in CODECS:
            built[codec.package] = pool.submit(one, codec)
        for waiting in built.values():
            waiting.result()
    return prefix


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--arch", default=os.uname().machine, help="x86_64 or aarch64; this machine's, if not given")
    parser.add_argument("folder", type=Path, help="where sources are kept and codecs go")
    asked = parser.parse_args()
    print(build_all(asked.arch, asked.folder.resolve()))
