#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Shows that patches/libzstd/CVE-2026-124851.patch is Debian's fix, of which the mirrors have binaries only: the file that
# it changes, compiled by Debian 13's compiler with Debian's options, without and with it, has the instructions and
# relocations of that file in libzstd.a of 1.5.7+dfsg-1 and of 1.5.7+dfsg-1+deb13u1; all other files of the two are equal.
#   tools/wheel_codecs/compare_with_debian.sh        as root, on an x86-64 Debian or Ubuntu with binutils and patch
set -eu
cd "$(dirname "$0")/../.."
here=$PWD/tools/wheel_codecs
out=$PWD/build/compare
root=$out/root
mirror=${MIRROR:-http://deb.debian.org}
before=1.5.7+dfsg-1
after=1.5.7+dfsg-1+deb13u1
orig=libzstd_1.5.7+dfsg.orig.tar.xz
rm -rf "$out" && mkdir -p "$out/apt/lists/partial" "$out/apt/archives/partial" "$root/tmp" "$root/dev"
: >"$out/apt/status"
keys=/usr/share/keyrings/debian-archive-keyring.gpg # elsewhere the package debian-archive-keyring brings it
from="deb $([ -f $keys ] && echo "[arch=amd64 signed-by=$keys]" || echo "[arch=amd64]") $mirror"
printf '%s\n' "$from/debian trixie main" "$from/debian-security trixie-security main" >"$out/apt/sources.list"
apt="apt-get -q -o APT::Architecture=amd64 -o APT::Architectures=amd64 -o APT::Sandbox::User=root -o Dir::State=$out/apt
  -o Dir::State::status=$out/apt/status -o Dir::Cache=$out/apt -o Dir::Etc::SourceList=$out/apt/sources.list
  -o Dir::Etc::SourceParts=/dev/null"
$apt update >/dev/null
packages=$($apt install -s --no-install-recommends gcc-14 libc6-dev | awk '/^Inst/ {print $2}')
(cd "$out/apt/archives" && $apt download $packages >/dev/null)
for deb in "$out"/apt/archives/*.deb; do dpkg-deb -x "$deb" "$root"; done
for link in bin lib lib64 sbin; do [ -e "$root/$link" ] || ln -s "usr/$link" "$root/$link"; done
: >"$root/dev/null"

tested=lib/decompress/zstd_decompress_block.c
object=$(basename "$tested" .c).o
instructions() { objdump -dr --no-show-raw-insn "$1" | tail -n +4; }
for version in $before $after; do
  mkdir "$out/$version" "$root/$version"
  (cd "$out/$version" && $apt download "libzstd-dev=$version" >/dev/null && dpkg-deb -x ./*.deb . && ar x usr/lib/*/libzstd.a)
  python3 -c "import sys; sys.path.insert(0, '$here'); import build; from pathlib import Path
digest, path = build.sources()['libzstd'][0]; assert path.endswith('$orig'); build.fetch(digest, path, Path('$out'))"
  tar xf "$out/$orig" -C "$root/$version" --strip-components=1
  [ $version = $before ] || patch -s -p1 -d "$root/$version" -i "$here/patches/libzstd/CVE-2026-124851.patch"
  # As `make` in lib/ does with dpkg-buildflags' options.
  chroot "$root" gcc-14 -g -O2 -ffile-prefix-map="/$version=." -fstack-protector-strong -fstack-clash-protection \
    -fcf-protection -D_FORTIFY_SOURCE=2 -DXXH_NAMESPACE=ZSTD_ -DDEBUGLEVEL=0 -DZSTD_LEGACY_SUPPORT=5 \
    -c -o "/$object" "/$version/$tested"
  instructions "$out/$version/$object" >"$out/$version.theirs"
  instructions "$root/$object" >"$out/$version.ours"
  cmp "$out/$version.theirs" "$out/$version.ours"
  echo "$version: $(wc -l <"$out/$version.ours") equal lines of machine code in $object"
done
differ=$(for f in "$out/$before"/*.o; do cmp -s "$f" "$out/$after/${f##*/}" || echo "${f##*/}"; done)
[ "$differ" = "$object" ] && echo "no other file of libzstd.a differs between the two"
