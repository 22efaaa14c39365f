#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds a Python without the GIL from Debian's source package, for machines where no package has one:
#   sh tools/free_threaded_python.sh [SUITE VERSION]      by default trixie 3.13, into build/python3.13t
#   make free-threaded VENV=build/venv-3.13t PYTHON=build/python3.13t/bin/python3.13t
# It takes about five minutes of two cores.
set -eu
cd "$(dirname "$0")/.."
suite=${1:-trixie}
version=${2:-3.13}
out=$PWD/build/python${version}t
work=$out.work
sh tools/system_packages.sh python3 libffi-dev libssl-dev zlib1g-dev
mkdir -p "$work/lists/partial" "$work/archives/partial"
keys=/usr/share/keyrings/debian-archive-keyring.gpg # elsewhere the package debian-archive-keyring brings it
echo "deb-src $([ -f $keys ] && echo "[signed-by=$keys] ")${MIRROR:-http://deb.debian.org}/debian $suite main" >"$work/sources.list"
apt="apt-get -q -o APT::Sandbox::User=root -o Dir::State::Lists=$work/lists -o Dir::Cache=$work
  -o Dir::Etc::SourceList=$work/sources.list -o Dir::Etc::SourceParts=/dev/null"
$apt update >/dev/null
(cd "$work" && $apt source --download-only "python$version" >/dev/null && tar xf python*.orig.tar.xz)
cd "$work"/Python-*/
./configure -q --prefix="$out" --disable-gil --disable-test-modules >"$work/configure.log"
make -s -j "$(nproc)" install >"$work/make.log" 2>&1 || { tail -20 "$work/make.log"; exit 1; }
"$out/bin/python${version}t" -c 'import sys; assert not sys._is_gil_enabled(); print(sys.executable, sys.version)'
