#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the library for 64-bit ARM on an x86-64 Debian or Ubuntu, and runs tests there on an emulated processor (QEMU).
#   tools/arm_test.sh [arguments of pytest]      without any: the kernels, the decoders and a tenth of the operators
# Nothing of the other architecture is installed: packages are unpacked into build/arm/root. It needs the programs
# aarch64-linux-gnu-g++ and qemu-aarch64 (g++-aarch64-linux-gnu and qemu-user), and Debian's apt for the rest.
# Most of the time goes into compiling the library, a quarter of an hour of one core; ccache helps.
set -eu
cd "$(dirname "$0")/.."
PYTHON=${PYTHON:-.venv/bin/python}
out=$PWD/build/arm
root=$out/root
triple=aarch64-linux-gnu
lib=$root/usr/lib/$triple
mirror=${MIRROR:-http://deb.debian.org}
# Of this Debian, whose Python and codecs the packages for ARM have too; another system takes Debian 12's.
suite=$(. /etc/os-release && [ "$ID" = debian ] && echo "$VERSION_CODENAME" || echo bookworm)

# Lists, downloads and state of a package manager of its own.
apt="apt-get -q -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User=root -o Dir::State=$out/apt
  -o Dir::State::status=$out/apt/status -o Dir::Cache=$out/apt -o Dir::Etc::SourceList=$out/apt/sources.list
  -o Dir::Etc::SourceParts=/dev/null"
if [ ! -f "$out/unpacked" ]; then
  mkdir -p "$root" "$out/apt/lists/partial" "$out/apt/archives/partial" "$out/wheels"
  : >"$out/apt/status"
  keys=/usr/share/keyrings/debian-archive-keyring.gpg # elsewhere the package debian-archive-keyring brings it
  echo "deb $([ -f $keys ] && echo "[signed-by=$keys] ")$mirror/debian $suite main" >"$out/apt/sources.list"
  $apt update >/dev/null
  # The packages and what they need, but for maintainers' scripts, which are not run.
  packages=$($apt install -s --no-install-recommends python3-minimal libpython3-stdlib libjpeg-dev libpng-dev libtiff-dev \
    libwebp-dev libopenjp2-7-dev libsndfile1-dev libzstd-dev libstdc++6 libgomp1 libgfortran5 | awk '/^Inst/ {print $2}')
  (cd "$out/apt/archives" && $apt download $packages >/dev/null)
  for deb in "$out"/apt/archives/*.deb; do
    case $deb in
      *libc6-dev* | *linux-libc-dev* | *gcc* | *libstdc++-*-dev*) ;; # the cross compiler brings its own
      *) dpkg-deb -x "$deb" "$root" ;;
    esac
  done
  touch "$out/unpacked"
fi
python=$(basename "$(ls "$root"/usr/bin/python3.* | head -1)")

cmake=$(dirname "$PYTHON")/cmake
"$cmake" -S . -B "$out/built" -G Ninja -DCMAKE_MAKE_PROGRAM="$(cd "$(dirname "$PYTHON")" && pwd)/ninja" \
  -DPython_EXECUTABLE="$(command -v "$PYTHON")" -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
  -DCMAKE_CXX_COMPILER=$triple-g++ -DCMAKE_LIBRARY_ARCHITECTURE=$triple -DLIBRARY_FOLDER="$out/penstock" \
  -DCMAKE_FIND_ROOT_PATH="$root" -DCMAKE_FIND_ROOT_PATH_MODE_LIBRARY=ONLY -DCMAKE_FIND_ROOT_PATH_MODE_INCLUDE=ONLY \
  -DOPENJPEG_INCLUDE_DIR="$(ls -d "$root"/usr/include/openjpeg-* | tail -1)" -DCMAKE_SHARED_LINKER_FLAGS="-Wl,-rpath-link,$lib" \
  -DCMAKE_CXX_FLAGS="-isystem $root/usr/include/$triple -isystem $root/usr/include" \
  $(command -v ccache >/dev/null && echo -DCMAKE_CXX_COMPILER_LAUNCHER=ccache) >"$out/configure.log"
"$(dirname "$PYTHON")/ninja" -C "$out/built" --quiet penstock

if [ ! -d "$out/site" ]; then
  version=${python#python}
  platforms=$(for p in manylinux2014 manylinux_2_17 manylinux_2_27 manylinux_2_28; do printf -- '--platform %s_aarch64 ' $p; done)
  # shellcheck disable=SC2086
  "$PYTHON" -m pip download -q --only-binary=:all: --python-version "$version" --implementation cp $platforms \
    -d "$out/wheels" numpy scipy pytest hypothesis pillow soundfile
  for w in "$out"/wheels/*.whl; do "$PYTHON" -m zipfile -e "$w" "$out/site"; done
fi

# The package with this library instead of the one of this processor.
rm -rf "$out/tree" && mkdir -p "$out/tree"
cp -r src tests kernels examples pyproject.toml tools "$out/tree"
cp "$out/penstock/libpenstock.so" "$out/tree/src/penstock/"
cd "$out/tree"
[ $# -gt 0 ] || set -- --every 10 tests/kernels tests/operators
# No GPU is emulated beside the processor; processes are not started in emulated ones.
exec qemu-aarch64 -L "$root" -E PENSTOCK_TEST_GPU=1 -E PYTHONPATH="$out/site:$out/tree/src" \
  -E LD_LIBRARY_PATH="$lib:$root/lib/$triple" "$root/usr/bin/$python" \
  -m pytest -q -p no:cacheprovider -k "not gpu and not fork and not spawn" "$@"
