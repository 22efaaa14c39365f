# SPDX-License-Identifier: Apache-2.0
"""NEON loops give the same bits as AVX2 loops: compiled for both and run by QEMU. tools/arm_test.sh runs the other
tests on an emulated ARM, which is slow."""

import pytest

from arm_loops import ARM, FLAGS, X86, build, names, run

MISSING = ARM.missing() + X86.missing()
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(MISSING), reason=f"`make arm` installs {', '.join(MISSING)}"),
]


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("loops")
    # One instruction set is enough on x86-64, and takes a third of the time.
    return build(ARM, folder / "arm"), build(X86, folder / "x86", [*FLAGS, "-march=x86-64-v3", "-DCLONES="])


def test_same_bits(programs):
    arm, x86 = programs
    all_names = names(arm, ARM)
    assert len(all_names) > 15 and all_names == names(x86, X86)
    differ = [n for n in all_names if run(arm, ARM, n)[:2] != run(x86, X86, n)[:2]]
    assert not differ
