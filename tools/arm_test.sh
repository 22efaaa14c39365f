#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs tests of the wheel for 64-bit ARM (`make wheel ARCH=aarch64`) on an x86-64 Debian or Ubuntu, on an emulated
# processor (QEMU).
#   tools/arm_test.sh [arguments of pytest]      without any: the kernels, the decoders and a tenth of the operators
# Nothing of the other architecture is installed: packages are unpacked into build/arm/root. It needs the program
# qemu-aarch64 (qemu-user), and Debian's apt for the rest.
set -eu
cd "$(dirname "$0")/.."
PYTHON=${PYTHON:-.venv/bin/python}
out=$PWD/build/arm
root=$out/root
triple=aarch64-linux-gnu
wheel=$(ls dist/penstock-*_aarch64.whl)
mirror=${MIRROR:-http://deb.debian.org}
# Of this Debian; another system takes Debian 12's.
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
  packages=$($apt install -s --no-install-recommends python3-minimal libpython3-stdlib libstdc++6 \
    libgomp1 libgfortran5 | awk '/^Inst/ {print $2}')
  (cd "$out/apt/archives" && $apt download $packages >/dev/null)
  for deb in "$out"/apt/archives/*.deb; do
    dpkg-deb -x "$deb" "$root"
  done
  touch "$out/unpacked"
fi
python=$(basename "$(ls "$root"/usr/bin/python3.* | head -1)")

if [ ! -d "$out/site" ]; then
  version=${python#python}
  platforms=$(for p in manylinux2014 manylinux_2_17 manylinux_2_27 manylinux_2_28; do printf -- '--platform %s_aarch64 ' $p; done)
  # shellcheck disable=SC2086
  "$PYTHON" -m pip download -q --only-binary=:all: --python-version "$version" --implementation cp $platforms \
    -d "$out/wheels" numpy scipy pytest hypothesis pillow soundfile
  for w in "$out"/wheels/*.whl; do "$PYTHON" -m zipfile -e "$w" "$out/site"; done
fi

# This checkout with the library of the wheel, which says if it was built from other kernels.
rm -rf "$out/tree" "$out/wheel" && mkdir -p "$out/tree"
cp -r src tests kernels examples pyproject.toml tools "$out/tree"
"$PYTHON" -m zipfile -e "$wheel" "$out/wheel"
cp "$out/wheel/penstock/libpenstock.so" "$out/tree/src/penstock/"
cp -r "$out/wheel/penstock.libs" "$out/tree/src/"
cd "$out/tree"
# No GPU is emulated beside the processor; processes are not started in emulated ones.
tests() {
  qemu-aarch64 -L "$root" -E PENSTOCK_TEST_GPU=1 -E PENSTOCK_TEST_EMULATED=1 -E PYTHONPATH="$out/site:$out/tree/src" \
    -E LD_LIBRARY_PATH="$root/usr/lib/$triple:$root/lib/$triple" "$root/usr/bin/$python" \
    -m pytest -q -p no:cacheprovider -k "not gpu and not fork and not spawn" "$@"
}
if [ $# -gt 0 ]; then
  tests "$@"
else
  tests tests/kernels tests/operators/decode
  tests --every 10 --ignore=tests/operators/decode tests/operators
fi
