#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian packages that the build needs, where it may; otherwise says which are missing and how to get them.
#   sh tools/system_packages.sh [PYTHON [PACKAGE...]]     packages of one command, which has the package's name, cross compilers, or headers (-dev)
python=${1:-python3}
[ $# -gt 0 ] && shift
missing=
need() { # need PACKAGE COMMAND...: PACKAGE is missing unless the command succeeds
  package=$1
  shift
  "$@" >/dev/null 2>&1 || missing="$missing $package"
}
header() { # a header that the C++ compiler finds, also under /usr/local or CPATH
  printf '#include <cstdio>\n#include <%s>\n' "$1" | ${CXX:-c++} -I/usr/local/include $2 -x c++ -E - 
}
installed() { dpkg-query -W -f='${Status}' "$1" | grep -q 'install ok installed'; }

if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
  echo "penstock needs Python 3.10 or newer, got: $("$python" --version 2>&1)." >&2
  echo "Install one (apt-get install python3) or name it: make PYTHON=python3.12" >&2
  exit 1
fi
need "python3-venv" "$python" -c 'import ensurepip, venv'
if ! command -v "${CXX:-c++}" >/dev/null 2>&1; then
  missing="$missing g++ libjpeg-dev libpng-dev libtiff-dev libwebp-dev libopenjp2-7-dev libsndfile1-dev libzstd-dev"
  for package in libjpeg-dev libpng-dev libtiff-dev libwebp-dev libopenjp2-7-dev libsndfile1-dev libzstd-dev; do
    installed $package 2>/dev/null && missing=$(echo "$missing" | sed "s/ $package//")
  done
else
  need libjpeg-dev header jpeglib.h
  need libpng-dev header png.h
  need libtiff-dev header tiffio.h
  need libwebp-dev header webp/decode.h
  need libsndfile1-dev header sndfile.h
  need libzstd-dev header zstd.h
  need libopenjp2-7-dev header openjpeg.h "$(printf -- '-I%s ' /usr/include/openjpeg-* /usr/local/include/openjpeg-*)"
fi
for package in "$@"; do
  case $package in
    *-dev) need "$package" installed "$package" && continue ;;
    g++-*) command=${package#g++-}-g++ ;;
    qemu-user) command=qemu-aarch64 ;;
    *) command=$package ;;
  esac
  need "$package" command -v "$command"
done
missing=$(echo $missing)
[ -z "$missing" ] && exit 0

# Debian names the venv package of a Python that isn't the default one after it.
version=$("$python" -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
if [ "$version" != "$(/usr/bin/python3 -c 'import sys; print("python%d.%d" % sys.version_info[:2])' 2>/dev/null)" ]; then
  missing=$(echo "$missing" | sed "s/python3-venv/$version-venv/")
fi

command="apt-get install -y --no-install-recommends $missing"
if command -v apt-get >/dev/null 2>&1; then
  if [ "$(id -u)" = 0 ]; then
    as_root=env
  elif sudo -n true 2>/dev/null; then
    as_root="sudo env"
  fi
fi
if [ -z "$as_root" ]; then
  echo "Missing system packages (names of Debian and Ubuntu): $missing" >&2
  echo "Install them, then run make again:" >&2
  echo "    sudo apt-get update && sudo $command" >&2
  exit 1
fi
echo "Installing system packages: $missing"
$as_root DEBIAN_FRONTEND=noninteractive apt-get update -q >/dev/null || echo "apt-get update failed; trying with the lists at hand" >&2
$as_root DEBIAN_FRONTEND=noninteractive $command >/tmp/penstock-apt.$$ 2>&1 </dev/null || {
  tail -20 /tmp/penstock-apt.$$ >&2
  echo "'$command' failed" >&2
  exit 1
}
rm -f /tmp/penstock-apt.$$
