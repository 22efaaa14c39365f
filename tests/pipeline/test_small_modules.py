# SPDX-License-Identifier: Apache-2.0
import io
import pickle
import subprocess

from penstock import reducers, sysconfig


def test_a_kernel_compiles_against_what_sysconfig_says(tmp_path):
    source = tmp_path / "own.cpp"
    source.write_text('#include "core/tensor.h"\nint64_t volume(const Tensor &t) { return t.volume(); }\n')
    flags = sysconfig.get_compile_flags() + sysconfig.get_link_flags()
    command = ["g++", "-shared", "-fPIC", str(source), "-o", str(tmp_path / "own.so"), *flags]
    subprocess.run(command, check=True)


def test_the_pickler_sends_what_can_not_be_imported():
    out = io.BytesIO()
    k = 2
    reducers.DaliCallbackPickler(out, 5).dump([lambda x: x * k, io])
    double, module = pickle.loads(out.getvalue())
    assert double(21) == 42 and module is io
