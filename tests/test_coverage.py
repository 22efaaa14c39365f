# SPDX-License-Identifier: Apache-2.0
"""Every operator has a file of its name and a corresponding test file."""

import subprocess
import sys
from pathlib import Path

import pytest

from penstock.core.op import REGISTRY

ROOT = Path(__file__).parents[1]


def test_every_operator_has_a_test_file():
    """test_<operator>.py, or a file of the family that tests several operators and names them."""
    missing = []
    for name, cls in REGISTRY.items():
        family, module = cls.__module__.split(".")[-2:]
        folder = ROOT / "tests" / "operators" / family
        if (folder / f"test_{module}.py").exists():
            continue
        if not any(name in (t := p.read_text()) or f'"{module}"' in t for p in folder.glob("test_*.py")):
            missing.append(f"fn.{name}: tests/operators/{family}/test_{module}.py")
    assert not missing


def test_every_operator_has_a_file_of_its_name():
    """fn.decoders.image_crop is operators/<family>/image_crop.py."""
    wrong = [
        f"fn.{n} is in {c.__module__}" for n, c in REGISTRY.items() if c.__module__.split(".")[-1] != n.split(".")[-1]
    ]
    assert not wrong


# Packages that only some tests of operators need.
OPTIONAL = (
    "av lmdb obstore pyarrow soundfile astropy tensorflow torch torchvision jax paddle lz4 brotli cryptography moto "
)
OPTIONAL += "google webdataset pycocotools cv2 cupy numba"
LOAD = """
import sys
sys.path[:0] = [{tests!r}, {tests!r} + "/emulator"]
import pytest
class Missing:
    def find_spec(name, path=None, target=None):
        if name.split(".")[0] in {optional!r}.split():
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Missing)
from modules import load
from pathlib import Path
for file in sys.argv[1:]:
    sys.path.append(str(Path(file).parent))
    try:
        load(Path(file))
    except (ImportError, pytest.skip.Exception) as e:
        print(f"{{file}}: {{type(e).__name__}}: {{e}}")
"""


def unloadable(*files):
    program = LOAD.format(tests=str(ROOT / "tests"), optional=OPTIONAL)
    command = [sys.executable, "-c", program, *map(str, files)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert not run.returncode, run.stderr
    return run.stdout.splitlines()


def test_tests_of_operators_can_be_loaded_without_the_packages_that_some_of_them_use():
    """Tests without their packages are skipped when they run, as declarations in their files are used elsewhere
    (`operator_tests`)."""
    assert not unloadable(*sorted(ROOT.glob("tests/operators/*/test_*.py")))


@pytest.mark.parametrize("line", ["import av", "pytest.importorskip('av')", "pytest.skip('', allow_module_level=True)"])
def test_the_check_sees_files_that_cannot_be_loaded(tmp_path, line):
    (tmp_path / "test_it.py").write_text(f"import pytest\n{line}\n")
    assert len(unloadable(tmp_path / "test_it.py")) == 1
