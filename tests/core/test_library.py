# SPDX-License-Identifier: Apache-2.0
"""Declared signatures of native functions agree with the compiled ones."""

import ctypes
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from penstock.core import kernels
from penstock.core.library import Library

SOURCE = """
#include "core/export.h"
EXPORT double total(int8_t a, uint8_t b, int16_t c, uint16_t d, int32_t e, uint32_t f, int64_t g, uint64_t h, float i,
                    double j, const int32_t *k) {
  return (double)a + b + c + d + e + f + g + h + i + j + *k;
}
EXPORT_SHORT(total)
EXPORT uint8_t byte_of(int32_t x) { return (uint8_t)x; }
EXPORT_SHORT(byte_of)
EXPORT PyObject *same(PyObject *object, void (*owns)(PyObject *)) { return owns(object), object; }
EXPORT_SHORT(same)
EXPORT int32_t short_check(int32_t (*check)()) { return check(); }
EXPORT_SHORT(short_check)
EXPORT int32_t long_check(int32_t (*check)()) { return check(); }
EXPORT_LONG(long_check)
EXPORT void nothing() {}
EXPORT_SHORT(nothing)
EXPORT int32_t undescribed() { return 1; }
"""


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A library that was compiled here."""
    if not shutil.which("c++"):
        pytest.skip("needs a compiler")
    folder = tmp_path_factory.mktemp("library")
    (folder / "small.cpp").write_text(SOURCE)
    options = ["-std=c++17", "-shared", "-fPIC", f"-I{kernels.ROOT}", "-Wall", "-Wextra", "-Werror"]
    subprocess.run(["c++", *options, "small.cpp", "-o", "libsmall.so"], cwd=folder, check=True)
    return Library(str(folder / "libsmall.so"))


def test_numbers_arrive_as_they_were_declared(small):
    k = ctypes.c_int32(-11)
    numbers = (-128, 255, -32768, 65535, -(2**31), 2**32 - 1, -(2**40), 2**41, 0.5, 0.25)
    assert small.total(*numbers, ctypes.addressof(k)) == sum(numbers) - 11
    with pytest.raises(ctypes.ArgumentError):
        small.total(*[0.5] * 11)
    assert small.byte_of(300) == 44
    assert small.nothing() is None


def test_an_object_comes_back(small):
    thing = ["thing"]
    owns = ctypes.cast(ctypes.pythonapi.Py_IncRef, ctypes.c_void_p)
    assert small.same(thing, owns) is thing


def test_short_calls_keep_the_gil_and_long_ones_drop_it(small):
    check = ctypes.cast(ctypes.pythonapi.PyGILState_Check, ctypes.c_void_p)
    assert small.short_check(check) == 1
    assert small.long_check(check) == 0


def test_what_is_missing_is_named(small):
    with pytest.raises(AttributeError, match=r"EXPORT_SHORT\(undescribed\) or .* is missing behind its definition"):
        _ = small.undescribed
    with pytest.raises(AttributeError, match=r"libsmall.so has no function 'other'"):
        _ = small.other
    with pytest.raises(AttributeError, match=r"libsmall.so has no function 'other'"):
        small.address("other")
    assert small.address("undescribed") and small.digest() == ""


def test_the_compiler_refuses_types_that_python_lacks(tmp_path):
    if not shutil.which("c++"):
        pytest.skip("needs a compiler")
    (tmp_path / "bad.cpp").write_text(
        '#include "core/export.h"\nEXPORT void f(long double x) { (void)x; }\nEXPORT_SHORT(f)\n'
    )
    command = ["c++", "-std=c++17", f"-I{kernels.ROOT}", "-fsyntax-only", "bad.cpp"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode and "Python can't give or take this type" in result.stderr


@pytest.mark.skipif(not list(Path(kernels.ROOT).rglob("*.cpp")), reason="needs the sources")
def test_all_exported_functions_are_described():
    by_address = {"kernels_digest", "drop_capsule"}  # Python uses only their addresses
    texts = [path.read_text() for path in Path(kernels.ROOT).rglob("*.cpp")]
    exported = {name for t in texts for name in re.findall(r"^EXPORT \w[\w \*:]*?(\w+)\([^)]*\)\s*\{", t, re.M)}
    described = {name for t in texts for name in re.findall(r"^EXPORT_(?:SHORT|LONG)\((\w+)\)$", t, re.M)}
    assert len(described) > 80 and exported - described == by_address and not described - exported
    lib = kernels.library()
    assert all(callable(getattr(lib, name)) for name in described)
