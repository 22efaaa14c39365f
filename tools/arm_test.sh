#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the library for 64-bit ARM on an x86-64 Debian, and runs tests there on an emulated processor (QEMU).
#   tools/arm_test.sh [tests...]        about half an hour for all operators; needs root for apt
set -eu
cd "$(dirname "$0")/.."
tests=${*:-tests/operators/color tests/operators/decode tests/operators/geometry}
out=$PWD/build/arm
root=$out/root
arch=aarch64-linux-gnu
version=$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')

dpkg --add-architecture arm64
apt-get update -qq
apt-get install -y -qq --no-install-recommends g++-$arch qemu-user-static cmake ninja-build unzip libjpeg62-turbo-dev:arm64 \
  libpng-dev:arm64 libtiff-dev:arm64 libwebp-dev:arm64 libopenjp2-7-dev:arm64 libsndfile1-dev:arm64 libzstd-dev:arm64

lib=/usr/lib/$arch
cmake -S . -B "$out" -G Ninja -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
  -DCMAKE_CXX_COMPILER=$arch-g++ -DCMAKE_LIBRARY_ARCHITECTURE=$arch -DLIBRARY_FOLDER="$out/penstock" \
  -DJPEG_LIBRARY=$lib/libjpeg.so -DPNG_LIBRARY=$lib/libpng.so -DTIFF_LIBRARY=$lib/libtiff.so -DZLIB_LIBRARY=$lib/libz.so \
  -DWEBP_LIBRARY=$lib/libwebp.so -DOPENJPEG_LIBRARY=$lib/libopenjp2.so -DSNDFILE_LIBRARY=$lib/libsndfile.so \
  -DZSTD_LIBRARY=$lib/libzstd.so
ninja -C "$out" penstock

# Python and the libraries it needs are unpacked only: nothing of theirs is run while they are installed.
mkdir -p "$root" "$out/debs" "$out/wheels"
chmod 777 "$out/debs"
packages=$(apt-get install -s -o Dir::State::status=/dev/null -o APT::Architecture=arm64 -o APT::Architectures=arm64 \
  --no-install-recommends "python$version-minimal" "libpython$version-stdlib" libjpeg62-turbo libpng16-16 libtiff6 libwebp7 \
  libopenjp2-7 libsndfile1 libzstd1 libstdc++6 libgomp1 libgfortran5 | awk '/^Inst/ {print $2}')
for p in $packages; do (cd "$out/debs" && apt-get download -qq "$p:arm64" 2>/dev/null) || true; done  # some have no code
for d in "$out"/debs/*.deb; do dpkg -x "$d" "$root"; done
platforms=$(for p in manylinux2014 manylinux_2_17 manylinux_2_27 manylinux_2_28; do printf -- '--platform %s_aarch64 ' $p; done)
# shellcheck disable=SC2086
python3 -m pip download -q --only-binary=:all: --python-version "$version" --implementation cp $platforms \
  -d "$out/wheels" numpy scipy pytest hypothesis pillow soundfile
for w in "$out"/wheels/*.whl; do unzip -q -o "$w" -d "$out/site"; done

# The package with this library instead of the one of this processor.
rm -rf "$out/tree" && mkdir -p "$out/tree"
cp -r src tests kernels examples pyproject.toml "$out/tree"
cp "$out/penstock/libpenstock.so" "$out/tree/src/penstock/"
cd "$out/tree"
# No GPU is emulated beside the processor.
# shellcheck disable=SC2086
exec qemu-aarch64-static -L "$root" -E PENSTOCK_TEST_GPU=1 -E PYTHONPATH="$out/site:$out/tree/src" \
  -E LD_LIBRARY_PATH="$root/usr/lib/$arch:$root/lib/$arch" "$root/usr/bin/python$version" \
  -m pytest -q -p no:cacheprovider -k "not gpu and not fork and not spawn" $tests
